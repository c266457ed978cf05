/* drive.cpp: each operation as calls of the tree's public interface. */
#include "subject.h"
#include "defects.h"
#include "sharing.h"
#include "probe.h"

#include <algorithm>
#include <cstdlib>

GC_PROBE(ggml_gallocr_reserve_n_size)
GC_PROBE(ggml_backend_sched_reserve_size)
GC_PROBE(ggml_backend_sched_new)

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

template <class B> static ggml_backend_sched_t new_sched(B * backends, ggml_backend_buffer_type_t * types, int n, size_t size) {
    if constexpr (has_ggml_backend_sched_new<B *, ggml_backend_buffer_type_t *, int, size_t, bool, bool>) {
        return call_ggml_backend_sched_new(backends, types, n, size, false, false);
    } else {
        return call_ggml_backend_sched_new(backends, types, n, size, false);
    }
}

bool can_measure() {
    return has_ggml_gallocr_reserve_n_size<ggml_gallocr_t, ggml_cgraph *, const int *, const int *, size_t *>;
}

uint64_t capabilities() { return GC_CAP_PLAN | GC_CAP_SCHED | sharing_capability(); }

/* making and freeing allocators */

/* The scheduler is made for twice the largest graph known by then. */
static size_t graph_size(const Session & s) {
    size_t size = 64;
    for (const auto & g : s.graphs) {
        size = std::max(size, 2 * g->tensors.size());
    }
    return size;
}

static void make_sched(Session & s, Alloc & a, ggml_backend_buffer_type_t * types) {
    std::vector<ggml_backend_t> backends;
    for (int i = 0; i < a.n_slots; i++) {
        a.backends.push_back(std::make_unique<Backend>());
        const uint32_t bit = 1u << (a.index * GC_MAX_SLOTS + i);
        backend_init(*a.backends.back(), &s, s.type_of(a, i), i == a.n_slots - 1, bit);
        backends.push_back(&a.backends.back()->ggml);
    }
    a.sched = new_sched(backends.data(), types, a.n_slots, graph_size(s));
}

static int32_t make(Session & s, Alloc & a, int config, bool by_sched) {
    if (a.live || config < 0 || config >= (int) s.setup.n_configs) {
        return GC_MISUSE;
    }
    const int index = a.index;
    a = Alloc();
    a.live = true;
    a.index = index;
    a.config = config;
    a.n_slots = s.setup.n_slots[config];
    for (int & pool : a.pools) {
        pool = s.n_pools++;
    }
    ggml_backend_buffer_type_t types[GC_MAX_SLOTS];
    for (int i = 0; i < a.n_slots; i++) {
        types[i] = &s.types[s.type_of(a, i)].device;
    }
    if (by_sched) {
        make_sched(s, a, types);
    } else {
        a.plain = ggml_gallocr_new_n(types, a.n_slots);
    }
    return GC_DONE;
}

void release(Session &, Alloc & a) {
    if (a.sched) {
        ggml_backend_sched_synchronize(a.sched);
        ggml_backend_sched_free(a.sched);
    }
    ggml_gallocr_free(a.plain);
    const int index = a.index;
    a = Alloc();
    a.index = index;
}

/* reserve, measure, bind */

static int32_t status(bool ok) { return ok ? GC_DONE : GC_REFUSED; }

/* An instance for the allocator; a scheduler has to be reset before it is told about new tensors. */
static std::unique_ptr<Instance> prepare(Session & s, Alloc & a, const Graph & g) {
    if (a.sched) {
        ggml_backend_sched_reset(a.sched);
        a.lapsed = true;
        a.forgotten = nullptr;
    }
    return build(s, a, g);
}

static int32_t reserve(Session & s, Alloc & a, const Graph & g) {
    auto in = prepare(s, a, g);
    const bool ok = a.sched ? ggml_backend_sched_reserve(a.sched, in->cgraph)
                            : ggml_gallocr_reserve_n(a.plain, in->cgraph, in->node_slots.data(), in->leaf_slots.data());
    a.reserved |= ok;
    if (GC_PLANTED(FAILED_RESERVE_IS_DONE) && a.sched) return GC_DONE;
    return status(ok);
}

static int32_t measure(Session & s, Alloc & a, const Graph & g, uint64_t * out) {
    if (!can_measure()) {
        return GC_MISUSE;
    }
    auto in = prepare(s, a, g);
    size_t sizes[GC_MAX_SLOTS] = {};
    const bool ok = a.sched ? measure_sched(a.sched, in->cgraph, sizes)
                            : measure_plain(a.plain, in->cgraph, in->node_slots.data(), in->leaf_slots.data(), sizes);
    std::copy(sizes, sizes + a.n_slots, out);
    return ok ? GC_DONE : GC_MISUSE;
}

static void bind(Session & s, Alloc & a, std::unique_ptr<Instance> in) {
    a.bound = std::move(in);
    a.lapsed = false;
    a.forgotten = nullptr;
    a.reserved = true;
    locate(s, a, *a.bound);
    a.bound->generation = generation(a);
}

static int32_t alloc(Session & s, Alloc & a, const Graph & g) {
    auto in = prepare(s, a, g);
    const bool ok = a.sched ? ggml_backend_sched_alloc_graph(a.sched, in->cgraph)
                            : ggml_gallocr_alloc_graph(a.plain, in->cgraph);
    if (GC_PLANTED(FAILED_ALLOC_ABORTS) && a.sched && !ok) std::abort();
    if (ok) {
        bind(s, a, std::move(in));
    } else if (a.sched) {
        a.bound = nullptr; /* the scheduler has forgotten it */
    }
    return status(ok);
}

/* compute */

