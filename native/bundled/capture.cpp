#include "captures.h"

namespace gc {

void capture_open(gc_session &) {}

void capture_close(gc_session &) {}

int32_t capture_step(gc_session &, const gc_op &, gc_obs &) {
    return GC_MISUSE;
}

void capture_observe(gc_session &, const gc_op &, gc_obs &) {}

bool capture_going_on(const gc_session &) {
    return false;
}

bool captured_stream(const gc_session &, int) {
    return false;
}

void drop_captured(gc_session &, uint32_t) {}

} // namespace gc
