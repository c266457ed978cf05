#include "planner.h"

#include <algorithm>

#include "defects.h"

namespace gc {
namespace {

constexpr uint64_t limit = INT64_MAX; // no end of a tensor, no sum of chunks lies above (P13)

struct block { // free bytes [begin, end)
    uint64_t begin, end;
};

// A chunk being planned: free blocks sorted and coalesced, the highest end so far.
struct chunk {
    std::vector<block> free;
    uint64_t top = 0;

    void take(size_t k, uint64_t size) {
        block & b = free[k];
        b.begin += size;
        top = std::max(top, b.begin);
        if (b.begin == b.end) {
            free.erase(free.begin() + ptrdiff_t(k));
        }
    }

    void give(uint64_t begin, uint64_t size) {
        const uint64_t end = begin + size;
        auto next = std::find_if(free.begin(), free.end(), [&](const block & b) { return b.begin >= end; });
        bool joins_next = next != free.end() && next->begin == end;
        if (GC_PLANTED(JOINS_OVER_A_GAP)) joins_next = next != free.end() && next->begin - end <= 64;
        const bool joins_last = next != free.begin() && (next - 1)->end == begin;
        if (joins_last && joins_next) {
            (next - 1)->end = next->end;
            free.erase(next);
        } else if (joins_last) {
            (next - 1)->end = end;
        } else if (joins_next) {
            next->begin = begin;
        } else {
            free.insert(next, {begin, end});
        }
        if (GC_PLANTED(NEED_FOLLOWS_FREES) && free.back().end >= top) top = std::min(top, free.back().begin);
    }
};

// What a free block would cost a tensor: growth first, then the tightest fit,
// then the lowest place.
struct cost {
    uint64_t growth, leftover;
    size_t chunk, block;
    auto operator<=>(const cost &) const = default;
};

// All chunks of one type.
struct pool {
    const gc_type * type = nullptr;
    std::vector<chunk> chunks;

    uint64_t round_up(uint64_t size) const { return (size + type->alignment - 1) & ~(type->alignment - 1); }

    // P2: sizes are multiples of the alignment. False above the limit (P13).
    bool rounded(const gc_tensor & t, uint64_t & size) const {
        if ((t.size > limit || t.pad > limit) && !GC_PLANTED(SIZES_WRAP)) return false;
        size = round_up(t.size + t.pad);
        if (GC_PLANTED(PAD_IS_NOT_ROUNDED)) size = round_up(t.size) + t.pad;
        return size <= limit;
    }

    bool open(uint64_t size) {
        if (chunks.size() == GC_MAX_CHUNKS) return false;
        bool last = chunks.size() == GC_MAX_CHUNKS - 1;
        if (GC_PLANTED(IGNORES_LARGEST_BUFFER)) last = chunks.empty();
        if (GC_PLANTED(SECOND_CHUNK_TAKES_ALL)) last = chunks.size() == 1;
        const uint64_t end = last ? limit : std::min(limit, std::max(type->max_size, size)); // P4
        chunks.push_back({});
        if (end > 0) chunks.back().free.push_back({0, end});
        return true;
    }

    bool place(uint64_t size, int32_t & at_chunk, uint64_t & offset) {
        if (GC_PLANTED(NOTHING_IS_TOO_SMALL) && size == 0) return false;
        if (size == 0) { // no block is needed; chunk 0 exists all the same
            if (chunks.empty()) open(0);
            at_chunk = 0, offset = 0;
            return true;
        }
        cost best = {UINT64_MAX, 0, 0, 0};
        for (size_t c = 0; c < chunks.size(); c++) {
            const chunk & k = chunks[c];
            for (size_t b = 0; b < k.free.size(); b++) {
                const auto [begin, end] = k.free[b];
                if (end - begin < size) continue;
                const uint64_t stop = begin + size, usable = std::min(end, k.top);
                best = std::min(best, {stop > k.top ? stop - k.top : 0, usable > stop ? usable - stop : 0, c, b});
            }
        }
        if (best.growth == UINT64_MAX) {
            if (!open(size)) return false;
            best = {0, 0, chunks.size() - 1, 0};
        }
        at_chunk = int32_t(best.chunk);
        offset = chunks[best.chunk].free[best.block].begin;
        chunks[best.chunk].take(best.block, size);
        return true;
    }
};

class planning {
  public:
    planning(const graph & graph, const layout & layout, plan & plan)
        : g(graph), l(layout), out(plan), state(g.size()) {
        for (int32_t s = 0; s < l.n_slots; s++) {
            pools[l.slots[s]].type = &l.types[l.slots[s]];
        }
        for (uint32_t i = 0; i < g.size(); i++) {
            for (int j = 0; j < GC_MAX_SRC; j++) {
                const int32_t s = g.tensors[i].src[j];
                if (GC_PLANTED(COUNTS_REPEATS_ONCE) && s >= 0 && !g.is_view(s) && listed_before(i, j)) continue;
                if (s >= 0) state[s].reads++;
            }
            if (g.is_view(i)) state[g.root(i)].views++;
            if (g.has(i, GC_OUTPUT)) state[g.root(i)].pinned = true; // P5
        }
        out.places.assign(g.size(), outside);
    }

