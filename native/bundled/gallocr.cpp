#include "gallocr.h"

#include <bit>

#include "defects.h"
#include "pair.h"

namespace gc {
namespace {

// G3: slot s is not the first of its type.
bool duplicate(const layout & l, int s) {
    for (int before = 0; before < s; before++) {
        if (l.slots[before] == l.slots[s]) return true;
    }
    return false;
}

bool buffers_fit(const gallocr & a) {
    for (int t = 0; t < GC_MAX_TYPES; t++) {
        if (a.has_type(t) && !a.holding(t).fits(a.in->devices[t], a.current.need[t])) return false;
    }
    return true;
}

// G4: the plan is right for this graph and the buffers are there.
bool ready_for(const gallocr & a, const graph & g) {
    return a.planned && same_graph(*a.planned, g) && buffers_fit(a);
}

uint8_t * address(const gallocr & a, graph & g, uint32_t i) {
    if (g.has(g.root(i), GC_PREALLOC)) { // P14
        return g.own_memory(g.root(i)) + g.tensors[i].view_offs;
    }
    const gc_place & p = a.current.places[i];
    return reinterpret_cast<uint8_t *>(a.holding(p.type).chunk[p.chunk].base) + p.offset;
}

} // namespace

gallocr::gallocr(const layout & l, pair * p) : where(l), uses(0), in(p), role(OWNER) {
    for (int s = 0; s < l.n_slots; s++) {
        uses |= 1u << l.slots[s];
    }
    in->role[role] = this;
}

const entry & gallocr::holding(int t) const {
    return old ? old->type[t] : in->shared.type[t];
}

bool reserve(gallocr & a, const graph & g) {
    plan fresh;
    if (!make_plan(g, a.where, fresh)) return false;
    a.current = std::move(fresh);
    a.planned = &g;
    return make_fit(a);
}

bool bind(gallocr & a, graph & g) {
    if (!ready_for(a, g)) {
        if (!std::has_single_bit(a.uses) || !reserve(a, g)) return false;
    }
    a.bound.of = &g;
    a.bound.generation = a.generation;
    a.bound.places = a.current.places;
    a.bound.at.resize(g.size());
    for (uint32_t i = 0; i < g.size(); i++) {
        a.bound.at[i] = address(a, g, i);
    }
    return true;
}

bool measure(const gallocr & a, const graph & g, uint64_t * slots) {
    plan fresh;
    if (!make_plan(g, a.where, fresh)) return false;
    for (int s = 0; s < a.where.n_slots; s++) {
        slots[s] = 0;
        if (duplicate(a.where, s)) continue;
        for (const uint64_t need : fresh.need[a.where.slots[s]]) {
            slots[s] += need;
        }
    }
    return true;
}

void report(const gallocr & a, uint64_t * slots) {
    for (int s = 0; s < a.where.n_slots; s++) {
        const int32_t t = a.where.slots[s];
        slots[s] = duplicate(a.where, s) ? 0 : a.holding(t).real_size(a.in->devices[t]);
    }
}

} // namespace gc
