#include "gallocr.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "counted.h"
#include "defects.h"
#include "pair.h"

namespace gc {
namespace {

// What EVERY_OTHER_PLAN_DIFFERS and NEXT_PLAN_DIFFERS do: another plan of the
// same size, every chunk upside down. Paddings differ under in-place reuse, so
// graphs with paddings stay.
void turn_upside_down(plan & p, const graph & g, const layout & l) {
    const auto padded = [](const gc_tensor & t) { return t.pad > 0; };
    if (std::any_of(g.tensors.begin(), g.tensors.end(), padded)) return;
    for (uint32_t i = 0; i < g.size(); i++) {
        gc_place & at = p.places[i];
        if (at.type < 0 || g.tensors[g.root(i)].size == 0) continue;
        const uint64_t unit = l.types[at.type].alignment, size = (g.tensors[g.root(i)].size + unit - 1) & ~(unit - 1);
        at.offset = p.need[at.type][at.chunk] - (at.offset - g.tensors[i].view_offs) - size + g.tensors[i].view_offs;
    }
}

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
    if (GC_PLANTED(BINDS_TO_NOTHING)) return a.planned && same_graph(*a.planned, g);
    return a.planned && same_graph(*a.planned, g) && buffers_fit(a);
}

bool overwrites_weight(const graph & g, uint32_t i) { // what WRITES_OVER_WEIGHTS asks
    const int32_t s = g.tensors[i].src[0];
    return g.has(i, GC_INPLACE) && s >= 0 && g.has(uint32_t(s), GC_PREALLOC) && g.tensors[s].size >= g.tensors[i].size;
}

uint8_t * address(const gallocr & a, graph & g, uint32_t i) {
    if (g.has(g.root(i), GC_PREALLOC)) { // P14
        return g.own_memory(g.root(i)) + g.tensors[i].view_offs;
    }
    const gc_place & p = a.current.places[i];
    const bool wrong_plan = GC_PLANTED(PLAN_FOR_ANY_OF_THAT_COUNT) || GC_PLANTED(PLAN_FOR_ANY_OF_THAT_SIZE) ||
                            GC_PLANTED(MEASURE_MOVES_TENSORS);
    if (wrong_plan && p.type < 0) return nullptr;
    if (GC_PLANTED(WRITES_OVER_WEIGHTS) && overwrites_weight(g, i)) return g.own_memory(uint32_t(g.tensors[i].src[0]));
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
    if (held[t]) return held[t]->buffers;
    return old ? old->type[t] : in->shared.type[t];
}

bool reserve(gallocr & a, const graph & g) {
    plan fresh;
    if (!make_plan(g, a.where, fresh)) return false;
    if (GC_PLANTED(EVERY_OTHER_PLAN_DIFFERS)) {
        static unsigned plans = 0;
        if (plans++ % 2) turn_upside_down(fresh, g, a.where);
    }
    if (GC_PLANTED(NEXT_PLAN_DIFFERS) && a.planned) turn_upside_down(fresh, g, a.where);
    if (GC_PLANTED(RETRY_ABORTS) && a.planned && !buffers_fit(a)) std::abort();
    a.current = std::move(fresh);
    a.planned = &g;
    const bool made = make_fit(a);
    if (GC_PLANTED(RESERVE_RENEWS_BOUND)) a.bound.generation = a.generation;
    return made;
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
        if (duplicate(a.where, s) && !GC_PLANTED(DUPLICATES_ARE_MEASURED)) continue;
        for (const uint64_t need : fresh.need[a.where.slots[s]]) {
            slots[s] += need;
            if (GC_PLANTED(MEASURES_FIRST_CHUNK)) break;
        }
    }
    auto & changed = const_cast<gallocr &>(a); // for the planted defects alone
    const bool as_long = a.planned && a.planned->size() == g.size();
    if (GC_PLANTED(MEASURE_MOVES_TENSORS) && as_long) changed.current.places = fresh.places;
    if (GC_PLANTED(MEASURE_IS_A_CHANGE)) changed.generation++;
    return true;
}

void report(const gallocr & a, uint64_t * slots) {
    for (int s = 0; s < a.where.n_slots; s++) {
        const int32_t t = a.where.slots[s];
        const bool again = duplicate(a.where, s) && !GC_PLANTED(DUPLICATES_ARE_REPORTED);
        slots[s] = again ? 0 : a.holding(t).real_size(a.in->devices[t]);
    }
}

} // namespace gc
