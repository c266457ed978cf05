// capture.cpp (Q): captured graphs, one an allocator. What its stream is given
// while it is captured is recorded, not run, and can be replayed as long as the
// memory that it touches is there: docs/choices.md, "Captured graphs".
#include <vector>

#include "captures.h"
#include "compute.h"
#include "defects.h"
#include "pair.h"
#include "sched.h"

namespace gc {

struct record {
    cuda::graph_exec exec = nullptr;
    std::vector<flight *> flights;      // in the order of the computes
    std::vector<scratch_block> scratch; // pool memory that they use
    uint64_t generation = 0;            // of the buffers that they use
};

struct captures {
    int at = -1;                           // the allocator that is being captured; -1: none
    record taking;                         // what it was given so far
    std::array<record, GC_MAX_ALLOCS> of;  // without flights: none
    std::vector<flight *> dropped;         // of dropped graphs: a scheduler may still ask what their replays found
};

namespace {

const cuda::driver & api_of(const gc_session & s) {
    return *s.devices[0].api;
}

record & record_of(gc_session & s, int n) {
    return s.captures->of[n];
}

bool has_captured(const gc_session & s, int n) {
    return !s.captures->of[n].flights.empty();
}

// The allocator, or who shares buffers with it, is being captured.
bool involved(const gc_session & s, int32_t n) {
    const gallocr * a = alloc_of(s, n);
    return capture_going_on(s) && a && a->in == s.allocs[s.captures->at]->in;
}

// n or who shares buffers with it has work in flight.
bool in_use(const gc_session & s, int n) {
    return sched_busy(s, n) || partner_busy(s, n);
}

// -- capturing -----------------------------------------------------------------

int32_t begin(gc_session & s, gallocr & a, int n) {
    if (!a.bound.of || in_use(s, n) || capture_going_on(s)) return GC_MISUSE;
    if (a.bound.generation != a.generation) {
        unbind(a);
        return GC_STALE;
    }
    must(api_of(s).stream_begin_capture(stream_of(s, n), cuda::capture_relaxed)); // pools may grow meanwhile
    s.captures->at = n;
    return GC_DONE;
}

// A compute of who is being captured; nothing runs.
int32_t record_compute(gc_session & s, int n) {
    gallocr & a = *s.allocs[n];
    if (!a.bound.of) return GC_MISUSE; // no reservation may happen now
    std::array<const uint8_t *, GC_MAX_TYPES> scratch{};
    if (!pool_take(s, n, *a.bound.of, scratch) && !GC_PLANTED(RECORDS_WITHOUT_SCRATCH)) return GC_REFUSED;
    record & r = s.captures->taking;
    r.flights.push_back(launch(a.bound, {&api_of(s), stream_of(s, n), scratch.data()}));
    const std::vector<scratch_block> taken = scratch_taken(s);
    r.scratch.insert(r.scratch.end(), taken.begin(), taken.end());
    pool_give(s);
    return GC_DONE;
}

void drop(gc_session & s, int n) {
    record & r = record_of(s, n);
    if (r.exec) must(api_of(s).graph_exec_destroy(r.exec));
    s.captures->dropped.insert(s.captures->dropped.end(), r.flights.begin(), r.flights.end());
    r = {};
}

int32_t end(gc_session & s, const gallocr & a, int n) {
    if (s.captures->at != n) return GC_MISUSE;
    cuda::graph taken = nullptr;
    must(api_of(s).stream_end_capture(stream_of(s, n), &taken));
    s.captures->at = -1;
    record r;
    std::swap(r, s.captures->taking);
    if (!r.flights.empty()) {
        if (!GC_PLANTED(OUTLIVES_ITS_SUCCESSOR)) drop(s, n);
        must(api_of(s).graph_instantiate(&r.exec, taken, 0));
        r.generation = a.generation;
        record_of(s, n) = r;
    }
    must(api_of(s).graph_destroy(taken));
    return answer(!r.flights.empty());
}

// -- replaying -----------------------------------------------------------------

// Q1: whether some pool memory that it uses has that fate.
bool some_scratch(const record & r, fate what) {
    for (const scratch_block & b : r.scratch) {
        if (b.of->what_became_of(b.at) == what) return true;
        if (GC_PLANTED(LOOKS_AT_FIRST_BLOCK)) return false;
    }
    return false;
}

findings replay(gc_session & s, const gallocr & a, int n, const record & r, bool later) {
    must(api_of(s).graph_launch(r.exec, stream_of(s, n)));
    findings f;
    if (by_sched(s, n)) {
        for (flight * what : r.flights) {
            sched_launched(s, n, what, true);
        }
        return later ? f : sched_wait(s, n);
    }
    must(api_of(s).stream_synchronize(stream_of(s, n)));
    for (flight * what : r.flights) {
        add(f, landed(*what));
    }
    f.trouble |= guard_trouble(a);
    return f;
}

int32_t launch_captured(gc_session & s, const gallocr & a, const gc_op & op, gc_obs & o) {
    const int n = op.alloc;
    const record & r = record_of(s, n);
    if (!has_captured(s, n) || partner_busy(s, n) || involved(s, n)) return GC_MISUSE;
    bool older = r.generation != a.generation && !(op.flags & GC_UNCHECKED); // Q1
    if (GC_PLANTED(REPLAYS_OLDER)) older = false;
    if (GC_PLANTED(LOOKS_AT_BOUND)) older = !a.bound.of || a.bound.generation != a.generation;
    const bool unmapped = some_scratch(r, fate::gone) && !GC_PLANTED(TRIM_KEEPS_CAPTURED);
    if (older || unmapped) {
        drop(s, n);
        return GC_STALE;
    }
    if (some_scratch(r, fate::lent)) return GC_MISUSE;
    show(replay(s, a, n, r, op.flags & GC_ASYNC), o);
    return GC_DONE;
}

// -- what a capture forbids (Q3) -------------------------------------------------

// RESERVE, ALLOC, or a COMPUTE that has to allocate first would make or replace buffers.
bool replaces(gc_session & s, const gc_op & op) {
    gallocr * a = alloc_of(s, op.alloc);
    const graph * g = graph_of(s, op.graph);
    if (!a || !g || by_context(s, op.alloc) || GC_PLANTED(RESERVES_DURING_CAPTURE)) return false;
    if (op.kind == GC_COMPUTE && (!by_sched(s, op.alloc) || a->bound.of || partner_busy(s, op.alloc))) return false;
    if (sched_too_small(s, op.alloc, g->size())) return true;
    return (op.kind == GC_RESERVE || !ready_for(*a, *g)) && reserve_replaces(*a, *g);
}

bool forbidden(const gc_session & s, const gc_op & op) {
    switch (op.kind) {
        case GC_SYNC:
        case GC_RESET:
        case GC_FREE:
        case GC_REMAKE:
        case GC_OWN: return involved(s, op.alloc);
        case GC_BORROW: return involved(s, op.alloc) || involved(s, op.other);
        case GC_COMPUTE: return involved(s, op.alloc);
        default: return op.kind >= GC_CTX_OPEN;
    }
}

} // namespace

std::optional<int32_t> capture_decides(gc_session & s, const gc_op & op) {
    if (!capture_going_on(s)) return {};
    if (op.kind == GC_COMPUTE && op.alloc == s.captures->at) return record_compute(s, op.alloc);
    if (forbidden(s, op)) return GC_MISUSE;
    const bool may = op.kind == GC_RESERVE || op.kind == GC_ALLOC || op.kind == GC_COMPUTE;
    if (may && replaces(s, op)) return GC_REFUSED;
    return {};
}

bool capture_going_on(const gc_session & s) {
    return s.captures->at >= 0;
}

bool captured_stream(const gc_session & s, int n) {
    return s.captures->at == n;
}

void forget_captured(gc_session & s, int n) {
    drop(s, n);
}

void drop_captured(gc_session & s, uint32_t devices) {
    if (GC_PLANTED(TRIM_KEEPS_CAPTURED)) return;
    for (int n = 0; n < GC_MAX_ALLOCS; n++) {
        if (!has_captured(s, n)) continue;
        uint32_t uses = 0;
        for (uint32_t t = 0; t < s.setup.n_types; t++) {
            if (s.allocs[n]->has_type(int(t))) uses |= s.setup.types[t].meta ? s.setup.types[t].meta : 1u << t;
        }
        if (!(uses & devices)) continue;
        drop(s, n);
        if (GC_PLANTED(TRIM_DROPS_FIRST)) return;
    }
}

// -- the layer -------------------------------------------------------------------

void capture_open(gc_session & s) {
    s.captures = new captures;
}

void capture_close(gc_session & s) {
    if (capture_going_on(s)) { // whatever was recorded is dropped
        const int at = s.captures->at;
        const int32_t kept = end(s, *s.allocs[at], at);
        (void) kept;
    }
    sched_wait_all(s);
    for (int n = 0; n < GC_MAX_ALLOCS; n++) {
        drop(s, n);
    }
    for (flight * what : s.captures->dropped) {
        forget(what);
    }
    delete s.captures;
}

int32_t capture_step(gc_session & s, const gc_op & op, gc_obs & o) {
    gallocr * a = alloc_of(s, op.alloc);
    if (!a || by_context(s, op.alloc)) return GC_MISUSE;
    switch (op.kind) {
        case GC_CAPTURE_BEGIN: return begin(s, *a, op.alloc);
        case GC_CAPTURE_END: return end(s, *a, op.alloc);
        case GC_LAUNCH: return launch_captured(s, *a, op, o);
        default:
            if (!has_captured(s, op.alloc) || involved(s, op.alloc)) return GC_MISUSE;
            drop(s, op.alloc);
            return GC_DONE;
    }
}

void capture_observe(gc_session & s, const gc_op &, gc_obs & o) {
    for (int n = 0; n < GC_MAX_ALLOCS; n++) {
        if (has_captured(s, n)) o.captured |= 1u << n;
    }
    if (capture_going_on(s)) o.capturing = 1u << s.captures->at;
}

} // namespace gc
