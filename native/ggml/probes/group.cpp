/* Compiles where the tree declares the shared group (contract, last section). */
#include "ggml-alloc.h"
#include "ggml-backend.h"
#ifdef GC_EXTRA_HEADER
#include GC_EXTRA_HEADER
#endif
uint64_t probe(ggml_gallocr_t g, ggml_backend_sched_t s) {
    ggml_gallocr_shared_buffers_t b = ggml_gallocr_shared_buffers_new();
    ggml_gallocr_set_shared_buffers(g, b);
    ggml_backend_sched_set_shared_buffers(s, b);
    ggml_gallocr_shared_buffers_request_shrink(b);
    ggml_backend_sched_request_shared_buffer_shrink(s);
    uint64_t n = ggml_gallocr_shared_buffers_generation(b) + ggml_gallocr_shared_buffers_plan_generation(b)
        + ggml_backend_sched_shared_buffers_generation(s) + ggml_backend_sched_shared_buffers_plan_generation(s);
    ggml_gallocr_shared_buffers_free(b);
    return n;
}
