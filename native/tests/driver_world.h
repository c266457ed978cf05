// driver_world.h: a world of the emulated driver for the length of a test.
#pragma once

#include "check.h"
#include "emulated.h"
#include "kernels.h"

namespace gc::test {

struct driver_world {
    static constexpr uint64_t unit = 4096; // granularity of its two devices
    emulated::world * w;
    cuda::context first = nullptr; // current
    cuda::module kernels = nullptr;

    explicit driver_world(uint64_t capacity = UINT64_MAX);
    ~driver_world() { emulated::close(w); }

    cuda::function kernel(kernels::kernel k) const;
    // Fills 8 bytes at a block with the stream of `value`, on that stream.
    cuda::result fill(cuda::stream s, cuda::device_ptr at, uint64_t value) const;
    cuda::stream stream(unsigned flags = cuda::stream_non_blocking) const;
    cuda::event event() const;
    cuda::device_ptr block(uint64_t size = unit) const; // zero
    static bool holds(cuda::device_ptr at, uint64_t value); // what `fill` wrote, without a wait
};

} // namespace gc::test
