// emulated_kernels.h: the kernels of kernels.h as the host runs them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels.h"

namespace gc::emulated {

constexpr size_t max_parameters = 64; // bytes of a kernel's parameters
constexpr int max_ranges = 2;         // of memory that a kernel touches

struct range {
    uint64_t at, size; // bytes
};

struct kernel_code {
    const char * name;
    size_t parameters;                            // bytes
    void (*run)(const void * parameters);         // the whole grid
    int (*touches)(const void * parameters, range * out); // what it reads and writes; how many
};

extern const kernel_code kernel_codes[kernels::n_kernels];

} // namespace gc::emulated
