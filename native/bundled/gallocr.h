// gallocr.h (G): the graph allocator: a plan, the buffers it needs, and the
// graph bound to them. Its buffers belong to a pair (pair.h); a plain allocator
// is a pair with one role. docs/choices.md says what exactly happens.
#pragma once

#include <memory>
#include <vector>

#include "meta.h"
#include "planner.h"

namespace gc {

struct pair;
struct counted_entry; // counted.h

// One entry a type; those that a role does not use stay empty.
struct memory {
    std::array<entry, GC_MAX_TYPES> type;
};

// A graph with an address for every tensor.
struct bound_graph {
    graph * of = nullptr; // null: nothing is bound
    std::vector<gc_place> places;
    const address_map * map = nullptr; // one of its allocator's two
    uint64_t generation = 0; // when it was bound (R12)
};

struct gallocr {
    layout where;
    uint32_t uses; // bit t: the slot list has type t
    pair * in;
    int role;

    bool resizable = false;      // became an owner or a borrower
    bool ever_reserved = false;  // a reserve once succeeded
    plan current;                // its `need` is the published requirement
    const graph * planned = nullptr;
    bound_graph bound;
    std::array<address_map, 2> maps; // of its own (M2), used in turn: what still runs keeps the other
    int turn = 0;                    // which of them the next bind takes
    alias buffers;                   // as the last bind found them
    uint64_t generation = 0;
    uint64_t shrink_generation = 0;
    bool asking = false;         // asked for a shrink, has not reserved since
    bool seen = false;           // reserved since the pending request
    std::unique_ptr<memory> old; // R14: what a borrower holds whose owner was remade
    std::array<counted_entry *, GC_MAX_TYPES> held{}; // S: by type; null where the strategy is another

    gallocr(const layout & l, pair * p);

    bool has_type(int t) const { return uses >> t & 1; }
    const entry & holding(int t) const; // the entry that it uses now
};

bool reserve(gallocr & a, const graph & g);
bool bind(gallocr & a, graph & g);
// G4: the plan in force is right for g, and the buffers are there.
bool ready_for(const gallocr & a, const graph & g);
// Binds g by the plan in force, which is right for it and fits.
void bind_by_plan(gallocr & a, graph & g);
// Forgets the bound graph: clears its own map, nobody else's (M2).
// `going`: because the allocator is freed.
void unbind(gallocr & a, bool going = false);
// Bytes for each of the slots, duplicates after the first 0 (G3); changes nothing (P12).
bool measure(const gallocr & a, const graph & g, uint64_t * slots);
// Real bytes of each slot's entry, duplicates after the first 0.
void report(const gallocr & a, uint64_t * slots);

} // namespace gc
