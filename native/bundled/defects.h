// defects.h: planted defects. Each is one guarded line somewhere in the code,
// described in a .def file of defects/. The shipped build has none: there GC_PLANTED is
// the constant false and the line is gone.
#pragma once

#ifdef GC_WITH_DEFECTS

namespace gc {

enum class defect : unsigned {
    none = 0,
#define GC_DEFECT(number, clause, name, what) name = number,
#include "defects.inc"
#undef GC_DEFECT
};

inline defect planted = defect::none; // set by gc_plant

} // namespace gc

#define GC_PLANTED(name) (::gc::planted == ::gc::defect::name)

#else

#define GC_PLANTED(name) false

#endif
