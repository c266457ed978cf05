/* Compiles where the tree declares the meta backend. */
#include "ggml-backend.h"
#include "ggml-backend-impl.h"
static ggml_backend_meta_split_state state(const ggml_tensor *, void *) {
    ggml_backend_meta_split_state s;
    s.axis = GGML_BACKEND_SPLIT_AXIS_MIRRORED;
    s.n_segments = 1;
    return s;
}
bool probe(ggml_backend_dev_t * devices, ggml_backend_buffer_t b) {
    return ggml_backend_buffer_is_meta(b) && ggml_backend_meta_device(devices, 2, state, nullptr);
}
