/* observe.cpp: what is seen of an allocator after an operation. */
#include "subject.h"
#include "defects.h"
#include "sharing.h"
#include "plain.h"

namespace gc {

/* A planted generation that never changes, or counts down. */
static Readings wrong(Readings r) {
    if (GC_PLANTED(GENERATION_STAYS)) r.generation = 0;
    if (GC_PLANTED(GENERATION_GOES_DOWN)) r.generation = UINT64_MAX - r.generation;
    if (GC_PLANTED(SHRINK_GENERATION_GOES_DOWN)) r.shrink = UINT64_MAX - r.shrink;
    return r;
}

static void observe_readings(const Alloc & a, gc_obs & obs) {
    const Readings own = readings(a), sched = wrong(sched_readings(a));
    obs.generation = own.generation;
    obs.shrink_generation = own.shrink;
    if (a.sched) {
        obs.sched_generation = sched.generation;
        obs.sched_shrink_generation = sched.shrink;
    }
}

/* Of a meta type, buffers are counted by their parts on the last device: those that are whole. */
static int last_part(const Session & s, int type) { return s.is_meta(type) ? s.types[type].n_parts - 1 : 0; }

static void observe_buffers(const Session & s, const Alloc & a, gc_obs & obs) {
    int chunks[GC_MAX_TYPES] = {};
    for (const Buffer * b : s.live) {
        if (b->part == last_part(s, b->type) && b->pool == a.pools[b->type] && chunks[b->type] < GC_MAX_CHUNKS) {
            obs.asked[b->type][chunks[b->type]++] = b->asked;
        }
    }
}

void observe(Session & s, Alloc & a, gc_obs & obs) {
    for (int i = 0; i < a.n_slots; i++) {
        obs.reported[i] = a.sched ? sched_size(a.sched, a.backends[i])
                                  : plain_size(a.plain, i);
    }
    observe_buffers(s, a, obs);
    observe_readings(a, obs);
    obs.nodes = a.nodes;
    obs.in_flight = a.in_flight();
}

} // namespace gc
