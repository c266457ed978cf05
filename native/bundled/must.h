// must.h: for driver calls that cannot fail unless the code above is wrong.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "cuda_table.h"

namespace gc {

inline void must(cuda::result r, const char * what = "a call that cannot fail") {
    if (r != cuda::success) {
        std::fprintf(stderr, "gallocheck: CUDA driver error %d: %s\n", r, what);
        std::abort();
    }
}

} // namespace gc
