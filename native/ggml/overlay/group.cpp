/* group.cpp: the shared group's interface, over roles.h. A group's readings are one
 * for all members: each sees every change, also of a type that it does not use.
 */
#include "group.h"
#include "sched.h"

#include "ggml.h"

ggml_gallocr_shared_buffers_t ggml_gallocr_shared_buffers_new(void) { return circle_new(); }

void ggml_gallocr_shared_buffers_free(ggml_gallocr_shared_buffers_t shared) {
    if (shared) {
        circle_drop(shared);
    }
}

uint64_t ggml_gallocr_shared_buffers_generation(ggml_gallocr_shared_buffers_t shared) { return shared->generation; }

uint64_t ggml_gallocr_shared_buffers_plan_generation(ggml_gallocr_shared_buffers_t shared) { return shared->shrink_generation; }

void ggml_gallocr_shared_buffers_request_shrink(ggml_gallocr_shared_buffers_t shared) { circle_request_shrink(shared); }

static void join(role * r, circle * c) { GGML_ASSERT(circle_join(c, r) && "a group is joined before any buffers exist"); }

void ggml_gallocr_set_shared_buffers(ggml_gallocr_t galloc, ggml_gallocr_shared_buffers_t shared) { join(role_find(galloc), shared); }

void ggml_backend_sched_set_shared_buffers(ggml_backend_sched_t sched, ggml_gallocr_shared_buffers_t shared) { join(sched_role(sched), shared); }

uint64_t ggml_backend_sched_shared_buffers_generation(ggml_backend_sched_t sched) { return sched_role(sched)->circle->generation; }

uint64_t ggml_backend_sched_shared_buffers_plan_generation(ggml_backend_sched_t sched) { return sched_role(sched)->circle->shrink_generation; }

void ggml_backend_sched_request_shared_buffer_shrink(ggml_backend_sched_t sched) { circle_request_shrink(sched_role(sched)->circle); }
