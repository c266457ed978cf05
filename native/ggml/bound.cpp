/* bound.cpp: where the tensors of a bound graph are: places as the contract counts
 * them, addresses (of a meta type: one on each device), and the buffers behind them. */
#include "subject.h"

namespace gc {

/* The simple buffers of the meta buffers met so far. */
using Parts = std::map<ggml_backend_buffer_t, std::vector<Buffer *>>;

static ggml_backend_buffer_t buffer_of(const ggml_tensor * t) { return t->view_src ? t->view_src->buffer : t->buffer; }

static const std::vector<Buffer *> & parts_of(Session & s, Parts & known, ggml_backend_buffer_t buffer) {
    auto found = known.find(buffer);
    return found != known.end() ? found->second : known.emplace(buffer, meta_parts(s, buffer)).first->second;
}

/* The chunk is counted among the allocator's buffers of the type. */
static gc_place place_in(const Session & s, const Alloc & a, const Buffer & b, uint64_t offset) {
    int32_t chunk = 0;
    for (const Buffer * other : s.live) {
        chunk += other->type == b.type && other->part == b.part && other->pool == b.pool && other->serial < b.serial;
    }
    if (b.pool != a.pools[b.type]) {
        return {-1, -1, 0}; /* somebody else's memory */
    }
    return {b.type, chunk, offset};
}

static gc_place place_of(const Session & s, const Alloc & a, const Buffer * b, const uint8_t * p) {
    return b ? place_in(s, a, *b, (uint64_t) (p - b->base)) : gc_place{-1, -1, 0};
}

static void add(Instance & in, const Buffer * b) {
    if (b) {
        in.serials.push_back(b->serial);
    }
}

static bool is_empty(const gc_tensor & d) { return d.size == 0 && (d.pad == 0 || d.view_src >= 0); }

/* A tensor on a simple type. */
static void locate_simple(Session & s, const Alloc & a, Instance & in, uint32_t i, int type) {
    const Graph & g = *in.graph;
    const gc_tensor & d = g.tensors[i];
    uint8_t * p = static_cast<uint8_t *>(in.tensors[i]->data);
    in.parts.push_back(1);
    in.where[0][i] = p;
    if (g.is(g.root(i), GC_PREALLOC)) {
        in.places.push_back({-1, 0, 0});
    } else if (is_empty(d)) {
        in.places.push_back({type, 0, 0});
    } else {
        in.places.push_back(place_of(s, a, s.at(p), p));
        add(in, d.size ? s.at(p) : nullptr);
    }
}

/* A weight of a meta type, or a view of one. */
static void locate_weight(Instance & in, uint32_t i, const Type & t) {
    const Graph & g = *in.graph;
    const Weights & w = *g.weights.at(t.index);
    for (int part = 0; part < t.n_parts; part++) {
        uint8_t * base = w.where[part][g.root(i)];
        in.where[part][i] = base ? base + g.tensors[i].view_offs : nullptr;
    }
    in.places.push_back({-1, 0, 0});
}

/* A tensor on a meta type: at the same offset of a simple buffer on every device. */
static void locate_meta(Session & s, const Alloc & a, Instance & in, uint32_t i, const Type & t, Parts & known) {
    const Graph & g = *in.graph;
    const gc_tensor & d = g.tensors[i];
    in.parts.push_back(t.n_parts);
    if (g.is(g.root(i), GC_PREALLOC)) {
        return locate_weight(in, i, t);
    }
    if (is_empty(d)) {
        in.places.push_back({t.index, 0, 0});
        return;
    }
    const std::vector<Buffer *> & parts = parts_of(s, known, buffer_of(in.tensors[i]));
    const uint64_t offset = meta_offset(in.tensors[i]);
    in.places.push_back(parts.empty() ? gc_place{-1, -1, 0} : place_in(s, a, *parts.back(), offset));
    for (size_t part = 0; part < parts.size(); part++) {
        in.where[part][i] = parts[part]->base + offset;
        add(in, d.size ? parts[part] : nullptr);
    }
}

static void locate_copies(Session & s, Instance & in, uint32_t i, Parts & known) {
    const Graph & g = *in.graph;
    for (int j = 0; j < GC_MAX_SRC; j++) {
        const int32_t wanted = g.tensors[i].src[j];
        const ggml_tensor * src = in.tensors[i]->src[src_slot(g, i, j)];
        if (wanted < 0 || !src || src->extra || g.tensors[wanted].size == 0) {
            continue;
        }
        if (const Buffer * b = s.at(src->data)) {
            in.copies.push_back({static_cast<uint8_t *>(src->data), (uint32_t) wanted});
            add(in, b);
        } else {
            for (const Buffer * part : parts_of(s, known, buffer_of(src))) {
                add(in, part);
            }
        }
    }
}

void locate(Session & s, const Alloc & a, Instance & in) {
    const Graph & g = *in.graph;
    Parts known;
    in.places.clear();
    in.serials.clear();
    in.parts.clear();
    in.copies.clear();
    for (auto & where : in.where) {
        where.assign(g.tensors.size(), nullptr);
    }
    for (uint32_t i = 0; i < g.tensors.size(); i++) {
        const int type = s.type_of(a, g.tensors[g.root(i)].slot);
        if (s.is_meta(type)) {
            locate_meta(s, a, in, i, s.types[type], known);
        } else {
            locate_simple(s, a, in, i, type);
        }
        locate_copies(s, in, i, known);
    }
}

} // namespace gc
