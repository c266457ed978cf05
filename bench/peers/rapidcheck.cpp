// The same check with RapidCheck's state testing: R on the bundled subject, in this process.
//
// A command draws an operation; `apply` changes the model, `run` the subject, and what both show is
// compared: status, generations, bytes in use, buffers, what is owned and reported, contents. Prints
// operations and seconds as JSON. Build: bench/checked.py.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>

#include <rapidcheck.h>
#include <rapidcheck/state.h>

#include "model.h"

namespace {

constexpr bool CONFIGS[3][peer::TYPES] = {{true, true}, {true, false}, {false, true}};
uint64_t done = 0;

struct sut {
    gc_session * session = nullptr;
    explicit sut(const peer::model & m) {
        gc_setup setup{};
        setup.n_types = peer::TYPES;
        setup.n_configs = 3;
        for (int t = 0; t < peer::TYPES; t++) setup.types[t] = {peer::ALIGNMENT, UINT64_MAX, peer::GRANULARITY, m.cap[t], 0, 0};
        for (int c = 0; c < 3; c++) {
            for (int t = 0; t < peer::TYPES; t++) {
                if (CONFIGS[c][t]) setup.slots[c][setup.n_slots[c]++] = t;
            }
        }
        setup.contexts[0].config = setup.contexts[1].config = -1;
        session = gc_open(&setup);
        for (const peer::sizes & g : m.graphs) {
            gc_tensor t[peer::TYPES]{};
            for (int i = 0; i < peer::TYPES; i++) {
                t[i].size = g[i];
                t[i].view_src = -1;
                std::fill_n(t[i].src, GC_MAX_SRC, -1);
                t[i].flags = GC_LEAF | GC_INPUT | GC_OUTPUT;
                t[i].slot = i;
            }
            gc_define(session, t, peer::TYPES);
        }
    }
    ~sut() { RC_ASSERT(gc_close(session) == 0u); }
};

using base = rc::state::Command<peer::model, sut>;

struct operation : base {
    gc_op op{};

    explicit operation(const peer::model &) {
        static const int kinds[] = {GC_RESERVE, GC_RESERVE, GC_RESERVE, GC_ALLOC, GC_ALLOC, GC_COMPUTE, GC_MEASURE, GC_SHRINK,
                                    GC_FREE, GC_NEW, GC_NEW, GC_OWN, GC_BORROW, GC_CAPACITY};
        op.kind = *rc::gen::elementOf(std::vector<int>(std::begin(kinds), std::end(kinds)));
        op.alloc = *rc::gen::inRange(0, peer::ALLOCS);
        op.graph = *rc::gen::inRange(0, peer::GRAPHS);
        if (op.kind == GC_NEW) op.other = *rc::gen::inRange(0, 3);
        if (op.kind == GC_CAPACITY) {
            op.other = *rc::gen::inRange(0, peer::TYPES);
            op.value = *rc::gen::element<uint64_t>(0, 512, 4096, uint64_t(1) << 40);
        }
        if (op.kind == GC_RESERVE) {
            op.fail_types = *rc::gen::element<uint32_t>(0, 0, 0, 1, 2);
            op.fail_nth = *rc::gen::element<int32_t>(0, 0, 0, 1, 2);
        }
    }

    void apply(peer::model & m) const override { m.step(op, CONFIGS); }

    void run(const peer::model & before, sut & s) const override {
        peer::model m = before;
        const peer::seen want = m.step(op, CONFIGS);
        gc_obs o;
        uint64_t progress = 0;
        gc_run(s.session, &op, &o, 1, &progress);
        RC_ASSERT(o.status == want.status);
        if (want.status == GC_MISUSE) return; // does not count
        done++;
        RC_ASSERT(o.trouble == 0u);
        for (int t = 0; t < peer::TYPES; t++) RC_ASSERT(o.used[t] == m.used[t]);
        if (op.kind == GC_FREE || op.kind == GC_CAPACITY) return;
        RC_ASSERT(o.allocations == want.allocations);
        const peer::pair & p = m.of(op.alloc);
        const peer::role & r = m.me(op.alloc);
        RC_ASSERT(o.generation == r.gen);
        RC_ASSERT(o.shrink_generation == r.shrink_gen);
        for (int t = 0, slot = 0; t < peer::TYPES; t++) {
            if (!r.uses[t]) continue;
            const bool lent = m.as[op.alloc] == peer::BORROWER && p.r[0].active && p.common[t];
            const uint64_t real = peer::up(p.asked[t], peer::GRANULARITY);
            RC_ASSERT(o.asked[t][0] == p.asked[t]);
            RC_ASSERT(o.owned[t] == (lent ? 0 : real));
            RC_ASSERT(o.reported[slot] == real);
            if (op.kind == GC_MEASURE) RC_ASSERT(o.measured[slot] == want.measured[t]);
            slot++;
        }
    }

    void show(std::ostream & os) const override { os << op.kind << " by " << op.alloc; }
};

} // namespace

int main(int, char ** argv) {
    const double seconds = std::atof(argv[1]);
    const auto now = [] { return double(std::clock()) / CLOCKS_PER_SEC; };
    const double begin = now();
    bool good = true;
    while (good && now() - begin < seconds) {
        good = rc::check([] {
            peer::model m;
            for (uint64_t & c : m.cap) c = *rc::gen::element<uint64_t>(512, 4096, uint64_t(1) << 40);
            for (peer::sizes & g : m.graphs) {
                for (uint64_t & x : g) x = *rc::gen::inRange<uint64_t>(1, 1000);
            }
            sut s(m);
            rc::state::check(m, s, rc::state::gen::execOneOfWithArgs<operation>());
        });
    }
    std::printf("\n{\"operations\": %llu, \"seconds\": %f}\n", (unsigned long long) done, now() - begin);
    return good ? 0 : 1;
}