    bool run() {
        for (uint32_t i = 0; i < g.size(); i++) { // P6: inputs before everything else
            if (GC_PLANTED(PLACES_INPUTS_LATE) && g.read[i]) continue;
            if (g.has(i, GC_INPUT) && !put(i)) return false;
        }
        for (uint32_t i = 0; i < g.size(); i++) {
            if (g.has(i, GC_LEAF) && !g.has(i, GC_INPUT) && !put(i)) return false;
        }
        for (uint32_t i = 0; i < g.size(); i++) {
            if (g.has(i, GC_LEAF)) continue;
            if (GC_PLANTED(PLACES_INPUTS_LATE) && !put_late_inputs(i)) return false;
            if (!put(i)) return false;
            after(i);
        }
        for (uint32_t i = 0; i < g.size(); i++) { // leafs that nobody read
            if (g.has(i, GC_LEAF)) release(i);
        }
        return finish();
    }

  private:
    struct tensor_state {
        uint64_t size = 0;   // rounded bytes of memory that it must give back
        uint32_t reads = 0;  // reads to come
        uint32_t views = 0;  // views still in use
        bool pinned = false; // it or a view of it is an output
        bool held = false;   // it has memory to give back
    };

    bool put(uint32_t i) {
        if (g.is_view(i)) return true;                                               // P7: its source has a place
        if (g.has(i, GC_PREALLOC) && !GC_PLANTED(PLACES_WEIGHTS)) return true; // P14: it is somewhere already
        const int32_t type = l.type_of(g.tensors[i]);
        tensor_state & me = state[i];
        gc_place & at = out.places[i];
        if (!pools[type].rounded(g.tensors[i], me.size)) return false;
        if (GC_PLANTED(INPUTS_SHARE) && share_with_last_input(i, type)) return true;
        const int32_t parent = g.has(i, GC_INPLACE) ? parent_to_reuse(i, type) : -1;
        if (parent >= 0) {
            take_over(i, uint32_t(parent));
        } else {
            at.type = type;
            if (!pools[type].place(me.size, at.chunk, at.offset)) return false;
        }
        me.held = true;
        return true;
    }

    // P8: the first parent whose memory node i may write over, or -1.
    int32_t parent_to_reuse(uint32_t i, int32_t type) const {
        for (const int32_t p : g.tensors[i].src) {
            if (p >= 0 && reusable(uint32_t(p), i, type)) return p;
        }
        return -1;
    }

    bool reusable(uint32_t p, uint32_t i, int32_t type) const {
        const tensor_state & parent = state[p];
        if (!parent.held) return false; // a view, preallocated, or given away
        if (parent.pinned && !GC_PLANTED(REUSES_OUTPUTS)) return false;
        if (parent.reads != 1 && !GC_PLANTED(REUSES_WHAT_IS_READ)) return false;
        if (parent.views != 0 && !GC_PLANTED(REUSES_WHAT_IS_VIEWED)) return false;
        if (!same_layout(g.tensors[p], g.tensors[i])) return false;
        if (out.places[p].type != type) return false;
        return parent.size >= state[i].size;
    }

    static bool same_layout(const gc_tensor & a, const gc_tensor & b) {
        if (GC_PLANTED(REUSES_OTHER_LAYOUT)) return true;
        return a.size == b.size && (a.flags & GC_LAYOUT) == (b.flags & GC_LAYOUT);
    }

