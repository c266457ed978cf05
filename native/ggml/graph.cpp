/* graph.cpp: graph definitions, and the ggml graphs built from them.
 *
 * A tensor of n bytes is a row of n one-byte elements. Another layout of the
 * same bytes has another stride in a dimension that has one element only: ggml
 * compares strides, and nothing else depends on it. Sizes beyond ggml's signed
 * integers are told to it through the buffer type's alloc size alone.
 */
#include "subject.h"
#include "probe.h"

#include <cstdio>

GC_PROBE(ggml_op_alloc_size_may_expand)
GC_PROBE(ggml_set_input)
GC_PROBE(ggml_set_output)

namespace gc {

static constexpr uint64_t max_fixed = 1ull << 32; /* of one preallocated leaf */
static constexpr uint64_t max_elements = (1ull << 62) + (1ull << 32);

/* What ggml is told: the size itself, or for a size that it can't hold, a large number that stands for it. */
static int64_t elements(Session & s, uint64_t size) {
    if (size < max_elements) {
        return (int64_t) size;
    }
    size_t i = 0;
    while (i < s.huge.size() && s.huge[i] != size) {
        i++;
    }
    if (i == s.huge.size()) {
        s.huge.push_back(size);
    }
    return (int64_t) ((1ull << 62) + i);
}

static bool sane_view(const gc_tensor * t, uint32_t i) {
    const gc_tensor & root = t[t[i].view_src];
    int sources = 0;
    bool reads_root = false;
    for (int32_t src : t[i].src) {
        sources += src >= 0;
        reads_root |= src == t[i].view_src;
    }
    return sources == 1 && reads_root && root.view_src < 0 && !(t[i].flags & GC_LEAF)
        && t[i].size <= root.size && t[i].view_offs <= root.size - t[i].size;
}

static bool sane(const gc_tensor * t, uint32_t i) {
    int sources = 0;
    for (int32_t src : t[i].src) {
        if (src < -1 || src >= (int32_t) i) {
            return false;
        }
        sources += src >= 0;
    }
    const bool leaf = t[i].flags & GC_LEAF, fixed = t[i].flags & GC_PREALLOC;
    return t[i].view_src >= -1 && t[i].view_src < (int32_t) i && !(leaf && sources) && !(fixed && !leaf)
        && !(fixed && t[i].size > max_fixed) && t[i].slot >= 0 && (t[i].view_src < 0 || sane_view(t, i));
}

int32_t define(Session & s, const gc_tensor * tensors, uint32_t n) {
    if (n > (1u << 20)) {
        return -1;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!sane(tensors, i)) {
            return -1;
        }
    }
    auto g = std::make_unique<Graph>();
    g->number = (uint32_t) s.graphs.size();
    g->tensors.assign(tensors, tensors + n);
    g->values.resize(n);
    g->fixed.resize(n);
    for (uint32_t i = 0; i < n; i++) {
        g->values[i] = gc_value(tensors, i, g->values.data());
        g->infos.push_back({g.get(), i});
        g->elements.push_back(elements(s, tensors[i].size));
    }
    for (uint32_t i = 0; i < n; i++) {
        if (tensors[i].flags & GC_PREALLOC) {
            g->fixed[i] = s.arena.take((tensors[i].size + 4096) & ~4095ull);
            if (!g->fixed[i]) {
                return -1;
            }
            gc_fill(g->fixed[i], tensors[i].size, g->values[i]);
        }
    }
    s.graphs.push_back(std::move(g));
    return (int32_t) s.graphs.size() - 1;
}

/* Some trees let a buffer type ask for more than a tensor's bytes only for some
 * operations. MUL_MAT is among them in each such tree, and in no tree is it done
 * in place. An in-place operation is not among them: there a node that needs more
 * is not offered for reuse, which no clause demands. */
template <class Op> static bool may_expand(Op op) {
    if constexpr (has_ggml_op_alloc_size_may_expand<Op>) {
        return call_ggml_op_alloc_size_may_expand(op);
    }
    return true;
}

static ggml_op operation(const Graph & g, uint32_t i) {
    const gc_tensor & t = g.tensors[i];
    if (t.flags & GC_LEAF) {
        return GGML_OP_NONE;
    }
    if (t.view_src >= 0) {
        return GGML_OP_VIEW;
    }
    const bool more = t.pad || t.size >= max_elements;
    return (t.flags & GC_INPLACE) && (!more || may_expand(GGML_OP_ADD)) ? GGML_OP_ADD : GGML_OP_MUL_MAT;
}

/* An operation leaves a slot empty where an optional operand is missing: so do half of the nodes that have
 * several sources. */
int src_slot(const Graph & g, uint32_t i, int j) {
    const bool leaves_one = i % 2 && g.tensors[i].src[1] >= 0;
    return j && leaves_one ? j + 1 : j;
}

