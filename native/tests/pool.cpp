// V: device pools, through the C interface.
#include "session.h"

using namespace gc::test;

namespace {

constexpr uint64_t unit = 4096;

gc_setup pooled_setup(uint32_t kind, int devices = 1) {
    gc_setup s = plain_setup(devices, unit);
    s.pool = kind;
    s.pool_range = 4 * unit;
    return s;
}

struct pools : session {
    explicit pools(uint32_t kind = GC_VMM_POOL, int devices = 1) : session(pooled_setup(kind, devices)) {}

    int take(uint64_t bytes, int stream = 0, int device = 0) { return run(GC_POOL_ALLOC, stream, device, 0, bytes); }
    int give(uint64_t back = 0, int stream = 0, int device = 0) { return run(GC_POOL_FREE, stream, device, 0, back); }
    int trim(int type = 0) { return run(GC_TRIM, 0, type); }
};

} // namespace

TEST(blocks_lie_behind_each_other) { // V1, V2
    pools s;
    CHECK(s.take(0) == GC_DONE && s.seen.mapped == unit && s.seen.out == 128 && s.seen.address == s.seen.base);
    const uint64_t base = s.seen.base;
    CHECK(s.take(129) == GC_DONE && s.seen.address == base + 128 && s.seen.base == base && s.seen.out == 384);
    CHECK(s.take(unit) == GC_DONE && s.seen.mapped == 2 * unit && s.seen.allocations == 3);
    CHECK(s.give(1) == GC_MISUSE && s.give(9) == GC_MISUSE && s.give() == GC_DONE && s.seen.out == 384);
    CHECK(s.seen.pooled[0] == 2 * unit && s.seen.used[0] == 2 * unit);
    CHECK(s.take(4 * unit) == GC_REFUSED && s.take(UINT64_MAX) == GC_REFUSED && s.seen.out == 384);
}

TEST(a_mapping_that_fails_leaves_nothing) { // V5
    for (const int nth : {1, 2, 3}) {
        pools s;
        s.fail_nth = nth;
        CHECK(s.take(1) == GC_REFUSED && s.seen.allocations == uint64_t(nth));
        CHECK(s.seen.used[0] == 0 && s.seen.mapped == 0 && s.seen.out == 0 && s.seen.base != 0);
        CHECK(s.take(1) == GC_DONE && s.give() == GC_DONE);
    }
}

TEST(an_idle_pool_is_trimmed_and_maps_again_where_it_was) { // V1, V3
    pools s;
    CHECK(s.take(1) == GC_DONE && s.take(1, 1) == GC_DONE);
    const uint64_t first = s.seen.address;
    CHECK(s.give(0, 1) == GC_DONE && s.trim() == GC_DONE && s.seen.released == unit && s.seen.pooled[0] == unit);
    CHECK(s.take(1, 1) == GC_DONE && s.seen.address == first);
    CHECK(s.give(0, 1) == GC_DONE && s.give() == GC_DONE && s.trim() == GC_DONE && s.seen.used[0] == 0);
    CHECK(s.trim() == GC_DONE && s.seen.released == 0);
}

TEST(a_meta_type_is_trimmed_on_every_device) { // V4
    gc_setup setup = pooled_setup(GC_VMM_POOL, 3);
    setup.types[2].meta = 0b11;
    session s(setup);
    CHECK(s.run(GC_POOL_ALLOC, 0, 2, 0, 1) == GC_MISUSE); // it has no pools of its own
    for (const int d : {0, 1}) {
        CHECK(s.run(GC_POOL_ALLOC, 0, d, 0, 1) == GC_DONE && s.run(GC_POOL_FREE, 0, d) == GC_DONE);
    }
    CHECK(s.run(GC_TRIM, 0, 2) == GC_DONE && s.seen.released == 2 * unit);
}

TEST(a_legacy_pool_reuses_what_it_keeps) {
    pools s(GC_LEGACY_POOL);
    CHECK(s.take(3 * unit) == GC_DONE && s.seen.base == 0);
    CHECK(s.take(1) == GC_DONE && s.give(1) == GC_DONE && s.give() == GC_DONE);
    CHECK(s.take(1) == GC_DONE && s.seen.allocations == 0 && s.seen.out == unit && s.seen.mapped == 4 * unit);
    CHECK(s.trim() == GC_DONE && s.seen.released == 0);
    CHECK(s.give() == GC_DONE && s.trim() == GC_DONE && s.seen.released == 4 * unit && s.seen.used[0] == 0);
    CHECK(s.take(uint64_t(1) << 63) == GC_REFUSED && s.seen.allocations == 0);
}

TEST(a_legacy_pool_keeps_sixteen_blocks) {
    pools s(GC_LEGACY_POOL);
    for (int n = 0; n < 18; n++) {
        CHECK(s.take(1) == GC_DONE);
    }
    for (int n = 0; n < 18; n++) {
        CHECK(s.give() == GC_DONE);
    }
    CHECK(s.seen.mapped == 16 * unit && s.seen.out == 0);
}

TEST(computing_takes_scratch) {
    for (const uint32_t kind : {GC_VMM_POOL, GC_LEGACY_POOL}) {
        pools s(kind, 2);
        const int g = s.graph(64, 64);
        s.start(1);
        CHECK(s.reserve(1, g) == GC_DONE && s.alloc(1, g) == GC_DONE && s.compute(1) == GC_DONE);
        CHECK(s.seen.pooled[0] == unit && s.seen.pooled[1] == unit && s.seen.digest != 0);
        CHECK(s.trim(0) == GC_DONE && s.trim(1) == GC_DONE);
        s.fail_types = 2;
        CHECK(s.compute(1) == GC_REFUSED && s.seen.digest == 0 && s.compute(1) == GC_DONE);
    }
}

TEST(blocks_that_are_out_go_with_the_session) { // G5: checked when it ends
    for (const uint32_t kind : {GC_VMM_POOL, GC_LEGACY_POOL}) {
        pools s(kind);
        CHECK(s.take(1) == GC_DONE && s.take(1, 3) == GC_DONE && s.give() == GC_DONE);
    }
}

TEST(without_pools_there_is_nothing_to_take) {
    session s;
    CHECK(s.run(GC_POOL_ALLOC) == GC_MISUSE && s.run(GC_POOL_FREE) == GC_MISUSE && s.run(GC_TRIM) == GC_MISUSE);
}
