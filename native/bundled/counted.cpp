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

// S1: what fits is left alone. S2: what is shared and does not fit stays with the other. What is
// made anew in a shared entry that has no buffers is made for both.
bool fit(gallocr & a, int t) {
    const device & d = a.in->devices[t];
    const chunk_sizes & need = a.current.need[t];
    if (a.held[t]->buffers.fits(d, need)) return true;
    const bool had = !a.held[t]->buffers.empty();
    if (had && joint(a, t)) {
        drop(d, a.held[t]);
        a.held[t] = new counted_entry;
    }
    free_entry(d, a.held[t]->buffers);
    const bool made = make_entry(d, a.held[t]->buffers, need);
    if (had || made) a.generation++;
    if (made && joint(a, t)) a.in->role[1 - a.role]->generation++;
    return made;
}

} // namespace

uint32_t missing_to_share(uint32_t strategy, uint64_t value) {
    return strategy == GC_PAIR ? 0 : GC_VALIDATED & ~uint32_t(value);
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
        if (a.held[t]) drop(a.in->devices[t], a.held[t]);
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
    a.current = {};
    a.planned = nullptr;
    a.ever_reserved = false;
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
