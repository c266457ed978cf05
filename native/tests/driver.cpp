// The emulated driver's rules and error codes, each as the CUDA documentation states it.
#include <cstring>

#include "check.h"
#include "emulated.h"

using namespace gc;
using namespace gc::cuda;
using gc::test::dies;

namespace {

const driver & api = emulated::table();
const uint64_t page = emulated::page();

// A world of two devices for the length of a test: 4096 and 100 bytes granularity.
struct world {
    emulated::world * w;
    world(uint64_t capacity = UINT64_MAX) {
        const emulated::device_setup d[] = {{4096, capacity}, {100, capacity}};
        w = emulated::open(d, 2);
        emulated::enter(w);
    }
    ~world() { emulated::close(w); }
    uint64_t used(int device = 0) const { return emulated::used(w, device); }
};

allocation_prop prop(int device) {
    allocation_prop p{};
    p.type = pinned_memory;
    p.where = {on_device, device};
    return p;
}

result create(allocation & h, uint64_t size, int device = 0) {
    const allocation_prop p = prop(device);
    return api.mem_create(&h, size, &p, 0);
}

result set_access(device_ptr at, uint64_t size, int flags) {
    const access_desc d = {{on_device, 0}, flags};
    return api.mem_set_access(at, size, &d, 1);
}

struct mapped { // memory of device 0 at an address, with access
    device_ptr at = 0;
    allocation memory = 0;
    uint64_t size;
    explicit mapped(uint64_t bytes, int access = access_read_write) : size(bytes) {
        CHECK(api.mem_address_reserve(&at, size, 0, 0, 0) == success);
        CHECK(create(memory, size) == success);
        CHECK(api.mem_map(at, size, 0, memory, 0) == success);
        CHECK(set_access(at, size, access) == success);
    }
};

volatile uint8_t * bytes(device_ptr p) {
    return reinterpret_cast<volatile uint8_t *>(p);
}

} // namespace

TEST(no_call_works_outside_a_world) {
    device_ptr p = 0;
    allocation h = 0;
    CHECK(api.mem_address_reserve(&p, page, 0, 0, 0) == not_initialized);
    CHECK(create(h, 4096) == not_initialized);
    CHECK(api.memset_d8(0, 0, 1) == not_initialized);
}

TEST(address_reserve_checks_its_arguments) {
    world w;
    device_ptr p = 0;
    CHECK(api.mem_address_reserve(&p, 0, 0, 0, 0) == invalid_value);
    CHECK(api.mem_address_reserve(&p, page + 1, 0, 0, 0) == invalid_value);
    CHECK(api.mem_address_reserve(&p, page, 3, 0, 0) == invalid_value);
    CHECK(api.mem_address_reserve(&p, page, 0, 0, 1) == invalid_value);
    CHECK(api.mem_address_reserve(nullptr, page, 0, 0, 0) == invalid_value);
    CHECK(api.mem_address_reserve(&p, page, 1 << 21, 0, 0) == success);
    CHECK(p % (1 << 21) == 0);
    CHECK(api.mem_address_free(p, 2 * page) == invalid_value);
    CHECK(api.mem_address_free(p + page, page) == invalid_value);
    CHECK(api.mem_address_free(p, page) == success);
    CHECK(api.mem_address_free(p, page) == invalid_value);
}

TEST(addresses_are_never_given_out_twice) {
    world w;
    device_ptr last = 0;
    for (int i = 0; i < 100; i++) {
        device_ptr p = 0;
        CHECK(api.mem_address_reserve(&p, 3 * page, 0, 0, 0) == success);
        CHECK(p >= last + 3 * page);
        last = p;
        CHECK(api.mem_address_free(p, 3 * page) == success);
    }
}

TEST(create_follows_granularity_and_device) {
    world w;
    allocation h = 0;
    size_t g = 0;
    const allocation_prop p = prop(1), none = prop(2);
    CHECK(api.mem_granularity(&g, &p, granularity_minimum) == success);
    CHECK(g == 100);
    CHECK(api.mem_granularity(&g, &p, 7) == invalid_value);
    CHECK(api.mem_granularity(&g, &none, granularity_minimum) == invalid_device);
    CHECK(create(h, 0, 1) == invalid_value);
    CHECK(create(h, 150, 1) == invalid_value);
    CHECK(create(h, 200, 2) == invalid_device);
    CHECK(create(h, 200, -1) == invalid_device);
    CHECK(api.mem_create(&h, 200, &p, 1) == invalid_value);
    CHECK(api.mem_create(&h, 200, nullptr, 0) == invalid_value);
    CHECK(create(h, 200, 1) == success);
    CHECK(w.used(1) == 200 && w.used(0) == 0);
    CHECK(api.mem_release(h) == success);
    CHECK(api.mem_release(h) == invalid_value);
    CHECK(w.used(1) == 0);
}

