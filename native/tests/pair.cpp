// R: owner and borrower, through the C interface.
#include "session.h"

using namespace gc::test;

namespace {

// Allocator 0 is an owner, 1 its borrower.
struct shared : session {
    explicit shared(int types = 1, int mine = 0, int theirs = 0) : session(types) {
        CHECK(start(0, mine) == GC_DONE && own(0) == GC_DONE);
        CHECK(start(1, theirs) == GC_DONE && borrow(1, 0) == GC_DONE);
    }
};

} // namespace

TEST(only_clean_allocators_attach) { // R1, R2
    session s(2);
    const int g = s.graph(16);
    s.start(0), s.start(1), s.start(2);
    CHECK(s.borrow(1, 0) == GC_REFUSED && s.borrow(0, 0) == GC_REFUSED && s.borrow(0, 3) == GC_REFUSED);
    CHECK(s.own(0) == GC_DONE && s.own(0) == GC_REFUSED && s.borrow(0, 1) == GC_REFUSED);
    CHECK(s.reserve(1, g) == GC_DONE && s.borrow(1, 0) == GC_REFUSED && s.own(1) == GC_REFUSED);
    CHECK(s.borrow(2, 0) == GC_DONE && s.own(2) == GC_REFUSED);
    CHECK(s.free(1) == GC_DONE && s.start(1) == GC_DONE);
    CHECK(s.borrow(1, 0) == GC_REFUSED && s.borrow(1, 2) == GC_REFUSED); // taken; a borrower does not lend
    CHECK(s.free(2) == GC_DONE && s.borrow(1, 0) == GC_DONE);            // R11: followed by another
}

TEST(without_a_common_type_nothing_is_shared) { // R2
    session s(2);
    s.start(0, 1), s.start(1, 2);
    CHECK(s.own(0) == GC_DONE && s.borrow(1, 0) == GC_REFUSED);
}

TEST(buffers_are_as_large_as_the_larger_requirement) { // R3, R4, R5
    shared s;
    const int a = s.graph(64), b = s.graph(160), c = s.graph(32);
    CHECK(s.reserve(0, a) == GC_DONE && s.asked(1) == 64);
    CHECK(s.reserve(1, b) == GC_DONE && s.asked(0) == 160 && s.used() == 160);
    CHECK(s.reserve(1, c) == GC_DONE && s.asked(0) == 160);
    CHECK(s.generation(0) == 2 && s.generation(1) == 2);
}

TEST(a_growing_entry_is_exactly_the_maximum_chunk_by_chunk) { // R5
    gc_setup setup = plain_setup(1, 1);
    setup.types[0].max_size = 64;
    session s(setup);
    tensors large, longer;
    large.input(100); // the only chunk is larger than the largest buffer
    longer.input(64), longer.input(64);
    s.start(0);
    CHECK(s.reserve(0, s.define(large)) == GC_DONE && s.asked(0) == 112);
    CHECK(s.reserve(0, s.define(longer)) == GC_DONE && s.asked(0, 0, 0) == 64 && s.asked(0, 0, 1) == 64);
}

TEST(old_buffers_go_before_new_ones_come) { // R4
    shared s;
    s.capacity(0, 200);
    CHECK(s.reserve(0, s.graph(160)) == GC_DONE && s.reserve(1, s.graph(192)) == GC_DONE);
}

TEST(a_shrink_waits_for_both) { // R6, R8
    shared s;
    const int big = s.graph(160), small = s.graph(16);
    CHECK(s.reserve(0, big) == GC_DONE && s.reserve(1, small) == GC_DONE);
    CHECK(s.shrink(1) == GC_DONE && s.shrink_generation(0) == 1 && s.shrink_generation(1) == 1);
    CHECK(s.shrink(0) == GC_DONE && s.shrink_generation(0) == 1);
    CHECK(s.reserve(0, small) == GC_DONE && s.asked(0) == 160);
    CHECK(s.reserve(1, small) == GC_DONE && s.asked(0) == 16 && s.generation(0) == 2);
    CHECK(s.reserve(1, small) == GC_DONE && s.generation(1) == 2);
}

TEST(private_types_shrink_at_their_own_roles_reserve) { // R6
    shared s(2, 0, 1); // type 1 is the owner's alone
    const int big = s.graph(160, 160), small = s.graph(16, 16), other = s.graph(16);
    CHECK(s.reserve(0, big) == GC_DONE && s.reserve(1, other) == GC_DONE);
    CHECK(s.shrink(0) == GC_DONE && s.reserve(0, small) == GC_DONE);
    CHECK(s.asked(0, 0) == 160 && s.asked(0, 1) == 16);
    CHECK(s.generation(0) == 3 && s.generation(1) == 1); // R7: the borrower has no part in type 1
}

