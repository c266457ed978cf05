// model.h: a model of R for the RapidCheck peer alone, by hand in C++: one chunk a type, graphs of one
// tensor a type, no remaking. It is no source of truth: model/resizable.py is.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "gallocheck.h"

namespace peer {

constexpr int TYPES = 2, ALLOCS = 3, GRAPHS = 4, OWNER = 0, BORROWER = 1, NONE = -1;
constexpr uint64_t ALIGNMENT = 32, GRANULARITY = 64;

using sizes = std::array<uint64_t, TYPES>;

inline uint64_t up(uint64_t x, uint64_t unit) { return (x + unit - 1) / unit * unit; }

struct role {
    bool active = false, uses[TYPES] = {}, seen = false, asking = false, ever = false, held[TYPES] = {};
    int plan = NONE, bound = NONE;
    sizes req{};
    uint64_t gen = 0, shrink_gen = 0, bound_gen = 0;
};

struct pair {
    role r[2];
    bool common[TYPES] = {}, owner = false, pending = false;
    sizes asked{};
};

struct seen { // what an operation shows
    int32_t status = GC_MISUSE;
    uint64_t allocations = 0;
    sizes measured{};
};

struct model {
    sizes used{}, cap{};
    std::array<sizes, GRAPHS> graphs{}; // bytes of each type's tensor
    std::array<pair, ALLOCS> pairs;     // allocator n's own; a borrower is in pairs[0]
    std::array<bool, ALLOCS> joined{};
    std::array<int, ALLOCS> as{};

    pair & of(int a) { return pairs[joined[a] ? 0 : a]; }
    const pair & of(int a) const { return pairs[joined[a] ? 0 : a]; }
    role & me(int a) { return of(a).r[as[a]]; }
    const role & me(int a) const { return of(a).r[as[a]]; }

    static bool part(const pair & p, int r, int t) { return p.r[r].active && p.r[r].uses[t]; }

    sizes need(const role & r, int graph) const {
        sizes n{};
        for (int t = 0; t < TYPES; t++) n[t] = r.uses[t] ? up(graphs[graph][t], ALIGNMENT) : 0;
        if (!r.uses[0]) n[1] = up(graphs[graph][0], ALIGNMENT) + n[1];
        if (!r.uses[1]) n[0] = n[0] + up(graphs[graph][1], ALIGNMENT);
        return n;
    }

    uint64_t want(const pair & p, int t) const {
        uint64_t w = 0;
        for (int r : {OWNER, BORROWER}) w = std::max(w, part(p, r, t) ? p.r[r].req[t] : 0);
        return w;
    }

    bool fits(const role & r, const pair & p) const {
        for (int t = 0; t < TYPES; t++) {
            if (r.uses[t] && r.req[t] > up(p.asked[t], GRANULARITY)) return false;
        }
        return true;
    }

    void drop(pair & p, int t) {
        used[t] -= up(p.asked[t], GRANULARITY);
        p.asked[t] = 0;
    }

    void start_shrink(pair & p) {
        p.pending = true;
        for (role & r : p.r) {
            r.seen = false;
            r.shrink_gen += r.active;
        }
    }

    bool due(const pair & p, const role & who, int t) const {
        if (!p.common[t]) return who.asking;
        for (int r : {OWNER, BORROWER}) {
            if (part(p, r, t) && !p.r[r].seen) return false;
        }
        return p.pending;
    }

    bool reserve(int a, const gc_op & op, seen & s) {
        pair & p = of(a);
        role & r = me(a);
        r.req = need(r, op.graph);
        r.plan = op.graph;
        r.seen |= p.pending;
        for (int t = 0; t < TYPES; t++) {
            if (!r.uses[t]) continue;
            const uint64_t w = want(p, t);
            if (w <= up(p.asked[t], GRANULARITY) && !(w != p.asked[t] && due(p, r, t))) continue;
            drop(p, t);
            for (int k : {OWNER, BORROWER}) p.r[k].gen += part(p, k, t);
            if (w == 0) continue;
            s.allocations++;
            const uint64_t real = up(w, GRANULARITY);
            const bool told = op.fail_types >> t & 1 || int64_t(s.allocations) == op.fail_nth;
            if (told || used[t] > cap[t] || real > cap[t] - used[t]) return false;
            used[t] += real;
            p.asked[t] = w;
        }
        r.asking = false;
        r.ever = true;
        const auto out = [](const role & x) { return x.active && !x.seen; };
        if (p.pending && !out(p.r[0]) && !out(p.r[1])) {
            p.pending = false;
            p.r[0].seen = p.r[1].seen = false;
        }
        return true;
    }

