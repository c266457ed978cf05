// Target and draft contexts (W), and the server over them (T), one operation a line.
#include "context_setup.h"

using namespace gc::test;

namespace {

void fail_next(session & s) {
    s.fail_nth = 1;
}

} // namespace

TEST(contexts_reserve_for_generation_until_a_prompt_comes) {
    contexts_session s(context_setup());
    CHECK(s.open(0) == GC_DONE && s.seen.tokens[0] == 2 && s.seen.cells[0] == 8);
    CHECK(s.decode(0, 2, 8) == GC_DONE && s.seen.reserves == 0);
    CHECK(s.decode(0, 63, 9) == GC_DONE && s.seen.tokens[0] == 128 && s.seen.cells[0] == 16 && s.seen.reserves == 1);
    CHECK(s.seen.tokens[1] == 2); // W3: lane 1 computes of batches of 64 tokens on
    CHECK(s.decode(0, 64, 9) == GC_DONE && s.seen.tokens[1] == 128);
}

TEST(contexts_shrink_at_the_64th_small_call) {
    contexts_session s(context_setup());
    s.open(0);
    s.decode(0, 128, 64);
    const uint64_t large = s.seen.used[0];
    for (uint32_t call = 1; call < 64; call++) {
        CHECK(s.decode(0, 1, 1) == GC_DONE && s.seen.fewer[0] == call && s.seen.reserves == 0);
    }
    CHECK(s.decode(0, 1, 1) == GC_DONE && s.seen.tokens[0] == 2 && s.seen.reserves == 1 && s.seen.used[0] < large);
}

TEST(contexts_attached_share_one_set_of_buffers) {
    contexts_session s(context_setup());
    s.open(0);
    const uint64_t alone = s.seen.used[0];
    s.open(1);
    CHECK(s.seen.used[0] > alone);
    CHECK(s.attach() == GC_DONE && s.seen.used[0] == alone);
    CHECK(s.attach() == GC_MISUSE);
}

TEST(contexts_wait_for_the_other_and_only_then) {
    contexts_session s(context_setup());
    s.start();
    CHECK(s.decode(1, 1, 1) == GC_DONE && s.seen.waits == 0);
    CHECK(s.decode(0, 128, 8, GC_ASYNC) == GC_DONE && s.seen.in_flight && s.seen.digest == 0);
    CHECK(s.decode(1, 1, 1) == GC_DONE && s.seen.waits == 1);
    CHECK(s.decode(1, 1, 1) == GC_DONE && s.seen.waits == 0);
    CHECK(s.sync(0) == GC_DONE && !s.seen.in_flight && s.seen.digest == 0); // the draft has waited for it
}

TEST(contexts_reserve_again_when_the_other_replaced_the_buffers) {
    contexts_session s(context_setup());
    s.start();
    CHECK(s.decode(1, 1, 1) == GC_DONE);
    CHECK(s.decode(0, 128, 64) == GC_DONE && s.seen.reserves == 2);
    CHECK(s.decode(1, 1, 1) == GC_DONE && s.seen.reserves == 1);
    CHECK(s.decode(1, 1, 1) == GC_DONE && s.seen.reserves == 0);
}

// R12, W5: without the comparison the same calls touch memory that is gone.
TEST(contexts_without_the_comparison_touch_freed_memory) {
    CHECK(dies([] {
        contexts_session s(context_setup());
        s.start();
        s.decode(1, 1, 1);
        s.decode(0, 128, 64);
        s.decode(1, 1, 1, GC_UNCHECKED);
    }));
}

TEST(contexts_attach_says_what_happened) {
    gc_setup other = context_setup();
    other.contexts[1].options = GC_LIVE_CONTEXT;
    contexts_session no(other);
    no.open(0);
    no.open(1);
    CHECK(no.attach() == GC_REFUSED && !no.seen.attached);

    contexts_session s(context_setup());
    s.open(0);
    s.open(1);
    s.decode(1, 128, 64);
    fail_next(s);
    CHECK(s.attach() == GC_FAILED && !s.seen.attached && s.seen.tokens[0] == 0);
    CHECK(s.decode(1, 1, 1) == GC_REFUSED && s.look(2).status == GC_MISUSE);
    CHECK(s.attach() == GC_DONE && s.decode(1, 1, 1) == GC_DONE);
}

