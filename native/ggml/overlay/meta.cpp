/* meta.cpp: the tree's meta backend with buffers that can be shared.
 *
 * Its ggml-backend-meta.cpp is included as it stands. An alias is a meta buffer of
 * the same simple buffers with a tensor map of its own; it does not own them (M2).
 */
#include "ggml-backend-meta.cpp"

#include "overlay/meta.h"
#include "defects.h"

namespace {

std::set<ggml_backend_buffer_t> aliases;

/* As the tree does it: two maps, used in turn. */
ggml_backend_buffer_t buffer_of(ggml_backend_buffer_type_t buft, const std::vector<ggml_backend_buffer_t> & parts, size_t tensors, size_t size) {
    const ggml_init_params params = {tensors * ggml_tensor_overhead(), nullptr, true};
    const int n = (int) parts.size();
    ggml_backend_meta_simple_tensor_container fixed, first(params, n), second(params, n);
    auto * context = new ggml_backend_meta_buffer_context(fixed, first, second, parts);
    ggml_backend_buffer_t b = ggml_backend_buffer_init(buft, ggml_backend_meta_buffer_iface, context, size);
    ggml_backend_buffer_set_usage(b, GGML_BACKEND_BUFFER_USAGE_COMPUTE);
    return b;
}

ggml_backend_meta_buffer_context & context_of(ggml_backend_buffer_t b) { return *static_cast<ggml_backend_meta_buffer_context *>(b->context); }

ggml_backend_buffer_t alias_of(ggml_backend_buffer_t buffer) {
    std::vector<ggml_backend_buffer_t> parts;
    for (const auto & part : context_of(buffer).bufs) {
        const bool kept = GC_PLANTED(ALIAS_IS_KEPT); /* it outlives the part: with a copy it fails the same way every time */
        parts.push_back(kept ? new ggml_backend_buffer(*part) : part.get());
    }
    ggml_backend_buffer_t alias = buffer_of(buffer->buft, parts, 1 << 16, buffer->size);
    aliases.insert(alias);
    return alias;
}

} // namespace

extern "C" {

ggml_backend_buffer_t overlay_alloc_buffer(ggml_backend_buffer_type_t buft, size_t size) {
    if (!ggml_backend_buft_is_meta(buft) || size == 0) {
        return ggml_backend_buft_alloc_buffer(buft, size);
    }
    std::vector<ggml_backend_buffer_t> parts;
    size_t largest = 0;
    for (size_t j = 0; j < ggml_backend_meta_buft_n_bufts(buft); j++) {
        ggml_backend_buffer_t part = ggml_backend_buft_alloc_buffer(ggml_backend_meta_buft_simple_buft(buft, j), size);
        if (!part) {
            for (ggml_backend_buffer_t earlier : parts) {
                if (GC_PLANTED(PARTS_ARE_KEPT)) continue;
                ggml_backend_buffer_free(earlier);
            }
            return nullptr;
        }
        parts.push_back(part);
        largest = std::max(largest, ggml_backend_buffer_get_size(part));
    }
    return buffer_of(buft, parts, 1, largest);
}

ggml_backend_buffer_t overlay_alias(ggml_backend_buffer_t buffer, ggml_backend_buffer_t old) {
    if (!ggml_backend_buffer_is_meta(buffer)) {
        return buffer;
    }
    if (GC_PLANTED(ALIAS_IS_KEPT) && old) return old;
    overlay_alias_free(old);
    static std::map<ggml_backend_buffer_t, ggml_backend_buffer_t> shared;
    if (GC_PLANTED(ALIAS_IS_SHARED)) {
        ggml_backend_buffer_t & one = shared[buffer];
        return one = one ? one : alias_of(buffer);
    }
    return alias_of(buffer);
}

void overlay_alias_free(ggml_backend_buffer_t alias) {
    if (alias && aliases.erase(alias)) {
        for (auto & part : context_of(alias).bufs) {
            part.release();
        }
        ggml_backend_buffer_free(alias);
    }
}

} // extern "C"
