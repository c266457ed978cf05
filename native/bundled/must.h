// must.h: for driver calls that cannot fail unless the code above is wrong.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "cuda_table.h"

namespace gc {

inline void must(cuda::result r) {
    if (r != cuda::success) {
        std::fprintf(stderr, "gallocheck: CUDA driver error %d\n", r);
        std::abort();
    }
}

} // namespace gc
