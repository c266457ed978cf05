// compute.h: runs a bound graph, with its memory as the oracle: every tensor is
// filled with bytes that follow from the graph alone (gc_oracle.h), and checked
// before it is read. All of it is kernels on a stream (kernels.h).
#pragma once

#include "gallocr.h"

namespace gc {

struct findings {
    uint32_t trouble = 0; // GC_BAD_...
    int32_t bad_node = -1;
    int32_t bad_src = -1;
    uint64_t bad_offset = 0;
    uint64_t digest = 0;
};

// Runs it now and waits for it.
findings compute(const bound_graph & b);

// A graph's work on a stream, not waited for: its kernels, and where they put
// what they find. `scratch`: a pool's block on each device that the graph has
// tensors on (bytes as scratch_size says), or null; nodes write and verify it.
struct flight;
struct launch_options {
    const cuda::driver * api;
    cuda::stream stream;
    const uint8_t * const * scratch; // [GC_MAX_TYPES], by device; null: none
};
// Bytes of scratch that a node takes of each device: the largest node's size, at most 4096, rounded up to 128.
uint64_t scratch_size(const graph & g);
flight * launch(const bound_graph & b, const launch_options & how);
// After the stream was synchronized (for a captured graph: after each replay): what its kernels
// found. May be asked again; `forget` frees it.
findings landed(flight & f);
void forget(flight * f);
// P3: GC_BAD_GUARD where something was written between a buffer's end and its last page's end, else 0.
uint32_t guard_trouble(const gallocr & a);

} // namespace gc
