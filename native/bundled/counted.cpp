#include "counted.h"

#include "defects.h"
#include "pair.h"

namespace gc {
namespace {

// S3: freed with the last reference.
void drop(const device & d, counted_entry * e) {
    if (--e->references > 0) return;
    free_entry(d, e->buffers);
    delete e;
}

// For planted defects: the memory goes, though somebody still holds the entry.
void pull_away(const device & d, const entry & e) {
    entry copy = e;
    free_entry(d, copy);
}

// For planted defects: whether the device has so much just now.
bool has_room(const device & d, const chunk_sizes & want) {
    entry trial;
    const bool made = make_entry(d, trial, want);
    free_entry(d, trial);
    return made;
}

chunk_sizes twice(chunk_sizes a) { // for SHARED_ARE_FOR_TWO and ROOM_FOR_TWO
    for (uint64_t & bytes : a) {
        bytes *= 2;
    }
    return a;
}

// S2: what is shared stays with the other.
void leave(gallocr & a, int t) {
    const device & d = a.in->devices[t];
    if (GC_PLANTED(DETACH_FREES_SHARED)) pull_away(d, a.held[t]->buffers);
    if (GC_PLANTED(DETACH_IS_TOLD)) a.in->role[1 - a.role]->generation++;
    drop(d, a.held[t]);
    a.held[t] = new counted_entry;
}

// S1: what fits is left alone. S2: what is shared and does not fit is left to the other. What is
// made in a shared entry that has no buffers yet is made for both.
bool fit(gallocr & a, int t) {
    const device & d = a.in->devices[t];
    chunk_sizes need = a.current.need[t];
    const bool fits = a.held[t]->buffers.fits(d, need), had = !a.held[t]->buffers.empty(), shared = joint(a, t);
    const gallocr * other = a.in->role[1 - a.role];
    if (GC_PLANTED(OWN_BUFFERS_FIRST) && fits && shared && had && !has_room(d, need)) return false;
    const bool smaller = GC_PLANTED(SMALLER_IS_MADE_ANEW) && shared && had && need != a.held[t]->buffers.asked;
    if (fits && !smaller) return true;
    if (GC_PLANTED(NEVER_LEAVES) && had && shared) return false;
    if (GC_PLANTED(SHARED_STAY_UNMADE) && !had && shared && other->current.need[t] != chunk_sizes{}) return false;
    if (GC_PLANTED(ROOM_FOR_TWO) && !had && shared && !has_room(d, twice(need))) return false;
    if (GC_PLANTED(SHARED_ARE_FOR_TWO) && !had && shared) need = twice(need);
    const bool stays = GC_PLANTED(DETACH_MOVES_THE_OTHER);
    if (shared && (had || GC_PLANTED(LEAVES_BEFORE_IT_SHARES)) && !stays) leave(a, t);
    free_entry(d, a.held[t]->buffers);
    const bool made = make_entry(d, a.held[t]->buffers, need);
    const bool quiet = GC_PLANTED(LEAVES_QUIETLY) && had && shared;
    if ((had || made) && !quiet) a.generation++;
    if (made && joint(a, t)) a.in->role[1 - a.role]->generation++;
    return made;
}

} // namespace

uint32_t missing_to_share(uint32_t strategy, uint64_t value) {
    if (strategy == GC_PAIR) return 0;
    uint32_t missing = GC_VALIDATED & ~uint32_t(value);
    if (GC_PLANTED(ONE_SEQUENCE_IS_NOT_ASKED) && strategy == GC_COUNTED) missing &= ~uint32_t(GC_ONE_SEQUENCE);
    if (GC_PLANTED(FIRST_REASON_ONLY)) missing &= 0 - missing;
    return missing;
}

void hold_own(gallocr & a) {
    for (int t = 0; t < GC_MAX_TYPES; t++) {
        if (a.has_type(t)) a.held[t] = new counted_entry;
    }
}

void hold_shared(gallocr & a, gallocr & of) {
    for (int t = 0; t < GC_MAX_TYPES; t++) {
        if (!a.has_type(t) || !of.has_type(t)) continue;
        drop(a.in->devices[t], a.held[t]);
        a.held[t] = of.held[t];
        a.held[t]->references++;
    }
}

void let_go(gallocr & a) {
    for (int t = 0; t < GC_MAX_TYPES; t++) {
        if (!a.held[t]) continue;
        const device & d = a.in->devices[t];
        const bool last = a.role == BORROWER && !joint(a, t);
        if (GC_PLANTED(OWNER_FREES_SHARED) && a.role == OWNER && joint(a, t)) pull_away(d, a.held[t]->buffers);
        if (!GC_PLANTED(LAST_BORROWER_LEAVES_BUFFERS) || !last) drop(d, a.held[t]);
        a.held[t] = nullptr;
    }
}

void start_over(gallocr & a) {
    for (int t = 0; t < GC_MAX_TYPES; t++) {
        if (a.has_type(t) && !a.held[t]->buffers.empty()) a.generation++;
    }
    let_go(a);
    hold_own(a);
    unbind(a);
    a.planned = nullptr;
}

bool counted_fit(gallocr & a) {
    for (int t = 0; t < GC_MAX_TYPES; t++) {
        if (a.has_type(t) && !fit(a, t)) return false;
    }
    a.ever_reserved = true;
    return true;
}

bool joint(const gallocr & a, int t) {
    return a.held[t] && a.held[t]->references > 1;
}

} // namespace gc
