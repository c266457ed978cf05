/* meta.h: meta buffers that can be shared (M1 to M3). On a tree whose meta backend the
 * overlay does not know, aliases are the buffers themselves.
 */
#ifndef GC_OVERLAY_META_H
#define GC_OVERLAY_META_H

#include "ggml-backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A buffer of any type; of a meta type it is made whole or not at all (M1). NULL where it cannot be made. */
ggml_backend_buffer_t overlay_alloc_buffer(ggml_backend_buffer_type_t buft, size_t size);

/* What a role binds to: of a meta buffer an alias, made anew, in the place of `old`; of any other the buffer itself. */
ggml_backend_buffer_t overlay_alias(ggml_backend_buffer_t buffer, ggml_backend_buffer_t old);
void                  overlay_alias_free(ggml_backend_buffer_t alias); /* NULL, and what is no alias, is left alone */

#ifdef __cplusplus
}
#endif
#endif