TEST(a_failure_closes_the_entry_and_keeps_the_requirement) { // R7, R9, R10
    shared s;
    s.capacity(0, 100);
    const int small = s.graph(16), big = s.graph(160);
    CHECK(s.reserve(0, small) == GC_DONE && s.reserve(1, big) == GC_REFUSED);
    CHECK(s.asked(0) == 0 && s.used() == 0 && s.generation(0) == 2 && s.look(0).reported[0] == 0);
    CHECK(s.reserve(0, small) == GC_REFUSED && s.alloc(0, small) == GC_REFUSED);
    CHECK(s.reserve(1, small) == GC_DONE && s.asked(0) == 16);
    CHECK(s.alloc(0, small) == GC_DONE && s.compute(0) == GC_DONE);
}

TEST(both_roles_compute_in_the_same_memory) { // R12
    shared s;
    const int a = s.graph(64), b = s.graph(48), big = s.graph(160);
    CHECK(s.reserve(0, a) == GC_DONE && s.reserve(1, b) == GC_DONE);
    CHECK(s.alloc(0, a) == GC_DONE && s.alloc(1, b) == GC_DONE);
    CHECK(s.compute(0) == GC_DONE && s.compute(1) == GC_DONE && s.compute(0) == GC_DONE);
    CHECK(s.reserve(1, big) == GC_DONE && s.compute(0) == GC_STALE && s.compute(1) == GC_STALE);
}

TEST(shared_buffers_live_until_the_last_role_goes) { // R8, R11
    for (const int first : {0, 1}) {
        shared s(2, first == 0 ? 0 : 1, first == 0 ? 1 : 0); // the first to go has type 1 for itself
        const int last = 1 - first, both = s.graph(64, 64), one = s.graph(32);
        CHECK(s.reserve(first, both) == GC_DONE && s.reserve(last, one) == GC_DONE && s.alloc(last, one) == GC_DONE);
        CHECK(s.free(first) == GC_DONE && s.look(last).used[0] == 64);
        CHECK(s.look(last).used[1] == 0); // what was private to the one that went
        CHECK(s.shrink_generation(last) == 1 && s.compute(last) == GC_DONE);
        CHECK(s.reserve(last, one) == GC_DONE && s.asked(last) == 32);
        CHECK(s.free(last) == GC_DONE && s.seen.used[0] == 0);
    }
}

TEST(a_borrowed_byte_is_counted_once) { // R13
    shared s(2, 0, 0);
    CHECK(s.reserve(1, s.graph(64, 32)) == GC_DONE);
    CHECK(s.look(0).owned[0] == 64 && s.look(0).owned[1] == 32 && s.look(1).owned[0] == 0);
    CHECK(s.free(0) == GC_DONE && s.look(1).owned[0] == 64);
}

TEST(a_remade_owner_gets_its_borrower_back_at_its_reserve) { // R14
    shared s;
    const int a = s.graph(64), b = s.graph(160);
    CHECK(s.reserve(0, a) == GC_DONE && s.reserve(1, a) == GC_DONE && s.alloc(1, a) == GC_DONE);
    CHECK(s.remake(1) == GC_MISUSE && s.remake(0) == GC_DONE);
    CHECK(s.generation(0) == 2 && s.asked(0) == 0 && s.generation(1) == 1 && s.asked(1) == 64);
    CHECK(s.compute(1) == GC_DONE && s.reserve(0, b) == GC_DONE && s.used() == 160 + 64);
    CHECK(s.look(1).owned[0] == 64 && s.compute(1) == GC_DONE);
    CHECK(s.start(2) == GC_DONE && s.borrow(2, 0) == GC_REFUSED);
    CHECK(s.reserve(1, a) == GC_DONE && s.used() == 160 && s.asked(1) == 160 && s.look(1).owned[0] == 0);
    CHECK(s.compute(1) == GC_STALE);
}

TEST(a_borrower_that_is_behind_can_outlive_both_owners) { // R11, R14
    shared s;
    const int a = s.graph(64);
    CHECK(s.reserve(1, a) == GC_DONE && s.alloc(1, a) == GC_DONE && s.remake(0) == GC_DONE);
    CHECK(s.reserve(0, a) == GC_DONE && s.remake(0) == GC_DONE && s.reserve(0, a) == GC_DONE);
    CHECK(s.free(0) == GC_DONE && s.seen.used[0] == 64 && s.compute(1) == GC_DONE);
    CHECK(s.reserve(1, s.graph(16)) == GC_DONE && s.asked(1) == 16);
}
