/* sched.cpp: the tree's scheduler with buffers that can be shared.
 *
 * Its ggml-backend.cpp is included with a few public functions renamed; these are
 * wrapped so that no buffer is replaced under work in flight, of whoever shares it
 * (C1), and that a failed reservation leaves no half bound graph behind (C2).
 */
#define ggml_backend_sched_reserve             tree_sched_reserve
#define ggml_backend_sched_reserve_size        tree_sched_reserve_size
#define ggml_backend_sched_alloc_graph         tree_sched_alloc_graph
#define ggml_backend_sched_graph_compute       tree_sched_graph_compute
#define ggml_backend_sched_graph_compute_async tree_sched_graph_compute_async

#include "ggml-backend.cpp"

#undef ggml_backend_sched_reserve
#undef ggml_backend_sched_reserve_size
#undef ggml_backend_sched_alloc_graph
#undef ggml_backend_sched_graph_compute
#undef ggml_backend_sched_graph_compute_async

#include "overlay/sched.h"
#include "defects.h"

namespace {

void wait_for(ggml_backend_sched_t sched) {
    for (int i = 0; i < sched->n_backends; i++) {
        ggml_backend_synchronize(sched->backends[i]);
    }
}

/* C1. Not through the scheduler's own synchronize, which also chooses a copy. */
void wait_for_all(ggml_backend_sched_t sched) {
    wait_for(sched);
    if (GC_PLANTED(OTHER_ROLE_RUNS_ON)) return;
    for (const role * r = role_find(sched->galloc)->circle->members; r; r = r->beside) {
        if (r->sched) {
            wait_for(static_cast<ggml_backend_sched_t>(r->sched));
        }
    }
}

} // namespace

extern "C" {

/* The tree's headers were read under other names, and old ones do not have all of these. */
void ggml_gallocr_reserve_n_size(
        ggml_gallocr_t g, struct ggml_cgraph * graph, const int * nodes, const int * leafs, size_t * sizes);
bool ggml_backend_sched_reserve(ggml_backend_sched_t sched, struct ggml_cgraph * graph);
void ggml_backend_sched_reserve_size(ggml_backend_sched_t sched, struct ggml_cgraph * graph, size_t * sizes);
bool ggml_backend_sched_alloc_graph(ggml_backend_sched_t sched, struct ggml_cgraph * graph);
enum ggml_status ggml_backend_sched_graph_compute(ggml_backend_sched_t sched, struct ggml_cgraph * graph);
enum ggml_status ggml_backend_sched_graph_compute_async(ggml_backend_sched_t sched, struct ggml_cgraph * graph);

/* Trees reset first, here or when they measure, which forgets where the caller wants its tensors (P12). */
bool ggml_backend_sched_reserve(ggml_backend_sched_t sched, struct ggml_cgraph * graph) {
    wait_for_all(sched);
    ggml_backend_sched_split_graph(sched, graph);
    const bool ok = ggml_gallocr_reserve_n(sched->galloc, &sched->graph, sched->node_backend_ids, sched->leaf_backend_ids);
    ggml_backend_sched_reset(sched);
    return ok;
}

void ggml_backend_sched_reserve_size(ggml_backend_sched_t sched, struct ggml_cgraph * graph, size_t * sizes) {
    wait_for(sched);
    ggml_backend_sched_split_graph(sched, graph);
    ggml_gallocr_reserve_n_size(sched->galloc, &sched->graph, sched->node_backend_ids, sched->leaf_backend_ids, sizes);
    ggml_backend_sched_reset(sched);
}

bool ggml_backend_sched_alloc_graph(ggml_backend_sched_t sched, struct ggml_cgraph * graph) {
    wait_for_all(sched);
    return tree_sched_alloc_graph(sched, graph);
}

enum ggml_status ggml_backend_sched_graph_compute_async(ggml_backend_sched_t sched, struct ggml_cgraph * graph) {
    if (!sched->is_alloc) {
        wait_for_all(sched);
    }
    return tree_sched_graph_compute_async(sched, graph);
}

enum ggml_status ggml_backend_sched_graph_compute(ggml_backend_sched_t sched, struct ggml_cgraph * graph) {
    const enum ggml_status status = ggml_backend_sched_graph_compute_async(sched, graph);
    ggml_backend_sched_synchronize(sched);
    return status;
}

} // extern "C"

role * sched_role(ggml_backend_sched_t sched) {
    role * r = role_find(sched->galloc);
    r->sched = sched;
    return r;
}

extern "C" ggml_gallocr_t gc_overlay_gallocr(ggml_backend_sched_t sched) { return sched->galloc; }
