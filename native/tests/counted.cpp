// S: sharing by reference count, and not at all, through the C interface.
#include "session.h"

using namespace gc::test;

namespace {

gc_setup strategy_setup(uint32_t strategy, int types = 1) {
    gc_setup setup = plain_setup(types, 1);
    setup.strategy = strategy;
    return setup;
}

// Allocator 0 may be borrowed from, 1 borrowed.
struct counted : session {
    explicit counted(int types = 1, int mine = 0, int theirs = 0) : session(strategy_setup(GC_COUNTED, types)) {
        CHECK(start(0, mine) == GC_DONE && own(0) == GC_DONE && start(1, theirs) == GC_DONE);
        CHECK(run(GC_BORROW, 1, 0, 0, GC_VALIDATED) == GC_DONE);
    }
};

} // namespace

TEST(both_hold_what_the_first_one_made) { // S1
    counted s;
    const int big = s.graph(160), small = s.graph(48);
    CHECK(s.reserve(1, big) == GC_DONE && s.asked(0) == 160 && s.used() == 160);
    CHECK(s.generation(0) == 1 && s.generation(1) == 1);
    CHECK(s.reserve(0, small) == GC_DONE && s.seen.allocations == 0 && s.used() == 160);
    CHECK(s.alloc(0, small) == GC_DONE && s.alloc(1, big) == GC_DONE);
    CHECK(s.compute(0) == GC_DONE && s.compute(1) == GC_DONE && s.compute(0) == GC_DONE);
}

TEST(who_needs_more_leaves_and_the_other_does_not_notice) { // S2
    counted s;
    const int a = s.graph(64), b = s.graph(48), big = s.graph(160);
    CHECK(s.reserve(0, a) == GC_DONE && s.alloc(0, a) == GC_DONE && s.alloc(1, b) == GC_DONE);
    CHECK(s.reserve(1, big) == GC_DONE && s.asked(1) == 160 && s.asked(0) == 64 && s.used() == 64 + 160);
    CHECK(s.generation(0) == 1 && s.generation(1) == 2);
    CHECK(s.compute(0) == GC_DONE && s.compute(1) == GC_STALE);
    CHECK(s.alloc(1, big) == GC_DONE && s.compute(1) == GC_DONE && s.compute(0) == GC_DONE);
}

TEST(a_detach_that_finds_no_memory_leaves_the_other_alone) { // S2, S5
    counted s;
    const int a = s.graph(64), big = s.graph(160);
    s.capacity(0, 200);
    CHECK(s.reserve(0, a) == GC_DONE && s.reserve(1, big) == GC_REFUSED);
    CHECK(s.asked(1) == 0 && s.asked(0) == 64 && s.used() == 64);
    CHECK(s.reserve(1, a) == GC_DONE && s.used() == 128);
    CHECK(s.free(0) == GC_DONE && s.reserve(1, big) == GC_DONE);
}

TEST(the_last_reference_frees) { // S3
    for (const int first : {0, 1}) {
        counted s(2, first == 0 ? 0 : 1, first == 0 ? 1 : 0); // the first to go has type 1 for itself
        const int last = 1 - first, both = s.graph(64, 64), one = s.graph(32);
        CHECK(s.reserve(first, both) == GC_DONE && s.reserve(last, one) == GC_DONE && s.alloc(last, one) == GC_DONE);
        CHECK(s.look(0).owned[0] == 64 && s.look(1).owned[0] == 0);
        CHECK(s.free(first) == GC_DONE && s.look(last).used[0] == 64 && s.look(last).used[1] == 0);
        CHECK(s.look(last).owned[0] == 64 && s.compute(last) == GC_DONE);
        CHECK(s.free(last) == GC_DONE && s.seen.used[0] == 0);
    }
}

TEST(another_borrower_finds_what_the_owner_has) { // S1, S3
    counted s;
    const int a = s.graph(64);
    CHECK(s.reserve(0, a) == GC_DONE && s.free(1) == GC_DONE && s.start(1) == GC_DONE);
    CHECK(s.run(GC_BORROW, 1, 0, 0, GC_VALIDATED) == GC_DONE && s.seen.allocations == 0);
    CHECK(s.asked(1) == 64 && s.alloc(1, a) == GC_DONE && s.used() == 64);
}

TEST(sharing_turns_on_only_where_it_was_validated) { // S4
    for (const uint32_t strategy : {GC_COUNTED, GC_APART}) {
        for (uint64_t bits = 0; bits <= GC_VALIDATED; bits++) {
            session s(strategy_setup(strategy));
            CHECK(s.start(0) == GC_DONE && s.own(0) == GC_DONE && s.start(1) == GC_DONE);
            const bool shares = strategy == GC_COUNTED && bits == GC_VALIDATED;
            CHECK(s.run(GC_BORROW, 1, 0, 0, bits) == (shares ? GC_DONE : GC_REFUSED));
            CHECK(s.seen.reason == (GC_VALIDATED & ~bits));
            CHECK(s.run(GC_BORROW, 1, 3, 0, bits) == GC_REFUSED && s.seen.reason == (GC_VALIDATED & ~bits));
        }
    }
}

TEST(what_fits_works_on_a_full_device) { // S7
    counted s;
    const int a = s.graph(64);
    CHECK(s.reserve(0, a) == GC_DONE);
    s.capacity(0, 0);
    s.fail_nth = 1;
    CHECK(s.reserve(1, a) == GC_DONE && s.alloc(1, a) == GC_DONE && s.compute(1) == GC_DONE);
}

TEST(nothing_shrinks_where_buffers_are_counted) {
    counted s;
    CHECK(s.shrink(0) == GC_MISUSE && s.shrink(1) == GC_MISUSE && s.remake(0) == GC_MISUSE);
}

TEST(apart_everybody_is_alone) {
    session s(strategy_setup(GC_APART));
    const int a = s.graph(64);
    s.start(0), s.start(1);
    CHECK(s.own(0) == GC_DONE && s.reserve(0, a) == GC_DONE && s.own(0) == GC_DONE);
    CHECK(s.run(GC_BORROW, 1, 0, 0, GC_VALIDATED) == GC_REFUSED && s.seen.reason == 0);
    CHECK(s.reserve(1, a) == GC_DONE && s.used() == 128 && s.shrink(0) == GC_MISUSE && s.remake(0) == GC_MISUSE);
}
