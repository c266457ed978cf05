// subject.cpp: the C interface of gallocheck.h on the bundled allocator. Plain
// allocators and pairs are here; every other layer has a file (session.h).
#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <string>
#include <vector>

#include "captures.h"
#include "compute.h"
#include "counted.h"
#include "defects.h"
#include "must.h"
#include "sched.h"
#include "session.h"

#define GC_EXPORT extern "C" __attribute__((visibility("default")))

namespace gc {

gallocr * alloc_of(const gc_session & s, int32_t n) {
    return s.allocs[n];
}

graph * graph_of(const gc_session & s, int32_t n) {
    return size_t(n) < s.graphs.size() ? s.graphs[n].get() : nullptr;
}

namespace {

bool slots_make_sense(const gc_setup & s, int config) {
    const int32_t n = s.n_slots[config];
    if (n < 1 || n > GC_MAX_SLOTS) return false;
    for (int32_t i = 0, last = -1; i < n; i++) {
        const int32_t t = s.slots[config][i];
        if (t < 0 || t >= int32_t(s.n_types)) return false;
        bool seen = false;
        for (int32_t k = 0; k < i; k++) {
            seen |= s.slots[config][k] == t;
        }
        if (!seen && t < last) return false; // first occurrences ascend
        last = seen ? last : t;
    }
    return true;
}

// M: a meta type's devices are those of simple types, and round no more than it does.
bool parts_make_sense(const gc_setup & s, const gc_type & k) {
    for (uint32_t d = 0; d < 32; d++) {
        if (!(k.meta >> d & 1)) continue;
        if (d >= s.n_types || s.types[d].meta || k.granularity % s.types[d].granularity != 0) return false;
    }
    return true;
}

bool makes_sense(const gc_setup & s) {
    if (s.n_types < 1 || s.n_types > GC_MAX_TYPES || s.n_configs < 1 || s.n_configs > GC_MAX_CONFIGS) return false;
    for (uint32_t t = 0; t < s.n_types; t++) {
        const gc_type & k = s.types[t];
        if (!std::has_single_bit(k.alignment) || k.alignment > 4096) return false;
        if (k.granularity < 1 || k.granularity > (2u << 20)) return false;
        if (!parts_make_sense(s, k)) return false;
    }
    for (uint32_t c = 0; c < s.n_configs; c++) {
        if (!slots_make_sense(s, int(c))) return false;
    }
    return true;
}

// The numbers in an operation are such as gallocheck.h states. Whether what they name is there is asked later.
bool makes_sense(const gc_session & s, const gc_op & op) {
    const auto below = [](int32_t n, uint32_t many) { return n >= 0 && uint32_t(n) < many; };
    if (!below(op.kind, GC_N_KINDS)) return false;
    if (op.kind >= GC_CTX_OPEN && op.kind <= GC_CTX_TRIM) return below(op.alloc, GC_MAX_CONTEXTS);
    static_assert(GC_MAX_ALLOCS == GC_MAX_STREAMS && GC_MAX_ALLOCS == GC_MAX_SERVER_SLOTS);
    if (!below(op.alloc, GC_MAX_ALLOCS)) return false;
    switch (op.kind) {
        case GC_NEW:        return below(op.other, s.setup.n_configs);
        case GC_BORROW:     return below(op.other, GC_MAX_ALLOCS);
        case GC_CAPACITY:
        case GC_POOL_ALLOC:
        case GC_POOL_FREE:
        case GC_TRIM:       return below(op.other, s.setup.n_types);
        case GC_RESERVE:
        case GC_MEASURE:
        case GC_ALLOC:      return below(op.graph, uint32_t(s.graphs.size()));
        default:            return true;
    }
}

int32_t make_new(gc_session & s, const gc_op & op) {
    if (s.allocs[op.alloc]) return GC_MISUSE;
    const layout l = {s.setup.types, s.setup.slots[op.other], s.setup.n_slots[op.other]};
    s.allocs[op.alloc] = new_gallocr(l, s.devices.data(), s.setup.strategy);
    return GC_DONE;
}

int32_t set_capacity(gc_session & s, const gc_op & op) {
    machine::set_capacity(s.world, op.other, op.value);
    return GC_DONE;
}

// False: the pools have no scratch for it, and nothing is computed.
bool compute_with_pools(gc_session & s, int n, const bound_graph & b, findings & f) {
    std::array<const uint8_t *, GC_MAX_TYPES> scratch{};
    if (!pool_take(s, n, *b.of, scratch)) return false;
    const cuda::driver & api = *s.devices[0].api;
    flight * what = launch(b, {&api, stream_of(s, n), scratch.data()});
    pool_give(s);
    must(api.stream_synchronize(stream_of(s, n)));
    f = landed(*what);
    forget(what);
    return true;
}

int32_t run_compute(gc_session & s, gallocr & a, const gc_op & op, gc_obs & o) {
    if (!a.bound.of) return GC_MISUSE;
    bool stale = a.bound.generation != a.generation; // R12
    if (GC_PLANTED(COMPUTES_OUTDATED)) stale = false;
    if (GC_PLANTED(DROPS_CURRENT)) stale |= a.in->pending;
    if (stale && !(op.flags & GC_UNCHECKED)) {
        unbind(a);
        return GC_STALE;
    }
    findings f;
    if (!s.pools) {
        f = compute(a.bound);
    } else if (!compute_with_pools(s, op.alloc, a.bound, f)) {
        return GC_REFUSED;
    }
    f.trouble |= guard_trouble(a);
    show(f, o);
    return GC_DONE;
}

// Operations of a living allocator that leave it alive.
int32_t on_alloc(gc_session & s, gallocr & a, const gc_op & op, gc_obs & o) {
    switch (op.kind) {
        case GC_OWN: return answer(become_owner(a));
        case GC_BORROW: {
            gallocr * of = alloc_of(s, op.other);
            if (of && of->in != a.in && by_sched(s, op.other)) return GC_MISUSE;
            o.reason = missing_to_share(s.setup.strategy, op.value); // S4
            if (GC_PLANTED(REFUSAL_TAKES_PART) && o.reason) a.resizable = true;
            return answer(of && o.reason == 0 && become_borrower(a, *of));
        }
        case GC_RESERVE: return answer(reserve(a, *graph_of(s, op.graph)));
        case GC_MEASURE: return answer(measure(a, *graph_of(s, op.graph), o.measured));
        case GC_ALLOC: return answer(bind(a, *graph_of(s, op.graph)));
        case GC_COMPUTE: return run_compute(s, a, op, o);
        case GC_SHRINK:
            if (!can_shrink(a)) return GC_MISUSE;
            request_shrink(a);
            return GC_DONE;
        case GC_REMAKE:
            if (!can_be_remade(a)) return GC_MISUSE;
            forget_captured(s, op.alloc);
            remake(a);
            return GC_DONE;
        case GC_LOOK: return GC_DONE;
        default: return GC_MISUSE;
    }
}

void observe(const gallocr & a, gc_obs & o) {
    o.generation = a.generation;
    o.shrink_generation = a.shrink_generation;
    report(a, o.reported);
    for (int t = 0; t < GC_MAX_TYPES; t++) {
        if (!a.has_type(t)) continue;
        const chunk_sizes & asked = a.holding(t).asked;
        std::copy(asked.begin(), asked.end(), o.asked[t]);
        o.owned[t] = owned(a, t);
    }
}

// Only a living allocator is observed, and not by operations that are none of its own.
bool observed(const gc_op & op, int32_t status) {
    switch (op.kind) {
        case GC_NEW: return status == GC_DONE;
        case GC_CAPACITY: return false;
        default: return op.kind <= GC_RESET || (op.kind >= GC_CAPTURE_BEGIN && op.kind <= GC_DROP);
    }
}

// Operations of plain allocators and pairs.
int32_t alloc_step(gc_session & s, const gc_op & op, gc_obs & o) {
    if (op.kind == GC_NEW) return make_new(s, op);
    gallocr * a = alloc_of(s, op.alloc);
    if (!a) return GC_MISUSE;
    if (op.kind == GC_FREE) {
        forget_captured(s, op.alloc);
        free_gallocr(a);
        s.allocs[op.alloc] = nullptr;
        return GC_DONE;
    }
    return on_alloc(s, *a, op, o);
}

int32_t step(gc_session & s, const gc_op & op, gc_obs & o) {
    if (op.kind == GC_CAPACITY) return set_capacity(s, op);
    if (const auto decided = capture_decides(s, op)) return *decided; // Q3
    if (op.kind >= GC_SLOT_ENTER) return server_step(s, op, o);
    if (op.kind >= GC_CTX_OPEN) return context_step(s, op, o);
    if (op.kind >= GC_CAPTURE_BEGIN) return capture_step(s, op, o);
    if (op.kind >= GC_POOL_ALLOC) return pool_step(s, op, o);
    if (by_context(s, op.alloc) && op.kind != GC_LOOK) return GC_MISUSE; // its context drives it
    if (op.kind == GC_BORROW && by_context(s, op.other)) return GC_MISUSE; // and lends its memory itself
    const bool sched = op.kind == GC_NEW ? op.flags & GC_BY_SCHED : by_sched(s, op.alloc);
    return sched ? sched_step(s, op, o) : alloc_step(s, op, o);
}

void run_one(gc_session & s, const gc_op & op, gc_obs & o) {
    o = {};
    o.bad_node = o.bad_src = -1;
    o.status = GC_MISUSE;
    if (!makes_sense(s, op)) return;
    machine::start_operation(s.world, op.fail_types, op.fail_nth);
    o.status = step(s, op, o);
    const gallocr * a = alloc_of(s, op.alloc);
    if (a && observed(op, o.status)) observe(*a, o);
    sched_observe(s, op, o);
    pool_observe(s, op, o);
    capture_observe(s, op, o);
    server_observe(s, op, o);
    for (uint32_t t = 0; t < s.setup.n_types; t++) {
        o.used[t] = machine::used(s.world, int(t));
    }
    o.allocations = machine::allocations(s.world);
    if (machine::hazards(s.world) > 0) o.trouble |= GC_FREED_BUSY;
}

} // namespace
} // namespace gc

