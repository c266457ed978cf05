// stream.h: gc_oracle.h's gc_fill and gc_verify, eight bytes at a time. Nearly
// all the time of a check is spent here. A native test compares the two.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>

#include "gc_oracle.h"

namespace gc {

static_assert(std::endian::native == std::endian::little, "a stream's words are written as they are");

// Of a stream of `whole` bytes, the end of the row of touched bytes that `at` is in.
inline uint64_t row_end(uint64_t at, uint64_t whole) {
    if (whole <= 2 * GC_EDGE || at >= whole - GC_EDGE) return whole;
    return at < GC_EDGE ? uint64_t(GC_EDGE) : at + 1;
}

// Calls f(offset, bytes, n) for the touched bytes of [begin, end), n at a time;
// the first n bytes of `bytes` are what the stream holds there. Stops where f
// returns false.
template <class F> void each_word(uint64_t value, uint64_t begin, uint64_t end, uint64_t whole, F f) {
    for (uint64_t at = begin; at < end;) {
        const uint64_t stop = std::min(end, row_end(at, whole));
        while (at < stop) {
            const uint64_t skip = at & 7, n = std::min(8 - skip, stop - at);
            if (!f(at, gc_mix(value + (at >> 3)) >> (skip * 8), n)) return;
            at += n;
        }
        at = gc_next(at - 1, whole);
    }
}

// Writes the whole stream of value, `size` bytes.
inline void fill(uint8_t * p, uint64_t size, uint64_t value) {
    each_word(value, 0, size, size, [=](uint64_t at, uint64_t bytes, uint64_t n) {
        n == 8 ? std::memcpy(p + at, &bytes, 8) : std::memcpy(p + at, &bytes, n);
        return true;
    });
}

// The first offset at which tensor i's memory at p is wrong; its size if none.
inline uint64_t verify(const uint8_t * p, const gc_tensor * t, uint32_t i, uint64_t value) {
    const uint64_t from = t[i].view_offs;
    uint64_t wrong = t[i].size;
    const auto same = [&](uint64_t at, uint64_t bytes, uint64_t n) {
        uint64_t have = 0;
        n == 8 ? std::memcpy(&have, p + (at - from), 8) : std::memcpy(&have, p + (at - from), n);
        const uint64_t differs = (have ^ bytes) << (64 - 8 * n);
        if (differs) wrong = at - from + uint64_t(std::countr_zero(differs)) / 8 - (8 - n);
        return !differs;
    };
    each_word(value, gc_first(t, i), from + t[i].size, gc_whole(t, i), same);
    return wrong;
}

} // namespace gc
