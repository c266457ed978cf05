// context_setup.h: a session with a target and a draft over one device.
#pragma once

#include "session.h"

namespace gc::test {

constexpr uint32_t both_options = GC_PHASE_AWARE | GC_LIVE_CONTEXT;

// Cells 64, generation 2, micro-batch 128; target with two lanes, draft with one.
inline gc_setup context_setup(uint32_t options = both_options, uint32_t pool = GC_NO_POOL) {
    gc_setup s = plain_setup(1, 1);
    s.pool = pool;
    s.pool_range = 1 << 20;
    s.contexts[0] = {0, 0, GC_KV, options, 2, 64, 8, 2, 128, 0};
    s.contexts[1] = {0, 0, GC_KV, options, 1, 64, 8, 2, 128, 0};
    return s;
}

// An input by tokens, a node by attention cells, an output by tokens: 4, 1 and 4 bytes.
inline int define_template(session & s) {
    tensors t;
    t.input(4);
    t.node(1, {0});
    t.node(4, {1}, GC_OUTPUT);
    t.all[0].scale = t.all[2].scale = GC_SCALE_TOKENS;
    t.all[1].scale = GC_SCALE_ATTENTION;
    return s.define(t);
}

struct contexts_session : session {
    explicit contexts_session(const gc_setup & setup) : session(setup) { define_template(*this); }

    int open(int n) { return run(GC_CTX_OPEN, n); }
    int close(int n) { return run(GC_CTX_CLOSE, n); }
    int attach() { return run(GC_CTX_ATTACH, 1, 0, 0, GC_VALIDATED); }
    int decode(int n, uint64_t tokens, int cells, uint32_t flags = 0) { return run(GC_CTX_DECODE, n, cells, 0, tokens, flags); }
    int sync(int n) { return run(GC_CTX_SYNC, n); }
    void start() { CHECK(open(0) == GC_DONE && open(1) == GC_DONE && attach() == GC_DONE && seen.attached); }
};

} // namespace gc::test
