/* sched.h: the role of a scheduler's graph allocator. */
#ifndef GC_OVERLAY_SCHED_H
#define GC_OVERLAY_SCHED_H

#include "roles.h"

/* From now on those who share its buffers wait for this scheduler's work (C1). */
role * sched_role(ggml_backend_sched_t sched);

#endif
