#include "context.h"

#include "captures.h"
#include "gc_oracle.h"

namespace gc {
namespace {

constexpr uint32_t all_lanes = ~0u;

const gc_context & made(const gc_session & s, int n) {
    return s.setup.contexts[n];
}

int number(int n, uint32_t lane) {
    return n * GC_MAX_LANES + int(lane);
}

// The lane has a scheduler.
bool lives(const gc_session & s, int n, uint32_t lane) {
    const context & c = s.contexts->context[n];
    return c.open && lane < made(s, n).lanes && (lane > 0 || c.able);
}

bool busy(const gc_session & s, int n) {
    for (uint32_t lane = 0; lane < GC_MAX_LANES; lane++) {
        if (lives(s, n, lane) && sched_busy(s, number(n, lane))) return true;
    }
    return false;
}

// Waits for those of the lanes in the bit set that have work in flight: the digest of one, or of both mixed.
uint64_t wait_lanes(gc_session & s, int n, uint32_t lanes, shown & o) {
    uint64_t digest = 0;
    bool first = true;
    for (uint32_t lane = 0; lane < GC_MAX_LANES; lane++) {
        if (!(lanes >> lane & 1) || !lives(s, n, lane) || !sched_busy(s, number(n, lane))) continue;
        const findings f = sched_wait(s, number(n, lane));
        add(o.found, f);
        digest = first ? f.digest : mix_lanes(digest, f.digest);
        first = false;
    }
    return digest;
}

// -- graphs --------------------------------------------------------------------------------

graph & batch_graph(gc_session & s, int n, uint32_t tokens, uint32_t used) {
    auto & g = s.contexts->context[n].batches[{tokens, used}];
    const policy::parts p = policy::parts_for(made(s, n), used, false);
    if (!g) g = scaled(*graph_of(s, made(s, n).graph), tokens, p.attention, p.window, p.indexer);
    return *g;
}

graph & reserved_graph(gc_session & s, int n, const policy::need & r) {
    auto & g = s.contexts->context[n].reservations[{r.tokens, r.cells}];
    const policy::parts p = policy::parts_for(made(s, n), r.cells, true);
    if (!g) g = scaled(*graph_of(s, made(s, n).graph), r.tokens, p.attention, p.window, p.indexer);
    return *g;
}

// -- reservations ----------------------------------------------------------------------------

bool outdated(const gc_session & s, int n, uint32_t lane) {
    const gallocr & a = *alloc_of(s, number(n, lane));
    const uint64_t * known = s.contexts->context[n].known[lane];
    return a.generation != known[0] || a.shrink_generation != known[1];
}

// Reserves the template for r. What the lane had bound is forgotten.
int32_t reserve(gc_session & s, int n, uint32_t lane, const policy::need & r, shown & o) {
    context & c = s.contexts->context[n];
    o.reserves++;
    c.bound[lane] = nullptr;
    [[maybe_unused]] const uint64_t before = alloc_of(s, number(n, lane))->generation;
    const int32_t status = sched_reserve(s, number(n, lane), reserved_graph(s, n, r), o.found);
    const gallocr & a = *alloc_of(s, number(n, lane)); // it may be another one now
    c.known[lane][0] = GC_PLANTED(KNOWS_TOO_EARLY) ? before : a.generation;
    c.known[lane][1] = a.shrink_generation;
    return status;
}

// W2, W5, C3: from now on the lane's reservation is `after`.
int32_t settle(gc_session & s, int n, uint32_t lane, const policy::lane & after, bool unchecked, shown & o) {
    context & c = s.contexts->context[n];
    const policy::need before = c.lane[lane].reserved;
    const bool due = sched_too_small(s, number(n, lane), c.nodes);
    const bool changed = after.reserved != before;
    bool old = !unchecked && outdated(s, n, lane);
    if (GC_PLANTED(GENERATION_IS_NOT_COMPARED)) old = false;
    if (GC_PLANTED(GENERATION_IS_COMPARED_BY_PROMPTS)) old &= after.fewer == 0;
    c.lane[lane] = after;
    if (!changed && !due && !old) return GC_DONE;
    if (due) sched_larger(s, number(n, lane), c.nodes, o.found);
    const bool smaller = changed && !after.reserved.above(before);
    if (smaller) sched_shrink(s, number(n, lane)); // nothing happens where buffers never become smaller
    const int32_t status = reserve(s, n, lane, after.reserved, o);
    if (status != GC_DONE && !GC_PLANTED(FAILED_STAYS_RESERVED)) c.lane[lane] = {};
    return status;
}

// -- coming, going ----------------------------------------------------------------------------

bool template_makes_sense(const graph & g) {
    for (uint32_t i = 0; i < g.size(); i++) {
        if (g.tensors[i].scale >= GC_N_SCALES) return false;
        if (g.is_view(i) && (g.tensors[i].scale || g.tensors[g.root(i)].scale > GC_SCALE_TOKENS)) return false;
    }
    return true;
}

bool context_makes_sense(const gc_session & s, const gc_context & c) {
    const graph * g = graph_of(s, c.graph);
    if (c.config >= int32_t(s.setup.n_configs) || !g || !template_makes_sense(*g)) return false;
    if (c.lanes < 1 || c.lanes > GC_MAX_LANES || c.memory >= GC_N_MEMORIES) return false;
    return c.cells >= 8 && c.cells % 8 == 0 && c.generation >= 1 && c.generation <= c.batch;
}

void leave(gc_session & s, int n, shown & o) {
    for (uint32_t lane = 0; lane < GC_MAX_LANES; lane++) {
        if (lives(s, n, lane)) sched_free(s, number(n, lane), o.found);
    }
    s.contexts->context[n].open = false;
}

int32_t open(gc_session & s, int n, shown & o) {
    context & c = s.contexts->context[n];
    const gc_context & m = made(s, n);
    if (m.config < 0 || c.open || !context_makes_sense(s, m)) return GC_MISUSE;
    for (uint32_t lane = 0; lane < m.lanes; lane++) {
        if (s.allocs[number(n, lane)]) return GC_MISUSE;
    }
    c.open = c.able = true;
    c.nodes = m.nodes ? m.nodes : graph_of(s, m.graph)->size();
    for (uint32_t lane = 0; lane < m.lanes; lane++) {
        c.lane[lane] = policy::start(m);
        sched_new(s, number(n, lane), m.config, c.nodes);
        if (m.options) sched_own(s, number(n, lane)); // only so can its buffers become smaller
    }
    int32_t status = GC_DONE;
    for (uint32_t lane = 0; lane < m.lanes && status == GC_DONE; lane++) {
        status = reserve(s, n, lane, c.lane[lane].reserved, o);
    }
    o.reserves = 0; // a new context's own
    if (status != GC_DONE) leave(s, n, o);
    return status;
}

int32_t close(gc_session & s, int n, shown & o) {
    if (n == TARGET && serving(s)) return GC_MISUSE; // T1
    wait_for(s, n, o);
    leave(s, n, o);
    s.contexts->attached = false;
    return GC_DONE;
}

// -- attach (W6) --------------------------------------------------------------------------------

uint32_t types_of(const gc_session & s, int n) {
    uint32_t types = 0;
    const int32_t config = made(s, n).config;
    for (int32_t k = 0; k < s.setup.n_slots[config]; k++) {
        types |= 1u << s.setup.slots[config][k];
    }
    return types;
}

// The placement matches, and both may share.
bool may_share(const gc_session & s) {
    const bool both = made(s, TARGET).options & made(s, DRAFT).options & GC_PHASE_AWARE;
    const bool off = GC_PLANTED(OFF_SHARES_TOO) && !made(s, DRAFT).options && made(s, TARGET).options & GC_PHASE_AWARE;
    return (both || off) && types_of(s, TARGET) == types_of(s, DRAFT);
}

// A new scheduler of the draft's lane 0, which borrows; none where its reservation fails.
int32_t borrow(gc_session & s, uint64_t bits, shown & o) {
    context & c = s.contexts->context[DRAFT];
    const int n = number(DRAFT, 0);
    if (c.able) sched_free(s, n, o.found);
    if (c.lane[0].reserved == policy::need{}) c.lane[0] = policy::start(made(s, DRAFT));
    sched_new(s, n, made(s, DRAFT).config, c.nodes);
    sched_borrow(s, n, number(TARGET, GC_PLANTED(BORROWS_LAST_LANE) ? made(s, TARGET).lanes - 1 : 0), bits);
    c.able = true;
    const int32_t status = reserve(s, DRAFT, 0, c.lane[0].reserved, o);
    if (status == GC_DONE) return GC_DONE;
    sched_free(s, n, o.found);
    c.able = false;
    c.lane[0] = {};
    return status;
}

// For FAILURE_KEEPS_A_SCHEDULER: the draft goes on, alone.
void go_on_alone(gc_session & s, shown & o) {
    context & c = s.contexts->context[DRAFT];
    c.lane[0] = policy::start(made(s, DRAFT));
    c.able = sched_new(s, number(DRAFT, 0), made(s, DRAFT).config, c.nodes) == GC_DONE;
    reserve(s, DRAFT, 0, c.lane[0].reserved, o);
}

int32_t attach(gc_session & s, int n, uint64_t bits, shown & o) {
    contexts & all = *s.contexts;
    if (n != DRAFT || !all.context[TARGET].open || all.attached) return GC_MISUSE;
    if (!may_share(s)) {
        if (GC_PLANTED(MISMATCH_CHANGES)) all.context[DRAFT].lane[0] = policy::start(made(s, DRAFT));
        return GC_REFUSED;
    }
    if (s.setup.strategy != GC_PAIR) {
        o.reason = uint32_t(GC_VALIDATED & ~bits);
        if (o.reason || s.setup.strategy == GC_APART) return GC_REFUSED;
    }
    if (busy(s, TARGET)) {
        o.waits++;
        wait_for(s, TARGET, o);
    }
    wait_for(s, DRAFT, o);
    all.attached = borrow(s, bits, o) == GC_DONE;
    if (all.attached) return GC_DONE;
    if (GC_PLANTED(FAILURE_KEEPS_A_SCHEDULER)) go_on_alone(s, o);
    return GC_PLANTED(FAILURE_IS_NO) ? GC_REFUSED : GC_FAILED;
}

// -- decode -----------------------------------------------------------------------------------

// Binds the batch, unless it is bound already, and launches it.
int32_t launch(gc_session & s, int n, uint32_t lane, uint32_t tokens, uint32_t used, uint32_t flags, shown & o) {
    context & c = s.contexts->context[n];
    const policy::need r = c.lane[lane].reserved;
    if (GC_PLANTED(BATCH_IS_PADDED) && made(s, n).options & GC_LIVE_CONTEXT) used = r.cells;
    graph & g = batch_graph(s, n, tokens, used);
    const int a = number(n, lane);
    if (c.bound[lane] != &g) {
        c.bound[lane] = nullptr;
        const int32_t status = sched_bind(s, a, g, o.found, &reserved_graph(s, n, r));
        if (status != GC_DONE) return status;
        c.bound[lane] = &g;
    }
    return sched_compute(s, a, nullptr, flags | GC_ASYNC, o.found);
}

// W4: waits for the other context where it shares and has work in flight.
void acquire(gc_session & s, int n, shown & o) {
    bool waits = s.contexts->attached && busy(s, 1 - n);
    if (GC_PLANTED(NEVER_WAITS)) waits = false;
    if (GC_PLANTED(ALWAYS_WAITS)) waits = s.contexts->attached;
    if (!waits) return;
    o.waits++;
    wait_for(s, 1 - n, o);
}

int32_t sync(gc_session & s, int n, shown & o) {
    const uint32_t lanes = GC_PLANTED(SYNC_WAITS_FOR_LANE_0) ? 1 : all_lanes;
    o.found.digest = wait_lanes(s, n, lanes, o);
    return GC_DONE;
}

int32_t trim(gc_session & s, int n, shown & o) {
    if (serving(s) && !GC_PLANTED(CONTEXT_TRIMS_WHILE_BUSY)) return GC_REFUSED; // T1
    return trim_types(s, types_of(s, n), o);
}

} // namespace

uint64_t mix_lanes(uint64_t a, uint64_t b) {
    return gc_mix(gc_mix(a) + b); // halves that are equal must not cancel out
}

void wait_for(gc_session & s, int n, shown & o) {
    wait_lanes(s, n, all_lanes, o);
    o.found.digest = 0; // it is the other's
}

int32_t trim_types(gc_session & s, uint32_t types, shown & o) {
    if (s.setup.pool == GC_NO_POOL) return GC_MISUSE;
    o.released = trim_pools(s, types);
    return GC_DONE;
}

int32_t decode(gc_session & s, int n, uint64_t tokens, int64_t used, uint32_t flags, shown & o) {
    const gc_context & m = made(s, n);
    context & c = s.contexts->context[n];
    if (!policy::lawful(m, tokens, used)) return GC_MISUSE;
    if (!c.able) return GC_REFUSED; // W6
    acquire(s, n, o);
    const policy::need need = policy::need_of(m, uint32_t(tokens), uint32_t(used));
    const bool both = policy::runs(m, 1, uint32_t(tokens));
    for (uint32_t lane = 0; lane < (both ? 2u : 1u); lane++) {
        const policy::lane after = policy::follow(c.lane[GC_PLANTED(LANES_SHARE_STATE) ? 0 : lane], need);
        if (settle(s, n, lane, after, flags & GC_UNCHECKED, o) != GC_DONE) return GC_REFUSED;
    }
    if (GC_PLANTED(LANE_1_FOLLOWS_ALL) && !both && m.lanes == 2) {
        settle(s, n, 1, policy::follow(c.lane[1], need), flags & GC_UNCHECKED, o);
    }
    const uint32_t rest = both ? uint32_t(tokens / 2) : 0;
    int32_t status = launch(s, n, 0, uint32_t(tokens) - rest, uint32_t(used), flags, o);
    if (status == GC_DONE && both) status = launch(s, n, 1, rest, uint32_t(used), flags, o);
    const uint64_t digest = flags & GC_ASYNC ? 0 : wait_lanes(s, n, both ? 3 : 1, o);
    o.found.digest = status == GC_DONE ? digest : 0;
    return status;
}

int32_t context_act(gc_session & s, const gc_op & op, shown & o) {
    const int n = op.alloc;
    if (op.kind == GC_CTX_OPEN) return open(s, n, o);
    if (!s.contexts->context[n].open) return GC_MISUSE;
    switch (op.kind) {
        case GC_CTX_CLOSE:  return close(s, n, o);
        case GC_CTX_ATTACH: return attach(s, n, op.value, o);
        case GC_CTX_DECODE: return decode(s, n, op.value, op.other, op.flags, o);
        case GC_CTX_SYNC:   return sync(s, n, o);
        case GC_CTX_NODES:  s.contexts->context[n].nodes = std::max(s.contexts->context[n].nodes, op.value); return GC_DONE;
        default:            return trim(s, n, o);
    }
}

void write(const gc_session & s, int n, const shown & from, gc_obs & o) {
    show(from.found, o);
    o.reserves = from.reserves;
    o.waits = from.waits;
    o.reason = from.reason;
    o.released = from.released;
    o.attached = s.contexts->attached;
    const context & c = s.contexts->context[n];
    if (!c.open) return;
    o.in_flight = busy(s, n);
    for (uint32_t lane = 0; lane < made(s, n).lanes; lane++) {
        o.tokens[lane] = c.lane[lane].reserved.tokens;
        o.cells[lane] = c.lane[lane].reserved.cells;
        o.fewer[lane] = c.lane[lane].fewer;
    }
}

// -- the layer -----------------------------------------------------------------------------------

void context_open(gc_session & s) {
    s.contexts = new contexts;
}

void context_close(gc_session & s) {
    delete s.contexts;
}

int32_t context_step(gc_session & s, const gc_op & op, gc_obs & o) {
    const std::lock_guard hold(s.contexts->lock);
    shown seen;
    const int32_t status = context_act(s, op, seen);
    write(s, op.alloc, seen, o);
    return status;
}

bool by_context(const gc_session & s, int32_t n) {
    const int of = n / GC_MAX_LANES;
    return s.contexts->context[of].open && uint32_t(n % GC_MAX_LANES) < made(s, of).lanes;
}

} // namespace gc
