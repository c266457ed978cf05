/* measured.cpp: a graph allocator for trees whose own has no buffers (the first of 2024). The caller
 * measures a graph, makes a buffer of that size, and allocates the graph in it. As it would
 * have been done then by a careful program: every graph is measured, so that one that does
 * not fit is met with a larger buffer and never with an assertion.
 */
#include "plain.h"

#ifndef GC_HAVE_GALLOCR

#include <set>

namespace gc {

struct Measured {
    ggml_backend_buffer_type_t type;
    ggml_gallocr_t             planner;
    ggml_backend_buffer_t      buffer = nullptr;
};

/* Planning binds the tensors that it is shown; what it did is taken back. */
class Undo {
  public:
    explicit Undo(const ggml_cgraph * g) {
        for (int i = 0; i < g->n_leafs; i++) {
            note(g->leafs[i]);
        }
        for (int i = 0; i < g->n_nodes; i++) {
            note(g->nodes[i]);
        }
    }
    ~Undo() {
        for (auto & [tensor, before] : saved) {
            *tensor = before;
        }
    }

  private:
    void note(ggml_tensor * t) { saved.emplace_back(t, *t); }
    std::vector<std::pair<ggml_tensor *, ggml_tensor>> saved;
};

/* The allocator of the type asks it for a buffer to measure by: of no device. */
static size_t measure(Measured & m, ggml_cgraph * g) {
    Running & run = static_cast<Part *>(m.type->context)->type->session->run;
    const Undo undo(g);
    run.uncounted = true;
    ggml_tallocr_t all = ggml_tallocr_new_measure_from_buft(m.type);
    const size_t size = ggml_gallocr_alloc_graph(m.planner, all, g);
    ggml_tallocr_free(all);
    run.uncounted = false;
    return size;
}

static bool make_room(Measured & m, size_t size) {
    if (m.buffer && size <= ggml_backend_buffer_get_size(m.buffer)) {
        return true;
    }
    ggml_backend_buffer_free(m.buffer);
    m.buffer = ggml_backend_buft_alloc_buffer(m.type, size);
    return m.buffer != nullptr;
}

bool plain_mixes_types() { return false; }

/* No flag tells such a tree what is given before, or wanted afterwards: what somebody reads is freed then. */
bool plain_knows(const Graph & g) {
    for (const gc_tensor & t : g.tensors) {
        for (int32_t src : t.src) {
            if (src >= 0 && (g.is((uint32_t) src, GC_OUTPUT) || g.is(g.root((uint32_t) src), GC_OUTPUT | GC_INPUT))) {
                return false;
            }
        }
    }
    return true;
}

Plain plain_new(ggml_backend_buffer_type_t * types, int) { return new Measured{types[0], ggml_gallocr_new()}; }

void plain_free(Plain p) {
    if (p) {
        ggml_gallocr_free(p->planner);
        ggml_backend_buffer_free(p->buffer);
        delete p;
    }
}

bool plain_reserve(Plain p, ggml_cgraph * g, const int *, const int *) { return make_room(*p, measure(*p, g)); }

bool plain_alloc(Plain p, ggml_cgraph * g) {
    if (!make_room(*p, measure(*p, g))) {
        return false;
    }
    ggml_tallocr_t all = ggml_tallocr_new_from_buffer(p->buffer);
    ggml_gallocr_alloc_graph(p->planner, all, g);
    ggml_tallocr_free(all);
    return true;
}

size_t plain_size(Plain p, int slot) { return slot || !p->buffer ? 0 : ggml_backend_buffer_get_size(p->buffer); }

} // namespace gc

#endif
