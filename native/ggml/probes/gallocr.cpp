/* Compiles where a graph allocator owns its buffers and can be told to reserve. */
#include "ggml-alloc.h"
bool probe(ggml_backend_buffer_type_t * types, ggml_cgraph * g) {
    ggml_gallocr_t a = ggml_gallocr_new_n(types, 1);
    return ggml_gallocr_reserve(a, g) && ggml_gallocr_alloc_graph(a, g) && ggml_gallocr_get_buffer_size(a, 0);
}
