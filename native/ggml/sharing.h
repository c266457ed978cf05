/* sharing.h: OWN, BORROW and SHRINK on whatever a tree offers for them. */
#ifndef GC_GGML_SHARING_H
#define GC_GGML_SHARING_H

#include "subject.h"

namespace gc {

uint64_t sharing_capability(); /* GC_CAP_RESIZABLE, GC_CAP_GROUP, or 0 */
int32_t  own(Session & s, Alloc & a);
int32_t  borrow(Session & s, Alloc & a, Alloc & owner);
int32_t  shrink(Alloc & a);
uint64_t generation(const Alloc & a); /* 0 where the tree has none */
uint64_t shrink_generation(const Alloc & a);

} // namespace gc

#endif
