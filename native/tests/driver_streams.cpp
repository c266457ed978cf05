// Streams and events of the emulated driver: when work runs, and what freeing memory under it does.
#include "driver_world.h"

using namespace gc;
using namespace gc::cuda;
using test::driver_world;

namespace {

const driver & api = emulated::table();

} // namespace

TEST(work_runs_when_somebody_waits_for_it) {
    driver_world w;
    const stream a = w.stream(), b = w.stream();
    const device_ptr p = w.block(), q = w.block();
    CHECK(w.fill(a, p, 1) == success && w.fill(b, q, 2) == success);
    CHECK(api.stream_query(a) == not_ready && !w.holds(p, 1));
    CHECK(api.stream_synchronize(a) == success);
    CHECK(w.holds(p, 1) && !w.holds(q, 2)); // the other's stays
    CHECK(api.stream_query(a) == success && api.stream_query(b) == not_ready);
    CHECK(api.ctx_synchronize() == success && w.holds(q, 2));
}

TEST(work_of_a_stream_runs_in_order) {
    driver_world w;
    const stream a = w.stream();
    const device_ptr p = w.block();
    CHECK(w.fill(a, p, 1) == success && w.fill(a, p, 2) == success);
    CHECK(api.stream_synchronize(a) == success && w.holds(p, 2));
}

TEST(an_event_waits_for_what_came_before_it) {
    driver_world w;
    const stream a = w.stream();
    const event e = w.event();
    const device_ptr p = w.block(), q = w.block();
    CHECK(api.event_synchronize(e) == success); // never recorded
    CHECK(w.fill(a, p, 1) == success && api.event_record(e, a) == success && w.fill(a, q, 2) == success);
    CHECK(api.event_synchronize(e) == success && w.holds(p, 1) && !w.holds(q, 2));
    CHECK(api.stream_query(a) == not_ready);
    CHECK(api.event_record(e, a) == success && api.event_synchronize(e) == success && w.holds(q, 2));
}

TEST(a_stream_waits_for_an_event_of_another) {
    driver_world w;
    const stream a = w.stream(), b = w.stream();
    const event e = w.event();
    const device_ptr p = w.block(), q = w.block(), r = w.block();
    CHECK(w.fill(a, p, 1) == success && api.event_record(e, a) == success && w.fill(a, r, 3) == success);
    CHECK(api.stream_wait_event(b, e, 0) == success && w.fill(b, q, 2) == success);
    CHECK(api.stream_synchronize(b) == success);
    CHECK(w.holds(p, 1) && w.holds(q, 2) && !w.holds(r, 3));
    CHECK(api.event_destroy(e) == success && api.event_destroy(e) == invalid_handle);
}

TEST(blocking_streams_and_the_legacy_one_wait_for_each_other) {
    driver_world w;
    const stream blocking = w.stream(0), other = w.stream();
    const device_ptr p = w.block(), q = w.block(), r = w.block();
    CHECK(w.fill(blocking, p, 1) == success && w.fill(other, q, 2) == success && w.fill(nullptr, r, 3) == success);
    CHECK(api.stream_synchronize(nullptr) == success);
    CHECK(w.holds(p, 1) && !w.holds(q, 2) && w.holds(r, 3));
    CHECK(w.fill(nullptr, p, 4) == success && w.fill(blocking, q, 5) == success);
    CHECK(api.stream_synchronize(blocking) == success && w.holds(p, 4));
    uint64_t x = 0;
    CHECK(w.fill(blocking, r, 6) == success && api.memcpy_dtoh(&x, r, 8) == success && w.holds(r, 6));
}

TEST(what_no_wait_orders_runs_in_turn) {
    driver_world w;
    const stream a = w.stream(), b = w.stream();
    const device_ptr p = w.block();
    for (const uint64_t v : {1, 2, 3}) { // both think the block is theirs
        CHECK(w.fill(a, p, v) == success && w.fill(b, p, 10 + v) == success);
    }
    CHECK(api.stream_synchronize(a) == success && w.holds(p, 13)); // b was let in between
    const device_ptr q = w.block();
    CHECK(w.fill(a, p, 1) == success && w.fill(b, q, 2) == success);
    CHECK(api.stream_synchronize(a) == success && !w.holds(q, 2)); // apart: nothing is gained by it
}

TEST(memory_freed_under_work_is_a_hazard) {
    driver_world w;
    const stream a = w.stream();
    const device_ptr p = w.block(), q = w.block();
    emulated::start_operation(w.w, 0, 0);
    CHECK(w.fill(a, p, 1) == success && api.mem_free(q) == success);
    CHECK(emulated::hazards(w.w) == 0); // not the memory that it touches
    CHECK(api.mem_free(p) == success && emulated::hazards(w.w) == 1);
    CHECK(api.stream_synchronize(a) == success); // what is lost does not run
    emulated::start_operation(w.w, 0, 0);
    CHECK(emulated::hazards(w.w) == 0);
}

