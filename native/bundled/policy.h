// policy.h (W1, W2, W3, W7): what a context reserves for. Pure functions; model/workspace.py is the
// same, and proven. Tokens and cells are counts. docs/workspace.md says where the formulas come from.
#pragma once

#include <algorithm>
#include <cstdint>

#include "defects.h"
#include "gallocheck.h"

namespace gc::policy {

inline constexpr uint32_t patience = 64; // calls in a row that need less, until a reservation becomes smaller
inline constexpr uint32_t wide = 64;     // tokens from which on a batch runs on both lanes

// What a batch needs, or a lane is reserved for.
struct need {
    uint32_t tokens = 0;
    uint32_t cells = 0;

    bool operator==(const need &) const = default;
    bool above(const need & o) const { return tokens > o.tokens || cells > o.cells; }
    need larger(const need & o) const { return {std::max(tokens, o.tokens), std::max(cells, o.cells)}; }
};

// One lane's reservation, and the calls in a row that needed less.
struct lane {
    need reserved;
    need peak;          // the largest need of those calls
    uint32_t fewer = 0; // how many they are
};

// Cells of each part of the memory.
struct parts {
    uint32_t attention, window, indexer;
};

// A batch that the context can take.
inline bool lawful(const gc_context & c, uint64_t tokens, int64_t used) {
    return tokens >= 1 && tokens <= c.batch && used >= 0 && used <= int64_t(c.cells);
}

// W7: a kind without a bounded reservation keeps the full one.
inline bool bounded(const gc_context & c) {
    if (GC_PLANTED(OTHER_MEMORY_IS_BOUNDED)) return c.options & GC_LIVE_CONTEXT;
    if (GC_PLANTED(OFF_IS_BOUNDED_TOO) && !c.options) return true;
    return (c.options & GC_LIVE_CONTEXT) && c.memory != GC_OTHER_MEMORY;
}

// W1: the least power-of-two step, from one eighth on, that holds the cells in use.
inline uint32_t cells_for(const gc_context & c, uint32_t used) {
    if (!bounded(c)) return c.cells;
    uint32_t step = c.cells / 8;
    if (GC_PLANTED(STEPS_FROM_A_QUARTER)) step *= 2;
    while (step < used) step *= 2;
    if (GC_PLANTED(STEPS_ARE_LEFT_EARLY) && step == used && step < c.cells) step *= 2;
    return step;
}

// W1: the generation size until a prompt comes, then the micro-batch.
inline uint32_t tokens_for(const gc_context & c, uint32_t tokens) {
    if (GC_PLANTED(OFF_WAITS_FOR_PROMPTS) && !c.options) return tokens <= c.generation ? c.generation : c.batch;
    if (!(c.options & GC_PHASE_AWARE)) return c.batch;
    if (GC_PLANTED(PROMPTS_ARE_GENERATION)) return c.generation;
    return tokens <= c.generation ? c.generation : c.batch;
}

inline need need_of(const gc_context & c, uint32_t tokens, uint32_t used) {
    return {tokens_for(c, tokens), cells_for(c, used)};
}

// W2: the lane after a call with this need. Growth at once; smaller after 64 calls in a row that need less.
inline lane follow(lane l, const need & n) {
    if (n.above(l.reserved)) {
        if (GC_PLANTED(GROWTH_WAITS) && l.reserved.tokens && l.fewer == 0) return {l.reserved, n, 1};
        return {l.reserved.larger(n), l.peak, 0};
    }
    if (n == l.reserved) {
        if (GC_PLANTED(COUNT_GOES_ON)) return l;
        return {l.reserved, l.peak, 0};
    }
    l.peak = l.fewer && !GC_PLANTED(SHRINKS_TO_THE_LAST_NEED) ? l.peak.larger(n) : n;
    l.fewer++;
    if (l.fewer < (GC_PLANTED(SHRINKS_AT_63) ? patience - 1 : patience)) return l;
    return {l.peak, l.peak, 0};
}

// W3: lane 1 runs for batches of at least 64 tokens.
inline bool runs(const gc_context & c, uint32_t lane, uint32_t tokens) {
    if (lane == 0) return true;
    const uint32_t from = GC_PLANTED(LANE_1_ABOVE_64) ? wide + 1 : wide;
    return c.lanes == 2 && tokens >= from;
}

// What opening a context reserves.
inline lane start(const gc_context & c) {
    return {need_of(c, 1, 0), {}, 0};
}

// W7: cells of each part when so many of the cache are reserved for, or in use.
inline parts parts_for(const gc_context & c, uint32_t cells, [[maybe_unused]] bool reserved) {
    const bool windowed = c.memory == GC_KV_WINDOW || c.memory == GC_HYBRID_WINDOW;
    uint32_t most = c.window + c.batch;
    if (GC_PLANTED(WINDOW_WITHOUT_BATCH) && reserved) most = std::max(1u, c.window);
    uint32_t indexer = c.memory == GC_HYBRID_INDEXER ? cells : 0;
    if (GC_PLANTED(INDEXER_STAYS_FULL) && indexer && reserved) indexer = c.cells;
    return {cells, windowed ? std::min(cells, most) : 0, indexer};
}

} // namespace gc::policy
