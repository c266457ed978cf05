// Q: captured graphs, through the C interface.
#include "session.h"

using namespace gc::test;

namespace {

struct capturing : session {
    int g, big;

    explicit capturing(uint32_t pool = GC_VMM_POOL) : session(setup_of(pool)), g(graph(64)), big(graph(640)) {}

    static gc_setup setup_of(uint32_t pool) {
        gc_setup s = plain_setup(1, 64);
        s.pool = pool;
        s.pool_range = 1 << 16;
        return s;
    }
    int begin(int n = 0) { return run(GC_CAPTURE_BEGIN, n); }
    int end(int n = 0) { return run(GC_CAPTURE_END, n); }
    int launch(int n = 0, uint32_t flags = 0) { return run(GC_LAUNCH, n, 0, 0, 0, flags); }
    int sync(int n = 0) { return run(GC_SYNC, n); }
    // Allocator n, with a captured graph; its digest.
    uint64_t captured(int n = 0, uint32_t flags = 0) {
        CHECK(run(GC_NEW, n, 0, 0, 0, flags) == GC_DONE && alloc(n, g) == GC_DONE);
        CHECK(compute(n) == GC_DONE);
        const uint64_t digest = seen.digest;
        CHECK(begin(n) == GC_DONE && compute(n) == GC_DONE && seen.digest == 0 && end(n) == GC_DONE);
        CHECK(seen.captured >> n & 1);
        return digest;
    }
};

} // namespace

TEST(a_captured_graph_computes_what_was_captured) { // Q1
    for (const uint32_t pool : {GC_NO_POOL, GC_VMM_POOL, GC_LEGACY_POOL}) {
        capturing s(pool);
        const uint64_t digest = s.captured();
        CHECK(s.launch() == GC_DONE && s.seen.digest == digest);
        CHECK(s.alloc(0, s.big) == GC_DONE && s.launch() == GC_STALE && s.seen.captured == 0);
        CHECK(s.launch() == GC_MISUSE);
    }
}

TEST(a_trim_drops_captured_graphs) { // Q2
    capturing s;
    s.captured(), s.captured(1);
    CHECK(s.run(GC_TRIM) == GC_DONE && s.seen.released > 0 && s.seen.captured == 0);
    CHECK(s.launch() == GC_MISUSE && s.launch(1, GC_UNCHECKED) == GC_MISUSE);
}

TEST(a_capture_forbids_trims_and_replacements) { // Q3
    capturing s;
    const uint64_t digest = s.captured();
    s.start(1);
    CHECK(s.begin() == GC_DONE && s.seen.capturing == 1);
    CHECK(s.run(GC_TRIM) == GC_REFUSED && s.reserve(0, s.big) == GC_REFUSED && s.reserve(1, s.g) == GC_REFUSED);
    CHECK(s.launch() == GC_MISUSE && s.free(0) == GC_MISUSE && s.begin(1) == GC_MISUSE);
    CHECK(s.run(GC_POOL_ALLOC, 0, 0, 0, 1) == GC_MISUSE && s.run(GC_POOL_ALLOC, 1, 0, 0, 1) == GC_DONE);
    CHECK(s.reserve(0, s.g) == GC_DONE && s.end() == GC_REFUSED && s.launch() == GC_DONE && s.seen.digest == digest);
}

TEST(a_replay_needs_its_scratch) {
    capturing s;
    s.captured();
    CHECK(s.run(GC_POOL_ALLOC, 0, 0, 0, 1) == GC_DONE && s.launch() == GC_MISUSE);
    CHECK(s.run(GC_POOL_FREE) == GC_DONE && s.launch() == GC_DONE);
}

TEST(a_scheduler_waits_for_its_replay) {
    capturing s;
    const uint64_t digest = s.captured(0, GC_BY_SCHED);
    CHECK(s.launch(0, GC_ASYNC) == GC_DONE && s.seen.in_flight == 1 && s.seen.digest == 0);
    CHECK(s.begin() == GC_MISUSE && s.run(GC_DROP) == GC_DONE); // what runs, runs on
    CHECK(s.sync() == GC_DONE && s.seen.digest == digest && s.seen.in_flight == 0);
}

TEST(a_capture_may_be_left_open) { // and is closed with the session
    capturing s;
    s.captured();
    CHECK(s.begin() == GC_DONE && s.compute(0) == GC_DONE);
}
