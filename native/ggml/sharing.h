/* sharing.h: OWN, BORROW and SHRINK on whatever a tree offers for them. */
#ifndef GC_GGML_SHARING_H
#define GC_GGML_SHARING_H

#include "subject.h"

namespace gc {

uint64_t sharing_capability(); /* GC_CAP_RESIZABLE, GC_CAP_GROUP, or 0 */
int32_t  own(Session & s, Alloc & a);
int32_t  borrow(Session & s, Alloc & a, Alloc & owner);
int32_t  request_shrink(Session & s, Alloc & a);
void     shrink(Alloc & a);       /* as the tree does it */
void     shrink_again(Alloc & a); /* so that nobody reads that it was asked again */
Alloc *  late_borrower(Session & s, const Alloc & owner); /* that is behind (R14), or NULL */

/* The same without books, for an allocator that takes another's place. */
bool become_owner(Alloc & a);
bool become_borrower(Session & s, Alloc & a, Alloc & owner);
bool rejoin(Session & s, Alloc & a, const std::shared_ptr<Group> & group);

/* What an allocator, and what the scheduler around it, reads (C5); 0 where the tree has none. Where only
 * the scheduler can be asked, both are its. */
Readings readings(const Alloc & a);
Readings sched_readings(const Alloc & a);
inline uint64_t generation(const Alloc & a) { return readings(a).generation; }
inline uint64_t shrink_generation(const Alloc & a) { return readings(a).shrink; }

} // namespace gc

#endif
