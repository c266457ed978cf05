// card.cpp: worlds on a card, and the calls that give it work. Each is the
// account's first, then the card's.
#include "card.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "card_world.h"
#include "kernels.h"
#include "kernels.ptx.h"

namespace gc::card {
namespace {

const cuda::driver & real() {
    return here->real->table;
}

const cuda::driver & checked() {
    return emulated::table();
}

// The real handle; null for null, which is the legacy stream.
void * real_of(const handles & all, const void * handle) {
    const std::scoped_lock lock(here->mutex);
    const auto found = all.find(handle);
    return found == all.end() ? nullptr : found->second;
}

void remember(handles & all, const void * handle, void * real_handle) {
    const std::scoped_lock lock(here->mutex);
    all[handle] = real_handle;
}

void * forget(handles & all, const void * handle) {
    const std::scoped_lock lock(here->mutex);
    const auto found = all.find(handle);
    if (found == all.end()) return nullptr;
    void * r = found->second;
    all.erase(found);
    return r;
}

// ---- streams and events ---------------------------------------------------

cuda::result ctx_synchronize() {
    if (const cuda::result r = checked().ctx_synchronize()) return r;
    settle();
    return cuda::success;
}

cuda::result stream_create(cuda::stream * s, unsigned flags) {
    if (const cuda::result r = checked().stream_create(s, flags)) return r;
    cuda::stream mine = nullptr;
    must(real().stream_create(&mine, flags), "cuStreamCreate");
    remember(here->streams, *s, mine);
    return cuda::success;
}

cuda::result stream_destroy(cuda::stream s) {
    if (const cuda::result r = checked().stream_destroy(s)) return r;
    must(real().stream_destroy(forget(here->streams, s)), "cuStreamDestroy");
    return cuda::success;
}

cuda::result stream_synchronize(cuda::stream s) {
    if (const cuda::result r = checked().stream_synchronize(s)) return r;
    must(real().stream_synchronize(real_of(here->streams, s)), "cuStreamSynchronize");
    return cuda::success;
}

cuda::result event_create(cuda::event * e, unsigned flags) {
    if (const cuda::result r = checked().event_create(e, flags)) return r;
    cuda::event mine = nullptr;
    must(real().event_create(&mine, flags), "cuEventCreate");
    remember(here->events, *e, mine);
    return cuda::success;
}

cuda::result event_destroy(cuda::event e) {
    if (const cuda::result r = checked().event_destroy(e)) return r;
    must(real().event_destroy(forget(here->events, e)), "cuEventDestroy");
    return cuda::success;
}

cuda::result event_record(cuda::event e, cuda::stream s) {
    if (const cuda::result r = checked().event_record(e, s)) return r;
    return real().event_record(real_of(here->events, e), real_of(here->streams, s));
}

cuda::result event_synchronize(cuda::event e) {
    if (const cuda::result r = checked().event_synchronize(e)) return r;
    must(real().event_synchronize(real_of(here->events, e)), "cuEventSynchronize");
    return cuda::success;
}

cuda::result stream_wait_event(cuda::stream s, cuda::event e, unsigned flags) {
    if (const cuda::result r = checked().stream_wait_event(s, e, flags)) return r;
    return real().stream_wait_event(real_of(here->streams, s), real_of(here->events, e), flags);
}

// ---- code -----------------------------------------------------------------

// The file that GALLOCHECK_KERNELS names: the kernels as nvcc built them for the card. Else the PTX.
std::string image() {
    const char * name = std::getenv("GALLOCHECK_KERNELS");
    if (!name) return kernels::ptx;
    std::ifstream file(name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

// kernels.h's module is loaded once a process.
struct compiled {
    cuda::module module = nullptr;
    cuda::function function[kernels::n_kernels] = {};
};

const compiled & code() {
    static const compiled all = [] {
        compiled c;
        must(real().module_load_data(&c.module, image().c_str()), "cuModuleLoadData");
        for (int i = 0; i < kernels::n_kernels; i++) {
            must(real().module_get_function(&c.function[i], c.module, kernels::names[i]), "cuModuleGetFunction");
        }
        return c;
    }();
    return all;
}

cuda::result module_get_function(cuda::function * f, cuda::module m, const char * name) {
    if (const cuda::result r = checked().module_get_function(f, m, name)) return r;
    const unbound any;
    for (int i = 0; i < kernels::n_kernels; i++) {
        if (std::strcmp(name, kernels::names[i]) == 0) remember(here->functions, *f, code().function[i]);
    }
    return cuda::success;
}

cuda::result launch_kernel(cuda::function f, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                           unsigned block_y, unsigned block_z, unsigned shared_bytes, cuda::stream s, void ** params,
                           void ** extra) {
    const cuda::result r = checked().launch_kernel(f, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes,
                                                   s, params, extra);
    if (r != cuda::success) return r;
    return real().launch_kernel(real_of(here->functions, f), grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                shared_bytes, real_of(here->streams, s), params, extra);
}

// ---- graphs ---------------------------------------------------------------

cuda::result stream_begin_capture(cuda::stream s, int mode) {
    if (const cuda::result r = checked().stream_begin_capture(s, mode)) return r;
    return real().stream_begin_capture(real_of(here->streams, s), mode);
}

// Where the account's capture came to nothing, the card's is thrown away.
cuda::result stream_end_capture(cuda::stream s, cuda::graph * g) {
    const cuda::result r = checked().stream_end_capture(s, g);
    int status = cuda::capture_none;
    cuda::stream mine = real_of(here->streams, s);
    if (checked().stream_is_capturing(s, &status) != cuda::success || status != cuda::capture_none) return r;
    if (real().stream_is_capturing(mine, &status) != cuda::success || status == cuda::capture_none) return r;
    cuda::graph taken = nullptr;
    const cuda::result ended = real().stream_end_capture(mine, &taken);
    if (r == cuda::success && ended == cuda::success) {
        remember(here->graphs, *g, taken);
    } else if (taken) {
        must(real().graph_destroy(taken), "cuGraphDestroy");
    }
    return r == cuda::success ? ended : r;
}

cuda::result thread_exchange_capture_mode(int * mode) {
    int same = mode ? *mode : 0;
    if (const cuda::result r = checked().thread_exchange_capture_mode(mode)) return r;
    return real().thread_exchange_capture_mode(&same);
}

cuda::result graph_instantiate(cuda::graph_exec * e, cuda::graph g, unsigned long long flags) {
    if (const cuda::result r = checked().graph_instantiate(e, g, flags)) return r;
    cuda::graph_exec mine = nullptr;
    must(real().graph_instantiate(&mine, real_of(here->graphs, g), flags), "cuGraphInstantiate");
    remember(here->execs, *e, mine);
    return cuda::success;
}

cuda::result graph_launch(cuda::graph_exec e, cuda::stream s) {
    if (const cuda::result r = checked().graph_launch(e, s)) return r;
    return real().graph_launch(real_of(here->execs, e), real_of(here->streams, s));
}

cuda::result graph_exec_destroy(cuda::graph_exec e) {
    if (const cuda::result r = checked().graph_exec_destroy(e)) return r;
    must(real().graph_exec_destroy(forget(here->execs, e)), "cuGraphExecDestroy");
    return cuda::success;
}

cuda::result graph_destroy(cuda::graph g) {
    if (const cuda::result r = checked().graph_destroy(g)) return r;
    must(real().graph_destroy(forget(here->graphs, g)), "cuGraphDestroy");
    return cuda::success;
}

} // namespace

void must(cuda::result r, const char * what) {
    if (r == cuda::success) return;
    std::fprintf(stderr, "gallocheck: %s answered with CUDA error %d\n", what, r);
    if (r == cuda::illegal_address || r == cuda::launch_failed) std::raise(SIGSEGV);
    std::abort();
}

unbound::unbound() {
    must(real().thread_exchange_capture_mode(&mode_), "cuThreadExchangeStreamCaptureMode");
}

unbound::~unbound() {
    must(real().thread_exchange_capture_mode(&mode_), "cuThreadExchangeStreamCaptureMode");
}

void settle() {
    std::vector<cuda::stream> all = {nullptr};
    {
        const std::scoped_lock lock(here->mutex);
        for (const auto & [handle, mine] : here->streams) {
            all.push_back(mine);
        }
    }
    for (const cuda::stream s : all) {
        int status = cuda::capture_none;
        const cuda::result asked = real().stream_is_capturing(s, &status); // fails beside a captured blocking stream
        if (asked != cuda::success || status != cuda::capture_none) continue;
        must(real().stream_synchronize(s), "cuStreamSynchronize");
    }
}

world * open(const emulated::device_setup * devices, int n) {
    auto * w = new world;
    w->real = libcuda::load();
    w->account = emulated::open(devices, n, &on_card);
    return w;
}

void enter(world * w) {
    here = w;
    emulated::enter(w ? w->account : nullptr);
    if (w) must(real().ctx_set_current(w->real->context), "cuCtxSetCurrent");
}

void close(world * w) {
    enter(w);
    for (const auto & [handle, e] : w->execs) must(real().graph_exec_destroy(e), "cuGraphExecDestroy");
    for (const auto & [handle, g] : w->graphs) must(real().graph_destroy(g), "cuGraphDestroy");
    for (const auto & [handle, e] : w->events) must(real().event_destroy(e), "cuEventDestroy");
    settle();
    for (const auto & [handle, s] : w->streams) must(real().stream_destroy(s), "cuStreamDestroy");
    release_all(*w);
    emulated::close(w->account);
    here = nullptr;
    delete w;
}

emulated::world * account(world * w) {
    return w->account;
}

const cuda::driver & table() {
    static const cuda::driver all = [] {
        cuda::driver d = emulated::table(); // memory: by its ground
        d.ctx_synchronize = ctx_synchronize;
        d.stream_create = stream_create;
        d.stream_destroy = stream_destroy;
        d.stream_synchronize = stream_synchronize;
        d.event_create = event_create;
        d.event_destroy = event_destroy;
        d.event_record = event_record;
        d.event_synchronize = event_synchronize;
        d.stream_wait_event = stream_wait_event;
        d.module_get_function = module_get_function;
        d.launch_kernel = launch_kernel;
        d.stream_begin_capture = stream_begin_capture;
        d.stream_end_capture = stream_end_capture;
        d.thread_exchange_capture_mode = thread_exchange_capture_mode;
        d.graph_instantiate = graph_instantiate;
        d.graph_launch = graph_launch;
        d.graph_exec_destroy = graph_exec_destroy;
        d.graph_destroy = graph_destroy;
        return d;
    }();
    return all;
}

} // namespace gc::card
