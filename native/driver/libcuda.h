// libcuda.h: the driver of a real card, from libcuda.so.1, as the same table.
#pragma once

#include <string>

#include "cuda_table.h"

namespace gc::libcuda {

struct library {
    cuda::driver table;
    std::string card;   // name of device 0
    int version;        // of the driver, as 13000
    cuda::context context; // device 0's primary one; not current yet
    uint64_t granularity;  // of device 0, bytes
};

// Loaded and initialized by the first call, in this process; null where it cannot be.
const library * load();
// Why not: one sentence.
const std::string & why_not();

} // namespace gc::libcuda
