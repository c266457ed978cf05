#include "driver_world.h"

#include <cstring>

#include "gc_oracle.h"
#include "kernels.ptx.h"

namespace gc::test {
namespace {

const cuda::driver & api = emulated::table();

} // namespace

driver_world::driver_world(uint64_t capacity) {
    const emulated::device_setup d[] = {{unit, capacity}, {unit, capacity}};
    w = emulated::open(d, 2);
    emulated::enter(w);
    CHECK(api.primary_ctx_retain(&first, 0) == cuda::success && api.ctx_set_current(first) == cuda::success);
    CHECK(api.module_load_data(&kernels, kernels::ptx) == cuda::success);
}

cuda::function driver_world::kernel(kernels::kernel k) const {
    cuda::function f = nullptr;
    CHECK(api.module_get_function(&f, kernels, kernels::names[k]) == cuda::success);
    return f;
}

cuda::result driver_world::fill(cuda::stream s, cuda::device_ptr at, uint64_t value) const {
    kernels::fill p = {reinterpret_cast<uint8_t *>(at), 8, value};
    void * all[] = {&p};
    const cuda::result r = api.launch_kernel(kernel(kernels::k_fill), 1, 1, 1, 32, 1, 1, 0, s, all, nullptr);
    p = {}; // the driver has taken a copy
    return r;
}

cuda::stream driver_world::stream(unsigned flags) const {
    cuda::stream s = nullptr;
    CHECK(api.stream_create(&s, flags) == cuda::success);
    return s;
}

cuda::event driver_world::event() const {
    cuda::event e = nullptr;
    CHECK(api.event_create(&e, cuda::event_disable_timing) == cuda::success);
    return e;
}

cuda::device_ptr driver_world::block(uint64_t size) const {
    cuda::device_ptr p = 0;
    CHECK(api.mem_alloc(&p, size) == cuda::success);
    return p;
}

bool driver_world::holds(cuda::device_ptr at, uint64_t value) {
    const uint64_t want = gc_mix(value);
    return std::memcmp(reinterpret_cast<const void *>(at), &want, 8) == 0;
}

} // namespace gc::test
