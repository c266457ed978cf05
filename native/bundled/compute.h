// compute.h: runs a bound graph, with its memory as the oracle: every tensor is
// filled with bytes that follow from the graph alone (gc_oracle.h), and checked
// before it is read.
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

findings compute(const bound_graph & b);
// P3: nothing was written between a buffer's end and its last page's end.
bool guards_hold(const gallocr & a);

} // namespace gc
