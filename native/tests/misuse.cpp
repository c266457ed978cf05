#include "misuse.h"

#include <thread>

#include "kernels.h"
#include "kernels.ptx.h"

namespace gc::test {
namespace {

using namespace cuda;

allocation_prop prop(int device = 0) {
    allocation_prop p{};
    p.type = pinned_memory;
    p.where = {on_device, device};
    return p;
}

uint64_t unit(const driver & d) {
    size_t g = 0;
    const allocation_prop p = prop();
    d.mem_granularity(&g, &p, granularity_minimum);
    return g;
}

// Addresses for two units, and memory of one unit; gone at the end of a program.
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

result reserve(const driver & d, uint64_t size, uint64_t alignment = 0) {
    device_ptr p = 0;
    const result r = d.mem_address_reserve(&p, size, alignment, 0, 0);
    if (r == success) d.mem_address_free(p, size);
    return r;
}

result create(const driver & d, uint64_t size, int device = 0) {
    allocation h = 0;
    const allocation_prop p = prop(device);
    const result r = d.mem_create(&h, size, &p, 0);
    if (r == success) d.mem_release(h);
    return r;
}

// ---- memory ---------------------------------------------------------------

codes reserve_nothing(const driver & d) { return {reserve(d, 0)}; }
codes reserve_part_of_a_page(const driver & d) { return {reserve(d, unit(d) + 1)}; }
codes reserve_odd_alignment(const driver & d) { return {reserve(d, unit(d), 3)}; }

codes free_other_size(const driver & d) {
    const range r(d);
    return {d.mem_address_free(r.at, r.size)};
}

codes free_range_twice(const driver & d) {
    device_ptr p = 0;
    d.mem_address_reserve(&p, unit(d), 0, 0, 0);
    const result first = d.mem_address_free(p, unit(d));
    return {first, d.mem_address_free(p, unit(d))};
}

codes free_mapped_range(const driver & d) {
    const range r(d);
    const result mapped = r.map();
    return {mapped, d.mem_address_free(r.at, 2 * r.size)};
}

codes create_nothing(const driver & d) { return {create(d, 0)}; }
codes create_part_of_a_unit(const driver & d) { return {create(d, unit(d) + 1)}; }
codes create_on_no_device(const driver & d) { return {create(d, unit(d), 99)}; }

codes release_twice(const driver & d) {
    allocation h = 0;
    const allocation_prop p = prop();
    d.mem_create(&h, unit(d), &p, 0);
    const result first = d.mem_release(h);
    return {first, d.mem_release(h)};
}

codes map_unreserved(const driver & d) {
    device_ptr p = 0;
    const range r(d);
    d.mem_address_reserve(&p, r.size, 0, 0, 0);
    d.mem_address_free(p, r.size);
    return {d.mem_map(p, r.size, 0, r.memory, 0)};
}

codes map_where_mapped(const driver & d) {
    const range r(d), other(d);
    const result first = r.map();
    return {first, d.mem_map(r.at, r.size, 0, other.memory, 0)};
}

codes map_more_than_there_is(const driver & d) {
    const range r(d);
    return {d.mem_map(r.at, 2 * r.size, 0, r.memory, 0)};
}

codes map_out_of_range(const driver & d) {
    const range r(d);
    return {d.mem_map(r.at + 2 * r.size, r.size, 0, r.memory, 0)};
}

codes map_unaligned(const driver & d) {
    const range r(d);
    return {r.map(512)};
}

codes map_released(const driver & d) {
    const range r(d);
    allocation h = 0;
    const allocation_prop p = prop();
    d.mem_create(&h, r.size, &p, 0);
    d.mem_release(h);
    return {d.mem_map(r.at, r.size, 0, h, 0)};
}

codes unmap_part(const driver & d) {
    const range r(d);
    const result mapped = r.map();
    return {mapped, d.mem_unmap(r.at, r.size / 2)};
}

codes unmap_twice(const driver & d) {
    const range r(d);
    r.map();
    const result first = d.mem_unmap(r.at, r.size);
    return {first, d.mem_unmap(r.at, r.size)};
}

codes unmap_what_is_not(const driver & d) {
    const range r(d);
    return {d.mem_unmap(r.at, r.size)};
}

codes access_unmapped(const driver & d) {
    const range r(d);
    return {r.access()};
}

codes access_beyond_mapped(const driver & d) {
    const range r(d);
    r.map();
    return {r.access(access_read_write, 2 * r.size)};
}

codes access_odd(const driver & d) {
    const range r(d);
    r.map();
    return {r.access(2)};
}

codes copy_without_access(const driver & d) {
    const range r(d);
    const uint64_t x = 1;
    r.map();
    return {d.memcpy_htod(r.at, &x, sizeof(x))};
}

codes set_beyond_mapped(const driver & d) {
    const range r(d);
    r.map();
    r.access();
    const result inside = d.memset_d8(r.at, 1, r.size);
    return {inside, d.memset_d8(r.at, 1, r.size + 1)};
}

codes release_while_mapped(const driver & d) { // it lives until it is unmapped
    range r(d);
    r.map();
    r.access();
    const result released = d.mem_release(r.memory);
    const result used = d.memset_d8(r.at, 1, r.size);
    return {released, used, d.mem_unmap(r.at, r.size)};
}

codes place_nothing(const driver & d) {
    device_ptr p = 0;
    return {d.mem_alloc(&p, 0)};
}

codes place_too_much(const driver & d) {
    device_ptr p = 0;
    return {d.mem_alloc(&p, uint64_t(1) << 50)};
}

codes free_twice(const driver & d) {
    device_ptr p = 0;
    d.mem_alloc(&p, 4096);
    const result first = d.mem_free(p);
    return {first, d.mem_free(p)};
}

codes free_inside(const driver & d) {
    device_ptr p = 0;
    d.mem_alloc(&p, 4096);
    const result inside = d.mem_free(p + 256);
    return {inside, d.mem_free(p)};
}

codes free_mapped_memory(const driver & d) { // what mem_map gave is not mem_free's
    const range r(d);
    r.map();
    r.access();
    return {d.mem_free(r.at)};
}

codes no_context(const driver & d) {
    context c = nullptr;
    device_ptr p = 0;
    stream s = nullptr;
    d.ctx_get_current(&c);
    d.ctx_set_current(nullptr);
    const codes seen = {d.mem_alloc(&p, 4096), d.stream_create(&s, 0), d.ctx_synchronize()};
    d.ctx_set_current(c);
    return seen;
}

// ---- code -----------------------------------------------------------------

codes load_no_image(const driver & d) {
    module m = nullptr;
    return {d.module_load_data(&m, "this is no image")};
}

codes get_no_function(const driver & d) {
    const loaded l(d);
    function f = nullptr;
    return {d.module_get_function(&f, l.m, "no_such_kernel")};
}

codes launch_nothing(const driver & d) {
    const loaded l(d);
    return {l.launch(nullptr, 0), l.launch(nullptr, 1, 0), l.launch(nullptr, 1, 4096)};
}

// ---- streams and captures -------------------------------------------------

codes odd_stream(const driver & d) {
    stream s = nullptr;
    return {d.stream_create(&s, 64)};
}

codes synchronize_captured(const driver & d) {
    captured c(d);
    const result r = d.stream_synchronize(c.s);
    return {r, c.end()};
}

codes query_captured(const driver & d) {
    captured c(d);
    const result r = d.stream_query(c.s);
    return {r, c.end()};
}

codes synchronize_context_captured(const driver & d) {
    captured c(d);
    const result r = d.ctx_synchronize();
    return {r, c.end()};
}

codes end_without_begin(const driver & d) {
    captured c(d);
    const result first = c.end();
    return {first, d.stream_end_capture(c.s, &c.g)};
}

codes begin_twice(const driver & d) {
    captured c(d);
    const result again = d.stream_begin_capture(c.s, capture_global);
    return {again, c.end()};
}

codes begin_legacy(const driver & d) { return {d.stream_begin_capture(nullptr, capture_global)}; }

codes begin_odd_mode(const driver & d) {
    stream s = nullptr;
    d.stream_create(&s, stream_non_blocking);
    const result r = d.stream_begin_capture(s, 7);
    d.stream_destroy(s);
    return {r};
}

codes empty_capture(const driver & d) {
    captured c(d);
    graph g = nullptr;
    graph_exec e = nullptr;
    const result ended = d.stream_end_capture(c.s, &g), made = d.graph_instantiate(&e, g, 0);
    const result launched = d.graph_launch(e, c.s), waited = d.stream_synchronize(c.s);
    d.graph_exec_destroy(e);
    d.graph_destroy(g);
    return {ended, made, launched, waited};
}

codes place_while_captured(const driver & d) {
    captured c(d);
    device_ptr p = 0;
    const result r = d.mem_alloc(&p, 4096);
    return {r, c.end()};
}

codes place_while_captured_relaxed(const driver & d) {
    captured c(d, capture_relaxed);
    device_ptr p = 0;
    const result r = d.mem_alloc(&p, 4096), ended = c.end();
    d.mem_free(p);
    return {r, ended};
}

codes legacy_while_captured(const driver & d) {
    const loaded l(d);
    captured c(d, capture_global, 0);
    const result r = l.launch(nullptr);
    return {r, c.end()};
}

codes launch_after_invalidation(const driver & d) {
    const loaded l(d);
    captured c(d);
    d.stream_synchronize(c.s);
    const result r = l.launch(c.s);
    return {r, c.end()};
}

codes wait_for_work_outside(const driver & d) {
    const happening h(d);
    stream outside = nullptr;
    d.stream_create(&outside, stream_non_blocking);
    d.event_record(h.e, outside);
    captured c(d);
    const result r = d.stream_wait_event(c.s, h.e, 0);
    const codes seen = {r, c.end()};
    d.stream_destroy(outside);
    return seen;
}

codes synchronize_captured_event(const driver & d) {
    const happening h(d);
    captured c(d);
    d.event_record(h.e, c.s);
    const result r = d.event_synchronize(h.e);
    return {r, c.end()};
}

codes end_where_it_joined(const driver & d) {
    const happening h(d);
    stream other = nullptr;
    d.stream_create(&other, stream_non_blocking);
    captured c(d);
    graph g = nullptr;
    d.event_record(h.e, c.s);
    d.stream_wait_event(other, h.e, 0);
    const result r = d.stream_end_capture(other, &g);
    const codes seen = {r, c.end()};
    d.stream_destroy(other);
    return seen;
}

codes end_unjoined(const driver & d) {
    const loaded l(d);
    const happening h(d);
    stream other = nullptr;
    d.stream_create(&other, stream_non_blocking);
    captured c(d);
    d.event_record(h.e, c.s);
    d.stream_wait_event(other, h.e, 0);
    l.launch(other);
    const codes seen = {c.end()};
    d.stream_destroy(other);
    return seen;
}

codes merge_captures(const driver & d) {
    const happening h(d);
    captured a(d), b(d);
    d.event_record(h.e, a.s);
    const result r = d.stream_wait_event(b.s, h.e, 0);
    return {r, a.end(), b.end()};
}

codes end_by_another_thread(const driver & d) {
    captured c(d, capture_thread_local);
    context current = nullptr;
    d.ctx_get_current(&current);
    result r = success;
    const auto enter = thread_entry;
    std::thread([&] {
        if (enter) enter();
        d.ctx_set_current(current);
        r = d.stream_end_capture(c.s, &c.g);
    }).join();
    return {r, c.end()};
}

} // namespace

void (*thread_entry)() = nullptr;

#define CASE(name, ...) {#name, {__VA_ARGS__}, name}

const std::vector<misuse> & misuses() {
    static const std::vector<misuse> all = {
        CASE(reserve_nothing, invalid_value),
        CASE(reserve_part_of_a_page, invalid_value),
        CASE(reserve_odd_alignment, invalid_value),
        CASE(free_other_size, invalid_value),
        CASE(free_range_twice, success, invalid_value),
        CASE(free_mapped_range, success, invalid_value),
        CASE(create_nothing, invalid_value),
        CASE(create_part_of_a_unit, invalid_value),
        CASE(create_on_no_device, invalid_device),
        CASE(release_twice, success, invalid_value),
        CASE(map_unreserved, invalid_value),
        CASE(map_where_mapped, success, invalid_value),
        CASE(map_more_than_there_is, invalid_value),
        CASE(map_out_of_range, invalid_value),
        CASE(map_unaligned, invalid_value),
        CASE(map_released, invalid_value),
        CASE(unmap_part, success, invalid_value),
        CASE(unmap_twice, success, invalid_value),
        CASE(unmap_what_is_not, invalid_value),
        CASE(access_unmapped, invalid_value),
        CASE(access_beyond_mapped, invalid_value),
        CASE(access_odd, invalid_value),
        CASE(copy_without_access, invalid_value),
        CASE(set_beyond_mapped, success, invalid_value),
        CASE(release_while_mapped, success, success, success),
        CASE(place_nothing, invalid_value),
        CASE(place_too_much, out_of_memory),
        CASE(free_twice, success, invalid_value),
        CASE(free_inside, invalid_value, success),
        CASE(free_mapped_memory, invalid_value),
        CASE(no_context, invalid_context, invalid_context, invalid_context),
        CASE(load_no_image, invalid_image),
        CASE(get_no_function, not_found),
        CASE(launch_nothing, invalid_value, invalid_value, invalid_value),
        CASE(odd_stream, invalid_value),
        CASE(synchronize_captured, capture_unsupported, capture_invalidated),
        CASE(query_captured, capture_unsupported, capture_invalidated),
        CASE(synchronize_context_captured, capture_unsupported, capture_invalidated),
        CASE(end_without_begin, success, illegal_state),
        CASE(begin_twice, illegal_state, success),
        CASE(begin_legacy, capture_unsupported),
        CASE(begin_odd_mode, invalid_value),
        CASE(empty_capture, success, success, success, success),
        CASE(place_while_captured, capture_unsupported, capture_invalidated),
        CASE(place_while_captured_relaxed, success, success),
        CASE(legacy_while_captured, capture_implicit, capture_invalidated),
        CASE(launch_after_invalidation, capture_invalidated, capture_invalidated),
        CASE(wait_for_work_outside, capture_isolation, capture_invalidated),
        CASE(synchronize_captured_event, captured_event, capture_invalidated),
        CASE(end_where_it_joined, capture_unmatched, capture_invalidated),
        CASE(end_unjoined, capture_unjoined),
        CASE(merge_captures, capture_merge, capture_invalidated, capture_invalidated),
        CASE(end_by_another_thread, capture_wrong_thread, capture_invalidated),
    };
    return all;
}

} // namespace gc::test
