/* defects.h: planted defects, each one guarded line, described in defects.def. A
 * shipped subject has none: there GC_PLANTED is the constant false.
 */
#ifndef GC_GGML_DEFECTS_H
#define GC_GGML_DEFECTS_H

#ifdef GC_WITH_DEFECTS

namespace gc {

enum class defect : unsigned {
    none = 0,
#define GC_DEFECT(number, clause, name, what) name = number,
#include "defects.def"
#undef GC_DEFECT
};

extern defect planted; /* set by gc_plant */

} // namespace gc

#define GC_PLANTED(name) (::gc::planted == ::gc::defect::name)

#else

#define GC_PLANTED(name) false

#endif
#endif
