#include "session.h"

namespace gc {

void capture_open(gc_session &) {}

void capture_close(gc_session &) {}

int32_t capture_step(gc_session &, const gc_op &, gc_obs &) {
    return GC_MISUSE;
}

void capture_observe(gc_session &, const gc_op &, gc_obs &) {}

} // namespace gc
