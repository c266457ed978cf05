// Capture and graphs of the emulated driver. Which calls a capture forbids: misuse.cpp.
#include <thread>

#include "driver_world.h"

using namespace gc;
using namespace gc::cuda;
using test::driver_world;

namespace {

const driver & api = emulated::table();

graph_exec captured(const driver_world & w, stream s, device_ptr at, uint64_t value) {
    graph g = nullptr;
    graph_exec e = nullptr;
    CHECK(api.stream_begin_capture(s, capture_global) == success);
    CHECK(w.fill(s, at, value) == success);
    CHECK(api.stream_end_capture(s, &g) == success && g);
    CHECK(api.graph_instantiate(&e, g, 0) == success && api.graph_destroy(g) == success);
    return e;
}

} // namespace

TEST(captured_work_runs_by_launches_alone) {
    driver_world w;
    const stream s = w.stream();
    const device_ptr p = w.block();
    const graph_exec e = captured(w, s, p, 1);
    CHECK(api.stream_query(s) == success && !w.holds(p, 1));
    CHECK(api.graph_launch(e, s) == success && api.stream_query(s) == not_ready && !w.holds(p, 1));
    CHECK(api.stream_synchronize(s) == success && w.holds(p, 1));
    CHECK(w.fill(s, p, 2) == success && api.graph_launch(e, s) == success);
    CHECK(api.stream_synchronize(s) == success && w.holds(p, 1)); // again, behind the other
}

TEST(a_launched_graph_may_be_destroyed) {
    driver_world w;
    const stream s = w.stream();
    const device_ptr p = w.block();
    const graph_exec e = captured(w, s, p, 1);
    CHECK(api.graph_launch(e, s) == success && api.graph_exec_destroy(e) == success);
    CHECK(api.stream_synchronize(s) == success && w.holds(p, 1));
}

TEST(memory_freed_under_a_launched_graph_is_a_hazard) {
    driver_world w;
    const stream s = w.stream();
    const device_ptr p = w.block();
    const graph_exec e = captured(w, s, p, 1);
    CHECK(api.graph_launch(e, s) == success && api.mem_free(p) == success && emulated::hazards(w.w) == 1);
    CHECK(api.stream_synchronize(s) == success);
}

TEST(a_graph_replayed_after_its_memory_went_faults) {
    CHECK(test::dies([] {
        driver_world w;
        const stream s = w.stream();
        const device_ptr p = w.block();
        const graph_exec e = captured(w, s, p, 1);
        api.mem_free(p);
        api.graph_launch(e, s);
        api.stream_synchronize(s);
    }));
}

TEST(a_stream_joins_a_capture_by_an_event) {
    driver_world w;
    const stream a = w.stream(), b = w.stream();
    const event fork = w.event(), join = w.event();
    const device_ptr p = w.block(), q = w.block();
    graph g = nullptr;
    graph_exec e = nullptr;
    CHECK(api.stream_begin_capture(a, capture_global) == success && w.fill(a, p, 1) == success);
    CHECK(api.event_record(fork, a) == success && api.stream_wait_event(b, fork, 0) == success);
    CHECK(w.fill(b, q, 2) == success && api.event_record(join, b) == success);
    int status = 0;
    CHECK(api.stream_is_capturing(b, &status) == success && status == capture_active);
    CHECK(api.stream_wait_event(a, join, 0) == success && api.stream_end_capture(a, &g) == success);
    CHECK(api.stream_is_capturing(b, &status) == success && status == capture_none);
    CHECK(api.graph_instantiate(&e, g, 0) == success && api.graph_launch(e, b) == success);
    CHECK(api.stream_synchronize(b) == success && w.holds(p, 1) && w.holds(q, 2));
}

TEST(a_graph_launched_into_a_capture_becomes_part_of_it) {
    driver_world w;
    const stream s = w.stream();
    const device_ptr p = w.block();
    const graph_exec inner = captured(w, s, p, 1);
    graph g = nullptr;
    graph_exec outer = nullptr;
    CHECK(api.stream_begin_capture(s, capture_global) == success && api.graph_launch(inner, s) == success);
    CHECK(api.stream_end_capture(s, &g) == success && api.graph_instantiate(&outer, g, 0) == success);
    CHECK(api.graph_exec_destroy(inner) == success && api.graph_launch(outer, s) == success);
    CHECK(api.stream_synchronize(s) == success && w.holds(p, 1));
}

TEST(captures_forbid_by_mode_and_thread) {
    driver_world w;
    const stream s = w.stream();
    const auto elsewhere = [&] { // what another thread may do
        result r = success;
        std::thread([&] {
            emulated::enter(w.w);
            api.ctx_set_current(w.first);
            device_ptr p = 0;
            r = api.mem_alloc(&p, 1);
        }).join();
        return r;
    };
    graph g = nullptr;
    CHECK(api.stream_begin_capture(s, capture_thread_local) == success && elsewhere() == success);
    CHECK(api.stream_end_capture(s, &g) == success);
    CHECK(api.stream_begin_capture(s, capture_global) == success && elsewhere() == capture_unsupported);
    CHECK(api.stream_end_capture(s, &g) == capture_invalidated && !g);
    int mode = capture_relaxed;
    device_ptr p = 0;
    CHECK(api.stream_begin_capture(s, capture_global) == success);
    CHECK(api.thread_exchange_capture_mode(&mode) == success && mode == capture_global);
    CHECK(api.mem_alloc(&p, 1) == success);
    CHECK(api.thread_exchange_capture_mode(&mode) == success && mode == capture_relaxed);
    CHECK(api.stream_end_capture(s, &g) == success);
}
