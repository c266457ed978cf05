// misuse_parts.h: what the programs of misuse.h are made of. Each thing is gone at the end of its program.
#pragma once

#include "kernels.h"
#include "kernels.ptx.h"
#include "misuse.h"

namespace gc::test::misused {

using namespace cuda;

inline allocation_prop prop(int device = 0) {
    allocation_prop p{};
    p.type = pinned_memory;
    p.where = {on_device, device};
    return p;
}

inline uint64_t unit(const driver & d) {
    size_t g = 0;
    const allocation_prop p = prop();
    d.mem_granularity(&g, &p, granularity_minimum);
    return g;
}

// Addresses for two units, and memory of one unit.
struct range {
    const driver & d;
    uint64_t size; // a unit
    device_ptr at = 0;
    allocation memory = 0;
    explicit range(const driver & api) : d(api), size(unit(api)) {
        const allocation_prop p = prop();
        d.mem_address_reserve(&at, 2 * size, 0, 0, 0);
        d.mem_create(&memory, size, &p, 0);
    }
    ~range() {
        d.mem_unmap(at, size);
        d.mem_release(memory);
        d.mem_address_free(at, 2 * size);
    }
    result map(uint64_t offset = 0) const { return d.mem_map(at + offset, size, 0, memory, 0); }
    result access(int flags = access_read_write, uint64_t bytes = 0) const {
        const access_desc a = {{on_device, 0}, flags};
        return d.mem_set_access(at, bytes ? bytes : size, &a, 1);
    }
};

// A stream, and what a capture of it gives.
struct captured {
    const driver & d;
    stream s = nullptr;
    graph g = nullptr;
    explicit captured(const driver & api, int mode = capture_global, unsigned flags = stream_non_blocking) : d(api) {
        d.stream_create(&s, flags);
        d.stream_begin_capture(s, mode);
    }
    ~captured() {
        end();
        d.stream_destroy(s);
    }
    result end() {
        const result r = d.stream_end_capture(s, &g);
        if (r == success && g) d.graph_destroy(g);
        return r;
    }
};

struct happening {
    const driver & d;
    event e = nullptr;
    explicit happening(const driver & api) : d(api) { d.event_create(&e, event_disable_timing); }
    ~happening() { d.event_destroy(e); }
};

struct loaded {
    const driver & d;
    module m = nullptr;
    function f = nullptr;
    explicit loaded(const driver & api) : d(api) {
        d.module_load_data(&m, kernels::ptx);
        d.module_get_function(&f, m, kernels::names[kernels::k_set_words]);
    }
    ~loaded() { d.module_unload(m); }
    result launch(stream s, unsigned grid = 1, unsigned block = 1) const { // sets nothing
        kernels::set_words p = {nullptr, 0, 0};
        void * all[] = {&p};
        return d.launch_kernel(f, grid, 1, 1, block, 1, 1, 0, s, all, nullptr);
    }
};

#define GC_MISUSE_CASE(name, ...) {#name, {__VA_ARGS__}, name}

std::vector<misuse> of_memory();  // misuse_memory.cpp
std::vector<misuse> of_streams(); // misuse_streams.cpp: code, streams, captures

} // namespace gc::test::misused
