/* no_meta.cpp: in the place of meta.cpp, where a tree's meta backend is none that the overlay knows. */
#include "meta.h"

ggml_backend_buffer_t overlay_alloc_buffer(ggml_backend_buffer_type_t buft, size_t size) { return ggml_backend_buft_alloc_buffer(buft, size); }
ggml_backend_buffer_t overlay_alias(ggml_backend_buffer_t buffer, ggml_backend_buffer_t) { return buffer; }
void                  overlay_alias_free(ggml_backend_buffer_t) {}
