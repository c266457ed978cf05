// P: where tensors go, on small graphs whose plan can be worked out by hand.
#include "planner.h"

#include "check.h"

using namespace gc;
using test::tensors;

namespace {

struct planned {
    gc_type type;
    plan p;
    bool ok;

    planned(const tensors & t, gc_type k = {16, UINT64_MAX, 1, UINT64_MAX}) : type(k) {
        static const int32_t slots[] = {0};
        CHECK(makes_sense(t.all.data(), uint32_t(t.all.size())));
        const graph g(t.all.data(), uint32_t(t.all.size()));
        ok = make_plan(g, {&type, slots, 1}, p);
    }
    uint64_t offset(int i) const { return p.places[i].offset; }
    int chunk(int i) const { return p.places[i].chunk; }
    uint64_t need(int c = 0) const { return p.need[0][c]; }
};

} // namespace

TEST(inputs_come_first_then_leafs_then_nodes) {
    tensors t;
    const int leaf = t.leaf(16), node = t.node(16, {leaf}), input = t.input(16);
    t.node(16, {node, input}, GC_OUTPUT);
    const planned p(t);
    CHECK(p.ok && p.offset(input) == 0 && p.offset(leaf) == 16 && p.offset(node) == 32);
    CHECK(p.need() == 48); // the output takes the leaf's place
}

TEST(sizes_are_rounded_with_their_padding) {
    tensors t;
    const int a = t.input(10), b = t.input(1);
    t.all[a].pad = 7;
    const planned p(t);
    CHECK(p.offset(b) == 32 && p.need() == 48);
}

TEST(a_dead_tensor_gives_its_bytes_to_the_next) {
    tensors t;
    int last = t.input(64);
    for (int i = 0; i < 10; i++) {
        last = t.node(64, {last});
    }
    CHECK(planned(t).need() == 128);
}

TEST(the_tightest_block_is_taken) {
    tensors t;
    const int a = t.input(64), b = t.input(16), c = t.input(32), d = t.input(16);
    const int r = t.node(0, {a, c}); // frees 64 bytes at 0 and 32 at 80
    const int small = t.node(32, {r});
    t.node(16, {b, d, small});
    const planned p(t);
    CHECK(p.offset(small) == 80);
}

TEST(an_output_stays_and_so_does_what_a_view_of_it_shows) {
    for (const bool by_view : {false, true}) {
        tensors t;
        const int in = t.input(16), out = t.node(16, {in}, by_view ? 0 : GC_OUTPUT);
        if (by_view) t.view(16, out, 0, GC_OUTPUT);
        const int x = t.node(16, {out}), y = t.node(16, {x}), z = t.node(16, {y});
        const planned p(t);
        CHECK(p.offset(out) == 16 && p.offset(x) == 0 && p.offset(y) == 32 && p.offset(z) == 0);
    }
}

TEST(a_view_lies_in_its_source_and_keeps_it) {
    tensors t;
    const int in = t.input(16), a = t.node(64, {in}), v = t.view(16, a, 32);
    const int b = t.node(64, {in}), c = t.node(16, {v, b}, GC_OUTPUT);
    const planned p(t);
    CHECK(p.offset(v) == p.offset(a) + 32);
    CHECK(p.offset(b) >= p.offset(a) + 64 || p.offset(b) + 64 <= p.offset(a));
    CHECK(p.chunk(c) == 0);
}

TEST(an_inplace_node_takes_its_parents_memory) {
    tensors t;
    const int in = t.input(64), a = t.node(64, {in}, GC_INPLACE);
    const int b = t.node(64, {a}, GC_INPLACE | GC_OUTPUT);
    const planned p(t);
    CHECK(p.offset(a) == 0 && p.offset(b) == 0 && p.need() == 64);
}

TEST(inplace_gives_back_what_it_does_not_need) {
    tensors t;
    const int in = t.input(64);
    t.all[in].pad = 64;
    const int a = t.node(64, {in}, GC_INPLACE), b = t.node(64, {a});
    const planned p(t);
    CHECK(p.offset(a) == 0 && p.offset(b) == 64 && p.need() == 128);
}

TEST(inplace_only_where_p8_allows_it) {
    const auto reused = [](auto shape) {
        tensors t;
        const int a = t.node(64, {});
        const int b = shape(t, a);
        return planned(t).offset(a) == planned(t).offset(b);
    };
    CHECK(reused([](tensors & t, int a) { return t.node(64, {a}, GC_INPLACE); }));
    CHECK(!reused([](tensors & t, int a) { return t.node(64, {a}); }));
    CHECK(!reused([](tensors & t, int a) { return t.node(64, {a, a}, GC_INPLACE); }));
    CHECK(!reused([](tensors & t, int a) { return t.node(64, {a}, GC_INPLACE | GC_LAYOUT); }));
    CHECK(!reused([](tensors & t, int a) { return t.node(32, {a}, GC_INPLACE); }));
    CHECK(!reused([](tensors & t, int a) {
        const int b = t.node(64, {a}, GC_INPLACE);
        t.node(64, {a});
        return b;
    }));
    CHECK(!reused([](tensors & t, int a) {
        const int v = t.view(64, a, 0), b = t.node(64, {a}, GC_INPLACE);
        t.node(64, {v});
        return b;
    }));
    CHECK(!reused([](tensors & t, int a) {
        t.all[a].flags |= GC_OUTPUT;
        return t.node(64, {a}, GC_INPLACE);
    }));
}

