// Some thousand random operations: no trouble in memory, every byte counted
// once, no generation goes down, nothing left at the end. The fuzzer compares
// every observation with the model; this is the same code under sanitizers.
#include <array>
#include <random>

#include "session.h"

using namespace gc::test;

namespace {

struct dice {
    std::mt19937_64 rng;
    uint64_t below(uint64_t n) { return rng() % n; }
    bool one_in(uint64_t n) { return below(n) == 0; }
};

tensors random_graph(dice & d) {
    tensors t;
    const int n = int(d.below(14));
    for (int i = 0; i < n; i++) {
        const uint64_t size = d.one_in(8) ? 0 : d.one_in(40) ? UINT64_MAX - d.below(64) : 1 + d.below(400);
        const uint32_t out = d.one_in(5) ? GC_OUTPUT : 0;
        const int slot = int(d.below(3)), a = i ? int(d.below(uint64_t(i))) : 0, b = i ? int(d.below(uint64_t(i))) : 0;
        if (i == 0 || d.one_in(4)) {
            t.leaf(size, (d.one_in(2) ? GC_INPUT : d.one_in(3) ? GC_PREALLOC : 0) | out, slot);
        } else if (d.one_in(4) && t.all[a].view_src < 0) {
            const uint64_t from = d.below(t.all[a].size / 2 + 1);
            t.view(t.all[a].size / 2, a, from, out);
        } else {
            t.node(d.one_in(2) ? t.all[a].size : size, {a, b}, (d.one_in(2) ? GC_INPLACE : 0) | out, slot);
        }
        if (t.all[i].view_src < 0 && d.one_in(4)) t.all[i].pad = d.below(64);
    }
    return t;
}

gc_setup random_setup(dice & d) {
    gc_setup s = plain_setup(3, 1);
    for (int t = 0; t < 3; t++) {
        s.types[t].alignment = uint64_t(1) << d.below(8);
        s.types[t].max_size = d.one_in(2) ? UINT64_MAX : 1 + d.below(600);
        s.types[t].granularity = std::array<uint64_t, 4>{1, 100, 4096, 65536}[d.below(4)];
        s.types[t].capacity = d.one_in(2) ? 1 << 20 : d.below(4000);
    }
    return s;
}

bool too_large(const tensors & t) {
    for (const gc_tensor & x : t.all) {
        if (x.size > 1 << 20) return true;
    }
    return false;
}

void random_session(dice & d) {
    session s(random_setup(d));
    std::array<bool, 6> large{};
    for (bool & l : large) {
        const tensors t = random_graph(d);
        l = too_large(t);
        CHECK(s.define(t) >= 0);
    }
    std::array<bool, 3> computable{};
    std::array<uint64_t, 3> generation{};
    for (int k = 0; k < 80; k++) {
        static constexpr int kinds[] = {GC_NEW, GC_NEW, GC_FREE, GC_OWN, GC_BORROW, GC_BORROW, GC_RESERVE, GC_RESERVE,
                                        GC_RESERVE, GC_MEASURE, GC_ALLOC, GC_ALLOC, GC_ALLOC, GC_COMPUTE, GC_COMPUTE,
                                        GC_SHRINK, GC_SHRINK, GC_CAPACITY, GC_REMAKE};
        const int kind = kinds[d.below(std::size(kinds))], a = int(d.below(3)), g = int(d.below(6));
        if (kind == GC_COMPUTE && !computable[a]) continue;
        if (d.one_in(10)) s.fail_types = uint32_t(d.below(8));
        if (d.one_in(10)) s.fail_nth = int32_t(d.below(5));
        const int status = s.run(kind, a, int(d.below(3)), g, d.below(4000));
        if (kind == GC_ALLOC && status == GC_DONE) computable[a] = !large[g];
        if ((kind == GC_NEW || kind == GC_BORROW) && status == GC_DONE) generation[a] = 0; // another count
        std::array<uint64_t, 3> sum{};
        for (int i = 0; i < 3; i++) {
            const gc_obs & o = s.look(i);
            if (o.status != GC_DONE) continue;
            CHECK(o.generation >= generation[i]);
            generation[i] = o.generation;
            for (int t = 0; t < 3; t++) {
                sum[t] += o.owned[t];
            }
        }
        for (int t = 0; t < 3; t++) {
            CHECK(sum[t] == s.look(0).used[t]);
        }
    }
}

} // namespace

TEST(random_operations_keep_the_books_straight) {
    dice d{std::mt19937_64(20250101)};
    for (int i = 0; i < 150; i++) {
        random_session(d);
    }
}
