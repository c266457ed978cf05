// planner.h (P): where each tensor of a graph goes. docs/choices.md says how.
#pragma once

#include <array>
#include <vector>

#include "buffer.h"
#include "graph.h"

namespace gc {

// The buffer types and the slot list that an allocator was made with.
struct layout {
    const gc_type * types;
    const int32_t * slots;
    int32_t n_slots;

    int32_t type_of(const gc_tensor & t) const { return slots[t.slot % n_slots]; }
};

// A tensor in no memory of the allocator's: preallocated, or a view of one (P14).
inline constexpr gc_place outside = {-1, -1, 0};

struct plan {
    std::vector<gc_place> places;                // in graph order
    std::array<chunk_sizes, GC_MAX_TYPES> need{}; // P11: the highest end in each chunk
};

// False where the graph cannot be planned: sizes near the largest integer, or
// no chunk left (P13). `out` is then unfinished.
bool make_plan(const graph & g, const layout & l, plan & out);

} // namespace gc
