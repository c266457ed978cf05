// C: schedulers, through the C interface.
#include "session.h"

using namespace gc::test;

namespace {

struct scheduled : session {
    int small, large, wide; // graphs of one, two and one tensors

    explicit scheduled(int types = 1) : session(types) {
        small = graph(64), wide = graph(4096);
        tensors t;
        t.node(64, {}), t.node(64, {0}, GC_OUTPUT);
        large = define(t);
    }

    int make(int n, int nodes = 0) { return run(GC_NEW, n, 0, 0, uint64_t(nodes), GC_BY_SCHED); }
    int compute(int n, int graph, uint32_t flags = 0) { return run(GC_COMPUTE, n, 0, graph, 0, flags); }
    int fly(int n, int graph) { return compute(n, graph, GC_ASYNC); }
    int sync(int n) { return run(GC_SYNC, n); }
    int reset(int n) { return run(GC_RESET, n); }
    bool flies(int n) { return look(n).in_flight; }
    uint64_t nodes(int n) { return look(n).nodes; }
    uint64_t digest(int n, int graph) { // what it must be
        CHECK(reset(n) == GC_DONE && compute(n, graph) == GC_DONE && seen.digest != 0);
        return seen.digest;
    }
};

// Scheduler 0 is an owner, 1 its borrower.
struct shared : scheduled {
    explicit shared(int mine = 0, int theirs = 0) {
        CHECK(make(0, mine) == GC_DONE && own(0) == GC_DONE);
        CHECK(make(1, theirs) == GC_DONE && borrow(1, 0) == GC_DONE);
    }
};

} // namespace

TEST(work_is_in_flight_until_somebody_waits) {
    scheduled s;
    s.make(0);
    const uint64_t small = s.digest(0, s.small), wide = s.digest(0, s.wide);
    s.reset(0);
    CHECK(s.fly(0, s.small) == GC_DONE && s.seen.digest == 0 && s.seen.in_flight == 1);
    CHECK(s.reset(0) == GC_DONE && s.flies(0));
    CHECK(s.sync(0) == GC_DONE && s.seen.digest == small && s.seen.in_flight == 0);
    CHECK(s.sync(0) == GC_DONE && s.seen.digest == 0);
    CHECK(s.alloc(0, s.small) == GC_DONE && s.fly(0, s.small) == GC_DONE && s.fly(0, s.small) == GC_DONE);
    CHECK(s.alloc(0, s.wide) == GC_DONE && !s.flies(0)); // it had to reserve
    CHECK(s.fly(0, s.wide) == GC_DONE && s.sync(0) == GC_DONE && s.seen.digest == wide);
}

TEST(a_reservation_waits_for_both) { // C1: FREED_BUSY would be trouble, which no operation of these tests shows
    shared s;
    CHECK(s.fly(0, s.small) == GC_DONE && s.measure(1, s.wide) == GC_DONE && s.flies(0));
    CHECK(s.reserve(1, s.wide) == GC_DONE && !s.flies(0));
    CHECK(s.compute(0, s.small) == GC_STALE); // the other replaced its buffers
    CHECK(s.reserve(0, s.small) == GC_DONE && s.fly(0, s.small) == GC_DONE);
    CHECK(s.compute(1, s.small) == GC_MISUSE && s.flies(0)); // who computes waits first
    CHECK(s.remake(0) == GC_DONE && !s.flies(0));
}

TEST(who_goes_waits) { // C1
    shared s;
    CHECK(s.fly(0, s.small) == GC_DONE && s.free(1) == GC_DONE && !s.flies(0));
    CHECK(s.fly(0, s.small) == GC_DONE && s.free(0) == GC_DONE);
    CHECK(s.make(0) == GC_DONE && s.fly(0, s.small) == GC_DONE); // and close waits for it
}

TEST(a_failure_is_a_status_and_nothing_is_computed) { // C2
    scheduled s;
    s.make(0);
    CHECK(s.compute(0, s.small) == GC_DONE && s.reset(0) == GC_DONE);
    s.fail_nth = 1;
    CHECK(s.fly(0, s.wide) == GC_REFUSED && s.seen.in_flight == 0 && s.seen.digest == 0);
    s.fail_types = 1;
    CHECK(s.alloc(0, s.wide) == GC_REFUSED);
    CHECK(s.compute(0, s.small) == GC_DONE && s.compute(0, 99) == GC_DONE); // it is bound now
    CHECK(s.reset(0) == GC_DONE && s.compute(0, 99) == GC_MISUSE);
}

