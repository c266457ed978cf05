#include "session.h"

namespace gc {

void pool_open(gc_session &) {}

void pool_close(gc_session &) {}

int32_t pool_step(gc_session &, const gc_op &, gc_obs &) {
    return GC_MISUSE;
}

void pool_observe(gc_session &, const gc_op &, gc_obs &) {}

} // namespace gc
