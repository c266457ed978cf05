// emulated.cpp: worlds, contexts and the table; see emulated.h.
#include "emulated.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "emulated_world.h"

namespace gc::emulated {
namespace {

cuda::result primary_ctx_retain(cuda::context * ctx, int device) {
    if (!here) return cuda::not_initialized;
    if (!ctx) return cuda::invalid_value;
    if (!valid_device(device)) return cuda::invalid_device;
    *ctx = &here->gpus[device];
    return cuda::success;
}

cuda::result ctx_set_current(cuda::context ctx) {
    if (!here) return cuda::not_initialized;
    const auto mine = [&](gpu & g) { return &g == ctx; };
    if (ctx && std::none_of(here->gpus.begin(), here->gpus.end(), mine)) return cuda::invalid_context;
    current = static_cast<gpu *>(ctx);
    return cuda::success;
}

cuda::result ctx_get_current(cuda::context * ctx) {
    if (!here) return cuda::not_initialized;
    if (!ctx) return cuda::invalid_value;
    *ctx = current;
    return cuda::success;
}

} // namespace

world * open(const device_setup * devices, int n, const ground * on, bool light) {
    auto * w = new world;
    w->on = on ? on : &on_host;
    w->gpus.reserve(size_t(n)); // contexts are pointers to them
    for (int i = 0; i < n; i++) {
        w->gpus.push_back({devices[i].granularity, devices[i].capacity, 0});
        w->legacy.push_back(std::make_unique<stream_state>());
        w->legacy.back()->device = &w->gpus.back();
        w->legacy.back()->blocking = true;
    }
    if (light) take_pool(*w);
    return w;
}

void close(world * w) {
    give_pool(*w);
    for (const arena & a : w->arenas) {
        munmap(a.base, a.size);
    }
    for (void * p : w->host_memory) {
        w->on->host_free(p);
    }
    if (here == w) enter(nullptr);
    delete w;
}

void enter(world * w) {
    here = w;
    current = nullptr;
}

const cuda::driver & table() {
    static const cuda::driver t = {
        primary_ctx_retain,
        ctx_set_current,
        ctx_get_current,
        memory::mem_get_info,
        memory::mem_granularity,
        memory::mem_address_reserve,
        memory::mem_address_free,
        memory::mem_create,
        memory::mem_release,
        memory::mem_map,
        memory::mem_unmap,
        memory::mem_set_access,
        content::memcpy_htod,
        content::memcpy_dtoh,
        content::memset_d8,
        content::mem_alloc,
        content::mem_free,
        content::mem_host_alloc,
        content::mem_free_host,
        work::ctx_synchronize,
        work::stream_create,
        work::stream_destroy,
        work::stream_synchronize,
        work::stream_query,
        work::event_create,
        work::event_destroy,
        work::event_record,
        work::event_synchronize,
        work::stream_wait_event,
        code::module_load_data,
        code::module_unload,
        code::module_get_function,
        code::launch_kernel,
        graphs::stream_begin_capture,
        graphs::stream_end_capture,
        graphs::stream_is_capturing,
        graphs::thread_exchange_capture_mode,
        graphs::graph_instantiate,
        graphs::graph_launch,
        graphs::graph_exec_destroy,
        graphs::graph_destroy,
    };
    return t;
}

bool told_to_fail(world & w, int device) {
    w.tried++;
    return w.tried == uint64_t(w.fail_nth) || (w.fail_devices >> device & 1);
}

void set_capacity(world * w, int device, uint64_t bytes) {
    const locked lock(w->mutex);
    w->gpus[device].capacity = bytes;
}

void start_operation(world * w, uint32_t fail_devices, int fail_nth) {
    const locked lock(w->mutex);
    w->tried = w->hazards = 0;
    w->fail_devices = fail_devices;
    w->fail_nth = fail_nth;
}

void count_steps(world *, bool on) {
    steps_count = on;
}

uint64_t allocations(world * w) {
    const locked lock(w->mutex);
    return w->tried;
}

uint64_t hazards(world * w) {
    const locked lock(w->mutex);
    return w->hazards;
}

uint64_t used(world * w, int device) {
    const locked lock(w->mutex);
    return w->gpus[device].used;
}

uint64_t reserved(world * w) {
    const locked lock(w->mutex);
    uint64_t bytes = 0;
    for (const reservation & r : w->reservations) {
        bytes += r.size;
    }
    return bytes;
}

uint64_t graphs_left(world * w) {
    const locked lock(w->mutex);
    return w->graphs.size() + w->execs.size();
}

uint64_t most(const world * w) {
    return w->on->most;
}

uint64_t page() {
    static const auto size = uint64_t(sysconf(_SC_PAGESIZE));
    return size;
}

} // namespace gc::emulated
