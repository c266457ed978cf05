// Target and draft driven from two threads (W4): every digest is what one thread gives. Built with
// ThreadSanitizer too, where the same calls without the workspace's lock must be reported.
#include "context.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <thread>

#include "context_setup.h"

using namespace gc;
using namespace gc::test;

#if defined(__SANITIZE_THREAD__)
static std::atomic<int> reports{0};
extern "C" void __tsan_on_report(void *) { // the runtime calls it; a declaration of its own there is none
    reports++;
}
#endif

namespace {

using step_of = int32_t (*)(gc_session &, const gc_op &, gc_obs &);

gc_op batch(int n, uint64_t k) {
    const uint64_t x = gc_mix(k * 2 + uint64_t(n));
    const uint64_t tokens = x % 7 ? 1 + x % 2 : 1 + (x >> 8) % 128; // mostly generation
    const int32_t cells = int32_t((x >> 20) % 65) >> (k / 50 % 4);  // the cache fills and empties
    return {GC_CTX_DECODE, n, cells, 0, 0, 0, (x >> 40) % 3 ? 0u : uint32_t(GC_ASYNC), 0, tokens};
}

// What one thread gives for each batch, by context, tokens and cells.
struct expected {
    std::map<std::array<uint64_t, 3>, uint64_t> digest;

    explicit expected(int rounds) {
        contexts_session s(context_setup());
        s.open(0);
        s.open(1);
        for (int n = 0; n < 2; n++) {
            for (int k = 0; k < rounds; k++) {
                const gc_op op = batch(n, uint64_t(k));
                s.decode(n, op.value, op.other);
                digest[{uint64_t(n), op.value, uint64_t(op.other)}] = s.seen.digest;
            }
        }
    }
};

// One context's thread: batches, syncs, at times a larger scheduler; the draft also goes, comes and attaches.
void drive(gc_session & s, int n, int rounds, step_of step, const expected & want, std::atomic<int> & wrong) {
    machine::enter(s.world);
    const auto ask = [&](int kind, uint64_t value = 0) {
        gc_obs o{};
        const int32_t status = step(s, {kind, n, 0, 0, 0, 0, 0, 0, value}, o);
        wrong += o.trouble != 0;
        return status;
    };
    for (int k = 0; k < rounds; k++) {
        const gc_op op = batch(n, uint64_t(k));
        gc_obs o{};
        const int32_t status = step(s, op, o);
        wrong += status != GC_DONE || o.trouble != 0;
        const bool async = op.flags & GC_ASYNC;
        wrong += !async && o.digest != want.digest.at({uint64_t(n), op.value, uint64_t(op.other)});
        if (k % 17 == 0) wrong += ask(GC_CTX_SYNC) != GC_DONE;
        if (k % 101 == 100) wrong += ask(GC_CTX_NODES, 4 + uint64_t(k) / 100) != GC_DONE;
        if (n == 1 && k % 37 == 36) {
            wrong += ask(GC_CTX_CLOSE) != GC_DONE || ask(GC_CTX_OPEN) != GC_DONE;
            wrong += ask(GC_CTX_ATTACH, GC_VALIDATED) != GC_DONE;
        }
    }
}

// Slots come and go beside them: a third thread.
void serve(gc_session & s, int rounds, std::atomic<int> & wrong) {
    machine::enter(s.world);
    for (int k = 0; k < rounds; k++) {
        for (const int kind : {GC_SLOT_ENTER, GC_SLOT_STEP, GC_SLOT_LEAVE}) {
            gc_obs o{};
            const gc_op op = {kind, k % 4, 0, 0, 0, 0, 0, 0, uint64_t(kind == GC_SLOT_STEP ? 1 + k % 3 : 0)};
            wrong += server_step(s, op, o) != GC_DONE || o.trouble != 0;
        }
    }
}

int run(int rounds, step_of step, uint32_t pool, bool slots) {
    const expected want(rounds);
    contexts_session s(context_setup(both_options, pool));
    s.start();
    std::atomic<int> wrong{0};
    std::thread target(drive, std::ref(*s.s), 0, rounds, step, std::cref(want), std::ref(wrong));
    std::thread draft(drive, std::ref(*s.s), 1, rounds, step, std::cref(want), std::ref(wrong));
    if (slots) serve(*s.s, rounds / 4, wrong);
    target.join();
    draft.join();
    machine::enter(s.s->world);
    return wrong;
}

} // namespace

TEST(contexts_from_two_threads) {
    CHECK(run(1500, context_step, GC_NO_POOL, false) == 0);
}

TEST(contexts_and_slots_from_three_threads_with_pools) {
    CHECK(run(600, context_step, GC_VMM_POOL, true) == 0);
}

#if defined(__SANITIZE_THREAD__)

namespace {

// As context_step, without the lock.
int32_t without_lock(gc_session & s, const gc_op & op, gc_obs & o) {
    shown seen;
    const int32_t status = context_act(s, op, seen);
    if (status != GC_MISUSE) write(s, op.alloc, seen, o);
    return status;
}

} // namespace

TEST(contexts_without_the_lock_are_reported) {
    CHECK(reports == 0); // nothing so far
    static const auto tried = [](step_of step) {
        alarm(60); // a hang is no report
        run(200, step, GC_NO_POOL, false);
        if (reports) std::abort();
    };
    CHECK(!dies([] { tried(context_step); }));
    CHECK(dies([] { tried(without_lock); }));
}

#endif
