#include "session.h"

namespace gc {

void sched_open(gc_session &) {}

void sched_close(gc_session &) {}

int32_t sched_step(gc_session &, const gc_op &, gc_obs &) {
    return GC_MISUSE;
}

void sched_observe(gc_session &, const gc_op &, gc_obs &) {}

bool by_sched(const gc_session &, int32_t) {
    return false;
}
} // namespace gc
