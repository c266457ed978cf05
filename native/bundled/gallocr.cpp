#include "gallocr.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <vector>

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

bool overwrites_weight(const graph & g, uint32_t i) { // what WRITES_OVER_WEIGHTS asks
    const int32_t s = g.tensors[i].src[0];
    return g.has(i, GC_INPLACE) && s >= 0 && g.has(uint32_t(s), GC_PREALLOC) && g.tensors[s].size >= g.tensors[i].size;
}

addresses alone(uint8_t * at) {
    return {1, {at}};
}

addresses address(const gallocr & a, graph & g, uint32_t i) {
    if (g.has(g.root(i), GC_PREALLOC)) { // P14
        return alone(g.own_memory(g.root(i)) + g.tensors[i].view_offs);
    }
    const gc_place & p = a.current.places[i];
    const bool wrong_plan = GC_PLANTED(PLAN_FOR_ANY_OF_THAT_COUNT) || GC_PLANTED(PLAN_FOR_ANY_OF_THAT_SIZE) ||
                            GC_PLANTED(MEASURE_MOVES_TENSORS);
    if (wrong_plan && p.type < 0) return alone(nullptr);
    if (GC_PLANTED(WRITES_OVER_WEIGHTS) && overwrites_weight(g, i)) {
        return alone(g.own_memory(uint32_t(g.tensors[i].src[0])));
    }
    const bool start = GC_PLANTED(BORROWER_BINDS_TO_THE_START) && a.role == BORROWER && joint(a, p.type);
    addresses at;
    at.parts = a.in->devices[p.type].parts();
    for (int j = 0; j < at.parts; j++) {
        at.part[j] = reinterpret_cast<uint8_t *>(a.buffers.base[p.type][p.chunk][j] + (start ? 0 : p.offset));
        at.device[j] = a.in->devices[p.type].on(j);
    }
    return at;
}

// M3: made by every bind anew; what was seen before the buffers changed is wrong now.
void see_buffers(gallocr & a) {
    for (int t = 0; t < GC_MAX_TYPES; t++) {
        const bool borrowed = a.has_type(t) && a.role == BORROWER && a.in->devices[t].meta;
        if (GC_PLANTED(ALIAS_IS_MADE_ONCE) && borrowed && a.buffers.base[t][0][0]) continue;
        if (GC_PLANTED(ALIAS_IS_KEPT_WHILE_BOUND) && borrowed && a.bound.map) continue;
        const bool left = a.held[t] && (a.in->common >> t & 1) && !joint(a, t);
        if (GC_PLANTED(BINDS_TO_WHAT_IT_LEFT) && left && a.buffers.base[t][0][0]) continue;
        if (a.has_type(t)) a.buffers.see(t, a.holding(t));
    }
}

// For planted defects: the other role, where the two share and `a` has meta types.
gallocr * meta_partner(gallocr & a) {
    bool meta = false;
    for (int t = 0; t < GC_MAX_TYPES; t++) {
        meta |= a.has_type(t) && a.in->devices[t].meta;
    }
    return meta ? a.in->role[1 - a.role] : nullptr;
}

// M2: the one of a's own two maps whose turn it is.
address_map & next_map(gallocr & a) {
    a.turn = 1 - a.turn;
    gallocr * other = meta_partner(a);
    const bool rotated = a.turn == 0; // the second bind of two
    if (GC_PLANTED(MAP_IS_SHARED) && other && a.role == BORROWER) return other->maps[other->turn];
    if (GC_PLANTED(MAP_ROTATES_INTO_OTHERS) && other && rotated) return other->maps[other->turn];
    return a.maps[a.turn];
}

// For CLEARING_CLEARS_BOTH and FREEING_FREES_BOTH.
void blank(gallocr & a) {
    for (address_map & map : a.maps) {
        for (addresses & x : map) x.part = {};
    }
}

volatile bool for_ever = true;

[[maybe_unused]] unsigned call_itself(unsigned depth) { // NOLINT: that is the defect
    volatile char frame[4096];
    frame[depth % sizeof frame] = 1;
    return for_ever ? call_itself(depth + 1) + unsigned(frame[0]) : depth;
}

// What RETRY_ABORTS and the three after it do.
void end_badly() {
    if (GC_PLANTED(RETRY_ABORTS)) std::abort();
    if (GC_PLANTED(RETRY_LOOPS)) while (for_ever) {}
    if (GC_PLANTED(RETRY_RECURSES)) call_itself(0);
    std::vector<std::vector<char>> hoard;
    while (GC_PLANTED(RETRY_HOARDS) && for_ever) hoard.emplace_back(1 << 20, 'x');
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

bool ready_for(const gallocr & a, const graph & g) {
    if (GC_PLANTED(BINDS_TO_NOTHING)) return a.planned && same_graph(*a.planned, g);
    return a.planned && same_graph(*a.planned, g) && buffers_fit(a);
}

bool reserve(gallocr & a, const graph & g) {
    plan fresh;
    if (!make_plan(g, a.where, fresh)) return false;
    if (GC_PLANTED(EVERY_OTHER_PLAN_DIFFERS)) {
        static unsigned plans = 0;
        if (plans++ % 2) turn_upside_down(fresh, g, a.where);
    }
    if (GC_PLANTED(NEXT_PLAN_DIFFERS) && a.planned) turn_upside_down(fresh, g, a.where);
    if (a.planned && !buffers_fit(a)) end_badly();
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
    bind_by_plan(a, g);
    return true;
}

void bind_by_plan(gallocr & a, graph & g) {
    see_buffers(a);
    address_map & map = next_map(a);
    if (map.size() < g.size()) map.resize(g.size()); // never smaller: no memory is asked for twice
    for (uint32_t i = 0; i < g.size(); i++) {
        map[i] = address(a, g, i);
    }
    a.bound.of = &g;
    a.bound.map = &map;
    a.bound.places = a.current.places;
    a.bound.generation = a.generation;
}

void unbind(gallocr & a, [[maybe_unused]] bool going) {
    a.bound = {};
    for (address_map & map : a.maps) {
        map.clear();
    }
    if (GC_PLANTED(CLEARING_CLEARS_BOTH) && meta_partner(a)) blank(*meta_partner(a));
    if (GC_PLANTED(FREEING_FREES_BOTH) && meta_partner(a) && a.role == BORROWER && going) blank(*meta_partner(a));
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