GC_EXPORT uint32_t gc_abi(void) {
    return GC_ABI;
}

GC_EXPORT uint64_t gc_capabilities(void) {
    return GC_CAP_PLAN | GC_CAP_RESIZABLE | GC_CAP_META | GC_CAP_EXACT | GC_CAP_REMAKE | GC_CAP_BREAKDOWN |
           GC_CAP_EMPTY_CHUNKS | GC_CAP_COUNTED | GC_CAP_SCHED | GC_CAP_POOL | GC_CAP_CONTEXTS | GC_CAP_SERVER | GC_CAP_CAPTURE;
}

GC_EXPORT const char * gc_describe(void) {
    static const std::string text = std::string("gallocheck's own allocator (C++20) on ") + gc::machine::describe();
    return text.c_str();
}

GC_EXPORT gc_session * gc_open(const gc_setup * setup) {
    using namespace gc;
    if (!setup || !makes_sense(*setup)) return nullptr;
    auto * s = new gc_session{*setup, nullptr, {}, {}};
    std::array<machine::device_setup, GC_MAX_TYPES> gpus{};
    for (uint32_t t = 0; t < setup->n_types; t++) {
        gpus[t] = {setup->types[t].granularity, setup->types[t].capacity};
    }
    s->world = machine::open(gpus.data(), int(setup->n_types));
    machine::enter(s->world);
    for (uint32_t t = 0; t < setup->n_types; t++) {
        s->devices[t] = {&machine::table(s->world), int(t), setup->types[t].granularity, machine::page(), setup->types[t].meta};
    }
    sched_open(*s);
    pool_open(*s);
    capture_open(*s);
    context_open(*s);
    server_open(*s);
    return s;
}

