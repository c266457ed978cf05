// sched.h (C): a scheduler around an allocator: a stream, work in flight on it,
// and how large a graph may be. docs/choices.md, "The scheduler", says what
// exactly happens.
//
// These functions are what operations (sched_step) and other layers (contexts,
// captured graphs, pools) call. `n` is the number of a living scheduler.
// Statuses are GC_DONE ...; `f` gets what the work that was waited for found.
#pragma once

#include "compute.h"
#include "session.h"

namespace gc {

// Allocator n's stream, made when it is first asked for; it lives as long as the session.
cuda::stream stream_of(gc_session & s, int n);

// A plain allocator of that config, behind a scheduler of that many tensors (0: any number).
// GC_MISUSE where the number is taken.
int32_t sched_new(gc_session & s, int n, int config, uint64_t nodes);
// Waits for n and its partner (C1), then frees it.
void sched_free(gc_session & s, int n, findings & f);
// R14: waits likewise, then n (an owner) is remade. GC_MISUSE where it is none.
int32_t sched_remake(gc_session & s, int n, findings & f);
// R1, R2: as the allocators do; `bits`: GC_BORROW's value (S4). GC_MISUSE where `of` is not behind a scheduler.
int32_t sched_own(gc_session & s, int n);
int32_t sched_borrow(gc_session & s, int n, int of, uint64_t bits);
int32_t sched_shrink(gc_session & s, int n);

// Waits (C1), forgets the bound graph, reserves; a larger scheduler first where the graph needs it (C3).
// GC_DONE or GC_REFUSED.
int32_t sched_reserve(gc_session & s, int n, graph & g, findings & f);
// Binds g: by the plan in force if it is right and the buffers fit (waits for nothing), else by a
// reservation. `by`: the plan of this graph is right for g, and is what is reserved (contexts); else null.
int32_t sched_bind(gc_session & s, int n, graph & g, findings & f, graph * by = nullptr);
// Computes what is bound, else binds `g` first (C4; null: GC_MISUSE). flags: GC_ASYNC, GC_UNCHECKED.
// Where it is not asynchronous, `f` is what it found, with the digest.
int32_t sched_compute(gc_session & s, int n, graph * g, uint32_t flags, findings & f);
// Waits for n's own stream: all trouble since the last wait, the digest of the last graph that ran.
findings sched_wait(gc_session & s, int n);
// Waits for n and its partner; for every scheduler there is. No digest.
findings sched_wait_shared(gc_session & s, int n);
void sched_wait_all(gc_session & s);
// Forgets the bound graph.
void sched_reset(gc_session & s, int n);

// n has work in flight (any number); a partner of n has.
bool sched_busy(const gc_session & s, int n);
bool partner_busy(const gc_session & s, int n);
// C3: a graph of so many tensors needs a larger scheduler; make it, with nothing bound and no buffers.
// sched_reserve, sched_bind and sched_compute do both by themselves.
bool sched_too_small(const gc_session & s, int n, uint64_t tensors);
void sched_larger(gc_session & s, int n, uint64_t tensors, findings & f);

// Work that another layer gave n's stream (a replay of a captured graph) is in flight from now on.
// `keep`: its owner forgets the flight itself, waiting only asks it.
void sched_launched(gc_session & s, int n, flight * what, bool keep);
// Adds findings to others (the first trouble's place stays); writes all that were found to an observation.
void add(findings & to, const findings & more);
void show(const findings & f, gc_obs & o);

} // namespace gc
