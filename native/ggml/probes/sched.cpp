/* Compiles where a scheduler allocates apart from computing, so that it can be seen where a graph is bound. */
#include "ggml-backend.h"
#include "ggml-backend-impl.h"
bool probe(ggml_backend_sched_t s, ggml_tensor * t, ggml_backend_t b, ggml_cgraph * g) {
    ggml_backend_sched_set_tensor_backend(s, t, b);
    ggml_backend_sched_synchronize(s);
    return ggml_backend_sched_alloc_graph(s, g) && ggml_backend_sched_graph_compute_async(s, g) == GGML_STATUS_SUCCESS;
}