TEST(memory_unmapped_under_work_is_a_hazard) {
    driver_world w;
    const stream a = w.stream();
    device_ptr p = 0;
    allocation memory = 0;
    allocation_prop prop{};
    prop.type = pinned_memory;
    prop.where = {on_device, 0};
    const access_desc access = {prop.where, access_read_write};
    const uint64_t unit = driver_world::unit;
    CHECK(api.mem_address_reserve(&p, unit, 0, 0, 0) == success && api.mem_create(&memory, unit, &prop, 0) == success);
    CHECK(api.mem_map(p, unit, 0, memory, 0) == success && api.mem_set_access(p, unit, &access, 1) == success);
    CHECK(w.fill(a, p, 1) == success && api.stream_synchronize(a) == success && w.holds(p, 1));
    CHECK(w.fill(a, p, 2) == success && api.mem_unmap(p, unit) == success);
    CHECK(emulated::hazards(w.w) == 1);
    CHECK(api.mem_map(p, unit, 0, memory, 0) == success && api.mem_set_access(p, unit, &access, 1) == success);
    CHECK(api.stream_synchronize(a) == success && !w.holds(p, 2)); // lost, also where memory comes back
}

TEST(a_destroyed_stream_finishes_its_work) {
    driver_world w;
    const stream a = w.stream();
    const event e = w.event();
    const device_ptr p = w.block();
    CHECK(w.fill(a, p, 1) == success && api.event_record(e, a) == success && api.stream_destroy(a) == success);
    CHECK(api.stream_destroy(a) == invalid_handle && api.stream_query(a) == invalid_handle);
    CHECK(w.fill(a, p, 2) == invalid_handle);
    CHECK(api.event_synchronize(e) == success && w.holds(p, 1));
}

TEST(placed_memory_counts_like_any) {
    driver_world w(3 * driver_world::unit);
    emulated::start_operation(w.w, 0, 3);
    const device_ptr p = w.block(1);
    CHECK(emulated::used(w.w, 0) == driver_world::unit);
    w.block(2 * driver_world::unit);
    device_ptr q = 0;
    CHECK(api.mem_alloc(&q, 1) == out_of_memory && emulated::allocations(w.w) == 3); // told to
    CHECK(api.mem_alloc(&q, 1) == out_of_memory);                                    // full
    CHECK(api.mem_alloc(&q, 0) == invalid_value && emulated::allocations(w.w) == 4);
    CHECK(api.mem_free(p) == success && api.mem_free(p) == invalid_value);
    CHECK(emulated::used(w.w, 0) == 2 * driver_world::unit && emulated::used(w.w, 1) == 0);
    CHECK(api.mem_alloc(&q, 1) == success);
}

TEST(steps_of_a_pool_fail_one_by_one) {
    driver_world w;
    allocation_prop prop{};
    prop.type = pinned_memory;
    prop.where = {on_device, 0};
    const access_desc access = {prop.where, access_read_write};
    const uint64_t unit = driver_world::unit;
    device_ptr p = 0;
    CHECK(api.mem_address_reserve(&p, unit, 0, 0, 0) == success);
    emulated::count_steps(w.w, true);
    for (int nth = 1; nth <= 4; nth++) {
        emulated::start_operation(w.w, 0, nth);
        allocation memory = 0;
        const bool made = api.mem_create(&memory, unit, &prop, 0) == success;
        const bool there = made && api.mem_map(p, unit, 0, memory, 0) == success;
        const bool usable = there && api.mem_set_access(p, unit, &access, 1) == success;
        CHECK(made == (nth != 1) && there == (nth > 2) && usable == (nth > 3));
        CHECK(emulated::allocations(w.w) == uint64_t(nth < 4 ? nth : 3));
        if (there) CHECK(api.mem_unmap(p, unit) == success);
        if (made) CHECK(api.mem_release(memory) == success);
        CHECK(emulated::used(w.w, 0) == 0);
    }
    emulated::count_steps(w.w, false);
}

TEST(host_memory_is_no_device_memory) {
    driver_world w(driver_world::unit);
    void * p = nullptr;
    emulated::start_operation(w.w, 3, 0);
    CHECK(api.mem_host_alloc(&p, 1 << 20, host_portable) == success);
    CHECK(emulated::allocations(w.w) == 0 && emulated::used(w.w, 0) == 0);
    CHECK(api.mem_free_host(p) == success && api.mem_free_host(p) == invalid_value);
}
