// graph.h: a graph as it was defined, with what follows from it alone.
#pragma once

#include <cstdint>
#include <vector>

#include "gallocheck.h"

namespace gc {

struct graph {
    std::vector<gc_tensor> tensors;
    std::vector<uint64_t> values;      // what each tensor must hold, see gc_oracle.h
    std::vector<bool> read;            // some tensor has it as a source
    uint64_t hash = 0;                 // of the tensors
    std::vector<uint64_t> own_offset;  // preallocated leafs: where in `own`
    uint8_t * own = nullptr;           // memory of preallocated leafs, made and filled on first use
    uint64_t own_size = 0;

    graph(const gc_tensor * t, uint32_t n);
    ~graph();
    graph(const graph &) = delete;
    graph & operator=(const graph &) = delete;

    bool is_view(uint32_t i) const { return tensors[i].view_src >= 0; }
    bool has(uint32_t i, uint32_t flag) const { return tensors[i].flags & flag; }
    uint32_t root(uint32_t i) const { return is_view(i) ? uint32_t(tensors[i].view_src) : i; }
    uint32_t size() const { return uint32_t(tensors.size()); }

    // Where a preallocated leaf lives; host memory, on no device.
    uint8_t * own_memory(uint32_t i);
};

// The rules stated with gc_tensor in gallocheck.h.
bool makes_sense(const gc_tensor * t, uint32_t n);
// All tensors equal.
bool same_graph(const graph & a, const graph & b);

} // namespace gc
