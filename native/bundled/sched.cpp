// sched.cpp (C): the schedulers of a session. A scheduler waits, forgets and
// makes itself larger; the rest is its allocator's.
#include "sched.h"

#include <algorithm>
#include <cstdlib>

#include "captures.h"
#include "counted.h"
#include "defects.h"
#include "must.h"

namespace gc {

struct work {
    flight * what;
    bool keep; // somebody else forgets it
};

struct scheduler {
    bool alive = false;
    int config = 0;
    uint64_t nodes = 0; // tensors that it is made for, 0: any number
    std::vector<work> flying;
    uint64_t read[2] = {}; // the readings that CACHES_READINGS and SHRINK_READING_IS_LATE show
};

struct schedulers {
    std::array<scheduler, GC_MAX_ALLOCS> of;
    std::array<cuda::stream, GC_MAX_STREAMS> streams{};
};

namespace {

scheduler & sched(gc_session & s, int n) {
    return s.schedulers->of[n];
}

// The number of the other role's allocator; -1: it has none.
int partner(const gc_session & s, int n) {
    const gallocr * other = s.allocs[n]->in->role[1 - s.allocs[n]->role];
    return other ? int(std::ranges::find(s.allocs, other) - s.allocs.begin()) : -1;
}

layout layout_of(gc_session & s, int config) {
    return {s.setup.types, s.setup.slots[config], s.setup.n_slots[config]};
}

// C3, where it cannot stay what it is: freed, and made anew; a borrower borrows again from its owner.
void make_anew(gc_session & s, int n) {
    gallocr *& a = s.allocs[n];
    gallocr * owner = a->role == BORROWER ? a->in->role[OWNER] : nullptr;
    free_gallocr(a);
    a = new_gallocr(layout_of(s, sched(s, n).config), s.devices.data(), s.setup.strategy);
    if (owner) become_borrower(*a, *owner);
}

// A larger scheduler where the graph needs one (C3). False: refused, which only a planted defect does.
bool large_enough(gc_session & s, int n, const graph & g, findings & f) {
    if (!sched_too_small(s, n, g.size())) return true;
    if (GC_PLANTED(LARGER_ABORTS)) std::abort();
    if (GC_PLANTED(LARGER_IS_REFUSED)) return false;
    const uint64_t before = sched(s, n).nodes;
    sched_larger(s, n, g.size(), f);
    if (GC_PLANTED(LARGER_KEEPS_ITS_SIZE)) sched(s, n).nodes = before;
    return true;
}

// R12: its buffers are not those that it was bound to.
bool outdated(const gallocr & a) {
    return a.bound.generation != a.generation;
}

// Gives the bound graph to n's stream. False: the pools have no scratch for it.
bool launch_bound(gc_session & s, int n) {
    const gallocr & a = *s.allocs[n];
    std::array<const uint8_t *, GC_MAX_TYPES> scratch{};
    if (!pool_take(s, n, *a.bound.of, scratch)) return false;
    sched_launched(s, n, launch(a.bound, {s.devices[0].api, stream_of(s, n), scratch.data()}), false);
    pool_give(s);
    return true;
}

int32_t compute_bound(gc_session & s, int n, uint32_t flags, findings & f) {
    gallocr & a = *s.allocs[n];
    if (outdated(a) && !(flags & GC_UNCHECKED)) {
        unbind(a);
        return GC_STALE;
    }
    if (!launch_bound(s, n)) return answer(GC_PLANTED(NO_SCRATCH_IS_DONE));
    if (!(flags & GC_ASYNC)) add(f, sched_wait(s, n));
    return GC_DONE;
}

// C4: nothing is bound. C2: nothing is computed where the graph cannot be bound.
int32_t compute_unbound(gc_session & s, int n, graph * g, uint32_t flags, findings & f) {
    if (!g || GC_PLANTED(COMPUTE_NEEDS_ALLOC)) return GC_MISUSE;
    int32_t status = sched_bind(s, n, *g, f);
    if (GC_PLANTED(FAILED_ALLOC_IS_COMPUTED) && status != GC_DONE && s.allocs[n]->planned == g) {
        bind_by_plan(*s.allocs[n], *g);
        status = GC_DONE;
    }
    if (status == GC_DONE) status = compute_bound(s, n, flags, f);
    if (status != GC_DONE && !GC_PLANTED(REFUSED_STAYS_BOUND)) unbind(*s.allocs[n]);
    return status;
}

// Operations of a living scheduler.
int32_t run(gc_session & s, const gc_op & op, gc_obs & o, findings & f) {
    switch (op.kind) {
        case GC_FREE: sched_free(s, op.alloc, f); return GC_DONE;
        case GC_OWN: return sched_own(s, op.alloc);
        case GC_BORROW: return sched_borrow(s, op.alloc, op.other, op.value);
        case GC_SHRINK: return sched_shrink(s, op.alloc);
        case GC_RESERVE: return sched_reserve(s, op.alloc, *graph_of(s, op.graph), f);
        case GC_MEASURE: return answer(measure(*s.allocs[op.alloc], *graph_of(s, op.graph), o.measured));
        case GC_ALLOC: return sched_bind(s, op.alloc, *graph_of(s, op.graph), f);
        case GC_COMPUTE: return sched_compute(s, op.alloc, graph_of(s, op.graph), op.flags, f);
        case GC_REMAKE: return sched_remake(s, op.alloc, f);
        case GC_SYNC: f = sched_wait(s, op.alloc); return GC_DONE;
        case GC_RESET: sched_reset(s, op.alloc); return GC_DONE;
        case GC_LOOK: return GC_DONE;
        default: return GC_MISUSE;
    }
}

[[maybe_unused]] void keep_readings(gc_session & s, int n) { // for CACHES_READINGS
    if (!by_sched(s, n)) return;
    sched(s, n).read[0] = s.allocs[n]->generation;
}

} // namespace

// -- coming, going ---------------------------------------------------------------

cuda::stream stream_of(gc_session & s, int n) {
    cuda::stream & of = s.schedulers->streams[n];
    if (!of) {
        const cuda::driver & api = *s.devices[0].api;
        cuda::context first = nullptr;
        must(api.primary_ctx_retain(&first, 0));
        must(api.ctx_set_current(first));
        must(api.stream_create(&of, cuda::stream_non_blocking));
    }
    return of;
}

int32_t sched_new(gc_session & s, int n, int config, uint64_t nodes) {
    if (s.allocs[n]) return GC_MISUSE;
    s.allocs[n] = new_gallocr(layout_of(s, config), s.devices.data(), s.setup.strategy);
    sched(s, n) = {true, config, nodes, {}, {}};
    return GC_DONE;
}

void sched_free(gc_session & s, int n, findings & f) {
    if (!GC_PLANTED(FREE_DOES_NOT_WAIT)) add(f, sched_wait_shared(s, n));
    forget_captured(s, n);
    free_gallocr(s.allocs[n]);
    s.allocs[n] = nullptr;
    if (GC_PLANTED(FREE_DOES_NOT_WAIT)) sched_wait(s, n);
    sched(s, n) = {};
}

int32_t sched_remake(gc_session & s, int n, findings & f) {
    if (!can_be_remade(*s.allocs[n])) return GC_MISUSE;
    if (!GC_PLANTED(REMAKE_DOES_NOT_WAIT)) add(f, sched_wait_shared(s, n));
    forget_captured(s, n);
    remake(*s.allocs[n]);
    return GC_DONE;
}

int32_t sched_own(gc_session & s, int n) {
    return answer(become_owner(*s.allocs[n]));
}

int32_t sched_borrow(gc_session & s, int n, int of, uint64_t bits) {
    gallocr * owner = alloc_of(s, of);
    if (!owner || owner->in == s.allocs[n]->in) return GC_REFUSED;
    if (!by_sched(s, of)) return GC_MISUSE;
    const bool allowed = missing_to_share(s.setup.strategy, bits) == 0; // S4
    return answer(allowed && become_borrower(*s.allocs[n], *owner));
}

int32_t sched_shrink(gc_session & s, int n) {
    if (!can_shrink(*s.allocs[n])) return GC_MISUSE;
    request_shrink(*s.allocs[n]);
    return GC_DONE;
}

// -- waiting ---------------------------------------------------------------------

findings sched_wait(gc_session & s, int n) {
    std::vector<work> & flying = sched(s, n).flying;
    if (flying.empty()) return {};
    findings f;
    must(s.devices[0].api->stream_synchronize(stream_of(s, n)));
    for (const work & w : flying) {
        add(f, landed(*w.what));
        if (!w.keep) forget(w.what);
    }
    flying.clear();
    if (s.allocs[n]) f.trouble |= guard_trouble(*s.allocs[n]);
    return f;
}

findings sched_wait_shared(gc_session & s, int n) {
    findings f = sched_wait(s, n);
    const int other = partner(s, n);
    if (other >= 0 && by_sched(s, other)) add(f, sched_wait(s, other));
    f.digest = 0;
    return f;
}

void sched_wait_all(gc_session & s) {
    for (int n = 0; n < GC_MAX_ALLOCS; n++) {
        sched_wait(s, n);
    }
}

bool sched_busy(const gc_session & s, int n) {
    return !s.schedulers->of[n].flying.empty();
}

bool partner_busy(const gc_session & s, int n) {
    const int other = partner(s, n);
    return other >= 0 && sched_busy(s, other);
}

void sched_launched(gc_session & s, int n, flight * what, bool keep) {
    sched(s, n).flying.push_back({what, keep});
}

// -- reserve, bind, compute --------------------------------------------------------

bool sched_too_small(const gc_session & s, int n, uint64_t tensors) {
    const uint64_t nodes = s.schedulers->of[n].nodes;
    return nodes > 0 && tensors > nodes;
}

void sched_larger(gc_session & s, int n, uint64_t tensors, findings & f) {
    gallocr & a = *s.allocs[n];
    add(f, sched_wait_shared(s, n));
    if (!GC_PLANTED(LARGER_KEEPS_CAPTURED)) forget_captured(s, n);
    if (can_be_remade(a)) {
        remake(a);
        gallocr * borrower = a.in->role[BORROWER];
        if (GC_PLANTED(LARGER_IS_NEWS) && borrower) borrower->generation++;
    } else if (a.resizable && a.role == OWNER) { // its borrower keeps what they shared
        start_over(a);
    } else {
        make_anew(s, n);
    }
    sched(s, n).nodes = tensors;
}

int32_t sched_reserve(gc_session & s, int n, graph & g, findings & f) {
    if (!large_enough(s, n, g, f)) return GC_REFUSED;
    const bool alone = GC_PLANTED(RESERVE_DOES_NOT_WAIT);
    add(f, alone ? sched_wait(s, n) : sched_wait_shared(s, n));
    f.digest = 0;
    unbind(*s.allocs[n]);
    const bool made = reserve(*s.allocs[n], g);
    return answer(made || GC_PLANTED(FAILED_RESERVE_IS_DONE));
}

int32_t sched_bind(gc_session & s, int n, graph & g, findings & f, graph * by) {
    graph & planned = by ? *by : g;
    if (!large_enough(s, n, g, f)) return GC_REFUSED;
    unbind(*s.allocs[n]);
    if (!ready_for(*s.allocs[n], planned)) {
        if (!GC_PLANTED(ALLOC_DOES_NOT_WAIT)) add(f, sched_wait_shared(s, n));
        if (!reserve(*s.allocs[n], planned)) return GC_REFUSED;
    }
    bind_by_plan(*s.allocs[n], g);
    return GC_DONE;
}

int32_t sched_compute(gc_session & s, int n, graph * g, uint32_t flags, findings & f) {
    if (partner_busy(s, n)) return GC_MISUSE; // who computes waits first (W4)
    return s.allocs[n]->bound.of ? compute_bound(s, n, flags, f) : compute_unbound(s, n, g, flags, f);
}

void sched_reset(gc_session & s, int n) {
    if (GC_PLANTED(RESET_KEEPS_THE_GRAPH)) return;
    if (GC_PLANTED(RESET_WAITS)) sched_wait(s, n);
    unbind(*s.allocs[n]);
}

// -- findings ------------------------------------------------------------------------

void add(findings & to, const findings & more) {
    findings sum = to.trouble ? to : more; // where the first trouble was
    sum.trouble = to.trouble | more.trouble;
    sum.digest = more.digest;
    to = sum;
}

void show(const findings & f, gc_obs & o) {
    o.trouble = f.trouble;
    o.bad_node = f.bad_node;
    o.bad_src = f.bad_src;
    o.bad_offset = f.bad_offset;
    o.digest = f.digest;
}

// -- the layer -------------------------------------------------------------------------

void sched_open(gc_session & s) {
    s.schedulers = new schedulers;
}

void sched_close(gc_session & s) {
    sched_wait_all(s);
    for (const cuda::stream stream : s.schedulers->streams) {
        if (stream) must(s.devices[0].api->stream_destroy(stream));
    }
    delete s.schedulers;
}

int32_t sched_step(gc_session & s, const gc_op & op, gc_obs & o) {
    if (op.kind == GC_NEW) return sched_new(s, op.alloc, op.other, op.value);
    findings f;
    if (GC_PLANTED(SHRINK_READING_IS_LATE)) sched(s, op.alloc).read[1] = s.allocs[op.alloc]->shrink_generation;
    const int32_t status = run(s, op, o, f);
    if (op.kind == GC_BORROW && status != GC_MISUSE) o.reason = missing_to_share(s.setup.strategy, op.value);
    show(f, o);
    if (GC_PLANTED(CACHES_READINGS) && op.kind != GC_LOOK) keep_readings(s, op.alloc);
    return status;
}

void sched_observe(gc_session & s, const gc_op & op, gc_obs & o) {
    const bool of_alloc = op.kind <= GC_RESET ? op.kind != GC_CAPACITY : op.kind >= GC_CAPTURE_BEGIN && op.kind <= GC_DROP;
    if (!of_alloc || !by_sched(s, op.alloc)) return;
    const gallocr & a = *s.allocs[op.alloc];
    const scheduler & c = sched(s, op.alloc);
    o.sched_generation = GC_PLANTED(CACHES_READINGS) ? c.read[0] : a.generation;
    o.sched_shrink_generation = GC_PLANTED(SHRINK_READING_IS_LATE) ? c.read[1] : a.shrink_generation;
    o.nodes = c.nodes;
    o.in_flight = sched_busy(s, op.alloc);
}

bool by_sched(const gc_session & s, int32_t n) {
    return s.schedulers->of[n].alive;
}

} // namespace gc
