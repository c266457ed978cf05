// sched.h (C): a scheduler around an allocator: a stream, work in flight on it,
// and how large a graph may be. docs/choices.md, "The scheduler", says what
// exactly happens.
//
// These functions are what operations (sched_step) and other layers (contexts,
// captured graphs, pools) call. `n` is an allocator's number; the ones that take
// a living scheduler say so by their name alone. Statuses are GC_DONE ...
#pragma once

#include "compute.h"
#include "session.h"

namespace gc {

// Allocator n's stream, made when it is first asked for; it lives as long as the session.
cuda::stream stream_of(gc_session & s, int n);

// A plain allocator of that config, behind a scheduler of that many tensors (0: any number).
// GC_MISUSE where the number is taken, or there is no such config.
int32_t sched_new(gc_session & s, int n, int config, uint64_t nodes);
// Waits for n and its partners (C1), then frees it, its captured graph too.
findings sched_free(gc_session & s, int n);
// R14: waits likewise, then n (an owner) is remade. GC_MISUSE where it is none.
int32_t sched_remake(gc_session & s, int n, findings & f);
// R1, R2: as the allocators do; `bits` as GC_BORROW's value (S4), `missing` as gc_obs's reason.
int32_t sched_own(gc_session & s, int n);
int32_t sched_borrow(gc_session & s, int n, int of, uint64_t bits, uint64_t & missing);

// Waits (C1), forgets the bound graph, reserves; a larger scheduler first where the graph needs it (C3).
// GC_DONE or GC_REFUSED. `f`: what the work that was waited for found.
int32_t sched_reserve(gc_session & s, int n, graph & g, findings & f);
// Binds g: by the plan if it is right and the buffers fit (waits for nothing), else by a reservation.
int32_t sched_bind(gc_session & s, int n, graph & g, findings & f);
// Computes what is bound, else binds `g` first (C4; null: GC_MISUSE). flags: GC_ASYNC, GC_UNCHECKED.
// Where it is not asynchronous, `f` is what it found, with the digest.
int32_t sched_compute(gc_session & s, int n, graph * g, uint32_t flags, findings & f);
// Waits for n's own stream: all trouble since the last wait, the digest of the last graph that ran.
findings sched_wait(gc_session & s, int n);
// The same for n and its partners; and for every scheduler there is. No digest.
findings sched_wait_shared(gc_session & s, int n);
findings sched_wait_all(gc_session & s);
// Forgets the bound graph.
void sched_reset(gc_session & s, int n);

// n has work in flight; one of its partners has.
bool sched_busy(const gc_session & s, int n);
bool partner_busy(const gc_session & s, int n);
// C3: a scheduler of at least so many tensors, with nothing bound and no buffers. Called where
// `sched_too_small` says so; sched_reserve, sched_bind and sched_compute do it by themselves.
bool sched_too_small(const gc_session & s, int n, uint64_t tensors);
void sched_larger(gc_session & s, int n, uint64_t tensors, findings & f);

// Work that another layer gave n's stream (a replay of a captured graph): in flight from now on. `keep`:
// its owner forgets the flight itself, waiting only asks it.
void sched_launched(gc_session & s, int n, flight * what, bool keep);
// Adds what was found to an observation: trouble, the first bad place, digest.
void show(const findings & f, gc_obs & o);

} // namespace gc
