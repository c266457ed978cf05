/* sched.cpp: the tree's scheduler with the resizable pair added.
 *
 * Its ggml-backend.cpp is included with a few public functions renamed; these are
 * wrapped so that no buffer is replaced under work in flight, of the partner either
 * (C1), and that a failed reservation leaves no half bound graph behind (C2).
 */
#define ggml_backend_sched_reserve             tree_sched_reserve
#define ggml_backend_sched_reserve_size        tree_sched_reserve_size
#define ggml_backend_sched_alloc_graph         tree_sched_alloc_graph
#define ggml_backend_sched_graph_compute       tree_sched_graph_compute
#define ggml_backend_sched_graph_compute_async tree_sched_graph_compute_async
#define ggml_backend_sched_free                tree_sched_free

#include "ggml-backend.cpp"

#undef ggml_backend_sched_reserve
#undef ggml_backend_sched_reserve_size
#undef ggml_backend_sched_alloc_graph
#undef ggml_backend_sched_graph_compute
#undef ggml_backend_sched_graph_compute_async
#undef ggml_backend_sched_free

#include "overlay/resizable.h"
#include "overlay/pair.h"
#include "defects.h"

#include <map>

namespace {

/* Schedulers that take part in a pair, by their graph allocator. */
std::map<const void *, ggml_backend_sched_t> & resizable() {
    static std::map<const void *, ggml_backend_sched_t> all;
    return all;
}

void wait_for(ggml_backend_sched_t sched) {
    for (int i = 0; i < sched->n_backends; i++) {
        ggml_backend_synchronize(sched->backends[i]);
    }
}

/* C1. Not through the scheduler's own synchronize, which also chooses a copy. */
void wait_for_pair(ggml_backend_sched_t sched) {
    wait_for(sched);
    const role * r = role_find(sched->galloc);
    if (GC_PLANTED(OTHER_ROLE_RUNS_ON)) return;
    if (r->partner) {
        auto other = resizable().find(r->partner->key);
        if (other != resizable().end()) {
            wait_for(other->second);
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
void ggml_backend_sched_free(ggml_backend_sched_t sched);

bool ggml_backend_sched_reserve(ggml_backend_sched_t sched, struct ggml_cgraph * graph) {
    wait_for_pair(sched);
    const bool ok = tree_sched_reserve(sched, graph);
    if (!ok) {
        ggml_backend_sched_reset(sched);
    }
    return ok;
}

/* The tree resets first, which forgets where the caller wants its tensors (P12). */
void ggml_backend_sched_reserve_size(ggml_backend_sched_t sched, struct ggml_cgraph * graph, size_t * sizes) {
    wait_for(sched);
    ggml_backend_sched_split_graph(sched, graph);
    ggml_gallocr_reserve_n_size(sched->galloc, &sched->graph, sched->node_backend_ids, sched->leaf_backend_ids, sizes);
    ggml_backend_sched_reset(sched);
}

bool ggml_backend_sched_alloc_graph(ggml_backend_sched_t sched, struct ggml_cgraph * graph) {
    wait_for_pair(sched);
    return tree_sched_alloc_graph(sched, graph);
}

enum ggml_status ggml_backend_sched_graph_compute_async(ggml_backend_sched_t sched, struct ggml_cgraph * graph) {
    if (!sched->is_alloc) {
        wait_for_pair(sched);
    }
    return tree_sched_graph_compute_async(sched, graph);
}

enum ggml_status ggml_backend_sched_graph_compute(ggml_backend_sched_t sched, struct ggml_cgraph * graph) {
    const enum ggml_status status = ggml_backend_sched_graph_compute_async(sched, graph);
    ggml_backend_sched_synchronize(sched);
    return status;
}

void ggml_backend_sched_free(ggml_backend_sched_t sched) {
    if (sched) {
        resizable().erase(sched->galloc);
    }
    tree_sched_free(sched);
}

bool ggml_backend_sched_set_resizable(ggml_backend_sched_t sched, ggml_backend_sched_t owner) {
    if (!ggml_gallocr_set_resizable(sched->galloc, owner ? owner->galloc : nullptr)) {
        return false;
    }
    resizable()[sched->galloc] = sched;
    return true;
}

void ggml_backend_sched_get_buffer_state(ggml_backend_sched_t sched, uint64_t * generation, uint64_t * shrink_generation) {
    ggml_gallocr_get_resizable_state(sched->galloc, generation, shrink_generation);
}

void ggml_backend_sched_request_buffer_shrink(ggml_backend_sched_t sched) { ggml_gallocr_request_shrink(sched->galloc); }

} // extern "C"
