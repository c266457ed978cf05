#include "session.h"

namespace gc {

void server_open(gc_session &) {}

void server_close(gc_session &) {}

int32_t server_step(gc_session &, const gc_op &, gc_obs &) {
    return GC_MISUSE;
}

void server_observe(gc_session &, const gc_op &, gc_obs &) {}

} // namespace gc