TEST(memory_runs_out_at_the_capacity) {
    world w(8192);
    allocation a = 0, b = 0;
    CHECK(create(a, 12288) == out_of_memory);
    CHECK(create(a, 8192) == success);
    CHECK(create(b, 4096) == out_of_memory);
    emulated::set_capacity(w.w, 0, 4096); // below what is in use
    CHECK(w.used() == 8192);
    CHECK(create(b, 4096) == out_of_memory);
    CHECK(api.mem_release(a) == success);
    CHECK(create(b, 4096) == success);
    emulated::set_capacity(w.w, 1, UINT64_MAX);
    CHECK(create(a, UINT64_MAX / 100 * 100, 1) == success);
    CHECK(create(b, 200, 1) == out_of_memory); // the sum does not wrap round
}

TEST(allocations_fail_when_told_to) {
    world w;
    allocation h = 0;
    emulated::start_operation(w.w, 0, 2);
    CHECK(create(h, 4096) == success);
    CHECK(create(h, 100, 1) == out_of_memory);
    CHECK(create(h, 4096) == success);
    CHECK(emulated::allocations(w.w) == 3);
    emulated::start_operation(w.w, 2, 0);
    CHECK(create(h, 4096) == success);
    CHECK(create(h, 100, 1) == out_of_memory);
    CHECK(create(h, 100, 1) == out_of_memory);
    emulated::start_operation(w.w, 0, 0);
    CHECK(emulated::allocations(w.w) == 0);
    CHECK(create(h, 100, 1) == success);
}

TEST(map_checks_its_arguments) {
    world w;
    device_ptr p = 0;
    allocation a = 0, b = 0;
    CHECK(api.mem_address_reserve(&p, 4 * 4096, 0, 0, 0) == success);
    CHECK(create(a, 4096) == success && create(b, 8192) == success);
    CHECK(api.mem_map(p, 4096, 0, 77, 0) == invalid_value);           // no such memory
    CHECK(api.mem_map(p, 8192, 0, a, 0) == invalid_value);            // another size
    CHECK(api.mem_map(p, 4096, 4096, a, 0) == invalid_value);         // an offset
    CHECK(api.mem_map(p, 4096, 0, a, 1) == invalid_value);            // flags
    CHECK(api.mem_map(p + 100, 4096, 0, a, 0) == invalid_value);      // unaligned
    CHECK(api.mem_map(p + 3 * 4096, 8192, 0, b, 0) == invalid_value); // reaches out of the range
    CHECK(api.mem_map(p - 4096, 4096, 0, a, 0) == invalid_value);     // before it
    CHECK(api.mem_map(p + 4096, 8192, 0, b, 0) == success);
    CHECK(api.mem_map(p + 4096, 4096, 0, a, 0) == invalid_value); // mapped already
    CHECK(api.mem_map(p + 8192, 4096, 0, a, 0) == invalid_value);
    CHECK(api.mem_map(p, 8192, 0, b, 0) == invalid_value);
    CHECK(api.mem_map(p, 4096, 0, a, 0) == success);
    CHECK(api.mem_map(p + 3 * 4096, 4096, 0, a, 0) == not_supported); // one place at a time
}

TEST(access_must_be_set) {
    world w;
    device_ptr p = 0;
    allocation a = 0;
    uint8_t x = 1;
    CHECK(api.mem_address_reserve(&p, 8192, 0, 0, 0) == success && create(a, 4096) == success);
    CHECK(set_access(p, 4096, access_read_write) == invalid_value); // not mapped
    CHECK(api.mem_map(p, 4096, 0, a, 0) == success);
    CHECK(api.memcpy_htod(p, &x, 1) == invalid_value);
    CHECK(set_access(p, 8192, access_read_write) == invalid_value); // not mapped as a whole
    CHECK(set_access(p, 4096, 2) == invalid_value);
    const access_desc other = {{on_device, 9}, access_read};
    CHECK(api.mem_set_access(p, 4096, &other, 1) == invalid_device);
    CHECK(api.mem_set_access(p, 4096, nullptr, 1) == invalid_value);
    CHECK(set_access(p, 4096, access_read) == success);
    CHECK(api.memcpy_dtoh(&x, p, 1) == success && x == 0);
    CHECK(api.memcpy_htod(p, &x, 1) == invalid_value);
    CHECK(set_access(p, 4096, access_read_write) == success);
    CHECK(api.memset_d8(p, 5, 4096) == success && bytes(p)[4095] == 5);
    CHECK(api.memset_d8(p, 5, 4097) == invalid_value);
}

