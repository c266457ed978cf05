/* gc_oracle.h: the memory oracle. Content is a stream of bytes made from a
 * 64-bit value; a tensor's value is a hash of its identity and its sources'
 * values, so what every tensor must hold is known from the graph alone.
 * Python's twin is model/oracle.py; a test compares the two.
 */
#ifndef GC_ORACLE_H
#define GC_ORACLE_H

#include <stdint.h>
#include "gallocheck.h"

static inline uint64_t gc_mix(uint64_t x) { /* splitmix64's finalizer */
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Value of tensor i of a graph; `values` holds those of all earlier tensors.
 * A view has the value of its root: it shows a part of the root's stream. */
static inline uint64_t gc_value(const gc_tensor * t, uint32_t i, const uint64_t * values) {
    if (t[i].view_src >= 0) {
        return values[t[i].view_src];
    }
    uint64_t v = gc_mix(i + 1);
    for (int j = 0; j < GC_MAX_SRC; j++) {
        if (t[i].src[j] >= 0) {
            v = gc_mix(v ^ values[t[i].src[j]] ^ ((uint64_t) (uint32_t) (j + 1) << 32)
                         ^ t[t[i].src[j]].view_offs);
        }
    }
    return v;
}

static inline uint8_t gc_byte(uint64_t value, uint64_t i) {
    return (uint8_t) (gc_mix(value + (i >> 3)) >> ((i & 7) * 8));
}

/* Of large tensors only the first and last 2 KiB and one byte a page between
 * are touched: the next offset to touch after i (SIZE when done). */
enum { GC_EDGE = 2048, GC_PAGE = 4096 };
static inline uint64_t gc_next(uint64_t i, uint64_t size) {
    if (size <= 2 * GC_EDGE || i + 1 < GC_EDGE || i + 1 >= size - GC_EDGE) {
        return i + 1;
    }
    uint64_t next = (i + 1 + GC_PAGE - 1) / GC_PAGE * GC_PAGE;
    return next < size - GC_EDGE ? next : size - GC_EDGE;
}

/* Writes `size` bytes of value's stream, beginning at stream offset `from`. */
static inline void gc_fill(uint8_t * p, uint64_t size, uint64_t value, uint64_t from) {
    for (uint64_t i = 0; i < size; i = gc_next(i, size)) {
        p[i] = gc_byte(value, from + i);
    }
}

/* The first offset at which memory differs from the stream; `size` if none. */
static inline uint64_t gc_verify(const uint8_t * p, uint64_t size, uint64_t value, uint64_t from) {
    for (uint64_t i = 0; i < size; i = gc_next(i, size)) {
        if (p[i] != gc_byte(value, from + i)) {
            return i;
        }
    }
    return size;
}

/* Folds touched bytes into a digest (outputs, in graph order). */
static inline uint64_t gc_digest(uint64_t h, const uint8_t * p, uint64_t size) {
    for (uint64_t i = 0; i < size; i = gc_next(i, size)) {
        h = (h ^ p[i]) * 0x100000001b3u;
    }
    return gc_mix(h ^ size);
}

#endif