GC_EXPORT uint64_t gc_close(gc_session * s) {
    if (!s) return 0;
    gc::machine::enter(s->world);
    gc::server_close(*s);
    gc::context_close(*s);
    gc::capture_close(*s);
    gc::pool_close(*s);
    gc::sched_close(*s);
    uint64_t left = 0;
    for (gc::gallocr * a : s->allocs) {
        if (a) gc::free_gallocr(a);
    }
    for (uint32_t t = 0; t < s->setup.n_types; t++) {
        left += gc::machine::used(s->world, int(t));
    }
    left += gc::machine::reserved(s->world);
    left += gc::machine::graphs(s->world);
    gc::machine::close(s->world);
    delete s;
    return left;
}

GC_EXPORT int32_t gc_define(gc_session * s, const gc_tensor * tensors, uint32_t n) {
    if (!s || !gc::makes_sense(tensors, n)) return -1;
    s->graphs.push_back(std::make_unique<gc::graph>(tensors, n));
    return int32_t(s->graphs.size()) - 1;
}

GC_EXPORT void gc_run(gc_session * s, const gc_op * ops, gc_obs * obs, uint64_t n, volatile uint64_t * progress) {
    gc::machine::enter(s->world);
    for (uint64_t i = 0; i < n; i++) {
        *progress = i;
        gc::run_one(*s, ops[i], obs[i]);
    }
    *progress = n;
}

GC_EXPORT uint32_t gc_places(gc_session * s, int32_t alloc, gc_place * out, uint32_t max) {
    const gc::gallocr * a = gc::alloc_of(*s, alloc);
    if (!a) return 0;
    const auto & places = a->bound.places;
    std::copy_n(places.begin(), std::min<size_t>(places.size(), max), out);
    return uint32_t(places.size());
}

GC_EXPORT int32_t gc_plant([[maybe_unused]] uint32_t n) {
#ifdef GC_WITH_DEFECTS
    switch (n) {
        case 0:
#define GC_DEFECT(number, clause, name, what) case number:
#include "defects.inc"
#undef GC_DEFECT
            gc::planted = gc::defect(n);
            return 1;
        default: return 0;
    }
#else
    return n == 0;
#endif
}