/* R12. Generations are compared, as any holder of a graph would do. ggml has none for a
 * plain allocator: there the harness knows what was freed. */
static bool is_stale(const Session & s, const Alloc & a) {
    bool freed = false;
    for (uint64_t serial : a.bound->serials) {
        freed = freed || !s.buffers[serial - 1]->live;
    }
    return a.bound->generation != generation(a) || (freed && !a.role);
}

static bool gives_leafs(const Graph & g) {
    for (const gc_tensor & t : g.tensors) {
        if ((t.flags & GC_LEAF) && !(t.flags & GC_PREALLOC)) {
            return true;
        }
    }
    return false;
}

static bool one_type(const Session & s, const Alloc & a) {
    for (int i = 1; i < a.n_slots; i++) {
        if (s.type_of(a, i) != s.type_of(a, 0)) {
            return false;
        }
    }
    return true;
}

static ggml_status compute_sched(Alloc & a, ggml_cgraph * graph, bool async) {
    return async ? ggml_backend_sched_graph_compute_async(a.sched, graph) : ggml_backend_sched_graph_compute(a.sched, graph);
}

static int32_t compute_bound(Session & s, Alloc & a, bool async) {
    Instance & in = *a.bound;
    scramble(in);
    before_compute(s, in, a.sched != nullptr);
    const ggml_status result = a.sched ? compute_sched(a, in.cgraph, async)
                                       : ggml_backend_graph_compute(&s.host.ggml, in.cgraph);
    return status(result == GGML_STATUS_SUCCESS);
}

/* C4: a graph computed without alloc. Where leafs have to be written in between, or where the
 * scheduler would choose other buffer types than asked for, alloc is called for it. */
static int32_t compute_unallocated(Session & s, Alloc & a, const Graph & g, bool async) {
    if (gives_leafs(g) || !one_type(s, a)) {
        const int32_t result = alloc(s, a, g);
        return result == GC_DONE ? compute_bound(s, a, async) : result;
    }
    auto in = prepare(s, a, g);
    a.bound = nullptr;
    if (compute_sched(a, in->cgraph, async) != GGML_STATUS_SUCCESS) {
        return GC_REFUSED;
    }
    bind(s, a, std::move(in));
    return GC_DONE;
}

static int32_t compute(Session & s, Alloc & a, uint32_t flags, uint64_t * digest) {
    if (!a.bound && !a.forgotten) {
        return GC_MISUSE;
    }
    if (a.bound && is_stale(s, a)) {
        if (!(flags & GC_UNCHECKED)) {
            a.bound = nullptr;
            return GC_STALE;
        }
        scramble(*a.bound); /* the touch of freed memory that the check prevents */
    }
    s.run.async = a.sched && (flags & GC_ASYNC);
    const bool again = !a.bound || a.lapsed;
    const Graph & g = a.bound ? *a.bound->graph : *a.forgotten;
    const int32_t result = again ? compute_unallocated(s, a, g, s.run.async) : compute_bound(s, a, s.run.async);
    if (result == GC_DONE) {
        *digest = after_compute(s, *a.bound);
    }
    return result;
}

static int32_t reset(Alloc & a) {
    if (!a.sched) {
        return GC_MISUSE;
    }
    ggml_backend_sched_reset(a.sched);
    if (a.bound) {
        a.forgotten = a.bound->graph;
    }
    a.bound = nullptr;
    return GC_DONE;
}

static int32_t sync(Alloc & a) {
    if (!a.sched) {
        return GC_MISUSE;
    }
    ggml_backend_sched_synchronize(a.sched);
    return GC_DONE;
}

static int32_t set_capacity(Session & s, const gc_op & op) {
    if (op.other < 0 || op.other >= (int32_t) s.setup.n_types) {
        return GC_MISUSE;
    }
    s.types[op.other].spec.capacity = op.value;
    return GC_DONE;
}

static int32_t with_graph(Session & s, Alloc & a, const gc_op & op, gc_obs & obs) {
    if (op.graph < 0 || op.graph >= (int32_t) s.graphs.size()) {
        return GC_MISUSE;
    }
    const Graph & g = *s.graphs[op.graph];
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
        return make(s, a, op.other, op.flags & GC_BY_SCHED);
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
        case GC_COMPUTE: return compute(s, a, op.flags, &obs.digest);
        case GC_SHRINK:  return shrink(a);
        case GC_LOOK:    return GC_DONE;
        case GC_SYNC:    return sync(a);
        case GC_RESET:   return reset(a);
        default:         return GC_MISUSE; /* no tree remakes an owner by itself (GC_CAP_REMAKE) */
    }
}

void observe(Session & s, Alloc & a, gc_obs & obs) {
    for (int i = 0; i < a.n_slots; i++) {
        obs.reported[i] = a.sched ? ggml_backend_sched_get_buffer_size(a.sched, &a.backends[i]->ggml)
                                  : ggml_gallocr_get_buffer_size(a.plain, i);
    }
    int chunks[GC_MAX_TYPES] = {};
    for (const Buffer * b : s.live) {
        if (b->pool == a.pools[b->type] && chunks[b->type] < GC_MAX_CHUNKS) {
            obs.asked[b->type][chunks[b->type]++] = b->asked;
        }
    }
    obs.generation = generation(a);
    obs.shrink_generation = shrink_generation(a);
    if (GC_PLANTED(GENERATION_STAYS) && a.sched) obs.generation = 0;
    if (GC_PLANTED(GENERATION_GOES_DOWN) && a.sched) obs.generation = UINT64_MAX - obs.generation;
    if (GC_PLANTED(SHRINK_GENERATION_GOES_DOWN) && a.sched) obs.shrink_generation = UINT64_MAX - obs.shrink_generation;
}

} // namespace gc
