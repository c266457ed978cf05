// G, and P12 and R12 as far as they concern one allocator, through the C interface.
#include <algorithm>

#include "session.h"

using namespace gc::test;

TEST(a_reservation_that_fits_changes_nothing) { // G1
    session s;
    const int big = s.graph(160), small = s.graph(16);
    CHECK(s.start(0) == GC_DONE && s.generation(0) == 0);
    CHECK(s.reserve(0, big) == GC_DONE && s.seen.generation == 1 && s.seen.allocations == 1);
    CHECK(s.reserve(0, small) == GC_DONE && s.seen.generation == 1 && s.seen.allocations == 0);
    CHECK(s.asked(0) == 160 && s.used() == 160);
    CHECK(s.reserve(0, s.graph(320)) == GC_DONE && s.seen.generation == 2 && s.used() == 320);
}

TEST(what_the_device_rounds_up_is_used) {
    session s(1, 4096);
    s.start(0);
    CHECK(s.reserve(0, s.graph(160)) == GC_DONE && s.seen.reported[0] == 4096 && s.seen.asked[0][0] == 160);
    CHECK(s.reserve(0, s.graph(4096)) == GC_DONE && s.seen.allocations == 0 && s.seen.asked[0][0] == 160);
    CHECK(s.alloc(0, s.graph(4096)) == GC_DONE && s.compute(0) == GC_DONE);
}

TEST(a_failed_reservation_leaves_nothing_half_done) { // G2
    session s(2);
    const int g = s.graph(160, 160), small = s.graph(16, 16);
    s.start(0);
    CHECK(s.reserve(0, small) == GC_DONE);
    s.fail_nth = 2;
    CHECK(s.reserve(0, g) == GC_REFUSED && s.seen.allocations == 2);
    CHECK(s.seen.asked[0][0] == 160 && s.seen.asked[1][0] == 0 && s.seen.used[1] == 0);
    CHECK(s.alloc(0, g) == GC_REFUSED);
    CHECK(s.reserve(0, g) == GC_DONE && s.alloc(0, g) == GC_DONE && s.compute(0) == GC_DONE);
}

TEST(alloc_after_a_failure_tries_again) { // G2, one type
    session s;
    const int g = s.graph(160);
    s.start(0);
    s.fail_types = 1;
    CHECK(s.reserve(0, g) == GC_REFUSED && s.seen.used[0] == 0);
    s.fail_types = 1;
    CHECK(s.alloc(0, g) == GC_REFUSED);
    CHECK(s.alloc(0, g) == GC_DONE && s.compute(0) == GC_DONE);
}

TEST(chunks_got_before_one_failed_are_given_back) {
    gc_setup setup = plain_setup(1, 1);
    setup.types[0].max_size = 16;
    session s(setup);
    tensors t;
    t.input(16), t.input(16), t.input(16);
    const int g = s.define(t);
    s.start(0);
    s.fail_nth = 3;
    CHECK(s.reserve(0, g) == GC_REFUSED && s.seen.allocations == 3 && s.seen.used[0] == 0);
    CHECK(s.reserve(0, g) == GC_DONE && s.seen.asked[0][2] == 16 && s.seen.used[0] == 48);
}

TEST(a_type_listed_twice_is_one_set_of_buffers) { // G3
    gc_setup setup = plain_setup(2, 1);
    setup.n_slots[0] = 4;
    std::ranges::copy(std::initializer_list<int32_t>{0, 0, 1, 0}, setup.slots[0]);
    session s(setup);
    tensors t;
    t.input(16, 0), t.input(16, 1), t.input(32, 2), t.input(16, 3);
    const int g = s.define(t);
    s.start(0);
    CHECK(s.measure(0, g) == GC_DONE && s.seen.measured[0] == 48 && s.seen.measured[1] == 0);
    CHECK(s.seen.measured[2] == 32 && s.seen.measured[3] == 0);
    CHECK(s.reserve(0, g) == GC_DONE && s.seen.used[0] == 48 && s.seen.used[1] == 32);
    CHECK(s.seen.reported[0] == 48 && s.seen.reported[1] == 0 && s.seen.reported[2] == 32 && s.seen.reported[3] == 0);
}

TEST(a_graph_of_the_same_sizes_is_another_graph) { // G4
    for (const int types : {1, 2}) {
        session s(types);
        tensors a, b;
        a.input(16), a.node(16, {0}), a.node(16, {1}, GC_OUTPUT);
        b.input(16), b.node(16, {0}, GC_OUTPUT), b.node(16, {1}, GC_OUTPUT);
        const int ga = s.define(a), gb = s.define(b), same = s.define(a);
        s.start(0);
        CHECK(s.reserve(0, ga) == GC_DONE);
        CHECK(s.alloc(0, same) == GC_DONE && s.compute(0) == GC_DONE);
        CHECK(s.alloc(0, gb) == (types == 1 ? GC_DONE : GC_REFUSED));
        CHECK(s.compute(0) == GC_DONE); // of ga where gb was refused
    }
}

