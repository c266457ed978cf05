#include "compute.h"

#include <algorithm>

#include "defects.h"
#include "emulated.h"
#include "pair.h"
#include "stream.h"

namespace gc {
namespace {

constexpr uint64_t damage = 0x6261645f73726300u; // what a bad source does to its reader's value

class run {
  public:
    run(const bound_graph & bound) : b(bound), g(*bound.of), written(g.size()) {}

    findings all() {
        for (uint32_t i = 0; i < g.size(); i++) { // a leaf that is read waits for its first reader
            const bool given = g.has(i, GC_INPUT) || !g.read[i];
            if (g.has(i, GC_LEAF) && !g.has(i, GC_PREALLOC) && given) write(i, g.values[i]);
        }
        for (uint32_t i = 0; i < g.size(); i++) {
            if (!g.has(i, GC_LEAF)) node(i);
        }
        for (uint32_t i = 0; i < g.size(); i++) {
            if (g.has(i, GC_OUTPUT)) output(i);
            if (g.has(i, GC_PREALLOC)) check(i, GC_BAD_PREALLOC, int32_t(i), -1);
        }
        return found;
    }

  private:
    void write(uint32_t i, uint64_t value) {
        const addresses & at = (*b.map)[i];
        for (int j = 0; j < at.parts; j++) {
            fill(at.part[j], g.tensors[i].size, part_value(value, j));
        }
        written[i] = true;
    }

    // True if tensor i holds what it must, on every device.
    bool check(uint32_t i, uint32_t trouble, int32_t node, int32_t src) {
        const addresses & at = (*b.map)[i];
        bool good = true;
        for (int j = 0; j < at.parts; j++) {
            const uint64_t value = part_value(g.values[i], j), wrong = verify(at.part[j], g.tensors.data(), i, value);
            good &= wrong == g.tensors[i].size || report(wrong, trouble, node, src);
        }
        return good;
    }

    bool report(uint64_t wrong, uint32_t trouble, int32_t node, int32_t src) {
        if (!found.trouble) {
            found.bad_node = node;
            found.bad_src = src;
            found.bad_offset = wrong;
        }
        found.trouble |= trouble;
        return false;
    }

    void node(uint32_t i) {
        uint64_t value = g.values[i];
        for (int j = 0; j < GC_MAX_SRC; j++) {
            const int32_t s = g.tensors[i].src[j];
            if (s < 0) continue;
            const bool waits = g.has(uint32_t(s), GC_LEAF) && !g.has(uint32_t(s), GC_PREALLOC) && !written[s];
            if (waits) write(uint32_t(s), g.values[s]);
            if (g.is_view(i)) continue; // a view reads nothing
            if (!check(uint32_t(s), GC_BAD_SOURCE, int32_t(i), j)) value = gc_mix(value ^ damage);
        }
        if (!g.is_view(i)) write(i, value);
    }

    void output(uint32_t i) {
        check(i, GC_BAD_OUTPUT, int32_t(i), -1);
        found.digest = gc_digest(found.digest, (*b.map)[i].part[0], g.tensors.data(), i);
    }

    const bound_graph & b;
    const graph & g;
    std::vector<bool> written;
    findings found;
};

// Nothing was written between the buffer's end and its last page's end.
bool guard_holds(const buffer & b, uint64_t page) {
    if (b.size > emulated::backed_max) return true; // its end cannot be touched
    const auto * end = reinterpret_cast<const uint8_t *>(b.base) + b.size;
    const uint64_t rest = (page - b.size % page) % page;
    if (GC_PLANTED(WRITES_BEHIND_BUFFER) && rest > 0) *reinterpret_cast<uint8_t *>(b.base + b.size) = 1;
    return std::all_of(end, end + rest, [](uint8_t x) { return x == 0; });
}

} // namespace

findings compute(const bound_graph & b) {
    return run(b).all();
}

bool guards_hold(const gallocr & a) {
    for (int t = 0; t < GC_MAX_TYPES; t++) {
        if (!a.has_type(t)) continue;
        for (const meta_buffer & c : a.holding(t).chunk) {
            const auto holds = [&](const buffer & part) { return guard_holds(part, a.in->devices[t].page); };
            if (!std::all_of(c.part.begin(), c.part.end(), holds)) return false;
        }
    }
    return true;
}

} // namespace gc
