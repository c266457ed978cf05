// pair.h (R): owner and borrower share buffers.
//
// A pair has two roles and one entry a type: a common entry where both have the
// type, else an entry private to the role that has it. An entry is as large,
// chunk by chunk, as the larger of its roles' requirements was at the last
// reserve (R3, R4). See docs/choices.md, "Owner and borrower".
#pragma once

#include "gallocr.h"

namespace gc {

enum { OWNER = 0, BORROWER = 1 };

struct pair {
    const device * devices;               // one a type
    memory shared;
    gallocr * role[2] = {nullptr, nullptr}; // null: not attached
    uint32_t common = 0;                  // bit t: the entry is shared, also once one role is gone
    bool pending = false;                 // a shrink request is not yet done
    uint32_t strategy = GC_PAIR;          // GC_COUNTED: the entries are the roles' own (counted.h)
};

// A plain allocator, alone in a pair of its own. `strategy`: how it may share (gc_setup).
gallocr * new_gallocr(const layout & l, const device * devices, uint32_t strategy = GC_PAIR);
// Detaches it. What is shared stays with the other role until that goes too (R11).
void free_gallocr(gallocr * a);

bool become_owner(gallocr & a);
bool become_borrower(gallocr & a, gallocr & of);
// GC_SHRINK and GC_REMAKE make sense for it.
bool can_shrink(const gallocr & a);
bool can_be_remade(const gallocr & a);
// Makes the entries fit the requirement that `a` has published (R3 to R9, S1, S2).
bool make_fit(gallocr & a);
// Whether reserving g would make, free or replace a buffer; changes nothing (Q3).
bool reserve_replaces(gallocr & a, const graph & g);
void request_shrink(gallocr & a);
// R14: as if the owner had been freed and a new one of the same layout had taken its place.
void remake(gallocr & owner);
// R13: bytes of type t that count as a's; over all allocators they add up to what is in use.
uint64_t owned(const gallocr & a, int t);

} // namespace gc