    // The node moves into its parent's memory; what it does not need goes back (P2).
    void take_over(uint32_t i, uint32_t parent) {
        out.places[i] = out.places[parent];
        state[parent].held = false;
        if (GC_PLANTED(LEFTOVER_IS_NOT_ROUNDED)) state[i].size = g.tensors[i].size + g.tensors[i].pad;
        if (GC_PLANTED(LOSES_LEFTOVER)) return;
        give(out.places[i], state[i].size, state[parent].size - state[i].size);
    }

    // Node i has run: each source entry takes one read off.
    void after(uint32_t i) {
        for (const int32_t s : g.tensors[i].src) {
            if (s >= 0 && --state[s].reads == 0) done(uint32_t(s));
            if (GC_PLANTED(FREES_AT_FIRST_READ) && s >= 0 && state[s].views == 0) release(uint32_t(s));
        }
        if (state[i].reads == 0) done(i);
    }

    // No read of tensor i is left.
    void done(uint32_t i) {
        if (g.is_view(i)) {
            tensor_state & root = state[g.root(i)];
            if (--root.views == 0 && root.reads == 0) release(g.root(i));
        } else if (state[i].views == 0 || GC_PLANTED(VIEWS_DO_NOT_HOLD)) {
            release(i);
        }
    }

    void release(uint32_t i) {
        tensor_state & t = state[i];
        bool keep = t.pinned; // P5
        if (GC_PLANTED(FREES_OUTPUTS)) keep = false;
        if (GC_PLANTED(FREES_VIEWED_OUTPUTS)) keep = g.has(i, GC_OUTPUT);
        if (!t.held || keep) return;
        t.held = false;
        if (GC_PLANTED(FREES_WITHOUT_PAD)) t.size = pools[out.places[i].type].round_up(g.tensors[i].size);
        give(out.places[i], 0, t.size);
    }

    // Frees `size` bytes that begin `from` bytes behind a place.
    void give(const gc_place & at, uint64_t from, uint64_t size) {
        if (size > 0) pools[at.type].chunks[at.chunk].give(at.offset + from, size);
    }

    bool finish() {
        for (int t = 0; t < GC_MAX_TYPES; t++) {
            uint64_t sum = 0;
            for (size_t c = 0; c < pools[t].chunks.size(); c++) {
                const uint64_t top = pools[t].chunks[c].top;
                if (top > limit - sum) return false; // P13
                sum += top;
                out.need[t][c] = top; // P11
                const uint64_t more = top + pools[t].type->alignment;
                if (GC_PLANTED(NEED_HAS_SLACK) && top > 0 && more <= pools[t].type->max_size) out.need[t][c] = more;
            }
        }
        for (uint32_t i = 0; i < g.size(); i++) { // P7
            if (g.is_view(i) && !g.has(g.root(i), GC_PREALLOC)) {
                out.places[i] = out.places[g.root(i)];
                if (!GC_PLANTED(LOSES_VIEW_OFFSET)) out.places[i].offset += g.tensors[i].view_offs;
            }
        }
        return true;
    }

    // What planted defects do; the shipped build calls none of it.

    bool listed_before(uint32_t i, int j) const { // COUNTS_REPEATS_ONCE
        const int32_t * src = g.tensors[i].src;
        return std::find(src, src + j, src[j]) != src + j;
    }

    bool put_late_inputs(uint32_t i) { // PLACES_INPUTS_LATE
        for (const int32_t s : g.tensors[i].src) {
            const bool missing = s >= 0 && g.has(uint32_t(s), GC_INPUT) && out.places[s].type < 0;
            if (missing && !put(uint32_t(s))) return false;
        }
        return true;
    }

    bool share_with_last_input(uint32_t i, int32_t type) { // INPUTS_SHARE
        for (uint32_t k = i; k-- > 0 && g.has(i, GC_INPUT);) {
            if (!g.has(k, GC_INPUT) || out.places[k].type != type) continue;
            if (state[k].size < state[i].size) return false;
            out.places[i] = out.places[k];
            return true;
        }
        return false;
    }

    const graph & g;
    const layout & l;
    plan & out;
    std::vector<tensor_state> state;
    std::array<pool, GC_MAX_TYPES> pools;
};

} // namespace

bool make_plan(const graph & g, const layout & l, plan & out) {
    out = {};
    if (GC_PLANTED(EMPTY_GRAPH_FAILS) && g.size() == 0) return false;
    return planning(g, l, out).run();
}

} // namespace gc
