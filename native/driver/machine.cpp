#include "machine.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "card.h"
#include "emulated.h"
#include "kernels.ptx.h"

namespace gc::machine {

struct world {
    emulated::world * account = nullptr; // the emulated world, or what a card's goes by
    card::world * card = nullptr;        // null: emulated

    std::mutex mutex; // of what follows
    kit tools{};
    bool ready = false;                       // the tools are there
    std::vector<uint64_t *> spare[48];        // words, by the power of two that they hold
    std::unordered_map<uint64_t *, int> out;  // words that are in use, or were given back for later
    std::unordered_map<void *, uint64_t> own; // host memory and its size
};

namespace {

constinit thread_local world * entered = nullptr;

// For calls that cannot fail unless the code around them is wrong.
void must(cuda::result r, const char * what) {
    if (r == cuda::success) return;
    std::fprintf(stderr, "gallocheck: CUDA driver error %d: %s\n", r, what);
    std::abort();
}

enum class drivers { emulated, light, cuda };

// What GALLOCHECK_DRIVER names. A driver that there is not ends the process: what was asked for cannot be had.
drivers driver() {
    static const drivers named = [] {
        const char * name = std::getenv("GALLOCHECK_DRIVER");
        if (!name || !*name || std::strcmp(name, "emulated") == 0) return drivers::emulated;
        if (std::strcmp(name, "light") == 0) return drivers::light;
        if (std::strcmp(name, "cuda") == 0) {
            if (libcuda::load()) return drivers::cuda;
            std::fprintf(stderr, "gallocheck: GALLOCHECK_DRIVER=cuda: %s\n", libcuda::why_not().c_str());
            std::exit(3);
        }
        std::fprintf(stderr, "gallocheck: there is no driver GALLOCHECK_DRIVER=%s; name emulated, light or cuda.\n", name);
        std::exit(2);
    }();
    return named;
}

bool on_card() {
    return driver() == drivers::cuda;
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

// Host memory by the driver. No capture forbids it.
void * pinned(world & w, uint64_t size) {
    const cuda::driver & api = table(&w);
    void * p = nullptr;
    int mode = cuda::capture_relaxed;
    must(api.thread_exchange_capture_mode(&mode), "thread_exchange_capture_mode");
    must(api.mem_host_alloc(&p, size, cuda::host_portable | cuda::host_device_map), "mem_host_alloc");
    must(api.thread_exchange_capture_mode(&mode), "thread_exchange_capture_mode");
    return p;
}

// Host memory that costs nothing before it is touched, of any size.
void * lazy(uint64_t size) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void * p = mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (p == MAP_FAILED) std::abort();
    return p;
}

void fetch_words(world & w, int power) {
    constexpr uint64_t slab = 4096; // words at a time, at least
    const uint64_t each = uint64_t(1) << power, all = std::max(each, slab);
    auto * p = static_cast<uint64_t *>(pinned(w, all * sizeof(uint64_t)));
    for (uint64_t at = 0; at < all; at += each) {
        w.spare[power].push_back(p + at);
    }
}

} // namespace

world * open(const device_setup * devices, int n) {
    std::vector<emulated::device_setup> gpus;
    for (int i = 0; i < n; i++) {
        gpus.push_back({devices[i].granularity, devices[i].capacity});
    }
    auto * w = new world;
    if (on_card()) w->card = card::open(gpus.data(), n);
    const bool light = driver() == drivers::light;
    w->account = w->card ? card::account(w->card) : emulated::open(gpus.data(), n, nullptr, light);
    return w;
}

void close(world * w) {
    for (const auto & [p, size] : w->own) {
        if (!w->card) munmap(p, size);
    }
    w->card ? card::close(w->card) : emulated::close(w->account);
    if (entered == w) entered = nullptr;
    delete w;
}

void enter(world * w) {
    entered = w;
    if (!w) return emulated::enter(nullptr);
    w->card ? card::enter(w->card) : emulated::enter(w->account);
    cuda::context first = nullptr;
    must(table(w).primary_ctx_retain(&first, 0), "primary_ctx_retain");
    must(table(w).ctx_set_current(first), "ctx_set_current");
}

world * here() {
    return entered;
}

const cuda::driver & table(world * w) {
    return w->card ? card::table() : emulated::table();
}

const char * describe() {
    if (!on_card()) return driver() == drivers::light ? "the emulated CUDA driver, light" : "the emulated CUDA driver";
    static const std::string text = [] {
        const libcuda::library * l = libcuda::load();
        const int major = l->version / 1000, minor = l->version % 1000 / 10;
        return "the CUDA driver " + std::to_string(major) + "." + std::to_string(minor) + ", " + l->card;
    }();
    return text.c_str();
}

void set_capacity(world * w, int device, uint64_t bytes) {
    emulated::set_capacity(w->account, device, bytes);
}

void start_operation(world * w, uint32_t fail_devices, int fail_nth) {
    emulated::start_operation(w->account, fail_devices, fail_nth);
}

void count_steps(world * w, bool on) {
    emulated::count_steps(w->account, on);
}

uint64_t allocations(world * w) {
    return emulated::allocations(w->account);
}

uint64_t hazards(world * w) {
    return emulated::hazards(w->account);
}

uint64_t used(world * w, int device) {
    return emulated::used(w->account, device);
}

uint64_t reserved(world * w) {
    return emulated::reserved(w->account);
}

uint64_t graphs(world * w) {
    return emulated::graphs_left(w->account);
}

uint64_t most(const world * w) {
    return emulated::most(w->account);
}

uint64_t page() {
    return emulated::page();
}

void * host_memory(world * w, uint64_t size) {
    void * p = w->card ? pinned(*w, size) : lazy(size);
    if (w->card) std::memset(p, 0, size);
    const std::scoped_lock lock(w->mutex);
    w->own[p] = size;
    return p;
}

uint64_t host_most() {
    return on_card() ? uint64_t(1) << 28 : uint64_t(1) << 36;
}

bool all_zero(world * w, cuda::device_ptr at, uint64_t n) {
    const auto zero = [](uint8_t x) { return x == 0; };
    if (w->card) {
        std::vector<uint8_t> bytes(n);
        card::peek(bytes.data(), at, n);
        return std::all_of(bytes.begin(), bytes.end(), zero);
    }
    const auto * bytes = reinterpret_cast<const uint8_t *>(at); // NOLINT: a device address is a host address here
    return std::all_of(bytes, bytes + n, zero);
}

void poke(world * w, cuda::device_ptr at, uint8_t value) {
    if (w->card) return card::poke(at, value);
    *reinterpret_cast<uint8_t *>(at) = value; // NOLINT: as above
}

const kit & kit_of(world * w) {
    const std::scoped_lock lock(w->mutex);
    if (!w->ready) make_tools(*w);
    return w->tools;
}

uint64_t * words(world * w, uint64_t n) {
    const std::scoped_lock lock(w->mutex);
    const int power = std::bit_width(n > 1 ? n - 1 : 0); // at least n
    if (w->spare[power].empty()) fetch_words(*w, power);
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