TEST(preallocated_tensors_stay_where_they_are) {
    tensors t;
    const int w = t.leaf(64, GC_PREALLOC), v = t.view(16, w, 16), a = t.node(64, {w, v}, GC_INPLACE);
    const planned p(t);
    CHECK(p.p.places[w].type == -1 && p.p.places[v].type == -1 && p.offset(a) == 0 && p.need() == 64);
}

TEST(chunks_end_at_the_largest_buffer) {
    tensors t;
    const int a = t.input(48), b = t.input(48), c = t.input(200), d = t.input(16);
    const planned p(t, {16, 64, 1, UINT64_MAX});
    CHECK(p.chunk(a) == 0 && p.chunk(b) == 1 && p.chunk(c) == 2 && p.chunk(d) == 0);
    CHECK(p.need(0) == 64 && p.need(1) == 48 && p.need(2) == 208);
}

TEST(the_sixteenth_chunk_holds_the_rest) {
    tensors t;
    for (int i = 0; i < 20; i++) {
        t.input(64);
    }
    const planned p(t, {16, 64, 1, UINT64_MAX});
    CHECK(p.ok && p.need(14) == 64 && p.need(15) == 5 * 64);
}

TEST(sizes_near_the_largest_integer_fail) {
    const auto fails = [](uint64_t size, uint64_t pad, int times) {
        tensors t;
        for (int i = 0; i < times; i++) {
            t.all[t.input(size)].pad = pad;
        }
        return !planned(t).ok;
    };
    CHECK(fails(UINT64_MAX, 0, 1));
    CHECK(fails(UINT64_MAX, 2, 1));
    CHECK(fails(UINT64_MAX - 8, 0, 1));
    CHECK(fails(uint64_t(1) << 63, 0, 1));
    CHECK(fails((uint64_t(1) << 63) - 1, 0, 1)); // rounded up it is 2^63
    CHECK(fails(uint64_t(1) << 62, uint64_t(1) << 62, 1));
    CHECK(fails(uint64_t(1) << 62, 0, 2)); // each fits, the sum does not
    CHECK(!fails(uint64_t(1) << 62, 0, 1));
    CHECK(!fails((uint64_t(1) << 63) - 16, 0, 1));
}

TEST(nothing_is_a_size_too) {
    tensors none, zero;
    CHECK(planned(none).ok && planned(none).need() == 0);
    const int a = zero.input(0), b = zero.node(100, {a}), c = zero.node(0, {b}, GC_INPLACE);
    const planned p(zero, {16, 64, 1, UINT64_MAX});
    CHECK(p.ok && p.chunk(a) == 0 && p.chunk(c) == 0 && p.offset(c) == 0);
    CHECK(p.chunk(b) == 1 && p.need(0) == 0 && p.need(1) == 112); // an empty chunk comes first
}

TEST(graphs_that_make_no_sense_are_refused) {
    const auto sense = [](auto change) {
        tensors t;
        const int a = t.leaf(64), b = t.node(64, {a});
        t.view(16, b, 16);
        change(t);
        return makes_sense(t.all.data(), uint32_t(t.all.size()));
    };
    CHECK(sense([](tensors &) {}));
    CHECK(!sense([](tensors & t) { t.all[1].src[0] = 1; }));           // itself
    CHECK(!sense([](tensors & t) { t.all[1].src[0] = 2; }));           // a later one
    CHECK(!sense([](tensors & t) { t.all[1].src[1] = -2; }));
    CHECK(!sense([](tensors & t) { t.all[0].src[0] = 0; }));           // a leaf with a source
    CHECK(!sense([](tensors & t) { t.all[1].flags = GC_INPUT; }));     // no leaf
    CHECK(!sense([](tensors & t) { t.all[1].flags = GC_PREALLOC; }));
    CHECK(!sense([](tensors & t) { t.all[1].slot = -1; }));
    CHECK(!sense([](tensors & t) { t.all[1].view_offs = 1; }));        // no view
    CHECK(!sense([](tensors & t) { t.all[2].view_offs = 49; }));       // out of its source
    CHECK(!sense([](tensors & t) { t.all[2].view_offs = UINT64_MAX; }));
    CHECK(!sense([](tensors & t) { t.all[2].src[0] = 0; }));           // another source
    CHECK(!sense([](tensors & t) { t.all[2].src[1] = 0; }));           // two
    CHECK(!sense([](tensors & t) { t.all[2].flags = GC_LEAF; }));
    CHECK(!sense([](tensors & t) { t.view(8, 2, 0); }));               // a view of a view
    CHECK(!makes_sense(nullptr, 1));
    CHECK(makes_sense(nullptr, 0));
}
