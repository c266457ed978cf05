// graph.h: a graph as it was defined, with what follows from it alone.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gallocheck.h"
#include "machine.h"

namespace gc {

struct graph {
    std::vector<gc_tensor> tensors;
    std::vector<uint64_t> values;      // what each tensor must hold, see gc_oracle.h
    std::vector<bool> read;            // some tensor has it as a source
    std::vector<uint64_t> own_offset;  // preallocated leafs: where in `own`
    uint8_t * own = nullptr;           // memory of preallocated leafs, made and filled on first use; it goes with the session
    uint64_t own_size = 0;

    graph(const gc_tensor * t, uint32_t n);
    graph(const graph &) = delete;
    graph & operator=(const graph &) = delete;

    bool is_view(uint32_t i) const { return tensors[i].view_src >= 0; }
    bool has(uint32_t i, uint32_t flag) const { return tensors[i].flags & flag; }
    uint32_t root(uint32_t i) const { return is_view(i) ? uint32_t(tensors[i].view_src) : i; }
    uint32_t size() const { return uint32_t(tensors.size()); }

    // Where a preallocated leaf lives; host memory, on no device. Of a leaf that no machine could
    // hold (machine::host_most) only the start exists: it can be planned around, not computed on.
    uint8_t * own_memory(uint32_t i);
};

// The rules stated with gc_tensor in gallocheck.h.
bool makes_sense(const gc_tensor * t, uint32_t n);
// All tensors equal: a plan made for one is right for the other.
bool same_graph(const graph & a, const graph & b);
// A context's template with its sizes multiplied (GC_SCALE_...): a batch of so many tokens, of which the parts
// of the memory have attention, window and indexer cells (W7).
std::unique_ptr<graph> scaled(const graph & of, uint32_t tokens, uint32_t attention, uint32_t window, uint32_t indexer);

} // namespace gc
