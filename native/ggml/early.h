/* early.h: what the adapter takes for granted and trees of early 2024 do not have. The
 * build asks the compiler (probes/) and sets GC_HAVE_DEVICES, GC_HAVE_SCHED, GC_HAVE_GALLOCR.
 */
#ifndef GC_GGML_EARLY_H
#define GC_GGML_EARLY_H

#include "ggml.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-backend-impl.h"

#include <cstdlib>
#include <type_traits>

#ifndef GC_HAVE_DEVICES
/* Such a tree has backends alone. This is what the adapter keeps of a device. */
struct ggml_backend_device {
    void * context;
    bool   host;
};
typedef struct ggml_backend_device * ggml_backend_dev_t;
#endif

namespace gc {

/* Functions return a status, or in earlier trees whether they succeeded, or nothing. */
template <class R> R success() {
    if constexpr (std::is_same_v<R, bool>) {
        return true;
    } else if constexpr (!std::is_void_v<R>) {
        return R(0);
    }
}

template <class R> bool succeeded(R result) { return result == success<R>(); }

/* The tree's scheduler. Without GC_HAVE_SCHED none is offered (GC_CAP_SCHED), so that none of these is called. */
using Sched = ggml_backend_sched_t;
#ifdef GC_HAVE_SCHED
inline void   sched_reset(Sched s) { ggml_backend_sched_reset(s); }
inline void   sched_free(Sched s) { ggml_backend_sched_free(s); }
inline void   sched_wait(Sched s) { ggml_backend_sched_synchronize(s); }
inline void   sched_assign(Sched s, ggml_tensor * t, ggml_backend_t b) { ggml_backend_sched_set_tensor_backend(s, t, b); }
inline bool   sched_reserve(Sched s, ggml_cgraph * g) { return ggml_backend_sched_reserve(s, g); }
inline bool   sched_alloc(Sched s, ggml_cgraph * g) { return ggml_backend_sched_alloc_graph(s, g); }
inline bool   sched_compute(Sched s, ggml_cgraph * g) { return succeeded(ggml_backend_sched_graph_compute(s, g)); }
inline bool   sched_launch(Sched s, ggml_cgraph * g) { return succeeded(ggml_backend_sched_graph_compute_async(s, g)); }
inline size_t sched_size(Sched s, ggml_backend_t b) { return ggml_backend_sched_get_buffer_size(s, b); }
#else
inline void   sched_reset(Sched) { std::abort(); }
inline void   sched_free(Sched) { std::abort(); }
inline void   sched_wait(Sched) { std::abort(); }
inline void   sched_assign(Sched, ggml_tensor *, ggml_backend_t) { std::abort(); }
inline bool   sched_reserve(Sched, ggml_cgraph *) { std::abort(); }
inline bool   sched_alloc(Sched, ggml_cgraph *) { std::abort(); }
inline bool   sched_compute(Sched, ggml_cgraph *) { std::abort(); }
inline bool   sched_launch(Sched, ggml_cgraph *) { std::abort(); }
inline size_t sched_size(Sched, ggml_backend_t) { std::abort(); }
#endif

} // namespace gc

#endif
