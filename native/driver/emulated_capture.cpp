// emulated_capture.cpp: capture of streams, and graphs. A record is the row of
// captured launches in the order of the calls, which respects every dependency
// that the calls made.
#include <algorithm>

#include "emulated_world.h"

namespace gc::emulated {
namespace {

constinit thread_local int thread_mode = cuda::capture_global;

// Whether a capture forbids this thread's calls that captures do not bear.
bool forbids(const capture & c) {
    if (c.invalid || c.mode == cuda::capture_relaxed || thread_mode == cuda::capture_relaxed) return false;
    if (c.thread == std::this_thread::get_id()) return true;
    return thread_mode == cuda::capture_global && c.mode == cuda::capture_global;
}

void leave(capture & c) {
    for (auto & [s, known] : c.members) {
        s->in = nullptr;
    }
    c.members.clear();
}

// Every stream that took part has come back to where the capture began.
bool joined(const capture & c) {
    const frontier & known = c.members.at(c.origin);
    return std::all_of(c.members.begin(), c.members.end(), [&](const auto & member) {
        const auto own = member.second.find(member.first);
        if (own == member.second.end() || own->second == 0) return true;
        const auto here = known.find(member.first);
        return here != known.end() && here->second >= own->second;
    });
}

} // namespace

cuda::result unsafe_now(world & w) {
    for (const auto & s : w.streams) {
        if (s->in && forbids(*s->in)) return spoil(*s, cuda::capture_unsupported);
    }
    return cuda::success;
}

cuda::result legacy_now(world & w, gpu * device) {
    for (const auto & s : w.streams) {
        if (s->in && s->blocking && s->device == device) return spoil(*s, cuda::capture_implicit);
    }
    return cuda::success;
}

cuda::result spoil(stream_state & s, cuda::result why) {
    s.in->invalid = true;
    return why;
}

namespace graphs {

cuda::result stream_begin_capture(cuda::stream handle, int mode) {
    if (!here) return cuda::not_initialized;
    const locked lock(here->mutex);
    stream_state * s = stream_of(*here, handle);
    if (!s) return cuda::invalid_handle;
    if (mode < cuda::capture_global || mode > cuda::capture_relaxed) return cuda::invalid_value;
    if (!handle) return cuda::capture_unsupported; // the legacy stream
    if (s->in) return cuda::illegal_state;
    s->in = std::make_shared<capture>();
    s->in->origin = s;
    s->in->mode = mode;
    s->in->thread = std::this_thread::get_id();
    s->in->members[s] = {};
    return cuda::success;
}

cuda::result stream_end_capture(cuda::stream handle, cuda::graph * g) {
    if (!here) return cuda::not_initialized;
    const locked lock(here->mutex);
    stream_state * s = stream_of(*here, handle);
    if (!s) return cuda::invalid_handle;
    if (!g) return cuda::invalid_value;
    if (!s->in) return cuda::illegal_state;
    const std::shared_ptr<capture> c = s->in;
    if (c->origin != s) return spoil(*s, cuda::capture_unmatched);
    if (c->mode != cuda::capture_relaxed && c->thread != std::this_thread::get_id()) {
        return spoil(*s, cuda::capture_wrong_thread);
    }
    *g = nullptr;
    const bool whole = joined(*c);
    leave(*c);
    if (c->invalid) return cuda::capture_invalidated;
    if (!whole) return cuda::capture_unjoined;
    here->graphs.push_back(std::make_unique<record>(std::move(c->taken)));
    *g = here->graphs.back().get();
    return cuda::success;
}

cuda::result stream_is_capturing(cuda::stream handle, int * status) {
    if (!here) return cuda::not_initialized;
    const locked lock(here->mutex);
    const stream_state * s = stream_of(*here, handle);
    if (!s) return cuda::invalid_handle;
    if (!status) return cuda::invalid_value;
    *status = !s->in ? cuda::capture_none : s->in->invalid ? cuda::capture_status_invalidated : cuda::capture_active;
    return cuda::success;
}

cuda::result thread_exchange_capture_mode(int * mode) {
    if (!here) return cuda::not_initialized;
    if (!mode || *mode < cuda::capture_global || *mode > cuda::capture_relaxed) return cuda::invalid_value;
    std::swap(*mode, thread_mode);
    return cuda::success;
}

cuda::result graph_instantiate(cuda::graph_exec * e, cuda::graph g, unsigned long long) {
    if (!here) return cuda::not_initialized;
    const locked lock(here->mutex);
    const record * of = find(here->graphs, g);
    if (!e || !of) return cuda::invalid_value;
    here->execs.push_back(std::make_unique<graph_exec_state>(std::make_shared<const record>(*of)));
    *e = here->execs.back().get();
    return cuda::success;
}

cuda::result graph_launch(cuda::graph_exec e, cuda::stream handle) {
    if (!here) return cuda::not_initialized;
    const locked lock(here->mutex);
    const graph_exec_state * exec = find(here->execs, e);
    stream_state * s = stream_of(*here, handle);
    if (!exec) return cuda::invalid_value;
    if (!s) return cuda::invalid_handle;
    command c{command::replay};
    c.graph = exec->of;
    return submit(*here, *s, std::move(c));
}

// Launches that are under way keep what they need.
cuda::result graph_exec_destroy(cuda::graph_exec e) {
    if (!here) return cuda::not_initialized;
    const locked lock(here->mutex);
    graph_exec_state * exec = find(here->execs, e);
    if (!exec) return cuda::invalid_value;
    take(here->execs, exec);
    return cuda::success;
}

cuda::result graph_destroy(cuda::graph g) {
    if (!here) return cuda::not_initialized;
    const locked lock(here->mutex);
    record * which = find(here->graphs, g);
    if (!which) return cuda::invalid_value;
    take(here->graphs, which);
    return cuda::success;
}

} // namespace graphs
} // namespace gc::emulated
