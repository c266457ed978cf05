// Two threads on one world: each its own streams, shared memory where events order it. Built with
// ThreadSanitizer too.
#include <thread>

#include "driver_world.h"

using namespace gc;
using namespace gc::cuda;
using test::driver_world;

namespace {

const driver & api = emulated::table();
constexpr int rounds = 200;

void in_world(const driver_world & w) {
    emulated::enter(w.w);
    api.ctx_set_current(w.first);
}

// What one thread does by itself: memory comes, is written, read and goes.
void alone(const driver_world & w, uint64_t seed) {
    in_world(w);
    const stream s = w.stream();
    for (int i = 0; i < rounds; i++) {
        const device_ptr p = w.block();
        CHECK(w.fill(s, p, seed + uint64_t(i)) == success && api.stream_synchronize(s) == success);
        CHECK(w.holds(p, seed + uint64_t(i)) && api.mem_free(p) == success);
    }
    CHECK(api.stream_destroy(s) == success);
}

} // namespace

TEST(two_threads_share_a_world) {
    const driver_world w;
    std::thread a([&] { alone(w, 1000); }), b([&] { alone(w, 5000); });
    a.join();
    b.join();
    CHECK(emulated::used(w.w, 0) == 0);
}

TEST(two_threads_wait_for_the_same_work) {
    const driver_world w;
    const stream s = w.stream(), t = w.stream();
    const event e = w.event();
    const device_ptr p = w.block();
    for (int i = 0; i < rounds; i++) {
        CHECK(w.fill(s, p, uint64_t(i)) == success && api.event_record(e, s) == success);
        CHECK(api.stream_wait_event(t, e, 0) == success);
        const auto waits = [&](stream on) {
            in_world(w);
            CHECK(api.stream_synchronize(on) == success && w.holds(p, uint64_t(i)));
        };
        std::thread a(waits, s), b(waits, t);
        a.join();
        b.join();
    }
}
