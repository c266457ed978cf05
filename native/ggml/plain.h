/* plain.h: the tree's graph allocator, without a scheduler. */
#ifndef GC_GGML_PLAIN_H
#define GC_GGML_PLAIN_H

#include "subject.h"

namespace gc {

/* Whether the tree can be told all that there is to know: a list of types of which not all are one (leafs of
 * such a graph are placed by the caller, or where they are first read), a graph with inputs and outputs. */
bool plain_mixes_types();
bool plain_knows(const Graph & g);

Plain  plain_new(ggml_backend_buffer_type_t * types, int n);
void   plain_free(Plain p);
bool   plain_reserve(Plain p, ggml_cgraph * g, const int * nodes, const int * leafs);
bool   plain_alloc(Plain p, ggml_cgraph * g);
size_t plain_size(Plain p, int slot);

} // namespace gc

#endif
