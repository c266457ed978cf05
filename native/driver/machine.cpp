#include "machine.h"

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "emulated.h"
#include "kernels.ptx.h"

namespace gc::machine {

struct world {
    emulated::world * emulated;

    std::mutex mutex; // of what follows
    kit tools{};
    bool ready = false;                      // the tools are there
    std::vector<uint64_t *> spare[48];       // by the power of two that they hold
    std::unordered_map<uint64_t *, int> out; // words that are in use, or were given back for later
};

namespace {

constinit thread_local world * entered = nullptr;

// For calls that cannot fail unless the code around them is wrong.
void must(cuda::result r, const char * what) {
    if (r == cuda::success) return;
    std::fprintf(stderr, "gallocheck: CUDA driver error %d: %s\n", r, what);
    std::abort();
}

// On device 0, like every session's streams; whatever context is current stays so.
void make_tools(world & w) {
    const cuda::driver & api = table(&w);
    cuda::context before = nullptr, first = nullptr;
    must(api.ctx_get_current(&before), "ctx_get_current");
    must(api.primary_ctx_retain(&first, 0), "primary_ctx_retain");
    must(api.ctx_set_current(first), "ctx_set_current");
    cuda::module m = nullptr;
    must(api.module_load_data(&m, kernels::ptx), "module_load_data");
    for (int i = 0; i < kernels::n_kernels; i++) {
        must(api.module_get_function(&w.tools.code[i], m, kernels::names[i]), kernels::names[i]);
    }
    must(api.stream_create(&w.tools.stream, cuda::stream_non_blocking), "stream_create");
    must(api.ctx_set_current(before), "ctx_set_current");
    w.ready = true;
}

constexpr uint64_t slab = 4096; // words fetched from the driver at a time, at least

// Words of this power of two, from the driver. Nobody else's capture forbids it.
void fetch(world & w, int power) {
    const cuda::driver & api = table(&w);
    const uint64_t each = uint64_t(1) << power, all = each < slab ? slab : each;
    void * p = nullptr;
    int mode = cuda::capture_relaxed;
    must(api.thread_exchange_capture_mode(&mode), "thread_exchange_capture_mode");
    must(api.mem_host_alloc(&p, all * sizeof(uint64_t), cuda::host_portable | cuda::host_device_map), "mem_host_alloc");
    must(api.thread_exchange_capture_mode(&mode), "thread_exchange_capture_mode");
    for (uint64_t at = 0; at < all; at += each) {
        w.spare[power].push_back(static_cast<uint64_t *>(p) + at);
    }
}

} // namespace

world * open(const device_setup * devices, int n) {
    std::vector<emulated::device_setup> gpus;
    for (int i = 0; i < n; i++) {
        gpus.push_back({devices[i].granularity, devices[i].capacity});
    }
    auto * w = new world;
    w->emulated = emulated::open(gpus.data(), n);
    return w;
}

void close(world * w) {
    emulated::close(w->emulated);
    if (entered == w) entered = nullptr;
    delete w;
}

void enter(world * w) {
    entered = w;
    emulated::enter(w ? w->emulated : nullptr);
    if (!w) return;
    cuda::context first = nullptr;
    must(table(w).primary_ctx_retain(&first, 0), "primary_ctx_retain");
    must(table(w).ctx_set_current(first), "ctx_set_current");
}

world * here() {
    return entered;
}

const cuda::driver & table(world *) {
    return emulated::table();
}

const char * describe() {
    return "the emulated CUDA driver";
}

void set_capacity(world * w, int device, uint64_t bytes) {
    emulated::set_capacity(w->emulated, device, bytes);
}

void start_operation(world * w, uint32_t fail_devices, int fail_nth) {
    emulated::start_operation(w->emulated, fail_devices, fail_nth);
}

void count_steps(world * w, bool on) {
    emulated::count_steps(w->emulated, on);
}

uint64_t allocations(world * w) {
    return emulated::allocations(w->emulated);
}

uint64_t hazards(world * w) {
    return emulated::hazards(w->emulated);
}

uint64_t used(world * w, int device) {
    return emulated::used(w->emulated, device);
}

uint64_t page() {
    return emulated::page();
}

const kit & kit_of(world * w) {
    const std::scoped_lock lock(w->mutex);
    if (!w->ready) make_tools(*w);
    return w->tools;
}

uint64_t * words(world * w, uint64_t n) {
    const std::scoped_lock lock(w->mutex);
    const int power = std::bit_width(n > 1 ? n - 1 : 0); // at least n
    if (w->spare[power].empty()) fetch(*w, power);
    uint64_t * p = w->spare[power].back();
    w->spare[power].pop_back();
    w->out[p] = power;
    return p;
}

void give_back(world * w, uint64_t * words, bool later) {
    const std::scoped_lock lock(w->mutex);
    const auto p = w->out.find(words);
    if (p == w->out.end() || later) return;
    w->spare[p->second].push_back(words);
    w->out.erase(p);
}

} // namespace gc::machine
