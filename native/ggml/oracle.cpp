/* oracle.cpp: what computing a node does, and what is checked around it.
 *
 * A node verifies that its sources hold what the graph says they must, then
 * writes its own stream. Nothing here asks ggml what it believes; a wrong
 * address, an early reuse or a lost copy shows as wrong bytes or as a fault.
 * On a meta type every device has a stream of its own of each tensor, so that
 * bytes of another device show too. What a scheduler copied is the first device's.
 */
#include "subject.h"

namespace gc {

void Running::report(uint32_t what, int32_t node, int32_t src, uint64_t offset) {
    if (!trouble) {
        bad_node = node;
        bad_src = src;
        bad_offset = offset;
    }
    trouble |= what;
}

uint64_t part_value(uint64_t value, int part) { return part ? gc_mix(value + (uint64_t) part) : value; }

static void write(const Graph & g, uint32_t i, uint8_t * p, int part = 0) {
    gc_fill(p, g.tensors[i].size, part_value(g.values[i], part));
}

static uint64_t wrong(const Graph & g, uint32_t i, const uint8_t * p, int part = 0) {
    return gc_verify(p, g.tensors.data(), i, part_value(g.values[i], part));
}

/* Weights are set through the tree, which gives every device the same. */
static int part_of_content(const Graph & g, uint32_t i, bool copied, int part) {
    return copied || g.is(g.root(i), GC_PREALLOC) ? 0 : part;
}

void copy_bytes(const Graph & g, uint32_t i, uint8_t * to, const uint8_t * from) {
    const gc_tensor * t = g.tensors.data();
    const uint64_t    begin = t[i].view_offs, end = begin + t[i].size;
    for (uint64_t at = gc_first(t, i); at < end; at = gc_next(at, gc_whole(t, i))) {
        to[at - begin] = from[at - begin];
    }
}

/* The root of a plain leaf is written right before its first reader. */
static void write_lazily(Session & s, const Graph & g, uint32_t i, int part) {
    const uint32_t r = g.root(i);
    if (s.run.lazy && g.is(r, GC_LEAF) && !s.run.written[part][r]) {
        s.run.written[part][r] = true;
        write(g, r, s.run.lazy->where[part][r], part);
    }
}

void compute(Session & s, const Work & w) {
    const Graph & g = *w.graph;
    const gc_tensor & t = g.tensors[w.index];
    for (int j = 0; j < GC_MAX_SRC; j++) {
        if (t.src[j] < 0) {
            continue;
        }
        const uint32_t src = (uint32_t) t.src[j];
        write_lazily(s, g, src, w.part);
        if (g.tensors[src].size == 0) {
            continue;
        }
        const uint64_t at = wrong(g, src, w.from[j], part_of_content(g, src, w.copied[j], w.part));
        if (at < g.tensors[src].size) {
            s.run.report(GC_BAD_SOURCE, (int32_t) w.index, j, at);
        }
    }
    if (t.size) {
        write(g, w.index, w.to, w.part);
    }
}

static void scramble(uint8_t * p, uint64_t size) {
    for (uint64_t i = 0; p && i < size; i = gc_next(i, size)) {
        p[i] = 0xdb;
    }
}

/* Two computes of one graph write the same bytes: what an earlier one left must not pass for this one's. */
void scramble(const Instance & in) {
    const Graph & g = *in.graph;
    for (uint32_t i = 0; i < g.tensors.size(); i++) {
        for (int part = 0; part < in.parts[i] && g.tensors[i].view_src < 0 && !g.is(i, GC_PREALLOC); part++) {
            scramble(in.where[part][i], g.tensors[i].size);
        }
    }
    for (const auto & copy : in.copies) {
        scramble(copy.first, g.tensors[copy.second].size);
    }
}

static bool is_read(const Graph & g, uint32_t i) {
    for (const gc_tensor & t : g.tensors) {
        for (int32_t src : t.src) {
            if (src >= 0 && t.view_src < 0 && g.root(src) == i) {
                return true;
            }
        }
    }
    return false;
}

/* Writes what the caller gives: all leafs, or, where the rest is written lazily, inputs and what no node reads. */
void before_compute(Session & s, const Instance & in, bool all_leafs) {
    const Graph & g = *in.graph;
    s.run.lazy = all_leafs ? nullptr : &in;
    for (auto & written : s.run.written) {
        written.assign(g.tensors.size(), true);
    }
    for (uint32_t i = 0; i < g.tensors.size(); i++) {
        if (!g.is(i, GC_LEAF) || g.is(i, GC_PREALLOC) || g.tensors[i].size == 0) {
            continue;
        }
        for (int part = 0; part < in.parts[i]; part++) {
            if (all_leafs || g.is(i, GC_INPUT) || !is_read(g, i)) {
                write(g, i, in.where[part][i], part);
            } else {
                s.run.written[part][i] = false;
            }
        }
    }
}

/* A weight on a meta type is its meta backend's; its readers verify it on every device. */
static void check_weights(Session & s, const Instance & in) {
    const Graph & g = *in.graph;
    for (uint32_t i = 0; i < g.tensors.size(); i++) {
        const uint64_t at = g.is(i, GC_PREALLOC) ? wrong(g, i, g.fixed[i]) : g.tensors[i].size;
        if (at < g.tensors[i].size) {
            s.run.report(GC_BAD_PREALLOC, (int32_t) i, -1, at);
            write(g, i, g.fixed[i]); /* so that later operations are not blamed */
        }
    }
}

uint64_t after_compute(Session & s, const Instance & in) {
    const Graph & g = *in.graph;
    uint64_t digest = 0;
    for (uint32_t i = 0; i < g.tensors.size(); i++) {
        const uint64_t size = g.tensors[i].size;
        for (int part = 0; part < in.parts[i] && size && g.is(i, GC_OUTPUT); part++) {
            const uint64_t at = wrong(g, i, in.where[part][i], part_of_content(g, i, false, part));
            if (at < size) {
                s.run.report(GC_BAD_OUTPUT, (int32_t) i, -1, at);
            }
        }
        if (g.is(i, GC_OUTPUT)) {
            digest = gc_digest(digest, in.where[0][i], g.tensors.data(), i);
        }
    }
    check_weights(s, in);
    for (const Buffer * b : s.live) {
        check_guard(s, *b);
    }
    return digest;
}

} // namespace gc
