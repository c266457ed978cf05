#include "graph.h"

#include <algorithm>
#include <string_view>

#include "defects.h"
#include "stream.h"

namespace gc {
namespace {

bool view_makes_sense(const gc_tensor * t, const gc_tensor & v) {
    if (v.flags & (GC_LEAF | GC_INPUT | GC_PREALLOC)) return false;
    if (v.src[0] != v.view_src || v.src[1] >= 0 || v.src[2] >= 0 || v.src[3] >= 0) return false;
    const gc_tensor & root = t[v.view_src];
    return root.view_src < 0 && v.view_offs <= root.size && v.size <= root.size - v.view_offs;
}

bool tensor_makes_sense(const gc_tensor * t, int32_t i) {
    bool sources = false;
    for (const int32_t s : t[i].src) {
        if (s < -1 || s >= i) return false;
        sources |= s >= 0;
    }
    if (t[i].slot < 0 || t[i].view_src < -1 || t[i].view_src >= i) return false;
    if (t[i].view_src >= 0) return view_makes_sense(t, t[i]);
    const bool leaf = t[i].flags & GC_LEAF;
    if (leaf ? sources : (t[i].flags & (GC_INPUT | GC_PREALLOC)) != 0) return false;
    return t[i].view_offs == 0;
}

} // namespace

bool makes_sense(const gc_tensor * t, uint32_t n) {
    if (n > INT32_MAX || (n > 0 && !t)) return false;
    for (uint32_t i = 0; i < n; i++) {
        if (!tensor_makes_sense(t, int32_t(i))) return false;
    }
    return true;
}

graph::graph(const gc_tensor * t, uint32_t n) : tensors(t, t + n), values(n), read(n), own_offset(n) {
    for (uint32_t i = 0; i < n; i++) {
        values[i] = gc_value(tensors.data(), i, values.data());
        for (const int32_t s : tensors[i].src) {
            if (s >= 0) read[s] = true;
        }
        if (has(i, GC_PREALLOC)) {
            own_offset[i] = own_size;
            own_size += std::min(tensors[i].size, machine::host_most());
        }
    }
}

uint8_t * graph::own_memory(uint32_t i) {
    if (!own && own_size > 0) {
        own = static_cast<uint8_t *>(machine::host_memory(machine::here(), own_size));
        for (uint32_t k = 0; k < size(); k++) {
            if (!has(k, GC_PREALLOC) || tensors[k].size > machine::host_most()) continue;
            fill(own + own_offset[k], tensors[k].size, values[k]);
        }
    }
    return own + own_offset[i];
}

bool same_graph(const graph & a, const graph & b) {
    if (GC_PLANTED(PLAN_FOR_ANY_OF_THAT_COUNT)) return a.size() == b.size();
    const auto as_large = [](const gc_tensor & x, const gc_tensor & y) { return x.size == y.size && x.pad == y.pad; };
    if (GC_PLANTED(PLAN_FOR_ANY_OF_THAT_SIZE)) return std::ranges::equal(a.tensors, b.tensors, as_large);
    const auto bytes = [](const graph & g) {
        return std::string_view(reinterpret_cast<const char *>(g.tensors.data()), g.size() * sizeof(gc_tensor));
    };
    return bytes(a) == bytes(b);
}

std::unique_ptr<graph> scaled(const graph & of, uint32_t tokens, uint32_t attention, uint32_t window, uint32_t indexer) {
    const uint64_t n = tokens, times[GC_N_SCALES] = {1, n, n * attention, n * window, n * indexer};
    std::vector<gc_tensor> tensors = of.tensors;
    for (gc_tensor & t : tensors) {
        t.size *= times[t.scale];
    }
    return std::make_unique<graph>(tensors.data(), uint32_t(tensors.size()));
}

} // namespace gc
