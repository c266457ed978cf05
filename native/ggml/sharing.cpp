/* sharing.cpp: OWN, BORROW and SHRINK on a resizable pair, on a shared group, or
 * on neither. Which one the tree has is found by compiling probes/: the build
 * sets GC_HAVE_PAIR or GC_HAVE_GROUP.
 */
#include "sharing.h"
#include "probe.h"

GC_PROBE(gc_overlay_gallocr)

namespace gc {

Alloc * late_borrower(Session & s, const Alloc & owner) {
    for (Alloc & a : s.allocs) {
        if (a.live && a.behind && a.lender == owner.index) {
            return &a;
        }
    }
    return nullptr;
}

static Readings plus(Readings a, const Readings & b) { return {a.generation + b.generation, a.shrink + b.shrink}; }

#if defined(GC_HAVE_PAIR)

uint64_t sharing_capability() { return GC_CAP_RESIZABLE | GC_CAP_REMAKE; }

static Readings state(ggml_gallocr_t g) {
    Readings r;
    ggml_gallocr_get_resizable_state(g, &r.generation, &r.shrink);
    return r;
}

static Readings state(ggml_backend_sched_t s) {
    Readings r;
    ggml_backend_sched_get_buffer_state(s, &r.generation, &r.shrink);
    return r;
}

/* A scheduler does not show its allocator; the overlay's does. */
template <class S> static Readings behind(S sched) {
    if constexpr (has_gc_overlay_gallocr<S>) {
        return state(call_gc_overlay_gallocr(sched));
    }
    return state(sched);
}

Readings readings(const Alloc & a) { return plus(a.sched ? behind(a.sched) : state(a.plain), a.past); }

Readings sched_readings(const Alloc & a) { return a.sched ? plus(state(a.sched), a.past) : Readings(); }

static bool attach(Alloc & a, const Alloc * owner) {
    return a.sched ? ggml_backend_sched_set_resizable(a.sched, owner ? owner->sched : nullptr)
                   : ggml_gallocr_set_resizable(a.plain, owner ? owner->plain : nullptr);
}

bool become_owner(Alloc & a) { return attach(a, nullptr); }

bool become_borrower(Session & s, Alloc & a, Alloc & owner) {
    if (!attach(a, &owner)) {
        return false;
    }
    for (int t = 0; t < (int) s.setup.n_types; t++) {
        if (has_type(s, a, t) && has_type(s, owner, t)) {
            a.pools[t] = owner.pools[t];
        }
    }
    return true;
}

bool rejoin(Session &, Alloc &, const std::shared_ptr<Group> &) { return false; }

int32_t own(Session &, Alloc & a) {
    if (!become_owner(a)) {
        return GC_REFUSED;
    }
    a.role = a.owner = true;
    return GC_DONE;
}

int32_t borrow(Session & s, Alloc & a, Alloc & owner) {
    if ((a.sched != nullptr) != (owner.sched != nullptr)) {
        return GC_MISUSE; /* nothing that could be called */
    }
    if (late_borrower(s, owner)) {
        return GC_REFUSED; /* still the owner's (R14), though the tree has not been told */
    }
    if (!become_borrower(s, a, owner)) {
        return GC_REFUSED;
    }
    a.past = owner.past; /* it reads what its owner reads */
    a.role = true;
    a.lender = owner.index;
    return GC_DONE;
}

void shrink(Alloc & a) {
    if (a.sched) {
        ggml_backend_sched_request_buffer_shrink(a.sched);
    } else {
        ggml_gallocr_request_shrink(a.plain);
    }
}

/* A borrower that is behind is still asked to reserve (R6), though the tree does not know that it is the owner's:
 * until it has, a request is pending, and is not another one when it is made again. */
int32_t request_shrink(Session & s, Alloc & a) {
    if (!a.role) {
        return GC_MISUSE;
    }
    Alloc * borrower = late_borrower(s, a);
    if (borrower && a.asked) {
        shrink_again(a);
        return GC_DONE;
    }
    const uint64_t before = shrink_generation(a);
    shrink(a);
    if (borrower) {
        borrower->past.shrink += shrink_generation(a) - before;
        a.asked = true;
    }
    return GC_DONE;
}

void shrink_again(Alloc & a) {
    const uint64_t before = shrink_generation(a);
    shrink(a);
    a.past.shrink -= shrink_generation(a) - before;
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

Readings readings(const Alloc & a) {
    if (!a.group) {
        return a.past;
    }
    return plus({ggml_gallocr_shared_buffers_generation(handle(a)), ggml_gallocr_shared_buffers_plan_generation(handle(a))}, a.past);
}

Readings sched_readings(const Alloc & a) {
    if (!a.sched || !a.group) {
        return {};
    }
    return plus({ggml_backend_sched_shared_buffers_generation(a.sched), ggml_backend_sched_shared_buffers_plan_generation(a.sched)}, a.past);
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

static void join(Session & s, Alloc & a, std::shared_ptr<Group> group) {
    a.group = std::move(group);
    a.role = true;
    for (int t = 0; t < (int) s.setup.n_types; t++) {
        if (has_type(s, a, t)) {
            a.pools[t] = a.group->pools[t];
        }
    }
    if (a.sched) {
        ggml_backend_sched_set_shared_buffers(a.sched, handle(a));
    } else {
        ggml_gallocr_set_shared_buffers(a.plain, handle(a));
    }
}

bool become_owner(Alloc &) { return false; }
bool become_borrower(Session &, Alloc &, Alloc &) { return false; }

bool rejoin(Session & s, Alloc & a, const std::shared_ptr<Group> & group) {
    join(s, a, group);
    return true;
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
    join(s, a, group);
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
    join(s, a, owner.group);
    return GC_DONE;
}

void shrink(Alloc & a) {
    if (a.sched) {
        ggml_backend_sched_request_shared_buffer_shrink(a.sched);
    } else {
        ggml_gallocr_shared_buffers_request_shrink(handle(a));
    }
}

int32_t request_shrink(Session &, Alloc & a) {
    if (!a.group) {
        return GC_MISUSE;
    }
    shrink(a);
    return GC_DONE;
}

void shrink_again(Alloc &) {}

#else

uint64_t sharing_capability() { return 0; }
Readings readings(const Alloc &) { return {}; }
Readings sched_readings(const Alloc &) { return {}; }
bool     become_owner(Alloc &) { return false; }
bool     become_borrower(Session &, Alloc &, Alloc &) { return false; }
bool     rejoin(Session &, Alloc &, const std::shared_ptr<Group> &) { return false; }
int32_t  own(Session &, Alloc &) { return GC_MISUSE; }
int32_t  borrow(Session &, Alloc &, Alloc &) { return GC_MISUSE; }
int32_t  request_shrink(Session &, Alloc &) { return GC_MISUSE; }
void     shrink(Alloc &) {}
void     shrink_again(Alloc &) {}

#endif

#if !defined(GC_HAVE_GROUP)
Group::~Group() = default;
#endif

} // namespace gc
