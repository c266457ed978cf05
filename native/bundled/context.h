// context.h (W): two inference contexts, target and draft. Each has a scheduler for
// each of its lanes; the draft's lane 0 may borrow the buffers of the target's.
// docs/choices.md, "Contexts", says what exactly happens.
//
// One mutex guards both: an operation of a context, or of a slot of the server,
// holds it from beginning to end, also while it waits for work in flight. Whoever
// holds it is the only one that launches on the shared buffers, so nothing can be
// launched between a wait and what the wait was for. Two threads may therefore
// drive the two contexts; work overlaps by GC_ASYNC, not by the lock.
#pragma once

#include <map>
#include <mutex>
#include <utility>

#include "policy.h"
#include "sched.h"

namespace gc {

enum { TARGET = 0, DRAFT = 1 };

struct context {
    bool open = false;
    bool able = false;               // lane 0 has a scheduler (W6)
    uint64_t nodes = 0;              // tensors that its graphs may have
    policy::lane lane[GC_MAX_LANES];
    uint64_t known[GC_MAX_LANES][2]; // readings after the lane's last reservation: generation, shrink generation
    graph * bound[GC_MAX_LANES];     // what the lane has bound
    std::map<std::pair<uint32_t, uint32_t>, std::unique_ptr<graph>> batches;      // by tokens and cells in use
    std::map<std::pair<uint32_t, uint32_t>, std::unique_ptr<graph>> reservations; // by tokens and cells
};

struct contexts {
    std::mutex lock;
    std::array<gc::context, GC_MAX_CONTEXTS> context;
    bool attached = false;
};

// What an operation of a context shows beside its status.
struct shown {
    findings found;
    uint32_t reserves = 0;
    uint32_t waits = 0;
    uint32_t reason = 0;
    uint64_t released = 0;
};

// The caller holds the lock. `n`: the context.
int32_t context_act(gc_session & s, const gc_op & op, shown & o);
int32_t decode(gc_session & s, int n, uint64_t tokens, int64_t used, uint32_t flags, shown & o);
void wait_for(gc_session & s, int n, shown & o); // all lanes; nothing where it is not open
// The pools of all devices under these types: GC_MISUSE without pools. No capture is going on (Q3).
int32_t trim_types(gc_session & s, uint32_t types, shown & o);
uint64_t mix_lanes(uint64_t a, uint64_t b);
// Writes what is shown, and what is seen of context `n`.
void write(const gc_session & s, int n, const shown & from, gc_obs & o);

// T1: some slot of the server is busy. The caller holds the lock.
bool serving(const gc_session & s);

} // namespace gc
