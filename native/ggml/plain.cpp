/* plain.cpp: the graph allocator of a tree that has one with buffers of its own. */
#include "plain.h"
#include "probe.h"

#ifdef GC_HAVE_GALLOCR

GC_PROBE(ggml_gallocr_reserve_n)

namespace gc {

template <class P>
static bool reserve(P p, ggml_cgraph * g, const int * nodes, const int * leafs) {
    if constexpr (has_ggml_gallocr_reserve_n<P, ggml_cgraph *, const int *, const int *>) {
        return call_ggml_gallocr_reserve_n(p, g, nodes, leafs);
    } else {
        return call_ggml_gallocr_reserve_n(p, g, nodes); /* leafs go where they are first read */
    }
}

bool plain_mixes_types() { return has_ggml_gallocr_reserve_n<Plain, ggml_cgraph *, const int *, const int *>; }
bool plain_knows(const Graph &) { return true; }

Plain  plain_new(ggml_backend_buffer_type_t * types, int n) { return ggml_gallocr_new_n(types, n); }
void   plain_free(Plain p) { ggml_gallocr_free(p); }
bool   plain_reserve(Plain p, ggml_cgraph * g, const int * nodes, const int * leafs) { return reserve(p, g, nodes, leafs); }
bool   plain_alloc(Plain p, ggml_cgraph * g) { return ggml_gallocr_alloc_graph(p, g); }
size_t plain_size(Plain p, int slot) { return ggml_gallocr_get_buffer_size(p, slot); }

} // namespace gc

#endif
