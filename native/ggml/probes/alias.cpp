/* Compiles where the meta backend's insides are those that overlay/meta.cpp knows. */
#include "ggml-backend-meta.cpp"
ggml_backend_buffer_t probe(ggml_backend_buffer_type_t buft, const std::vector<ggml_backend_buffer_t> & parts) {
    ggml_backend_meta_simple_tensor_container fixed, first({0, nullptr, true}, (int) ggml_backend_meta_buft_n_bufts(buft)), second;
    auto * context = new ggml_backend_meta_buffer_context(fixed, first, second, parts);
    context->bufs[0].release();
    return ggml_backend_buffer_init(buft, ggml_backend_meta_buffer_iface, context, 0);
}
