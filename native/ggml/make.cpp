/* make.cpp: allocators and schedulers: made, freed, and made anew under a living
 * partner, as an inference program does it that needs a larger scheduler (C3) or
 * another owner (R14).
 */
#include "subject.h"
#include "sharing.h"
#include "plain.h"
#include "defects.h"
#include "probe.h"

#include <algorithm>

GC_PROBE(ggml_backend_sched_new)

namespace gc {

template <class B>
static ggml_backend_sched_t new_sched(B * backends, ggml_backend_buffer_type_t * types, int n, size_t size, bool parallel) {
    if constexpr (has_ggml_backend_sched_new<B *, ggml_backend_buffer_type_t *, int, size_t, bool, bool>) {
        return call_ggml_backend_sched_new(backends, types, n, size, parallel, false);
    } else if constexpr (has_ggml_backend_sched_new<B *, ggml_backend_buffer_type_t *, int, size_t, bool>) {
        return call_ggml_backend_sched_new(backends, types, n, size, parallel);
    } else {
        return nullptr; /* none is offered */
    }
}

bool has_type(const Session & s, const Alloc & a, int type) {
    for (int i = 0; i < a.n_slots; i++) {
        if (s.type_of(a, i) == type) {
            return true;
        }
    }
    return false;
}

/* backends */

static Stream * stream_of(Alloc & a, int type) {
    auto & stream = a.streams[{type, 0}];
    if (!stream) {
        stream = std::make_unique<Stream>();
    }
    return stream.get();
}

static void add_own(Session & s, Alloc & a, ggml_backend_dev_t device, int type, bool at_once) {
    a.own.push_back(std::make_unique<Backend>());
    backend_init(*a.own.back(), &s, device, stream_of(a, type), at_once);
    a.backends.push_back(&a.own.back()->ggml);
}

static void add_meta(Session & s, Alloc & a, int type) {
    a.metas.push_back(meta_backend(s.types[type]));
    a.backends.push_back(a.metas.back());
}

/* One a slot. A scheduler's last is a host, which works at once; where it is the only one, a device that calls
 * itself a host, as ggml demands. Where the last slot is a meta type, a host that has no memory follows. */
static void add_backends(Session & s, Alloc & a) {
    for (int i = 0; i < a.n_slots; i++) {
        const int  type = s.type_of(a, i);
        const bool last = i == a.n_slots - 1;
        if (s.is_meta(type)) {
            add_meta(s, a, type);
        } else {
            add_own(s, a, last ? &s.types[type].cpu : &s.types[type].own.ggml, type, last && i > 0);
        }
        for (auto & backend : a.own) {
            backend->first = backend->first || i == 0;
        }
    }
    if (s.is_meta(s.type_of(a, a.n_slots - 1))) {
        add_own(s, a, &s.nowhere.cpu, GC_MAX_TYPES, true);
    }
}

/* schedulers */

/* What a scheduler is made for where any number of tensors is asked for. */
static size_t largest_graph(const Session & s) {
    size_t size = 64;
    for (const auto & g : s.graphs) {
        size = std::max(size, 2 * g->tensors.size());
    }
    return size;
}

/* Several devices beside the host: with pipeline parallelism, as inference programs have it then. */
static bool is_parallel(const Session & s, const Alloc & a) {
    int devices = 0;
    for (int t = 0; t < (int) s.setup.n_types; t++) {
        devices += has_type(s, a, t);
    }
    return devices >= 3;
}

static void make_sched(Session & s, Alloc & a) {
    add_backends(s, a);
    std::vector<ggml_backend_buffer_type_t> types;
    for (int i = 0; i < (int) a.backends.size(); i++) {
        types.push_back(i < a.n_slots ? s.types[s.type_of(a, i)].memory() : &s.nowhere.own.memory);
    }
    a.made_for = a.nodes ? a.nodes : largest_graph(s);
    const size_t size = a.made_for + GC_MAX_TYPES; /* what nodes without sources read counts too */
    a.sched = new_sched(a.backends.data(), types.data(), (int) types.size(), size, is_parallel(s, a));
}

static void make_plain(Session & s, Alloc & a) {
    std::vector<ggml_backend_buffer_type_t> types;
    for (int i = 0; i < a.n_slots; i++) {
        types.push_back(s.types[s.type_of(a, i)].memory());
    }
    a.plain = plain_new(types.data(), a.n_slots);
    if (s.is_meta(s.type_of(a, 0))) {
        add_meta(s, a, s.type_of(a, 0));
    } else {
        a.backends.push_back(&s.host.ggml);
    }
}

/* A fresh allocator of the tree's, with memory of its own. */
static void come(Session & s, Alloc & a) {
    for (int & pool : a.pools) {
        pool = s.n_pools++;
    }
    if (a.by_sched) {
        make_sched(s, a);
    } else {
        make_plain(s, a);
    }
    a.reserved = false;
    a.planned = nullptr;
    a.bound = nullptr;
}

/* The tree's allocator is freed; the books stay. */
static void go(Alloc & a) {
    if (a.sched) {
        sched_wait(a.sched);
        sched_free(a.sched);
    }
    plain_free(a.plain);
    for (ggml_backend_t backend : a.metas) {
        ggml_backend_free(backend);
    }
    a.sched = nullptr;
    a.plain = nullptr;
    a.backends.clear();
    a.metas.clear();
    a.own.clear();
    a.streams.clear();
    a.bound = a.flying = nullptr;
}

/* One backend computes for an allocator without a scheduler: it sees one kind of memory only. And in some trees
 * a list of types can't say where leafs go. */
static bool computable(const Session & s, int config) {
    const int32_t * slots = s.setup.slots[config];
    for (int i = 0; i < s.setup.n_slots[config]; i++) {
        if (slots[i] != slots[0] && (s.is_meta(slots[i]) || s.is_meta(slots[0]) || !plain_mixes_types())) {
            return false;
        }
    }
    return true;
}

int32_t make(Session & s, Alloc & a, int config, bool by_sched, uint64_t nodes) {
    if (a.live || config < 0 || config >= (int) s.setup.n_configs) {
        return GC_MISUSE;
    }
    if (by_sched ? !(capabilities() & GC_CAP_SCHED) : !computable(s, config)) {
        return GC_MISUSE;
    }
    const int index = a.index;
    a = Alloc();
    a.live = true;
    a.index = index;
    a.config = config;
    a.n_slots = s.setup.n_slots[config];
    a.by_sched = by_sched;
    a.nodes = by_sched ? nodes : 0;
    come(s, a);
    return GC_DONE;
}

/* Who is left must see that a shrink has started (R8), also where the tree knows nothing of the pair. */
static void shrinks(Alloc & a) {
    const uint64_t before = shrink_generation(a);
    shrink(a);
    a.past.shrink += shrink_generation(a) == before;
}

static Alloc * borrower_of(Session & s, const Alloc & owner) {
    for (Alloc & a : s.allocs) {
        if (a.live && a.lender == owner.index) {
            return &a;
        }
    }
    return nullptr;
}

void release(Session & s, Alloc & a) {
    if (Alloc * borrower = a.owner ? borrower_of(s, a) : nullptr) {
        borrower->lender = -1;
        if (borrower->behind) {
            borrower->behind = false;
            shrinks(*borrower);
        }
    }
    if (a.behind) {
        s.allocs[a.lender].asked = false;
        shrinks(s.allocs[a.lender]);
    }
    go(a);
    const int index = a.index;
    a = Alloc();
    a.index = index;
}

bool partner_in_flight(const Session & s, const Alloc & a) {
    for (const Alloc & other : s.allocs) {
        for (int t = 0; t < (int) s.setup.n_types; t++) {
            if (&other != &a && other.live && other.pools[t] == a.pools[t] && has_type(s, a, t) && other.in_flight()) {
                return true;
            }
        }
    }
    return false;
}

static void wait_for_partners(Session & s, Alloc & a) {
    for (Alloc & other : s.allocs) {
        const bool partner = &other == &a || other.lender == a.index || a.lender == other.index;
        if (other.live && other.sched && partner) {
            sched_wait(other.sched);
        }
    }
}

/* A new allocator in the old one's place: its readings go on; its buffers are others. */
template <class Attach> static bool replaced(Session & s, Alloc & a, int shrinks, Attach attach) {
    const Readings old = {generation(a), shrink_generation(a)};
    go(a);
    come(s, a);
    a.past = {};
    const bool ok = attach();
    const Readings now = {generation(a), shrink_generation(a)};
    a.past = {old.generation + 1 - now.generation, old.shrink + shrinks - now.shrink};
    return ok;
}

int32_t remake(Session & s, Alloc & a) {
    if (!(sharing_capability() & GC_CAP_RESIZABLE) || !a.owner) {
        return GC_MISUSE;
    }
    Alloc * borrower = borrower_of(s, a);
    a.asked = false;
    wait_for_partners(s, a);
    const bool ok = replaced(s, a, 1, [&] { return become_owner(a); });
    if (borrower) {
        borrower->behind = true;
        if (GC_PLANTED(REMADE_OWNER_TAKES_ALL)) catch_up(s, *borrower);
    }
    return ok ? GC_DONE : GC_REFUSED;
}

bool catch_up(Session & s, Alloc & a) {
    Alloc & owner = s.allocs[a.lender];
    a.behind = owner.asked = false;
    if (GC_PLANTED(BORROWER_NEVER_FOLLOWS)) return true;
    return replaced(s, a, 0, [&] { return become_borrower(s, a, owner); });
}

static bool again(Session & s, Alloc & a) {
    if (a.group) {
        const std::shared_ptr<Group> group = a.group;
        return replaced(s, a, 0, [&] { return rejoin(s, a, group); });
    }
    if (a.lender < 0) {
        const bool was_borrower = a.role;
        const bool ok = replaced(s, a, 0, [] { return true; });
        a.role = a.role && !was_borrower;
        return ok;
    }
    return catch_up(s, a);
}

bool enlarge(Session & s, Alloc & a, const Graph & g) {
    if (!a.sched || g.tensors.size() <= a.made_for || GC_PLANTED(SCHEDULER_STAYS_SMALL)) {
        return true;
    }
    if (a.nodes) {
        a.nodes = GC_PLANTED(SCHEDULER_ONE_TOO_SMALL) ? g.tensors.size() - 1 : g.tensors.size();
    }
    wait_for_partners(s, a);
    return a.owner && !a.group ? remake(s, a) == GC_DONE : again(s, a);
}

} // namespace gc
