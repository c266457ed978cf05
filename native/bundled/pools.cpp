#include "session.h"

namespace gc {

void pool_open(gc_session &) {}

void pool_close(gc_session &) {}

int32_t pool_step(gc_session &, const gc_op &, gc_obs &) {
    return GC_MISUSE;
}

void pool_observe(gc_session &, const gc_op &, gc_obs &) {}

bool pool_take(gc_session &, int, const graph &, std::array<const uint8_t *, GC_MAX_TYPES> & scratch) {
    scratch = {};
    return true;
}

void pool_give(gc_session &) {}

} // namespace gc
