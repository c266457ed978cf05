#include "pair.h"

#include <algorithm>

#include "counted.h"
#include "defects.h"

namespace gc {
namespace {

// The role takes part in the type's entry. One that is behind does not: it
// still lives on its old buffers.
bool takes_part(const pair & p, int r, int t) {
    return p.role[r] && p.role[r]->has_type(t) && !p.role[r]->old;
}

// R7: every role that takes part in an entry sees its change.
void bump(pair & p, int t) {
    for (int r : {OWNER, BORROWER}) {
        if (takes_part(p, r, t)) p.role[r]->generation++;
    }
}

void nobody_seen(pair & p) {
    for (gallocr * a : p.role) {
        if (a) a->seen = false;
    }
}

// R8: a new request forgets who had reserved.
void start_shrink(pair & p) {
    p.pending = true;
    nobody_seen(p);
    for (gallocr * a : p.role) {
        if (a) a->shrink_generation++;
    }
}

bool all_seen(const pair & p) {
    return std::all_of(p.role, p.role + 2, [](const gallocr * a) { return !a || a->seen; });
}

// R6: a common entry when all who take part were seen, a private one when its role asked.
bool shrink_due(const pair & p, const gallocr & a, int t) {
    if (!(p.common >> t & 1)) return a.asking;
    if (GC_PLANTED(SHRINKS_AFTER_ONE)) return p.pending;
    for (int r : {OWNER, BORROWER}) {
        if (takes_part(p, r, t) && !p.role[r]->seen) return false;
    }
    return p.pending;
}

// R3: chunk by chunk the larger of the requirements.
chunk_sizes wanted(const pair & p, int t) {
    chunk_sizes want{};
    for (int r : {OWNER, BORROWER}) {
        if (!takes_part(p, r, t)) continue;
        [[maybe_unused]] const chunk_sizes before = want;
        for (int c = 0; c < GC_MAX_CHUNKS; c++) {
            const uint64_t need = p.role[r]->current.need[t][c];
            want[c] = std::max(want[c], need);
            if (GC_PLANTED(ADDS_REQUIREMENTS) && r == BORROWER && want[c] > 0) want[c] = before[c] + need;
        }
    }
    return want;
}

// What NEW_BEFORE_OLD and LAST_CHUNK_GOES_LATE do: chunks from `kept` on go
// only after the new ones were asked for.
bool replace_late(pair & p, int t, const chunk_sizes & want, int kept) {
    entry & e = p.shared.type[t];
    entry old;
    old.asked = e.asked;
    std::swap_ranges(e.chunk.begin() + kept, e.chunk.end(), old.chunk.begin() + kept);
    free_entry(p.devices[t], e);
    bump(p, t);
    const bool made = make_entry(p.devices[t], e, want);
    free_entry(p.devices[t], old);
    return made;
}

int last_chunk(const entry & e) { // for LAST_CHUNK_GOES_LATE
    int c = GC_MAX_CHUNKS - 1;
    while (c > 0 && e.asked[c] == 0) c--;
    return c;
}

bool wants_some(const pair & p, int r, int t) { // for FAILED_ENTRY_STAYS_CLOSED
    return takes_part(p, r, t) && p.role[r]->current.need[t] != chunk_sizes{};
}

// R4, R5, R9: the old buffers go before new ones are asked for.
bool refit(pair & p, const gallocr & a, int t) {
    entry & e = p.shared.type[t];
    const device & d = p.devices[t];
    chunk_sizes want = wanted(p, t);
    if (GC_PLANTED(LAST_RESERVE_WINS)) want = a.current.need[t];
    for (uint64_t & bytes : want) {
        if (GC_PLANTED(BUFFER_IS_ROUNDED_DOWN)) bytes -= bytes % 64;
        if (GC_PLANTED(BUFFER_IS_CAPPED)) bytes = std::min(bytes, a.where.types[t].max_size);
    }
    const bool grow = !e.fits(d, want);
    bool shrink = shrink_due(p, a, t) && want != e.asked;
    if (GC_PLANTED(SHRINKS_UNASKED)) shrink = want != e.asked;
    if (GC_PLANTED(NEVER_SHRINKS)) shrink = false;
    if (GC_PLANTED(SHRINKS_TO_THE_SAME)) shrink = shrink_due(p, a, t);
    if (GC_PLANTED(REALLOCATES_SAME_SIZE) && !grow && !shrink && want != e.asked) want = e.asked, shrink = true;
    if (GC_PLANTED(EVERY_RESERVE_IS_A_CHANGE) && !grow && !shrink) bump(p, t);
    if (!grow && !shrink) return true;
    for (int c = 0; c < GC_MAX_CHUNKS; c++) {
        if (GC_PLANTED(KEEPS_CHUNKS_ON_GROWTH) && grow) want[c] = std::max(want[c], e.asked[c]);
    }
    if (GC_PLANTED(FAILED_ENTRY_STAYS_CLOSED) && e.empty() && wants_some(p, 1 - a.role, t)) return false;
    if (GC_PLANTED(NEW_BEFORE_OLD)) return replace_late(p, t, want, 0);
    if (GC_PLANTED(LAST_CHUNK_GOES_LATE)) return replace_late(p, t, want, last_chunk(e));
    free_entry(d, e);
    const bool made = make_entry(d, e, want);
    if (GC_PLANTED(FAILURE_IS_NO_CHANGE) && !made) return false;
    if (GC_PLANTED(SHRINKING_IS_NO_CHANGE) && !grow) return made;
    bump(p, t);
    if (GC_PLANTED(OTHER_ROLE_IS_NOT_TOLD) && takes_part(p, 1 - a.role, t)) p.role[1 - a.role]->generation--;
    return made;
}

// Whether refit would replace the entry.
bool would_refit(const gallocr & a, int t) {
    const pair & p = *a.in;
    const device & d = p.devices[t];
    if (a.held[t]) return !a.held[t]->buffers.fits(d, a.current.need[t]); // S
    const chunk_sizes want = wanted(p, t);
    const entry & e = p.shared.type[t];
    return !e.fits(d, want) || (shrink_due(p, a, t) && want != e.asked);
}

void finish_shrink(pair & p, gallocr & a) {
    a.asking = false;
    if (p.pending && all_seen(p)) {
        p.pending = false;
        nobody_seen(p);
    }
}

void free_memory(const pair & p, memory & m) {
    for (int t = 0; t < GC_MAX_TYPES; t++) {
        free_entry(p.devices[t], m.type[t]);
    }
}

void free_old(gallocr & a) {
    free_memory(*a.in, *a.old);
    a.old.reset();
}

// R14: the borrower lets go of its old buffers and takes part in the new owner's.
void catch_up(gallocr & a) {
    if (a.old) {
        free_old(a);
        a.generation++;
    }
}

void free_borrowed(pair & p) { // REMAKE_FREES_BORROWED, NEW_OWNER_FREES_BORROWED
    gallocr * b = p.role[BORROWER];
    if (!b || !b->old) return;
    free_memory(p, *b->old);
    b->generation++;
}

void shrink_at_once(pair & p, const gallocr & a) { // SHRINKS_AT_REQUEST
    for (int t = 0; t < GC_MAX_TYPES; t++) {
        const chunk_sizes want = wanted(p, t);
        if (a.has_type(t) && want != p.shared.type[t].asked) replace_late(p, t, want, GC_MAX_CHUNKS);
    }
}

// For FAILURE_FREES_EARLIER_ENTRIES and FAILURE_FREES_LATER_ENTRIES: the types of a whose entries must grow.
uint32_t misfits(const pair & p, const gallocr & a) {
    uint32_t found = 0;
    for (int t = 0; t < GC_MAX_TYPES; t++) {
        if (a.has_type(t) && !p.shared.type[t].fits(p.devices[t], wanted(p, t))) found |= 1u << t;
    }
    return found;
}

void free_some(pair & p, uint32_t types) {
    for (int t = 0; t < GC_MAX_TYPES; t++) {
        if (types >> t & 1) free_entry(p.devices[t], p.shared.type[t]);
    }
}

// R1: neither owner nor borrower, and never had buffers.
bool clean(const gallocr & a) {
    if (a.resizable || a.ever_reserved) return false;
    for (int t = 0; t < GC_MAX_TYPES; t++) {
        if (!a.holding(t).empty()) return false;
    }
    return true;
}

// R11: what was private to the role goes with it.
void free_private(pair & p, const gallocr & a) {
    if (GC_PLANTED(PRIVATE_OUTLIVE_THEIR_ROLE)) return;
    for (int t = 0; t < GC_MAX_TYPES; t++) {
        if (a.has_type(t) && !(p.common >> t & 1)) free_entry(p.devices[t], p.shared.type[t]);
    }
}

// Buffers that planted defects do not give back when the last role goes.
void forget_some(pair & p, const gallocr & last) {
    for (int t = 0; t < GC_MAX_TYPES; t++) {
        entry & e = p.shared.type[t];
        const bool first_type = !(last.uses & ((1u << t) - 1));
        if (GC_PLANTED(FREE_FORGETS_CHUNKS) && !last.resizable) std::fill(e.chunk.begin() + 1, e.chunk.end(), meta_buffer{});
        if (GC_PLANTED(FREE_FORGETS_TYPES) && !last.resizable && !first_type) e = {};
        if (GC_PLANTED(LAST_LEAVES_SHARED) && (p.common >> t & 1)) e = {};
    }
}

} // namespace

gallocr * new_gallocr(const layout & l, const device * devices, uint32_t strategy) {
    auto * a = new gallocr(l, new pair{devices, {}, {}, 0, false, strategy});
    if (strategy == GC_COUNTED) hold_own(*a);
    return a;
}

void free_gallocr(gallocr * a) {
    pair * p = a->in;
    gallocr * other = p->role[1 - a->role];
    unbind(*a, true);
    p->role[a->role] = nullptr;
    if (p->strategy == GC_COUNTED) {
        let_go(*a);
        delete a;
        if (!other) delete p;
        return;
    }
    if (!other) {
        forget_some(*p, *a);
        free_memory(*p, p->shared);
    } else if (a->old) {
        free_old(*a);
    } else if (other->old) { // nobody ever borrowed the new owner's buffers
        free_memory(*p, p->shared);
        p->shared = *other->old;
        other->old.reset();
    } else {
        free_private(*p, *a);
        if (GC_PLANTED(SHARED_GO_WITH_OWNER) && a->role == OWNER) free_memory(*p, p->shared), other->generation++;
    }
    delete a;
    if (GC_PLANTED(DETACH_IS_QUIET) && other) return;
    if (other) {
        start_shrink(*p);
    } else {
        delete p;
    }
}

bool become_owner(gallocr & a) {
    if (a.in->strategy == GC_APART) return true; // and means nothing
    bool may = clean(a);
    if (GC_PLANTED(OWNS_TWICE)) may |= a.resizable;
    if (GC_PLANTED(OWNS_WITH_BUFFERS)) may |= !a.resizable;
    if (!may) return false;
    a.resizable = true;
    return true;
}

bool become_borrower(gallocr & a, gallocr & of) {
    pair & p = *of.in;
    if (p.strategy == GC_APART) return false;
    bool may = clean(a); // R1
    if (GC_PLANTED(BORROWS_WITH_BUFFERS)) may = !a.resizable;
    bool lends = of.resizable && of.role == OWNER; // R2
    if (GC_PLANTED(LENDS_WITHOUT_OWNING)) lends = of.role == OWNER && &a != &of;
    if (!may || !lends) return false;
    if (p.role[BORROWER] && !GC_PLANTED(TAKES_SECOND_BORROWER)) return false; // R1
    if (!(a.uses & of.uses) && !GC_PLANTED(LENDS_NOTHING)) return false;      // R2: nothing to share
    delete a.in;
    a.in = &p;
    a.role = BORROWER;
    a.resizable = true;
    a.generation = of.generation;
    a.shrink_generation = of.shrink_generation;
    p.role[BORROWER] = &a;
    p.common = a.uses & of.uses;
    if (p.strategy == GC_COUNTED) hold_shared(a, of);
    return true;
}

bool can_shrink(const gallocr & a) {
    return a.resizable && a.in->strategy == GC_PAIR;
}

bool can_be_remade(const gallocr & a) {
    return can_shrink(a) && a.role == OWNER;
}

bool make_fit(gallocr & a) {
    if (a.in->strategy == GC_COUNTED) return counted_fit(a);
    pair & p = *a.in;
    catch_up(a);
    if (GC_PLANTED(NEW_OWNER_FREES_BORROWED)) free_borrowed(p);
    if (p.pending) a.seen = true;
    uint32_t grown = 0;
    if (GC_PLANTED(FAILURE_FREES_EARLIER_ENTRIES)) grown = misfits(p, a);
    for (int t = 0; t < GC_MAX_TYPES; t++) {
        if (!a.has_type(t) || refit(p, a, t)) continue;
        if (GC_PLANTED(FAILURE_FREES_LATER_ENTRIES)) free_some(p, misfits(p, a) >> t << t);
        if (GC_PLANTED(FAILURE_FREES_EARLIER_ENTRIES)) free_some(p, grown);
        if (GC_PLANTED(FAILURE_DROPS_REQUIREMENT)) a.current = {}, a.planned = nullptr;
        return false;
    }
    finish_shrink(p, a);
    a.ever_reserved = true;
    return true;
}

bool reserve_replaces(gallocr & a, const graph & g) {
    plan fresh;
    if (!make_plan(g, a.where, fresh)) return false; // it is refused anyway
    if (a.old) return true;                          // catching up frees what it has
    const bool seen = a.seen;
    std::swap(a.current, fresh); // as if it had been published
    a.seen |= a.in->pending;
    bool found = false;
    for (int t = 0; t < GC_MAX_TYPES; t++) {
        found |= a.has_type(t) && would_refit(a, t);
    }
    std::swap(a.current, fresh);
    a.seen = seen;
    return found;
}

void request_shrink(gallocr & a) {
    a.asking = true;
    if (GC_PLANTED(REQUESTS_COUNT_AGAIN) && a.in->pending && !a.old) a.shrink_generation++;
    if (GC_PLANTED(SHRINKS_AT_REQUEST) && !a.old) shrink_at_once(*a.in, a);
    if (!a.in->pending && !a.old) start_shrink(*a.in);
}

void remake(gallocr & owner) {
    pair & p = *owner.in;
    gallocr * borrower = p.role[BORROWER];
    if (borrower && !borrower->old) {
        borrower->old = std::make_unique<memory>();
        for (int t = 0; t < GC_MAX_TYPES; t++) {
            if (borrower->has_type(t)) std::swap(borrower->old->type[t], p.shared.type[t]);
        }
    }
    if (GC_PLANTED(REMAKE_FREES_BORROWED)) free_borrowed(p);
    if (GC_PLANTED(REMAKE_IS_A_CHANGE) && borrower) borrower->generation++;
    free_memory(p, p.shared);
    owner.current = {};
    owner.planned = nullptr;
    unbind(owner);
    owner.ever_reserved = owner.asking = false;
    owner.generation++;
    p.pending = false;
    nobody_seen(p);
    for (gallocr * a : p.role) {
        if (a) a->shrink_generation++;
    }
}

uint64_t owned(const gallocr & a, int t) {
    const pair & p = *a.in;
    if (!a.has_type(t)) return 0;
    if (p.strategy == GC_COUNTED) {
        const bool lent = a.role == BORROWER && p.role[OWNER] && joint(a, t);
        return lent ? 0 : a.holding(t).real_size(p.devices[t]);
    }
    bool borrowed = a.role == BORROWER && !a.old && p.role[OWNER] && (p.common >> t & 1);
    if (GC_PLANTED(BORROWED_COUNT_TWICE)) borrowed = false;
    if (GC_PLANTED(SHARED_COUNT_NEVER)) borrowed = takes_part(p, OWNER, t) && takes_part(p, BORROWER, t);
    return borrowed ? 0 : a.holding(t).real_size(p.devices[t]);
}

} // namespace gc
