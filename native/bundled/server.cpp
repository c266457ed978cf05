// server.cpp (T): slots that requests enter and leave; docs/choices.md, "The server".
#include <algorithm>

#include "context.h"

namespace gc {

struct server {
    bool busy[GC_MAX_SERVER_SLOTS] = {};
    uint64_t cells[GC_MAX_SERVER_SLOTS] = {}; // that the slot's request has in use
};

namespace {

int32_t enter(gc_session & s, int slot) {
    if (s.server->busy[slot] || !s.contexts->context[TARGET].open) return GC_MISUSE;
    s.server->busy[slot] = true;
    return GC_DONE;
}

// The target decodes for the slot, then the draft one token.
int32_t advance(gc_session & s, int slot, uint64_t tokens, shown & o) {
    if (!s.server->busy[slot]) return GC_MISUSE;
    uint64_t used = GC_PLANTED(CELLS_OF_OTHERS) ? 0 : tokens;
    for (const uint64_t cells : s.server->cells) {
        used += cells;
    }
    const auto in_use = [&](int n) { return int64_t(std::min<uint64_t>(used, s.setup.contexts[n].cells)); };
    int32_t status = decode(s, TARGET, tokens, in_use(TARGET), 0, o);
    if (status != GC_DONE) return status;
    s.server->cells[slot] += tokens;
    if (!s.contexts->context[DRAFT].open) return GC_DONE;
    const uint64_t digest = o.found.digest;
    status = decode(s, DRAFT, 1, in_use(DRAFT), 0, o);
    o.found.digest = status == GC_DONE ? mix_lanes(digest, o.found.digest) : 0;
    return status;
}

// T1: the last one gone, the pools give back what nobody uses.
int32_t leave(gc_session & s, int slot, shown & o) {
    if (!s.server->busy[slot]) return GC_MISUSE;
    s.server->busy[slot] = false;
    s.server->cells[slot] = 0;
    if (GC_PLANTED(NEVER_TRIMS)) return GC_DONE;
    bool still = serving(s);
    if (GC_PLANTED(TRIMS_AT_EVERY_LEAVE)) still = false;
    if (GC_PLANTED(LOOKS_AT_SLOT_0)) still = s.server->busy[0];
    if (still) return GC_DONE;
    for (int n = 0; n < GC_MAX_CONTEXTS; n++) {
        wait_for(s, n, o);
    }
    trim_types(s, ~0u, o);
    return GC_DONE;
}

int32_t act(gc_session & s, const gc_op & op, shown & o) {
    switch (op.kind) {
        case GC_SLOT_ENTER: return enter(s, op.alloc);
        case GC_SLOT_STEP:  return advance(s, op.alloc, op.value, o);
        default:            return leave(s, op.alloc, o);
    }
}

} // namespace

bool serving(const gc_session & s) {
    return std::any_of(s.server->busy, s.server->busy + GC_MAX_SERVER_SLOTS, [](bool b) { return b; });
}

void server_open(gc_session & s) {
    s.server = new server;
}

void server_close(gc_session & s) {
    delete s.server;
}

int32_t server_step(gc_session & s, const gc_op & op, gc_obs & o) {
    const std::lock_guard hold(s.contexts->lock);
    shown seen;
    const int32_t status = act(s, op, seen);
    write(s, TARGET, seen, o);
    return status;
}

void server_observe(gc_session & s, const gc_op &, gc_obs & o) {
    const std::lock_guard hold(s.contexts->lock);
    for (int slot = 0; slot < GC_MAX_SERVER_SLOTS; slot++) {
        o.busy |= uint32_t(s.server->busy[slot]) << slot;
    }
}

} // namespace gc