TEST(measuring_changes_nothing) { // P12
    session s;
    const int a = s.graph(64), b = s.graph(640);
    s.start(0);
    CHECK(s.reserve(0, a) == GC_DONE && s.alloc(0, a) == GC_DONE);
    CHECK(s.measure(0, b) == GC_DONE && s.seen.measured[0] == 640 && s.seen.allocations == 0);
    CHECK(s.asked(0) == 64 && s.generation(0) == 1);
    CHECK(s.alloc(0, a) == GC_DONE && s.seen.allocations == 0 && s.compute(0) == GC_DONE);
    CHECK(s.measure(0, s.graph(UINT64_MAX)) == GC_REFUSED && s.seen.measured[0] == 0);
}

TEST(an_outdated_graph_is_dropped) { // R12
    session s;
    const int a = s.graph(64);
    s.start(0);
    CHECK(s.alloc(0, a) == GC_DONE && s.compute(0) == GC_DONE);
    gc_place p{};
    CHECK(gc_places(s.s, 0, &p, 1) == 1 && p.type == 0);
    CHECK(s.reserve(0, s.graph(640)) == GC_DONE);
    CHECK(s.compute(0) == GC_STALE && s.compute(0) == GC_MISUSE && gc_places(s.s, 0, &p, 1) == 0);
}

TEST(without_the_check_freed_memory_is_touched) { // R12's counter-test
    CHECK(dies([] {
        session s;
        s.start(0);
        s.alloc(0, s.graph(64));
        s.reserve(0, s.graph(640));
        s.compute(0, GC_UNCHECKED);
    }));
}

TEST(weights_survive_and_keep_their_content) { // P14
    session s;
    tensors t;
    const int w = t.leaf(100, GC_PREALLOC), v = t.view(50, w, 25);
    t.node(100, {w, v}, GC_INPLACE | GC_OUTPUT);
    const int g = s.define(t);
    s.start(0), s.start(1);
    CHECK(s.alloc(0, g) == GC_DONE && s.compute(0) == GC_DONE);
    const uint64_t digest = s.seen.digest;
    CHECK(s.alloc(1, g) == GC_DONE && s.compute(1) == GC_DONE && s.seen.digest == digest && digest != 0);
}

TEST(nothing_can_be_allocated_too) { // P13
    gc_setup setup = plain_setup(1, 1);
    setup.types[0].max_size = 64;
    session s(setup);
    tensors none, zero, gap;
    zero.node(0, {}, GC_OUTPUT);
    const int a = gap.input(0), b = gap.node(100, {a});
    gap.node(0, {b}, GC_OUTPUT);
    for (const tensors & t : {none, zero, gap}) {
        CHECK(s.start(0) == GC_DONE && s.alloc(0, s.define(t)) == GC_DONE && s.compute(0) == GC_DONE);
        CHECK(s.free(0) == GC_DONE);
    }
}

TEST(misuse_is_a_status) {
    session s;
    const int g = s.graph(16);
    CHECK(s.run(GC_LOOK, 0) == GC_MISUSE && s.run(GC_LOOK, -1) == GC_MISUSE && s.run(GC_LOOK, 4) == GC_MISUSE);
    CHECK(s.start(0, 3) == GC_MISUSE && s.start(4) == GC_MISUSE);
    CHECK(s.start(0) == GC_DONE && s.start(0) == GC_MISUSE);
    CHECK(s.reserve(0, g + 1) == GC_MISUSE && s.measure(0, -1) == GC_MISUSE && s.alloc(0, 7) == GC_MISUSE);
    CHECK(s.compute(0) == GC_MISUSE && s.shrink(0) == GC_MISUSE && s.remake(0) == GC_MISUSE);
    CHECK(s.run(GC_SYNC) == GC_MISUSE && s.run(GC_RESET) == GC_MISUSE && s.run(99) == GC_MISUSE);
    CHECK(s.capacity(1, 5) == GC_MISUSE && s.capacity(-1, 5) == GC_MISUSE);
    CHECK(s.free(0) == GC_DONE && s.free(0) == GC_MISUSE && s.own(0) == GC_MISUSE);
}

TEST(setups_that_make_no_sense_are_refused) {
    const auto opens = [](auto change) {
        gc_setup s = plain_setup(3, 1);
        change(s);
        gc_session * h = gc_open(&s);
        gc_close(h);
        return h != nullptr;
    };
    CHECK(opens([](gc_setup &) {}));
    CHECK(!opens([](gc_setup & s) { s.n_types = 0; }));
    CHECK(!opens([](gc_setup & s) { s.n_types = 5; }));
    CHECK(!opens([](gc_setup & s) { s.n_configs = 0; }));
    CHECK(!opens([](gc_setup & s) { s.types[2].alignment = 3; }));
    CHECK(!opens([](gc_setup & s) { s.types[2].alignment = 8192; }));
    CHECK(!opens([](gc_setup & s) { s.types[2].granularity = 0; }));
    CHECK(!opens([](gc_setup & s) { s.slots[0][1] = 3; }));
    CHECK(!opens([](gc_setup & s) { s.slots[0][1] = -1; }));
    CHECK(!opens([](gc_setup & s) { s.n_slots[1] = 0; }));
    CHECK(!opens([](gc_setup & s) { s.n_slots[1] = 7; }));
    CHECK(!opens([](gc_setup & s) { std::swap(s.slots[0][0], s.slots[0][1]); })); // they must ascend
    CHECK(gc_open(nullptr) == nullptr && gc_abi() == GC_ABI && gc_plant(0));
}