/* A view as ggml makes one; of a root that ggml can't measure it may have no elements. */
static int64_t view_elements(const Graph & g, uint32_t i) {
    const gc_tensor & t = g.tensors[i];
    const uint64_t there = (uint64_t) g.elements[t.view_src], want = (uint64_t) g.elements[i];
    return t.view_offs <= there && want <= there - t.view_offs ? (int64_t) want : 0;
}

/* The meta backend works out how a node is spread from its sources; it can't where there are none. */
static void anchor(ggml_tensor * t, Type & type) {
    const int needed = t->op == GGML_OP_MUL_MAT ? 2 : 1;
    for (int j = 0; j < needed; j++) {
        t->src[j] = t->src[j] ? t->src[j] : meta_anchor(type);
    }
}

template <class T> static void set_flags(T * t, const gc_tensor & d) {
    if (d.flags & GC_LAYOUT) {
        t->nb[3] += 1;
    }
    if constexpr (has_ggml_set_input<T *>) {
        if (d.flags & GC_INPUT) {
            call_ggml_set_input(t);
        }
        if (d.flags & GC_OUTPUT) {
            call_ggml_set_output(t);
        }
    }
}

static ggml_tensor * tensor(Session & s, const Alloc & a, Instance & in, Graph & g, uint32_t i) {
    const gc_tensor & d = g.tensors[i];
    Type & type = s.types[s.type_of(a, g.tensors[g.root(i)].slot)];
    if ((d.flags & GC_PREALLOC) && type.meta) {
        return meta_weights(s, g, type).tensors[i];
    }
    ggml_tensor * t = ggml_new_tensor_1d(in.context, GGML_TYPE_I8,
                                         d.view_src >= 0 ? view_elements(g, i) : g.elements[i]);
    t->op = operation(g, i);
    t->extra = const_cast<Info *>(&g.infos[i]);
    ggml_format_name(t, "t%u.%u", g.number, i);
    for (int j = 0; j < GC_MAX_SRC; j++) {
        if (d.src[j] >= 0) {
            t->src[src_slot(g, i, j)] = in.tensors[d.src[j]];
        }
    }
    set_flags(t, d);
    if (d.flags & GC_PREALLOC) {
        t->buffer = type.fixed_buffer;
        t->data = g.fixed[i];
    }
    if (d.view_src >= 0) {
        t->view_src = in.tensors[d.view_src];
        t->view_offs = d.view_offs;
    } else if (type.meta && !(d.flags & GC_LEAF)) {
        anchor(t, type);
    }
    return t;
}

static void add(Instance & in, ggml_tensor * t, bool leaf, int slot) {
    (leaf ? in.leaf_slots : in.node_slots).push_back(slot);
    ggml_build_forward_expand(in.cgraph, t);
}

static int first_of(const Session & s, const Alloc & a, int type) {
    int slot = 0;
    while (s.type_of(a, slot) != type) {
        slot++;
    }
    return slot;
}

/* Leafs first, then nodes, each in the definition's order. */
static void add_all(Session & s, const Alloc & a, const Graph & g, Instance & in) {
    for (int slot = 0; slot < a.n_slots; slot++) {
        Type & type = s.types[s.type_of(a, slot)];
        if (type.meta && slot == first_of(s, a, type.index)) { /* a type may be listed twice */
            add(in, meta_anchor(type), true, slot);
        }
    }
    for (uint32_t leafs = 2; leafs-- > 0;) {
        for (uint32_t i = 0; i < g.tensors.size(); i++) {
            if (g.is(i, GC_LEAF) == (leafs == 1)) {
                add(in, in.tensors[i], leafs == 1, g.tensors[g.root(i)].slot % a.n_slots);
            }
        }
    }
}

static bool placed_outside(const Graph & g, uint32_t i) { return g.is(g.root(i), GC_PREALLOC); }

std::shared_ptr<Instance> build(Session & s, const Alloc & a, Graph & g) {
    auto in = std::make_shared<Instance>();
    const uint32_t n = (uint32_t) g.tensors.size(), size = n + GC_MAX_TYPES;
    in->graph = &g;
    in->memory.resize(n * ggml_tensor_overhead() + ggml_graph_overhead_custom(size, false));
    ggml_init_params params = {in->memory.size(), in->memory.data(), true};
    in->context = ggml_init(params);
    in->cgraph = ggml_new_graph_custom(in->context, size, false);
    for (uint32_t i = 0; i < n; i++) {
        in->tensors.push_back(tensor(s, a, *in, g, i));
    }
    add_all(s, a, g, *in);
    for (uint32_t i = 0; a.sched && i < n; i++) {
        if (!placed_outside(g, i)) {
            const int slot = g.tensors[g.root(i)].slot % a.n_slots;
            sched_assign(a.sched, in->tensors[i], a.backends[slot]);
        }
    }
    return in;
}

} // namespace gc
