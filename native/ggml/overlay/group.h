/* group.h: the shared group as a tree declares it that has it (contract, "The C
 * interface of a ggml tree that has this", the older variant). The overlay adds it
 * to a tree that has not.
 */
#ifndef GC_OVERLAY_GROUP_H
#define GC_OVERLAY_GROUP_H

#include "ggml-alloc.h"
#include "ggml-backend.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct circle * ggml_gallocr_shared_buffers_t;

ggml_gallocr_shared_buffers_t ggml_gallocr_shared_buffers_new(void);
/* The group lives on until its last member has gone. */
void     ggml_gallocr_shared_buffers_free(ggml_gallocr_shared_buffers_t shared);
uint64_t ggml_gallocr_shared_buffers_generation(ggml_gallocr_shared_buffers_t shared);
uint64_t ggml_gallocr_shared_buffers_plan_generation(ggml_gallocr_shared_buffers_t shared);
void     ggml_gallocr_shared_buffers_request_shrink(ggml_gallocr_shared_buffers_t shared);
/* Before any buffers exist, and once; aborts otherwise. */
void     ggml_gallocr_set_shared_buffers(ggml_gallocr_t galloc, ggml_gallocr_shared_buffers_t shared);

/* The same through a scheduler. What is read or requested needs a member. */
void     ggml_backend_sched_set_shared_buffers(ggml_backend_sched_t sched, ggml_gallocr_shared_buffers_t shared);
uint64_t ggml_backend_sched_shared_buffers_generation(ggml_backend_sched_t sched);
uint64_t ggml_backend_sched_shared_buffers_plan_generation(ggml_backend_sched_t sched);
void     ggml_backend_sched_request_shared_buffer_shrink(ggml_backend_sched_t sched);

#ifdef __cplusplus
}
#endif
#endif
