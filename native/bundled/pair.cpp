#include "pair.h"

#include <algorithm>

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
        for (int c = 0; c < GC_MAX_CHUNKS; c++) {
            want[c] = std::max(want[c], p.role[r]->current.need[t][c]);
        }
    }
    return want;
}

// R4, R5, R9: the old buffers go before new ones are asked for.
bool refit(pair & p, const gallocr & a, int t) {
    entry & e = p.shared.type[t];
    const device & d = p.devices[t];
    const chunk_sizes want = wanted(p, t);
    const bool grow = !e.fits(d, want);
    const bool shrink = shrink_due(p, a, t) && want != e.asked;
    if (!grow && !shrink) return true;
    free_entry(d, e);
    bump(p, t);
    return make_entry(d, e, want);
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

// R1: neither owner nor borrower, and never had buffers.
bool clean(const gallocr & a) {
    if (a.resizable || a.ever_reserved) return false;
    return std::all_of(a.in->shared.type.begin(), a.in->shared.type.end(), [](const entry & e) { return e.empty(); });
}

// R11: what was private to the role goes with it.
void free_private(pair & p, const gallocr & a) {
    for (int t = 0; t < GC_MAX_TYPES; t++) {
        if (a.has_type(t) && !(p.common >> t & 1)) free_entry(p.devices[t], p.shared.type[t]);
    }
}

} // namespace

gallocr * new_gallocr(const layout & l, const device * devices) {
    return new gallocr(l, new pair{devices, {}, {}, 0, false});
}

void free_gallocr(gallocr * a) {
    pair * p = a->in;
    gallocr * other = p->role[1 - a->role];
    p->role[a->role] = nullptr;
    if (!other) {
        free_memory(*p, p->shared);
    } else if (a->old) {
        free_old(*a);
    } else if (other->old) { // nobody ever borrowed the new owner's buffers
        free_memory(*p, p->shared);
        p->shared = *other->old;
        other->old.reset();
    } else {
        free_private(*p, *a);
    }
    delete a;
    if (other) {
        start_shrink(*p);
    } else {
        delete p;
    }
}

bool become_owner(gallocr & a) {
    if (!clean(a)) return false;
    a.resizable = true;
    return true;
}

bool become_borrower(gallocr & a, gallocr & of) {
    pair & p = *of.in;
    if (!clean(a) || !of.resizable || of.role != OWNER) return false; // R1
    if (p.role[BORROWER]) return false;                               // R2: it has one already
    if (!(a.uses & of.uses)) return false;                            // R2: nothing to share
    delete a.in;
    a.in = &p;
    a.role = BORROWER;
    a.resizable = true;
    a.generation = of.generation;
    a.shrink_generation = of.shrink_generation;
    p.role[BORROWER] = &a;
    p.common = a.uses & of.uses;
    return true;
}

bool make_fit(gallocr & a) {
    pair & p = *a.in;
    catch_up(a);
    if (p.pending) a.seen = true;
    for (int t = 0; t < GC_MAX_TYPES; t++) {
        if (a.has_type(t) && !refit(p, a, t)) return false;
    }
    finish_shrink(p, a);
    a.ever_reserved = true;
    return true;
}

void request_shrink(gallocr & a) {
    a.asking = true;
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
    free_memory(p, p.shared);
    owner.current = {};
    owner.planned = nullptr;
    owner.bound = {};
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
    const bool borrowed = a.role == BORROWER && !a.old && p.role[OWNER] && (p.common >> t & 1);
    return borrowed ? 0 : a.holding(t).real_size(p.devices[t]);
}

} // namespace gc
