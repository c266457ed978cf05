// session.h: one session of the bundled subject, and the layers that its
// operations go to. subject.cpp dispatches by kind; each layer has a file.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "gallocheck.h"
#include "machine.h"
#include "pair.h"

namespace gc {

struct schedulers; // sched.cpp (C)
struct pools;      // pools.cpp (V)
struct captures;   // capture.cpp (Q)
struct contexts;   // context.cpp (W)
struct server;     // server.cpp (T)

} // namespace gc

struct gc_session {
    gc_setup setup;
    gc::machine::world * world;
    std::array<gc::device, GC_MAX_TYPES> devices;
    std::vector<std::unique_ptr<gc::graph>> graphs;
    std::array<gc::gallocr *, GC_MAX_ALLOCS> allocs{};

    // what a layer keeps; made by its `open`, null where it keeps nothing
    gc::schedulers * schedulers = nullptr;
    gc::pools * pools = nullptr;
    gc::captures * captures = nullptr;
    gc::contexts * contexts = nullptr;
    gc::server * server = nullptr;
};

namespace gc {

// The living allocator, or the graph, of that number; null where there is none.
gallocr * alloc_of(const gc_session & s, int32_t n);
graph * graph_of(const gc_session & s, int32_t n);
inline int32_t answer(bool ok) { return ok ? GC_DONE : GC_REFUSED; }

// What every layer offers. `open` and `close` come with the session. `step`
// runs one of its operations: a status. `observe` fills the layer's part of an
// observation, after every operation of any layer.
#define GC_LAYER(name)                                               \
    void name##_open(gc_session & s);                                \
    void name##_close(gc_session & s);                               \
    int32_t name##_step(gc_session & s, const gc_op & op, gc_obs & o); \
    void name##_observe(gc_session & s, const gc_op & op, gc_obs & o);

GC_LAYER(sched)   // operations of an allocator that is driven through a scheduler
GC_LAYER(pool)    // GC_POOL_ALLOC to GC_TRIM
GC_LAYER(capture) // GC_CAPTURE_BEGIN to GC_DROP
GC_LAYER(context) // GC_CTX_OPEN to GC_CTX_TRIM; shows all with the operation, and has no `observe`
GC_LAYER(server)  // GC_SLOT_ENTER to GC_SLOT_LEAVE
#undef GC_LAYER

// V: before a graph bound by allocator n is launched: one block of scratch_size(g) bytes of its stream's pool
// on every device that it has tensors on; `scratch` by device, stays null where none. False: one cannot be had, and
// nothing stays taken. Without pools it is true and all null. pool_give, once all is launched, gives them back.
bool pool_take(gc_session & s, int n, const graph & g, std::array<const uint8_t *, GC_MAX_TYPES> & scratch);
void pool_give(gc_session & s);

// Whether allocator n is driven through a scheduler, or belongs to a context.
bool by_sched(const gc_session & s, int32_t n);
bool by_context(const gc_session & s, int32_t n);

} // namespace gc
