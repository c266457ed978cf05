/* resizable.h: the resizable pair as a tree declares it that has it (contract,
 * "The C interface of a ggml tree that has this"). The overlay adds it to a tree
 * that has not: alloc.c and sched.cpp include the tree's own sources and wrap
 * their public functions.
 */
#ifndef GC_OVERLAY_RESIZABLE_H
#define GC_OVERLAY_RESIZABLE_H

#include "ggml-alloc.h"
#include "ggml-backend.h"

#ifdef __cplusplus
extern "C" {
#endif

bool ggml_gallocr_set_resizable(ggml_gallocr_t galloc, ggml_gallocr_t owner);
void ggml_gallocr_get_resizable_state(ggml_gallocr_t galloc, uint64_t * generation, uint64_t * shrink_generation);
void ggml_gallocr_request_shrink(ggml_gallocr_t galloc);

bool ggml_backend_sched_set_resizable(ggml_backend_sched_t sched, ggml_backend_sched_t owner);
void ggml_backend_sched_get_buffer_state(ggml_backend_sched_t sched, uint64_t * generation, uint64_t * shrink_generation);
void ggml_backend_sched_request_buffer_shrink(ggml_backend_sched_t sched);

/* Not of that interface: the allocator in a scheduler, so that what both read can be compared (C5). */
ggml_gallocr_t gc_overlay_gallocr(ggml_backend_sched_t sched);

#ifdef __cplusplus
}
#endif
#endif
