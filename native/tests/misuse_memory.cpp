// Misuse of memory: see misuse.h.
#include "misuse_parts.h"

namespace gc::test::misused {
namespace {

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

} // namespace

std::vector<misuse> of_memory() {
    return {
        GC_MISUSE_CASE(reserve_nothing, invalid_value),
        GC_MISUSE_CASE(reserve_part_of_a_page, invalid_value),
        GC_MISUSE_CASE(reserve_odd_alignment, invalid_value),
        GC_MISUSE_CASE(free_other_size, invalid_value),
        GC_MISUSE_CASE(free_range_twice, success, invalid_value),
        GC_MISUSE_CASE(free_mapped_range, success, invalid_value),
        GC_MISUSE_CASE(create_nothing, invalid_value),
        GC_MISUSE_CASE(create_part_of_a_unit, invalid_value),
        GC_MISUSE_CASE(create_on_no_device, invalid_device),
        GC_MISUSE_CASE(release_twice, success, invalid_value),
        GC_MISUSE_CASE(map_unreserved, invalid_value),
        GC_MISUSE_CASE(map_where_mapped, success, invalid_value),
        GC_MISUSE_CASE(map_more_than_there_is, invalid_value),
        GC_MISUSE_CASE(map_out_of_range, invalid_value),
        GC_MISUSE_CASE(map_unaligned, invalid_value),
        GC_MISUSE_CASE(map_released, invalid_value),
        GC_MISUSE_CASE(unmap_part, success, invalid_value),
        GC_MISUSE_CASE(unmap_twice, success, invalid_value),
        GC_MISUSE_CASE(unmap_what_is_not, invalid_value),
        GC_MISUSE_CASE(access_unmapped, invalid_value),
        GC_MISUSE_CASE(access_beyond_mapped, invalid_value),
        GC_MISUSE_CASE(access_odd, invalid_value),
        GC_MISUSE_CASE(copy_without_access, invalid_value),
        GC_MISUSE_CASE(set_beyond_mapped, success, invalid_value),
        GC_MISUSE_CASE(release_while_mapped, success, success, success),
        GC_MISUSE_CASE(place_nothing, invalid_value),
        GC_MISUSE_CASE(place_too_much, out_of_memory),
        GC_MISUSE_CASE(free_twice, success, invalid_value),
        GC_MISUSE_CASE(free_inside, invalid_value, success),
        GC_MISUSE_CASE(free_mapped_memory, invalid_value),
        GC_MISUSE_CASE(no_context, invalid_context, invalid_context, invalid_context),
    };
}

} // namespace gc::test::misused
