// M: types over several devices, through the C interface.
#include "meta.h"
#include "session.h"

using namespace gc::test;

namespace {

// Devices 0 and 1, and type 2 over both; configs: all types, the first, the meta type.
gc_setup over_two() {
    gc_setup setup = plain_setup(3, 1);
    setup.types[2].meta = 0b11;
    return setup;
}

// Allocator 0 is an owner of the meta type alone, 1 its borrower.
struct shared : session {
    shared() : session(over_two()) {
        CHECK(start(0, 2) == GC_DONE && own(0) == GC_DONE);
        CHECK(start(1, 2) == GC_DONE && borrow(1, 0) == GC_DONE);
    }
};

} // namespace

TEST(a_meta_type_names_simple_devices_that_round_no_more) {
    gc_setup setup = over_two();
    setup.types[2].meta = 0b100; // itself
    CHECK(!gc_open(&setup));
    setup.types[2].meta = 0b1000;
    CHECK(!gc_open(&setup));
    setup.types[2].meta = 0b11;
    setup.types[1].granularity = 4096;
    CHECK(!gc_open(&setup));
    setup.types[2].granularity = 4096;
    session s(setup);
}

TEST(a_meta_buffer_is_one_part_a_device) { // M1, R13
    session s(over_two());
    const int g = s.graph(64);
    CHECK(s.start(0, 2) == GC_DONE && s.reserve(0, g) == GC_DONE && s.seen.allocations == 2);
    CHECK(s.used(0) == 64 && s.used(1) == 64 && s.used(2) == 0 && s.asked(0, 2) == 64);
    CHECK(s.look(0).owned[2] == 64 && s.look(0).reported[0] == 64);
    CHECK(s.alloc(0, g) == GC_DONE && s.compute(0) == GC_DONE && s.seen.trouble == 0);
}

TEST(where_a_part_fails_those_before_it_go_back) { // M1, R9
    for (const int nth : {1, 2}) {
        session s(over_two());
        CHECK(s.start(0, 2) == GC_DONE);
        s.fail_nth = nth;
        CHECK(s.reserve(0, s.graph(64)) == GC_REFUSED && s.seen.used[0] == 0 && s.seen.used[1] == 0);
        CHECK(s.reserve(0, s.graph(16)) == GC_DONE && s.used(1) == 16);
    }
}

TEST(chunks_before_it_go_back_too) { // R9
    gc_setup setup = over_two();
    setup.types[2].max_size = 64;
    session s(setup);
    tensors two;
    two.input(64), two.input(64);
    CHECK(s.start(0, 2) == GC_DONE);
    s.fail_nth = 4;
    CHECK(s.reserve(0, s.define(two)) == GC_REFUSED && s.seen.used[0] == 0 && s.seen.used[1] == 0);
}

TEST(a_small_device_is_enough_to_fail) { // M1
    session s(over_two());
    s.capacity(1, 32);
    CHECK(s.start(0, 2) == GC_DONE && s.reserve(0, s.graph(64)) == GC_REFUSED && s.used(0) == 0);
}

TEST(roles_bind_and_compute_in_turn) { // M2
    shared s;
    const int a = s.graph(64), b = s.graph(48), c = s.graph(16);
    CHECK(s.reserve(0, a) == GC_DONE && s.reserve(1, a) == GC_DONE);
    CHECK(s.alloc(0, a) == GC_DONE);
    for (const int g : {b, c, a, b, c}) { // the borrower's maps take turns, the owner's stays
        CHECK(s.reserve(1, g) == GC_DONE && s.alloc(1, g) == GC_DONE);
        CHECK(s.compute(1) == GC_DONE && s.seen.trouble == 0);
        CHECK(s.compute(0) == GC_DONE && s.seen.trouble == 0);
    }
    CHECK(s.free(1) == GC_DONE && s.compute(0) == GC_DONE && s.seen.trouble == 0);
}

TEST(an_alias_is_of_the_buffers_as_they_are) { // M3, R12
    shared s;
    const int a = s.graph(16), big = s.graph(160);
    CHECK(s.reserve(1, a) == GC_DONE && s.alloc(1, a) == GC_DONE && s.compute(1) == GC_DONE);
    CHECK(s.reserve(0, big) == GC_DONE && s.compute(1) == GC_STALE);
    CHECK(s.reserve(1, a) == GC_DONE && s.alloc(1, a) == GC_DONE && s.compute(1) == GC_DONE && s.seen.trouble == 0);
    CHECK(s.reserve(0, s.graph(320)) == GC_DONE && s.reserve(1, a) == GC_DONE); // bound anew without being dropped first
    CHECK(s.alloc(1, a) == GC_DONE && s.compute(1) == GC_DONE && s.seen.trouble == 0);
}

TEST(an_outdated_graph_of_a_meta_type_faults) { // R12 is load-bearing
    CHECK(dies([] {
        shared s;
        const int a = s.graph(16);
        s.reserve(1, a), s.alloc(1, a), s.reserve(0, s.graph(160));
        s.compute(1, GC_UNCHECKED);
    }));
}

TEST(every_device_holds_another_stream) {
    CHECK(gc::part_value(7, 0) == 7 && gc::part_value(7, 1) != 7 && gc::part_value(7, 1) != gc::part_value(7, 2));
}
