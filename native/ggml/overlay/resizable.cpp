/* resizable.cpp: the resizable pair's interface, over roles.h. */
#include "resizable.h"
#include "sched.h"

static void read(const role * r, uint64_t * generation, uint64_t * shrink_generation) {
    *generation = r->generation;
    *shrink_generation = r->shrink_generation;
}

bool ggml_gallocr_set_resizable(ggml_gallocr_t galloc, ggml_gallocr_t owner) {
    return owner ? role_borrow(role_find(galloc), role_find(owner)) : role_own(role_find(galloc));
}

void ggml_gallocr_get_resizable_state(ggml_gallocr_t galloc, uint64_t * generation, uint64_t * shrink_generation) {
    read(role_find(galloc), generation, shrink_generation);
}

void ggml_gallocr_request_shrink(ggml_gallocr_t galloc) { role_request_shrink(role_find(galloc)); }

bool ggml_backend_sched_set_resizable(ggml_backend_sched_t sched, ggml_backend_sched_t owner) {
    return owner ? role_borrow(sched_role(sched), sched_role(owner)) : role_own(sched_role(sched));
}

void ggml_backend_sched_get_buffer_state(ggml_backend_sched_t sched, uint64_t * generation, uint64_t * shrink_generation) {
    read(sched_role(sched), generation, shrink_generation);
}

void ggml_backend_sched_request_buffer_shrink(ggml_backend_sched_t sched) { role_request_shrink(sched_role(sched)); }
