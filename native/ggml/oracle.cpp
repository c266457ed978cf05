/* oracle.cpp: what computing a node does, and what is checked around it.
 *
 * A node verifies that its sources hold what the graph says they must, then
 * writes its own stream. Nothing here asks ggml what it believes; a wrong
 * address, an early reuse or a lost copy shows as wrong bytes or as a fault.
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

static uint8_t * bytes(const ggml_tensor * t) { return static_cast<uint8_t *>(t->data); }

static void write(const Graph & g, uint32_t i, uint8_t * p) { gc_fill(p, g.tensors[i].size, g.values[i]); }

static uint64_t wrong(const Graph & g, uint32_t i, const uint8_t * p) {
    return gc_verify(p, g.tensors.data(), i, g.values[i]);
}

static void mark_busy(Session & s, const Backend & b, const ggml_tensor * t) {
    if (Buffer * buffer = s.at(t->data)) {
        buffer->busy |= b.bit;
    }
}

/* The root of a plain leaf is written right before its first reader. */
static void write_lazily(Session & s, const Graph & g, uint32_t i) {
    const uint32_t r = g.root(i);
    if (s.run.lazy && g.is(r, GC_LEAF) && !s.run.written[r]) {
        s.run.written[r] = true;
        write(g, r, bytes(s.run.lazy->tensors[r]));
    }
}

void compute_node(Session & s, const Backend & b, ggml_tensor * node) {
    const Info * info = static_cast<const Info *>(node->extra);
    if (!info || info->graph->tensors[info->index].view_src >= 0) {
        return; /* a view has no work to do */
    }
    const Graph & g = *info->graph;
    const gc_tensor & t = g.tensors[info->index];
    for (int j = 0; j < GC_MAX_SRC; j++) {
        if (t.src[j] < 0) {
            continue;
        }
        write_lazily(s, g, t.src[j]);
        if (g.tensors[t.src[j]].size == 0) {
            continue;
        }
        if (s.run.async) {
            mark_busy(s, b, node->src[j]);
        }
        const uint64_t at = wrong(g, t.src[j], bytes(node->src[j]));
        if (at < g.tensors[t.src[j]].size) {
            s.run.report(GC_BAD_SOURCE, (int32_t) info->index, j, at);
        }
    }
    if (t.size == 0) {
        return;
    }
    if (s.run.async) {
        mark_busy(s, b, node);
    }
    write(g, info->index, bytes(node));
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
        if (g.tensors[i].view_src < 0 && !g.is(i, GC_PREALLOC)) {
            scramble(bytes(in.tensors[i]), g.tensors[i].size);
        }
        for (int j = 0; j < GC_MAX_SRC; j++) {
            const ggml_tensor * src = in.tensors[i]->src[j];
            if (src && !src->extra && g.tensors[i].src[j] >= 0) {
                scramble(bytes(src), g.tensors[g.tensors[i].src[j]].size);
            }
        }
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
void before_compute(Session & s, Instance & in, bool all_leafs) {
    const Graph & g = *in.graph;
    s.run.lazy = all_leafs ? nullptr : &in;
    s.run.written.assign(g.tensors.size(), true);
    for (uint32_t i = 0; i < g.tensors.size(); i++) {
        if (!g.is(i, GC_LEAF) || g.is(i, GC_PREALLOC) || g.tensors[i].size == 0) {
            continue;
        }
        if (all_leafs || g.is(i, GC_INPUT) || !is_read(g, i)) {
            write(g, i, bytes(in.tensors[i]));
        } else {
            s.run.written[i] = false;
        }
    }
}

uint64_t after_compute(Session & s, const Instance & in) {
    const Graph & g = *in.graph;
    uint64_t digest = 0;
    for (uint32_t i = 0; i < g.tensors.size(); i++) {
        const uint64_t size = g.tensors[i].size;
        const uint8_t * p = bytes(in.tensors[i]);
        if (!g.is(i, GC_OUTPUT)) {
            continue;
        }
        const uint64_t at = size ? wrong(g, i, p) : size;
        if (at < size) {
            s.run.report(GC_BAD_OUTPUT, (int32_t) i, -1, at);
        }
        digest = gc_digest(digest, p, g.tensors.data(), i);
    }
    for (uint32_t i = 0; i < g.tensors.size(); i++) {
        if (!g.is(i, GC_PREALLOC)) {
            continue;
        }
        const uint64_t at = wrong(g, i, g.fixed[i]);
        if (at < g.tensors[i].size) {
            s.run.report(GC_BAD_PREALLOC, (int32_t) i, -1, at);
            write(g, i, g.fixed[i]); /* so that later operations are not blamed */
        }
    }
    for (const Buffer * b : s.live) {
        check_guard(s, *b);
    }
    return digest;
}

} // namespace gc
