/* drive.cpp: each operation as calls of the tree's public interface. */
#include "subject.h"
#include "defects.h"
#include "sharing.h"
#include "plain.h"
#include "probe.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

GC_PROBE(ggml_gallocr_reserve_n_size)
GC_PROBE(ggml_backend_sched_reserve_size)

namespace gc {

/* Probes, as functions: a branch on a probe has to wait for template arguments. */

template <class G> static bool measure_plain(G g, ggml_cgraph * graph, const int * nodes, const int * leafs, size_t * sizes) {
    if constexpr (has_ggml_gallocr_reserve_n_size<G, ggml_cgraph *, const int *, const int *, size_t *>) {
        call_ggml_gallocr_reserve_n_size(g, graph, nodes, leafs, sizes);
        return true;
    }
    return false;
}

template <class S> static bool measure_sched(S s, ggml_cgraph * graph, size_t * sizes) {
    if constexpr (has_ggml_backend_sched_reserve_size<S, ggml_cgraph *, size_t *>) {
        call_ggml_backend_sched_reserve_size(s, graph, sizes);
        return true;
    }
    return false;
}

bool can_measure() {
    return has_ggml_gallocr_reserve_n_size<ggml_gallocr_t, ggml_cgraph *, const int *, const int *, size_t *>;
}

#ifdef GC_HAVE_SCHED
static constexpr uint64_t sched_capability = GC_CAP_SCHED;
#else
static constexpr uint64_t sched_capability = 0;
#endif

uint64_t capabilities() {
    const uint64_t lacks = can_measure() ? 0 : GC_CAP_NO_MEASURE;
    return GC_CAP_PLAN | sched_capability | sharing_capability() | meta_capability() | lacks;
}

/* reserve, measure, bind */

static int32_t status(bool ok) { return ok ? GC_DONE : GC_REFUSED; }

/* An instance for the allocator; a scheduler has to be reset before it is told about new tensors. */
static std::shared_ptr<Instance> prepare(Session & s, Alloc & a, Graph & g) {
    if (a.sched) {
        sched_reset(a.sched);
        a.lapsed = true;
    }
    return build(s, a, g);
}

/* What has to be there before a reservation is made: a scheduler that is large enough (C3), and for a
 * borrower its owner's buffers (R14). */
static bool ready_to_reserve(Session & s, Alloc & a, const Graph & g) {
    return enlarge(s, a, g) && (!a.behind || catch_up(s, a));
}

static int32_t reserve(Session & s, Alloc & a, Graph & g) {
    if (!ready_to_reserve(s, a, g)) {
        return GC_REFUSED;
    }
    if (a.asked) {
        shrink_again(a); /* its borrower, which is behind, has yet to reserve: the request is still pending */
    }
    if (a.sched) {
        a.bound = nullptr; /* the scheduler forgets it */
    }
    auto in = prepare(s, a, g);
    const bool ok = a.sched ? sched_reserve(a.sched, in->cgraph)
                            : plain_reserve(a.plain, in->cgraph, in->node_slots.data(), in->leaf_slots.data());
    a.reserved |= ok;
    a.planned = ok ? &g : nullptr;
    if (GC_PLANTED(FAILED_RESERVE_IS_DONE) && a.sched) return GC_DONE;
    return status(ok);
}

/* A graph that is too large for the scheduler is measured through another one. */
static int32_t measure_apart(Session & s, const Alloc & a, Graph & g, uint64_t * out);

static int32_t measure(Session & s, Alloc & a, Graph & g, uint64_t * out) {
    if (!can_measure()) {
        return GC_MISUSE;
    }
    if (a.sched && g.tensors.size() > a.made_for) {
        return measure_apart(s, a, g, out);
    }
    auto in = prepare(s, a, g);
    std::vector<size_t> sizes(GC_MAX_SLOTS + 1, 0x5a5a5a); /* what the tree does not write shows */
    const bool ok = a.sched ? measure_sched(a.sched, in->cgraph, sizes.data())
                            : measure_plain(a.plain, in->cgraph, in->node_slots.data(), in->leaf_slots.data(), sizes.data());
    std::copy(sizes.begin(), sizes.begin() + a.n_slots, out);
    return ok ? GC_DONE : GC_MISUSE;
}

static int32_t measure_apart(Session & s, const Alloc & a, Graph & g, uint64_t * out) {
    Alloc other;
    other.index = a.index;
    Alloc * running = s.run.alloc;
    s.run.alloc = &other;
    make(s, other, a.config, true, g.tensors.size());
    const int32_t result = measure(s, other, g, out);
    release(s, other);
    s.run.alloc = running;
    return result;
}

static void bind(Session & s, Alloc & a, std::shared_ptr<Instance> in) {
    a.bound = std::move(in);
    a.lapsed = false;
    a.reserved = true;
    locate(s, a, *a.bound);
    a.bound->generation = generation(a);
    a.planned = a.bound->graph;
}

static bool is_planned(const Alloc & a, const Graph & g) {
    const std::vector<gc_tensor> & t = g.tensors;
    return a.planned && a.planned->tensors.size() == t.size()
        && (t.empty() || std::memcmp(a.planned->tensors.data(), t.data(), t.size() * sizeof(t[0])) == 0);
}

/* R14: a borrower that is behind may bind what fits the old buffers; otherwise an alloc is a reserve, where it may be one. */
static bool allocates_anew(const Session & s, const Alloc & a, const Graph & g) {
    bool one_type = true;
    for (int i = 1; i < a.n_slots; i++) {
        one_type = one_type && s.type_of(a, i) == s.type_of(a, 0);
    }
    return a.behind && !is_planned(a, g) && (a.sched || one_type);
}

static int32_t alloc(Session & s, Alloc & a, Graph & g) {
    if (!enlarge(s, a, g) || (allocates_anew(s, a, g) && !catch_up(s, a))) {
        return GC_REFUSED;
    }
    if (a.asked && !is_planned(a, g)) {
        shrink_again(a); /* it may be a reserve */
    }
    auto in = prepare(s, a, g);
    const bool ok = a.sched ? sched_alloc(a.sched, in->cgraph)
                            : plain_alloc(a.plain, in->cgraph);
    if (GC_PLANTED(FAILED_ALLOC_ABORTS) && a.sched && !ok) std::abort();
    if (ok) {
        bind(s, a, std::move(in));
    } else if (a.sched) {
        a.bound = nullptr; /* the scheduler has forgotten it */
    }
    return status(ok);
}

/* compute */

static bool is_there(const Session & s, const Instance & in) {
    for (uint64_t serial : in.serials) {
        if (!s.buffers[serial - 1]->live) {
            return false;
        }
    }
    return true;
}

/* R12. Generations are compared, as any holder of a graph would do. ggml has none for a
 * plain allocator: there the harness knows what was freed. */
static bool is_stale(const Session & s, const Alloc & a) {
    return a.bound->generation != generation(a) || (!a.role && !is_there(s, *a.bound));
}

static bool gives_leafs(const Graph & g) {
    for (const gc_tensor & t : g.tensors) {
        if ((t.flags & GC_LEAF) && !(t.flags & GC_PREALLOC)) {
            return true;
        }
    }
    return false;
}

static bool one_simple_type(const Session & s, const Alloc & a) {
    for (int i = 1; i < a.n_slots; i++) {
        if (s.type_of(a, i) != s.type_of(a, 0)) {
            return false;
        }
    }
    return !s.is_meta(s.type_of(a, 0));
}

/* Leafs on the host alone: what was launched before has copied them by then, and a host works at once. */
static bool leafs_are_free(const Session & s, const Alloc & a, const Graph & g) {
    const int host = s.type_of(a, a.n_slots - 1);
    for (const gc_tensor & t : g.tensors) {
        const bool given = (t.flags & GC_LEAF) && !(t.flags & GC_PREALLOC) && t.size;
        if (given && (t.slot % a.n_slots != a.n_slots - 1 || s.is_meta(host))) {
            return false;
        }
    }
    for (int i = 0; i + 1 < a.n_slots; i++) {
        if (s.type_of(a, i) == host) {
            return false;
        }
    }
    return a.n_slots > 1;
}

static bool run(Alloc & a, ggml_cgraph * graph, bool async) {
    if (!a.sched) {
        return succeeded(ggml_backend_graph_compute(a.backends[0], graph));
    }
    return async ? sched_launch(a.sched, graph) : sched_compute(a.sched, graph);
}

/* Who gives new leafs waits first where work in flight may still read the old ones. */
static int32_t compute_bound(Session & s, Alloc & a, bool async) {
    const Instance & in = *a.bound;
    if (a.in_flight() && !leafs_are_free(s, a, *in.graph)) {
        sched_wait(a.sched);
    }
    if (!a.in_flight()) {
        scramble(in);
    }
    before_compute(s, in, a.sched != nullptr);
    return status(run(a, in.cgraph, async));
}

/* C4: a graph computed without alloc. Where leafs have to be written in between, or where the
 * scheduler would choose other buffer types than asked for, alloc is called for it. */
static int32_t compute_unallocated(Session & s, Alloc & a, Graph & g, bool async) {
    if (gives_leafs(g) || !one_simple_type(s, a) || allocates_anew(s, a, g)) {
        const int32_t result = alloc(s, a, g);
        return result == GC_DONE ? compute_bound(s, a, async) : result;
    }
    if (!enlarge(s, a, g)) {
        return GC_REFUSED;
    }
    auto in = prepare(s, a, g);
    a.bound = nullptr;
    if (!run(a, in->cgraph, async)) {
        return GC_REFUSED;
    }
    bind(s, a, std::move(in));
    return GC_DONE;
}

static int32_t compute_now(Session & s, Alloc & a, const gc_op & op) {
    const bool async = a.sched && (op.flags & GC_ASYNC);
    if (!a.bound) {
        if (GC_PLANTED(COMPUTES_NOTHING)) return GC_DONE;
        return compute_unallocated(s, a, *s.graphs[op.graph], async);
    }
    if (a.lapsed) {
        return compute_unallocated(s, a, *s.graphs[a.bound->graph->number], async);
    }
    return compute_bound(s, a, async);
}

/* Waiting is over: what was launched last must have left what it should. */
static uint64_t landed(Session & s, Alloc & a) {
    uint64_t digest = 0;
    if (a.flying && !a.in_flight()) {
        digest = is_there(s, *a.flying) ? after_compute(s, *a.flying) : 0;
        a.flying = nullptr;
    }
    return digest;
}

static int32_t compute_op(Session & s, Alloc & a, const gc_op & op, uint64_t * digest) {
    const bool unbound = !a.bound && a.sched && op.graph >= 0 && op.graph < (int32_t) s.graphs.size();
    if ((!a.bound && !unbound) || (a.sched && partner_in_flight(s, a))) {
        return GC_MISUSE;
    }
    if (a.bound && is_stale(s, a)) {
        if (!(op.flags & GC_UNCHECKED)) {
            a.bound = nullptr;
            return GC_STALE;
        }
        scramble(*a.bound); /* the touch of freed memory that the check prevents */
    }
    const int32_t result = compute_now(s, a, op);
    if (result == GC_DONE) {
        a.flying = a.bound;
        *digest = a.sched && (op.flags & GC_ASYNC) ? 0 : landed(s, a);
    }
    return result;
}

static int32_t reset(Alloc & a) {
    if (!a.sched) {
        return GC_MISUSE;
    }
    if (GC_PLANTED(RESET_DOES_NOTHING)) return GC_DONE;
    sched_reset(a.sched);
    a.bound = nullptr;
    return GC_DONE;
}

static int32_t sync(Session & s, Alloc & a, uint64_t * digest) {
    if (!a.sched) {
        return GC_MISUSE;
    }
    const bool flew = a.in_flight();
    sched_wait(a.sched);
    if (!flew) {
        a.flying = nullptr;
    }
    *digest = landed(s, a);
    return GC_DONE;
}

static int32_t set_capacity(Session & s, const gc_op & op) {
    if (op.other < 0 || op.other >= (int32_t) s.setup.n_types || s.is_meta(op.other)) {
        return GC_MISUSE;
    }
    s.types[op.other].spec.capacity = op.value;
    return GC_DONE;
}

static int32_t with_graph(Session & s, Alloc & a, const gc_op & op, gc_obs & obs) {
    if (op.graph < 0 || op.graph >= (int32_t) s.graphs.size()) {
        return GC_MISUSE;
    }
    Graph & g = *s.graphs[op.graph];
    if (!plain_knows(g)) {
        return GC_MISUSE;
    }
    switch (op.kind) {
        case GC_RESERVE: return reserve(s, a, g);
        case GC_MEASURE: return measure(s, a, g, obs.measured);
        default:         return alloc(s, a, g);
    }
}

static int32_t with_other(Session & s, Alloc & a, int32_t other) {
    if (other < 0 || other >= GC_MAX_ALLOCS || other == a.index || !s.allocs[other].live) {
        return GC_REFUSED;
    }
    return borrow(s, a, s.allocs[other]);
}

int32_t drive(Session & s, const gc_op & op, gc_obs & obs) {
    Alloc & a = *s.run.alloc;
    if (op.kind == GC_CAPACITY) {
        return set_capacity(s, op);
    }
    if (op.kind == GC_NEW) {
        return make(s, a, op.other, op.flags & GC_BY_SCHED, op.value);
    }
    if (!a.live) {
        return GC_MISUSE;
    }
    switch (op.kind) {
        case GC_FREE:    release(s, a); return GC_DONE;
        case GC_OWN:     return own(s, a);
        case GC_BORROW:  return with_other(s, a, op.other);
        case GC_RESERVE:
        case GC_MEASURE:
        case GC_ALLOC:   return with_graph(s, a, op, obs);
        case GC_COMPUTE: return compute_op(s, a, op, &obs.digest);
        case GC_SHRINK:  return request_shrink(s, a);
        case GC_LOOK:    return GC_DONE;
        case GC_REMAKE:  return remake(s, a);
        case GC_SYNC:    return sync(s, a, &obs.digest);
        case GC_RESET:   return reset(a);
        default:         return GC_MISUSE; /* no tree has pools, captured graphs, contexts or a server */
    }
}

} // namespace gc
