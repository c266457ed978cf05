// emulated_kernels.h: the kernels of kernels.h as the host runs them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels.h"

namespace gc::emulated {

constexpr size_t max_parameters = 64; // bytes of a kernel's parameters

struct range {
    uint64_t at, size; // bytes; of size 0 where there is none
};

struct kernel_code {
    const char * name;
    size_t parameters;                            // bytes
    void (*run)(const void * parameters);         // the whole grid
    range (*touches)(const void * parameters);    // the device memory that it reads and writes; words are none
};

extern const kernel_code kernel_codes[kernels::n_kernels];

} // namespace gc::emulated