TEST(contexts_a_failed_reservation_is_tried_again) {
    contexts_session s(context_setup());
    s.open(0);
    fail_next(s);
    CHECK(s.decode(0, 128, 64) == GC_REFUSED && s.seen.tokens[0] == 0);
    CHECK(s.decode(0, 1, 1) == GC_DONE && s.seen.tokens[0] == 2 && s.seen.reserves == 1);
}

TEST(contexts_larger_graphs_remake_the_owner_and_the_draft_follows_later) {
    contexts_session s(context_setup());
    s.start();
    s.decode(1, 1, 1);
    CHECK(s.run(GC_CTX_NODES, 0, 0, 0, 10) == GC_DONE);
    const uint64_t before = s.look(2).generation;
    CHECK(s.decode(0, 1, 1) == GC_DONE && s.seen.reserves == 1 && s.look(0).nodes == 10);
    CHECK(s.look(2).generation == before); // R14: it keeps what it had
    CHECK(s.decode(1, 1, 1) == GC_DONE && s.seen.reserves == 1 && s.look(2).generation > before);
}

TEST(contexts_without_options_reserve_everything_once) {
    contexts_session s(context_setup(0));
    CHECK(s.open(0) == GC_DONE && s.seen.tokens[0] == 128 && s.seen.cells[0] == 64);
    const uint64_t used = s.seen.used[0];
    for (int cells = 0; cells <= 64; cells += 8) {
        CHECK(s.decode(0, 1 + uint64_t(cells), cells) == GC_DONE && s.seen.reserves == 0 && s.seen.used[0] == used);
    }
}

TEST(contexts_give_the_same_bytes_with_and_without_options) {
    contexts_session off(context_setup(0)), on(context_setup());
    off.open(0);
    on.start();
    for (uint64_t k = 1; k < 200; k++) {
        const uint64_t tokens = k % 5 ? 1 + k % 2 : 1 + k % 128;
        const int cells = int(k * 7 % 65);
        CHECK(off.decode(0, tokens, cells) == GC_DONE && on.decode(0, tokens, cells) == GC_DONE);
        CHECK(off.seen.digest == on.seen.digest && off.seen.digest != 0);
    }
}

TEST(contexts_keep_their_allocators_to_themselves) {
    contexts_session s(context_setup());
    s.open(0);
    CHECK(s.reserve(0, 0) == GC_MISUSE && s.free(1) == GC_MISUSE && s.look(0).status == GC_DONE);
}

TEST(server_trims_when_the_last_slot_is_free) {
    contexts_session s(context_setup(both_options, GC_VMM_POOL));
    s.start();
    CHECK(s.run(GC_SLOT_ENTER, 0) == GC_DONE && s.run(GC_SLOT_ENTER, 2) == GC_DONE && s.seen.busy == 5);
    CHECK(s.run(GC_SLOT_STEP, 0, 0, 0, 100) == GC_DONE && s.seen.pooled[0] > 0);
    CHECK(s.run(GC_CTX_TRIM, 0) == GC_REFUSED && s.seen.released == 0);
    CHECK(s.run(GC_SLOT_LEAVE, 0) == GC_DONE && s.seen.released == 0 && s.seen.pooled[0] > 0);
    CHECK(s.close(0) == GC_MISUSE);
    CHECK(s.run(GC_SLOT_LEAVE, 2) == GC_DONE && s.seen.released > 0 && s.seen.pooled[0] == 0);
    CHECK(s.run(GC_SLOT_STEP, 2, 0, 0, 1) == GC_MISUSE);
    CHECK(s.run(GC_SLOT_ENTER, 2) == GC_DONE && s.run(GC_SLOT_STEP, 2, 0, 0, 3) == GC_DONE);
    CHECK(s.run(GC_SLOT_LEAVE, 2) == GC_DONE);
}
