// emulated_streams.cpp: streams and events. A stream's work waits in its queue
// until somebody waits for it: then it is run, and first whatever it waits for.
// Where unfinished work of another stream may touch the same memory, the two run
// in turn, piece by piece: what a missing wait can spoil is spoilt.
#include <algorithm>

#include "emulated_world.h"

namespace gc::emulated {
namespace {

bool idle(const stream_state & s) {
    return s.done == s.submitted;
}

void run(const command & c) {
    if (c.lost || !here->on->runs_kernels) return;
    if (c.kind == command::launch) c.code->run(c.parameters.data());
    if (c.kind == command::replay) {
        for (const command & x : c.graph->commands) {
            run(x);
        }
    }
}

// The next piece that others are waited for in, or the next row of pieces, at
// most up to `until`.
void run_some(world & w, locked & lock, stream_state & s, uint64_t until) {
    command & first = s.queue.front();
    if (first.kind == command::wait) {
        run_until(w, lock, *first.on, first.until);
        s.queue.pop_front();
        s.done++;
        return;
    }
    std::vector<const command *> row;
    for (const command & c : s.queue) {
        if (c.kind == command::wait || s.done + row.size() == until) break;
        row.push_back(&c);
    }
    s.begun = row.size();
    lock.unlock();
    for (const command * c : row) {
        run(*c);
    }
    lock.lock();
    s.queue.erase(s.queue.begin(), s.queue.begin() + long(s.begun));
    s.done += s.begun;
    s.begun = 0;
    if (idle(s)) s.low = UINT64_MAX, s.high = 0;
}

bool overlaps(const command & c, uint64_t at, uint64_t size) {
    if (c.kind == command::launch) {
        const range r = c.code->touches(c.parameters.data());
        return r.size > 0 && r.at < at + size && at < r.at + r.size;
    }
    const auto inner = [&](const command & x) { return overlaps(x, at, size); };
    return c.kind == command::replay && std::any_of(c.graph->commands.begin(), c.graph->commands.end(), inner);
}

// Whether two streams have work that touches the same memory.
bool touch_the_same(const stream_state & s, const stream_state & o) {
    if (o.low >= s.high || s.low >= o.high) return false;
    const auto also_of_o = [&](const command & c) {
        const range r = c.code->touches(c.parameters.data());
        return std::any_of(o.queue.begin(), o.queue.end(), [&](const command & x) { return overlaps(x, r.at, r.size); });
    };
    return std::any_of(s.queue.begin(), s.queue.end(), [&](const command & c) {
        if (c.kind == command::launch) return also_of_o(c);
        const auto is_replay = c.kind == command::replay;
        return is_replay && std::any_of(c.graph->commands.begin(), c.graph->commands.end(), also_of_o);
    });
}

// Others with such work: where a wait orders the two, it is in a queue and holds.
std::vector<stream_state *> rivals(world & w, const stream_state & s) {
    std::vector<stream_state *> all;
    for (const auto & o : w.streams) {
        if (o.get() != &s && !o->busy && !idle(*o) && touch_the_same(s, *o)) all.push_back(o.get());
    }
    return all;
}

// One piece of s's work, and one of each rival's that waits for nothing.
void run_in_turn(world & w, locked & lock, stream_state & s, const std::vector<stream_state *> & others) {
    run_some(w, lock, s, s.done + 1);
    for (stream_state * o : others) {
        if (o->busy || idle(*o)) continue; // another thread came by
        const command & next = o->queue.front();
        if (next.kind == command::wait && next.on->done < next.until) continue;
        o->busy = true;
        run_some(w, lock, *o, o->done + 1);
        o->busy = false;
    }
}

bool on_device(const world & w, uint64_t at) {
    const auto holds = [&](const arena & a) { return at - reinterpret_cast<uint64_t>(a.base) < a.size; };
    return holds(w.pool) || std::any_of(w.arenas.begin(), w.arenas.end(), holds);
}

void note_memory(const world & w, stream_state & s, const command & c) {
    const auto note = [&](const command & x) {
        const range r = x.code->touches(x.parameters.data());
        if (r.size == 0 || !on_device(w, r.at)) return;
        s.low = std::min(s.low, r.at);
        s.high = std::max(s.high, r.at + r.size);
    };
    if (c.kind == command::launch) note(c);
    if (c.kind == command::replay) std::for_each(c.graph->commands.begin(), c.graph->commands.end(), note);
}

void wait_for(stream_state & s, stream_state & on, uint64_t until) {
    if (on.done >= until) return;
    command c{command::wait};
    c.on = &on;
    c.until = until;
    s.queue.push_back(std::move(c));
    s.submitted++;
}

// The legacy stream and blocking ones of its device wait for each other.
void wait_implicitly(world & w, stream_state & s) {
    if (!s.blocking) return;
    stream_state & legacy = *w.legacy[s.device - w.gpus.data()];
    if (&s != &legacy) return wait_for(s, legacy, legacy.submitted);
    for (const auto & other : w.streams) {
        if (other->device == s.device && other->blocking && !other->in) wait_for(s, *other, other->submitted);
    }
}

// What of a stream's queue touches the range is lost; true where there was any.
bool lose(stream_state & s, uint64_t at, uint64_t size) {
    bool any = false;
    for (size_t i = 0; i < s.queue.size(); i++) {
        command & c = s.queue[i];
        if (c.lost || !overlaps(c, at, size)) continue;
        any = true;
        if (i >= s.begun) c.lost = true;
    }
    return any;
}

template <class F> void each_stream(world & w, F f) {
    for (const auto * list : {&w.legacy, &w.streams, &w.gone}) {
        for (size_t i = 0; i < list->size(); i++) { // f may let others in
            f(*(*list)[i]);
        }
    }
}

// success, or why a stream may not be waited for or asked; a capture is spoilt by it.
cuda::result may_wait(world & w, stream_state & s) {
    if (s.in) return spoil(s, cuda::capture_unsupported);
    const bool legacy = &s == w.legacy[s.device - w.gpus.data()].get();
    return legacy ? legacy_now(w, s.device) : cuda::success;
}

} // namespace

stream_state * stream_of(world & w, cuda::stream handle) {
    if (!handle) return current ? w.legacy[current - w.gpus.data()].get() : nullptr;
    return find(w.streams, handle);
}

cuda::result submit(world & w, stream_state & s, command c) {
    if (s.in) {
        if (s.in->invalid) return cuda::capture_invalidated;
        if (c.kind == command::replay) { // becomes part of the record
            const auto & of = c.graph->commands;
            s.in->taken.commands.insert(s.in->taken.commands.end(), of.begin(), of.end());
        } else {
            s.in->taken.commands.push_back(std::move(c));
        }
        s.in->members[&s][&s]++;
        return cuda::success;
    }
    if (&s == w.legacy[s.device - w.gpus.data()].get()) {
        if (const cuda::result r = legacy_now(w, s.device)) return r;
    }
    wait_implicitly(w, s);
    note_memory(w, s, c);
    s.queue.push_back(std::move(c));
    s.submitted++;
    return cuda::success;
}

void run_until(world & w, locked & lock, stream_state & s, uint64_t until) {
    while (s.done < until) {
        if (s.busy) { // by another thread
            w.ran.wait(lock);
            continue;
        }
        s.busy = true;
        const std::vector<stream_state *> others = rivals(w, s);
        others.empty() ? run_some(w, lock, s, until) : run_in_turn(w, lock, s, others);
        s.busy = false;
        w.ran.notify_all();
    }
}

void run_legacy(world & w, locked & lock) {
    stream_state & s = *w.legacy[current - w.gpus.data()];
    wait_implicitly(w, s);
    run_until(w, lock, s, s.submitted);
}

void take_from_work(world & w, locked & lock, cuda::device_ptr at, uint64_t size) {
    bool any = false;
    each_stream(w, [&](stream_state & s) { any |= !idle(s) && lose(s, at, size); });
    if (!any) return;
    w.hazards++;
    w.on->settle();
    each_stream(w, [&](stream_state & s) { // what runs is let through
        while (s.begun > 0) {
            w.ran.wait(lock);
        }
    });
}

namespace work {

cuda::result ctx_synchronize() {
    if (!here) return cuda::not_initialized;
    locked lock(here->mutex);
    if (!current) return cuda::invalid_context;
    cuda::result refused = cuda::success;
    each_stream(*here, [&](stream_state & s) {
        if (s.device == current && s.in) refused = spoil(s, cuda::capture_unsupported);
    });
    if (refused) return refused;
    each_stream(*here, [&](stream_state & s) {
        if (s.device == current) run_until(*here, lock, s, s.submitted);
    });
    return cuda::success;
}

cuda::result stream_create(cuda::stream * s, unsigned flags) {
    if (!here) return cuda::not_initialized;
    const locked lock(here->mutex);
    if (!current) return cuda::invalid_context;
    if (!s || flags > cuda::stream_non_blocking) return cuda::invalid_value;
    here->streams.push_back(std::make_unique<stream_state>());
    here->streams.back()->device = current;
    here->streams.back()->blocking = !(flags & cuda::stream_non_blocking);
    *s = here->streams.back().get();
    return cuda::success;
}

// Work that is left is done all the same, once somebody waits for it.
cuda::result stream_destroy(cuda::stream handle) {
    if (!here) return cuda::not_initialized;
    const locked lock(here->mutex);
    stream_state * s = find(here->streams, handle);
    if (!s) return cuda::invalid_handle;
    if (s->in) spoil(*s, cuda::success);
    here->gone.push_back(take(here->streams, s));
    return cuda::success;
}

cuda::result stream_synchronize(cuda::stream handle) {
    if (!here) return cuda::not_initialized;
    locked lock(here->mutex);
    stream_state * s = stream_of(*here, handle);
    if (!s) return cuda::invalid_handle;
    if (const cuda::result r = may_wait(*here, *s)) return r;
    if (!handle) wait_implicitly(*here, *s);
    run_until(*here, lock, *s, s->submitted);
    return cuda::success;
}

cuda::result stream_query(cuda::stream handle) {
    if (!here) return cuda::not_initialized;
    const locked lock(here->mutex);
    stream_state * s = stream_of(*here, handle);
    if (!s) return cuda::invalid_handle;
    if (const cuda::result r = may_wait(*here, *s)) return r;
    if (!handle) wait_implicitly(*here, *s);
    return idle(*s) ? cuda::success : cuda::not_ready;
}

cuda::result event_create(cuda::event * e, unsigned) {
    if (!here) return cuda::not_initialized;
    const locked lock(here->mutex);
    if (!current) return cuda::invalid_context;
    if (!e) return cuda::invalid_value;
    here->events.push_back(std::make_unique<event_state>());
    *e = here->events.back().get();
    return cuda::success;
}

cuda::result event_destroy(cuda::event handle) {
    if (!here) return cuda::not_initialized;
    const locked lock(here->mutex);
    event_state * e = find(here->events, handle);
    if (!e) return cuda::invalid_handle;
    take(here->events, e);
    return cuda::success;
}

cuda::result event_record(cuda::event handle, cuda::stream on) {
    if (!here) return cuda::not_initialized;
    const locked lock(here->mutex);
    event_state * e = find(here->events, handle);
    stream_state * s = stream_of(*here, on);
    if (!e || !s) return cuda::invalid_handle;
    if (s->in) {
        if (s->in->invalid) return cuda::capture_invalidated;
        *e = {s, 0, s->in, s->in->members[s]};
        return cuda::success;
    }
    if (!on) {
        if (const cuda::result r = legacy_now(*here, s->device)) return r;
    }
    wait_implicitly(*here, *s);
    *e = {s, s->submitted, nullptr, {}};
    return cuda::success;
}

cuda::result event_synchronize(cuda::event handle) {
    if (!here) return cuda::not_initialized;
    locked lock(here->mutex);
    const event_state * e = find(here->events, handle);
    if (!e) return cuda::invalid_handle;
    if (e->in) {
        e->in->invalid = true;
        return cuda::captured_event;
    }
    if (e->on) run_until(*here, lock, *e->on, e->until);
    return cuda::success;
}

cuda::result stream_wait_event(cuda::stream handle, cuda::event event, unsigned flags) {
    if (!here) return cuda::not_initialized;
    const locked lock(here->mutex);
    stream_state * s = stream_of(*here, handle);
    const event_state * e = find(here->events, event);
    if (!s || !e) return cuda::invalid_handle;
    if (flags > 1) return cuda::invalid_value;
    if (!e->on) return cuda::success;
    if (e->in && !s->in) { // it joins
        if (!handle) return cuda::capture_implicit;
        if (e->in->members.empty()) return cuda::captured_event; // that capture has ended
        s->in = e->in;
    }
    if (s->in) {
        if (!e->in) return spoil(*s, cuda::capture_isolation);
        if (e->in != s->in) {
            e->in->invalid = true;
            return spoil(*s, cuda::capture_merge);
        }
        frontier & mine = s->in->members[s];
        for (const auto & [of, known] : e->at) {
            mine[of] = std::max(mine[of], known);
        }
        return cuda::success;
    }
    wait_for(*s, *e->on, e->until);
    return cuda::success;
}

} // namespace work
} // namespace gc::emulated
