// Counts the edges that instrumented code takes: for subjects compiled with -fsanitize-coverage=trace-pc.
// This file is compiled without it.
#include "gc_coverage.h"

namespace {

constexpr uint32_t SIZE = 1u << 16;
uint8_t counters[SIZE];
// of this thread, where the last block was; initial-exec: one instruction to reach, no call
thread_local uint32_t before __attribute__((tls_model("initial-exec")));

// the library's first byte, from the linker: places are counted from there, so they are the same in every process
extern "C" const char __ehdr_start[] __attribute__((visibility("hidden")));

// Blocks lie a few bytes apart: their low bits are spread over the table.
uint32_t spread(uintptr_t place) { return static_cast<uint32_t>(place * 0x9e3779b1u >> 8) % SIZE; }

}  // namespace

// The compiler has every block call this. An edge is two blocks in order, as in AFL: the shift tells
// a -> b from b -> a. A counter that is full stays full.
extern "C" __attribute__((visibility("hidden"))) void __sanitizer_cov_trace_pc() {
    const auto here = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
    const uint32_t block = spread(here - reinterpret_cast<uintptr_t>(__ehdr_start));
    uint8_t & counter = counters[block ^ before];
    counter += counter != 255;
    before = block >> 1;
}

extern "C" __attribute__((visibility("default"))) void gc_coverage(uint8_t ** out, uint32_t * n) {
    before = 0;  // what runs next does not follow on what ran last
    *out = counters;
    *n = SIZE;
}
