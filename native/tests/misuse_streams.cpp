// Misuse of code, streams and captures: see misuse.h.
#include <thread>

#include "misuse_parts.h"

namespace gc::test::misused {
namespace {

// ---- code -----------------------------------------------------------------

codes load_no_image(const driver & d) {
    module m = nullptr;
    return {d.module_load_data(&m, "this is no image")};
}

codes get_no_function(const driver & d) {
    const loaded l(d);
    function f = nullptr;
    return {d.module_get_function(&f, l.m, "no_such_kernel")};
}

codes launch_nothing(const driver & d) {
    const loaded l(d);
    return {l.launch(nullptr, 0), l.launch(nullptr, 1, 0), l.launch(nullptr, 1, 4096)};
}

// ---- streams and captures -------------------------------------------------

codes odd_stream(const driver & d) {
    stream s = nullptr;
    return {d.stream_create(&s, 64)};
}

codes synchronize_captured(const driver & d) {
    captured c(d);
    const result r = d.stream_synchronize(c.s);
    return {r, c.end()};
}

codes query_captured(const driver & d) {
    captured c(d);
    const result r = d.stream_query(c.s);
    return {r, c.end()};
}

codes synchronize_context_captured(const driver & d) {
    captured c(d);
    const result r = d.ctx_synchronize();
    return {r, c.end()};
}

codes end_without_begin(const driver & d) {
    captured c(d);
    const result first = c.end();
    return {first, d.stream_end_capture(c.s, &c.g)};
}

codes begin_twice(const driver & d) {
    captured c(d);
    const result again = d.stream_begin_capture(c.s, capture_global);
    return {again, c.end()};
}

codes begin_legacy(const driver & d) { return {d.stream_begin_capture(nullptr, capture_global)}; }

codes begin_odd_mode(const driver & d) {
    stream s = nullptr;
    d.stream_create(&s, stream_non_blocking);
    const result r = d.stream_begin_capture(s, 7);
    d.stream_destroy(s);
    return {r};
}

codes empty_capture(const driver & d) {
    captured c(d);
    graph g = nullptr;
    graph_exec e = nullptr;
    const result ended = d.stream_end_capture(c.s, &g), made = d.graph_instantiate(&e, g, 0);
    const result launched = d.graph_launch(e, c.s), waited = d.stream_synchronize(c.s);
    d.graph_exec_destroy(e);
    d.graph_destroy(g);
    return {ended, made, launched, waited};
}

codes place_while_captured(const driver & d) {
    captured c(d);
    device_ptr p = 0;
    const result r = d.mem_alloc(&p, 4096);
    return {r, c.end()};
}

codes place_while_captured_relaxed(const driver & d) {
    captured c(d, capture_relaxed);
    device_ptr p = 0;
    const result r = d.mem_alloc(&p, 4096), ended = c.end();
    d.mem_free(p);
    return {r, ended};
}

codes legacy_while_captured(const driver & d) {
    const loaded l(d);
    captured c(d, capture_global, 0);
    const result r = l.launch(nullptr);
    return {r, c.end()};
}

codes launch_after_invalidation(const driver & d) {
    const loaded l(d);
    captured c(d);
    d.stream_synchronize(c.s);
    const result r = l.launch(c.s);
    return {r, c.end()};
}

codes wait_for_work_outside(const driver & d) {
    const happening h(d);
    stream outside = nullptr;
    d.stream_create(&outside, stream_non_blocking);
    d.event_record(h.e, outside);
    captured c(d);
    const result r = d.stream_wait_event(c.s, h.e, 0);
    const codes seen = {r, c.end()};
    d.stream_destroy(outside);
    return seen;
}

codes synchronize_captured_event(const driver & d) {
    const happening h(d);
    captured c(d);
    d.event_record(h.e, c.s);
    const result r = d.event_synchronize(h.e);
    return {r, c.end()};
}

codes end_where_it_joined(const driver & d) {
    const happening h(d);
    stream other = nullptr;
    d.stream_create(&other, stream_non_blocking);
    captured c(d);
    graph g = nullptr;
    d.event_record(h.e, c.s);
    d.stream_wait_event(other, h.e, 0);
    const result r = d.stream_end_capture(other, &g);
    const codes seen = {r, c.end()};
    d.stream_destroy(other);
    return seen;
}

codes end_unjoined(const driver & d) {
    const loaded l(d);
    const happening h(d);
    stream other = nullptr;
    d.stream_create(&other, stream_non_blocking);
    captured c(d);
    d.event_record(h.e, c.s);
    d.stream_wait_event(other, h.e, 0);
    l.launch(other);
    const codes seen = {c.end()};
    d.stream_destroy(other);
    return seen;
}

codes merge_captures(const driver & d) {
    const happening h(d);
    captured a(d), b(d);
    d.event_record(h.e, a.s);
    const result r = d.stream_wait_event(b.s, h.e, 0);
    return {r, a.end(), b.end()};
}

codes end_by_another_thread(const driver & d) {
    captured c(d, capture_thread_local);
    context current = nullptr;
    d.ctx_get_current(&current);
    result r = success;
    const auto enter = thread_entry;
    std::thread([&] {
        if (enter) enter();
        d.ctx_set_current(current);
        r = d.stream_end_capture(c.s, &c.g);
    }).join();
    return {r, c.end()};
}

} // namespace

std::vector<misuse> of_streams() {
    return {
        GC_MISUSE_CASE(load_no_image, invalid_image),
        GC_MISUSE_CASE(get_no_function, not_found),
        GC_MISUSE_CASE(launch_nothing, invalid_value, invalid_value, invalid_value),
        GC_MISUSE_CASE(odd_stream, invalid_value),
        GC_MISUSE_CASE(synchronize_captured, capture_unsupported, capture_invalidated),
        GC_MISUSE_CASE(query_captured, capture_unsupported, capture_invalidated),
        GC_MISUSE_CASE(synchronize_context_captured, capture_unsupported, capture_invalidated),
        GC_MISUSE_CASE(end_without_begin, success, illegal_state),
        GC_MISUSE_CASE(begin_twice, illegal_state, success),
        GC_MISUSE_CASE(begin_legacy, capture_unsupported),
        GC_MISUSE_CASE(begin_odd_mode, invalid_value),
        GC_MISUSE_CASE(empty_capture, success, success, success, success),
        GC_MISUSE_CASE(place_while_captured, capture_unsupported, capture_invalidated),
        GC_MISUSE_CASE(place_while_captured_relaxed, success, success),
        GC_MISUSE_CASE(legacy_while_captured, capture_implicit, capture_invalidated),
        GC_MISUSE_CASE(launch_after_invalidation, capture_invalidated, capture_invalidated),
        GC_MISUSE_CASE(wait_for_work_outside, capture_isolation, capture_invalidated),
        GC_MISUSE_CASE(synchronize_captured_event, captured_event, capture_invalidated),
        GC_MISUSE_CASE(end_where_it_joined, capture_unmatched, capture_invalidated),
        GC_MISUSE_CASE(end_unjoined, capture_unjoined),
        GC_MISUSE_CASE(merge_captures, capture_merge, capture_invalidated, capture_invalidated),
        GC_MISUSE_CASE(end_by_another_thread, capture_wrong_thread, capture_invalidated),
    };
}

} // namespace gc::test::misused
