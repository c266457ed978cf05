/* Compiles where the tree declares the resizable pair (contract, last section). */
#include "ggml-alloc.h"
#include "ggml-backend.h"
#ifdef GC_EXTRA_HEADER
#include GC_EXTRA_HEADER
#endif
bool probe(ggml_gallocr_t g, ggml_backend_sched_t s, uint64_t * n) {
    ggml_gallocr_get_resizable_state(g, n, n);
    ggml_gallocr_request_shrink(g);
    ggml_backend_sched_get_buffer_state(s, n, n);
    ggml_backend_sched_request_buffer_shrink(s);
    return ggml_gallocr_set_resizable(g, g) && ggml_backend_sched_set_resizable(s, s);
}