TEST(a_larger_graph_makes_a_larger_scheduler) { // C3
    scheduled s;
    s.make(0, 1);
    CHECK(s.reserve(0, s.small) == GC_DONE && s.nodes(0) == 1);
    CHECK(s.measure(0, s.large) == GC_DONE && s.nodes(0) == 1);
    CHECK(s.compute(0, s.large) == GC_DONE && s.nodes(0) == 2 && s.generation(0) == 1);
    CHECK(s.reserve(0, s.small) == GC_DONE && s.nodes(0) == 2);
}

TEST(a_larger_owner_leaves_its_borrower_alone) { // C3, R14
    shared s(1);
    CHECK(s.reserve(1, s.wide) == GC_DONE && s.fly(1, s.wide) == GC_DONE);
    const uint64_t generation = s.generation(1);
    CHECK(s.reserve(0, s.large) == GC_DONE && s.nodes(0) == 2 && !s.flies(1));
    CHECK(s.asked(1) == 4096 && s.generation(1) == generation && s.asked(0) == 128);
    CHECK(s.compute(1, s.wide) == GC_DONE); // still on its old buffers
    CHECK(s.reserve(1, s.small) == GC_DONE && s.asked(1) == 128);
}

TEST(a_larger_borrower_borrows_again) { // C3
    shared s(0, 1);
    CHECK(s.reserve(0, s.wide) == GC_DONE && s.alloc(1, s.large) == GC_DONE);
    CHECK(s.nodes(1) == 2 && s.asked(1) == 4096 && s.generation(1) == s.generation(0));
    CHECK(s.free(0) == GC_DONE);
    tensors t;
    t.node(16, {}), t.node(16, {0}), t.node(16, {1}, GC_OUTPUT);
    CHECK(s.reserve(1, s.define(t)) == GC_DONE && s.nodes(1) == 3);
    CHECK(s.shrink(1) == GC_MISUSE); // alone, it is a plain one
}

TEST(reset_forgets_the_graph) { // C4
    scheduled s(2);
    s.make(0);
    const uint64_t wide = s.digest(0, s.wide);
    CHECK(s.digest(0, s.small) != wide);
    CHECK(s.compute(0, s.wide) == GC_DONE && s.seen.digest != wide); // the small one is bound
    CHECK(s.reset(0) == GC_DONE && s.compute(0, s.wide) == GC_DONE && s.seen.digest == wide);
    CHECK(s.reserve(0, s.small) == GC_DONE && s.compute(0, s.wide) == GC_DONE && s.seen.digest == wide);
}

TEST(a_scheduler_says_what_its_allocator_says) { // C5
    shared s;
    CHECK(s.reserve(1, s.wide) == GC_DONE && s.shrink(0) == GC_DONE);
    for (const int n : {0, 1}) {
        const gc_obs & o = s.look(n);
        CHECK(o.generation == 1 && o.sched_generation == 1);
        CHECK(o.shrink_generation == 1 && o.sched_shrink_generation == 1);
    }
}

TEST(schedulers_and_plain_allocators_do_not_share) {
    scheduled s;
    s.make(0), s.own(0), s.start(1), s.make(2);
    CHECK(s.borrow(1, 0) == GC_MISUSE && s.borrow(2, 1) == GC_MISUSE && s.borrow(2, 3) == GC_REFUSED);
    CHECK(s.run(GC_SYNC, 1) == GC_MISUSE && s.run(GC_RESET, 1) == GC_MISUSE && s.look(1).nodes == 0);
}

TEST(what_the_partner_replaced_is_dropped) { // R12
    shared s;
    CHECK(s.alloc(0, s.small) == GC_DONE && s.reserve(1, s.wide) == GC_DONE);
    CHECK(s.compute(0, s.small) == GC_STALE && s.compute(0, s.small) == GC_DONE);
}