TEST(unmap_takes_whole_mappings) {
    world w;
    device_ptr p = 0;
    allocation a = 0, b = 0;
    CHECK(api.mem_address_reserve(&p, 3 * 4096, 0, 0, 0) == success);
    CHECK(create(a, 8192) == success && create(b, 4096) == success);
    CHECK(api.mem_map(p, 8192, 0, a, 0) == success && api.mem_map(p + 8192, 4096, 0, b, 0) == success);
    CHECK(api.mem_unmap(p, 4096) == invalid_value); // part of one
    CHECK(api.mem_unmap(p + 4096, 4096) == invalid_value);
    CHECK(api.mem_unmap(p, 0) == invalid_value);
    CHECK(api.mem_unmap(p, 4 * 4096) == invalid_value);
    CHECK(api.mem_address_free(p, 3 * 4096) == invalid_value); // still mapped
    CHECK(api.mem_unmap(p, 3 * 4096) == success);              // both at once
    CHECK(api.mem_unmap(p, 8192) == invalid_value);
    CHECK(api.mem_address_free(p, 3 * 4096) == success);
    CHECK(w.used() == 3 * 4096); // nothing was released
}

TEST(released_memory_lives_until_it_is_unmapped) {
    world w(8192);
    mapped m(8192);
    allocation other = 0;
    CHECK(api.mem_release(m.memory) == success);
    CHECK(api.mem_release(m.memory) == invalid_value);
    bytes(m.at)[8191] = 7;
    CHECK(bytes(m.at)[8191] == 7);
    CHECK(w.used() == 8192 && create(other, 4096) == out_of_memory);
    CHECK(api.mem_unmap(m.at, 8192) == success);
    CHECK(w.used() == 0 && create(other, 4096) == success);
}

TEST(mapping_goes_by_page_where_granularity_is_small) {
    world w;
    device_ptr p = 0;
    allocation a = 0;
    CHECK(api.mem_address_reserve(&p, page, 0, 0, 0) == success && create(a, 300, 1) == success);
    CHECK(w.used(1) == 300);
    CHECK(api.mem_map(p, 300, 0, a, 0) == success && set_access(p, 300, access_read_write) == success);
    CHECK(api.memset_d8(p, 1, 300) == success && api.memset_d8(p, 1, 301) == invalid_value);
    CHECK(api.mem_unmap(p, 300) == success);
}

TEST(what_is_not_mapped_faults) {
    CHECK(dies([] { // before access is set
        world w;
        mapped m(4096, access_none);
        bytes(m.at)[0] = 1;
    }));
    CHECK(dies([] { // behind the end
        world w;
        mapped m(4096);
        bytes(m.at)[4096] = 1;
    }));
    CHECK(dies([] { // once unmapped
        world w;
        mapped m(4096);
        bytes(m.at)[0] = 1;
        api.mem_unmap(m.at, 4096);
        (void) bytes(m.at)[0];
    }));
    CHECK(dies([] { // written with read access
        world w;
        mapped m(4096, access_read);
        bytes(m.at)[0] = 1;
    }));
    CHECK(!dies([] {
        world w;
        mapped m(4096);
        bytes(m.at)[4095] = 1;
    }));
}

TEST(memory_that_no_machine_has_can_be_planned_with) {
    world w;
    const uint64_t size = uint64_t(1) << 62;
    mapped m(size);
    CHECK(w.used() == size);
    bytes(m.at)[emulated::most(w.w) - 1] = 1;
    CHECK(api.memset_d8(m.at + emulated::most(w.w), 1, 1) == invalid_value);
    CHECK(api.mem_unmap(m.at, size) == success && api.mem_release(m.memory) == success);
    CHECK(api.mem_address_free(m.at, size) == success && w.used() == 0);
}

TEST(memory_info_is_of_the_current_context) {
    world w(40960);
    context c = nullptr;
    size_t free = 0, total = 0;
    allocation a = 0;
    int not_a_context = 0;
    CHECK(api.mem_get_info(&free, &total) == invalid_context);
    CHECK(api.primary_ctx_retain(&c, 2) == invalid_device);
    CHECK(api.ctx_set_current(&not_a_context) == invalid_context);
    CHECK(api.primary_ctx_retain(&c, 0) == success && api.ctx_set_current(c) == success);
    CHECK(create(a, 8192) == success);
    CHECK(api.mem_get_info(&free, &total) == success && free == 32768 && total == 40960);
    emulated::set_capacity(w.w, 0, 4096);
    CHECK(api.mem_get_info(&free, &total) == success && free == 0 && total == 4096);
}
