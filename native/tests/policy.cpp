// The workspace policy (W1, W2, W3, W7) by hand, and against a slow reading of the contract on random calls.
#include "policy.h"

#include "check.h"
#include "gc_oracle.h"

using namespace gc::policy;

namespace {

gc_context plain(uint32_t options = GC_PHASE_AWARE | GC_LIVE_CONTEXT) {
    return {0, 0, GC_KV, options, 2, 64, 8, 2, 128, 0};
}

} // namespace

TEST(policy_steps_are_powers_of_two_of_an_eighth) {
    const gc_context c = plain();
    for (uint32_t used = 0; used <= c.cells; used++) {
        const uint32_t step = cells_for(c, used);
        CHECK(step >= used && (step == 8 || step == 16 || step == 32 || step == 64));
        CHECK(step == 8 || step / 2 < used); // the least of them
    }
    CHECK(cells_for(plain(GC_PHASE_AWARE), 1) == 64);
}

TEST(policy_tokens_wait_for_a_prompt) {
    CHECK(tokens_for(plain(), 1) == 2 && tokens_for(plain(), 2) == 2 && tokens_for(plain(), 3) == 128);
    CHECK(tokens_for(plain(GC_LIVE_CONTEXT), 1) == 128);
}

TEST(policy_grows_at_once_and_shrinks_at_the_64th_call) {
    const gc_context c = plain();
    lane l = follow(start(c), need_of(c, 100, 60));
    CHECK(l.reserved == (need{128, 64}) && l.fewer == 0);
    for (int call = 1; call < 64; call++) {
        l = follow(l, need_of(c, 1, call == 20 ? 17 : 1));
        CHECK(l.reserved == (need{128, 64}) && l.fewer == uint32_t(call));
    }
    l = follow(l, need_of(c, 1, 1));
    CHECK(l.reserved == (need{2, 32}) && l.fewer == 0); // the largest of the 64, not the last
}

TEST(policy_counts_again_after_a_call_that_needs_as_much) {
    const gc_context c = plain();
    lane l = follow(start(c), need_of(c, 100, 60));
    for (int call = 0; call < 63; call++) {
        l = follow(l, need_of(c, 1, 1));
    }
    l = follow(l, need_of(c, 100, 60));
    CHECK(l.fewer == 0);
    l = follow(l, need_of(c, 1, 1));
    CHECK(l.fewer == 1 && l.reserved == (need{128, 64}));
}

TEST(policy_growth_in_one_component_keeps_the_other) {
    const gc_context c = plain();
    lane l = follow(start(c), need_of(c, 100, 1));
    l = follow(l, need_of(c, 1, 60)); // fewer tokens, more cells
    CHECK(l.reserved == (need{128, 64}) && l.fewer == 0);
}

TEST(policy_lane_1_runs_from_64_tokens_on) {
    const gc_context c = plain();
    CHECK(!runs(c, 1, 63) && runs(c, 1, 64) && runs(c, 0, 1));
    gc_context one = c;
    one.lanes = 1;
    CHECK(!runs(one, 1, 128));
}

TEST(policy_parts_by_memory_kind) {
    gc_context c = plain();
    c.window = 8;
    c.batch = 16;
    c.memory = GC_KV_WINDOW;
    CHECK(parts_for(c, 64, true).window == 24 && parts_for(c, 16, true).window == 16);
    c.memory = GC_HYBRID_INDEXER;
    CHECK(parts_for(c, 32, true).indexer == 32 && parts_for(c, 32, true).window == 0);
    c.memory = GC_OTHER_MEMORY;
    CHECK(cells_for(c, 1) == c.cells);
}

// A bounded reservation covers every smaller batch, part by part.
TEST(policy_reservations_cover) {
    for (uint32_t memory = 0; memory < GC_N_MEMORIES; memory++) {
        gc_context c = plain();
        c.memory = memory;
        lane l = start(c);
        for (uint64_t k = 0, x = memory; k < 20000; k++) {
            x = gc_mix(x);
            const uint32_t tokens = 1 + uint32_t(x >> 8) % (x & 3 ? 2 : c.batch), used = uint32_t(x >> 32) % (c.cells + 1);
            l = follow(l, need_of(c, tokens, used));
            const parts need = parts_for(c, used, false), have = parts_for(c, l.reserved.cells, true);
            CHECK(tokens <= l.reserved.tokens && need.attention <= have.attention);
            CHECK(need.window <= have.window && need.indexer <= have.indexer);
        }
    }
}
