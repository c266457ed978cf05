// counted.h (S): sharing by reference count, with detach.
//
// The other strategy (GC_COUNTED): an allocator makes buffers of what it needs
// itself, and two allocators may hold the same ones. Every entry counts who
// holds it. docs/choices.md, "Sharing by reference count", says what exactly
// happens; pair.cpp calls these where a session has that strategy.
#pragma once

#include "gallocr.h"

namespace gc {

struct counted_entry {
    entry buffers;
    int references = 1;
};

// S4: what is not so of the two, of the GC_ONE_... bits in `value`, and keeps buffers apart; 0 for a pair.
uint32_t missing_to_share(uint32_t strategy, uint64_t value);

// An entry without buffers, held by `a` alone, for each of its types.
void hold_own(gallocr & a);
// `a` takes a reference to `of`'s entry of every type that both have.
void hold_shared(gallocr & a, gallocr & of);
// Drops all references; buffers go with their last one (S3).
void let_go(gallocr & a);
// A larger scheduler (C3): as a new owner, without buffers, requirement or plan; what it shared stays
// with its borrower.
void start_over(gallocr & a);
// Makes the entries fit the requirement that `a` has published; what it shares and what is too small
// for it stays with the other (S2).
bool counted_fit(gallocr & a);
// The entry of type t is held by two.
bool joint(const gallocr & a, int t);

} // namespace gc
