/* sharing.cpp: OWN, BORROW and SHRINK on a resizable pair, on a shared group, or
 * on neither. Which one the tree has is found by compiling probes/: the build
 * sets GC_HAVE_PAIR or GC_HAVE_GROUP.
 */
#include "sharing.h"

namespace gc {

#if defined(GC_HAVE_PAIR) || defined(GC_HAVE_GROUP)
static bool has_type(const Session & s, const Alloc & a, int type) {
    for (int i = 0; i < a.n_slots; i++) {
        if (s.type_of(a, i) == type) {
            return true;
        }
    }
    return false;
}
#endif

#if defined(GC_HAVE_PAIR)

uint64_t sharing_capability() { return GC_CAP_RESIZABLE; }

struct State { uint64_t generation = 0, shrink = 0; };

/* C5: a scheduler is asked itself, not the allocator in it. */
static State state(const Alloc & a) {
    State r;
    if (a.sched) {
        ggml_backend_sched_get_buffer_state(a.sched, &r.generation, &r.shrink);
    } else {
        ggml_gallocr_get_resizable_state(a.plain, &r.generation, &r.shrink);
    }
    return r;
}

uint64_t generation(const Alloc & a) { return state(a).generation; }
uint64_t shrink_generation(const Alloc & a) { return state(a).shrink; }

static bool attach(Alloc & a, const Alloc * owner) {
    return a.sched ? ggml_backend_sched_set_resizable(a.sched, owner ? owner->sched : nullptr)
                   : ggml_gallocr_set_resizable(a.plain, owner ? owner->plain : nullptr);
}

int32_t own(Session &, Alloc & a) {
    const bool ok = attach(a, nullptr);
    a.role |= ok;
    return ok ? GC_DONE : GC_REFUSED;
}

int32_t borrow(Session & s, Alloc & a, Alloc & owner) {
    if ((a.sched != nullptr) != (owner.sched != nullptr)) {
        return GC_MISUSE; /* nothing that could be called */
    }
    if (!attach(a, &owner)) {
        return GC_REFUSED;
    }
    a.role = true;
    for (int t = 0; t < (int) s.setup.n_types; t++) {
        if (has_type(s, a, t) && has_type(s, owner, t)) {
            a.pools[t] = owner.pools[t];
        }
    }
    return GC_DONE;
}

int32_t shrink(Alloc & a) {
    if (!a.role) {
        return GC_MISUSE;
    }
    if (a.sched) {
        ggml_backend_sched_request_buffer_shrink(a.sched);
    } else {
        ggml_gallocr_request_shrink(a.plain);
    }
    return GC_DONE;
}

#elif defined(GC_HAVE_GROUP)

uint64_t sharing_capability() { return GC_CAP_GROUP; }

static ggml_gallocr_shared_buffers_t handle(const Alloc & a) {
    return static_cast<ggml_gallocr_shared_buffers_t>(a.group->handle);
}

Group::~Group() {
    if (handle) {
        ggml_gallocr_shared_buffers_free(static_cast<ggml_gallocr_shared_buffers_t>(handle));
    }
}

uint64_t generation(const Alloc & a) {
    if (!a.group) {
        return 0;
    }
    return a.sched ? ggml_backend_sched_shared_buffers_generation(a.sched)
                   : ggml_gallocr_shared_buffers_generation(handle(a));
}

uint64_t shrink_generation(const Alloc & a) {
    if (!a.group) {
        return 0;
    }
    return a.sched ? ggml_backend_sched_shared_buffers_plan_generation(a.sched)
                   : ggml_gallocr_shared_buffers_plan_generation(handle(a));
}

/* Joining has no result: what it must not be called for is refused here (R1). A reservation
 * that failed may have left buffers of some types. */
static bool may_join(const Session & s, const Alloc & a) {
    bool holds = false;
    for (const Buffer * b : s.live) {
        holds = holds || b->pool == a.pools[b->type];
    }
    return !a.group && !a.reserved && !holds;
}

static void join(Alloc & a, std::shared_ptr<Group> group) {
    a.group = std::move(group);
    a.role = true;
    if (a.sched) {
        ggml_backend_sched_set_shared_buffers(a.sched, handle(a));
    } else {
        ggml_gallocr_set_shared_buffers(a.plain, handle(a));
    }
}

int32_t own(Session & s, Alloc & a) {
    if (!may_join(s, a)) {
        return GC_REFUSED;
    }
    auto group = std::make_shared<Group>();
    group->handle = ggml_gallocr_shared_buffers_new();
    for (int t = 0; t < GC_MAX_TYPES; t++) {
        group->pools[t] = a.pools[t];
    }
    join(a, group);
    a.founder = true;
    return GC_DONE;
}

/* The judge's books know two roles that share a type, an owner and its borrower. A group
 * has no such limits: what it would allow beyond is not asked of it. */
static bool as_in_a_pair(const Session & s, const Alloc & a, const Alloc & owner) {
    bool in_common = false;
    for (int t = 0; t < (int) s.setup.n_types; t++) {
        in_common = in_common || (has_type(s, a, t) && has_type(s, owner, t));
    }
    int members = 0;
    for (const Alloc & other : s.allocs) {
        members += other.group == owner.group;
    }
    return in_common && owner.founder && members == 1 && (a.sched != nullptr) == (owner.sched != nullptr);
}

int32_t borrow(Session & s, Alloc & a, Alloc & owner) {
    if (!owner.group || !may_join(s, a)) {
        return GC_REFUSED;
    }
    if (!as_in_a_pair(s, a, owner)) {
        return GC_MISUSE;
    }
    join(a, owner.group);
    for (int t = 0; t < (int) s.setup.n_types; t++) {
        if (has_type(s, a, t)) {
            a.pools[t] = a.group->pools[t];
        }
    }
    return GC_DONE;
}

int32_t shrink(Alloc & a) {
    if (!a.group) {
        return GC_MISUSE;
    }
    if (a.sched) {
        ggml_backend_sched_request_shared_buffer_shrink(a.sched);
    } else {
        ggml_gallocr_shared_buffers_request_shrink(handle(a));
    }
    return GC_DONE;
}

#else

uint64_t sharing_capability() { return 0; }
uint64_t generation(const Alloc &) { return 0; }
uint64_t shrink_generation(const Alloc &) { return 0; }
int32_t  own(Session &, Alloc &) { return GC_MISUSE; }
int32_t  borrow(Session &, Alloc &, Alloc &) { return GC_MISUSE; }
int32_t  shrink(Alloc &) { return GC_MISUSE; }

#endif

#if !defined(GC_HAVE_GROUP)
Group::~Group() = default;
#endif

} // namespace gc