    bool alloc(int a, const gc_op & op, seen & s) {
        role & r = me(a);
        const bool ready = r.plan == op.graph && fits(r, of(a));
        if (!ready && (r.uses[0] + r.uses[1] != 1 || !reserve(a, op, s))) return false;
        r.bound = op.graph;
        r.bound_gen = r.gen;
        return true;
    }

    bool clean(int a) const {
        const pair & p = of(a);
        return !p.owner && as[a] == OWNER && !me(a).ever && p.asked == sizes{};
    }

    bool borrow(int a, int other) {
        if (other != 0 || a == 0 || joined[a] || !pairs[0].r[OWNER].active) return false;
        pair & p = pairs[0];
        const role & mine = me(a);
        bool meet = false;
        for (int t = 0; t < TYPES; t++) meet |= p.r[OWNER].uses[t] && mine.uses[t];
        if (!clean(a) || !p.owner || p.r[BORROWER].active || !meet) return false;
        role b = {};
        b.active = true;
        b.req = mine.req;
        b.plan = mine.plan;
        b.gen = p.r[OWNER].gen;
        b.shrink_gen = p.r[OWNER].shrink_gen;
        for (int t = 0; t < TYPES; t++) {
            b.uses[t] = mine.uses[t];
            p.common[t] = p.r[OWNER].uses[t] && b.uses[t];
        }
        p.r[BORROWER] = b;
        pairs[a] = {};
        joined[a] = true;
        as[a] = BORROWER;
        return true;
    }

    void free(int a) {
        pair & p = of(a);
        role & r = me(a);
        const bool left = p.r[1 - as[a]].active;
        for (int t = 0; t < TYPES; t++) {
            if (!left || (r.uses[t] && !p.common[t])) drop(p, t);
        }
        r = {};
        if (as[a] == OWNER) p.owner = false;
        if (left) start_shrink(p);
        if (a == 0) { // who borrowed keeps the pair
            for (int b = 1; b < ALLOCS; b++) {
                if (!joined[b]) continue;
                pairs[b] = p;
                joined[b] = false;
            }
            pairs[0] = {};
        } else if (!joined[a]) {
            pairs[a] = {};
        }
        joined[a] = false;
        as[a] = OWNER;
    }

    seen step(const gc_op & op, const bool config[][TYPES]) {
        seen s;
        const auto answer = [&](bool ok) { s.status = ok ? GC_DONE : GC_REFUSED; };
        if (op.kind == GC_CAPACITY) {
            cap[op.other] = op.value;
            answer(true);
            return s;
        }
        const int a = op.alloc;
        if (op.kind == GC_NEW) {
            if (me(a).active) return s;
            me(a).active = true;
            std::copy_n(config[op.other], TYPES, me(a).uses);
            answer(true);
            return s;
        }
        if (!me(a).active) return s;
        role & r = me(a);
        switch (op.kind) {
            case GC_FREE: free(a), answer(true); break;
            case GC_OWN: {
                const bool may = clean(a);
                of(a).owner |= may;
                answer(may);
                break;
            }
            case GC_BORROW: answer(borrow(a, op.other)); break;
            case GC_RESERVE: answer(reserve(a, op, s)); break;
            case GC_MEASURE: s.measured = need(r, op.graph), answer(true); break;
            case GC_ALLOC: answer(alloc(a, op, s)); break;
            case GC_COMPUTE:
                if (r.bound == NONE) break;
                if (r.bound_gen == r.gen) { answer(true); break; }
                r.bound = NONE;
                s.status = GC_STALE;
                break;
            case GC_SHRINK:
                if (!of(a).owner && as[a] == OWNER) break;
                r.asking = true;
                if (!of(a).pending) start_shrink(of(a));
                answer(true);
                break;
            default: break;
        }
        return s;
    }
};

} // namespace peer
