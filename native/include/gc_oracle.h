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

/* Of tensors above 2 * GC_EDGE bytes only the first and last GC_EDGE and one byte a
 * page between are touched: the next offset to touch after i (`size` when done). */
enum { GC_EDGE = 65536, GC_PAGE = 4096 };
static inline uint64_t gc_next(uint64_t i, uint64_t size) {
    if (size <= 2 * GC_EDGE || i + 1 < GC_EDGE || i + 1 >= size - GC_EDGE) {
        return i + 1;
    }
    uint64_t next = (i + 1 + GC_PAGE - 1) / GC_PAGE * GC_PAGE;
    return next < size - GC_EDGE ? next : size - GC_EDGE;
}

/* Writes the whole stream of value, `size` bytes. */
static inline void gc_fill(uint8_t * p, uint64_t size, uint64_t value) {
    for (uint64_t i = 0; i < size; i = gc_next(i, size)) {
        p[i] = gc_byte(value, i);
    }
}

/* Size of the stream that tensor i shows (a view shows a part of its root's). */
static inline uint64_t gc_whole(const gc_tensor * t, uint32_t i) {
    return t[i].view_src >= 0 ? t[t[i].view_src].size : t[i].size;
}

/* Of tensor i's bytes, the first that gc_fill wrote; offsets count in the whole stream. */
static inline uint64_t gc_first(const gc_tensor * t, uint32_t i) {
    return t[i].view_offs ? gc_next(t[i].view_offs - 1, gc_whole(t, i)) : 0;
}

/* The first offset at which tensor i's memory at p is wrong; its size if none. */
static inline uint64_t gc_verify(const uint8_t * p, const gc_tensor * t, uint32_t i, uint64_t value) {
    const uint64_t from = t[i].view_offs, end = from + t[i].size;
    for (uint64_t at = gc_first(t, i); at < end; at = gc_next(at, gc_whole(t, i))) {
        if (p[at - from] != gc_byte(value, at)) {
            return at - from;
        }
    }
    return t[i].size;
}

/* Folds tensor i's written bytes into a digest (outputs, in graph order). */
static inline uint64_t gc_digest(uint64_t h, const uint8_t * p, const gc_tensor * t, uint32_t i) {
    const uint64_t from = t[i].view_offs, end = from + t[i].size;
    for (uint64_t at = gc_first(t, i); at < end; at = gc_next(at, gc_whole(t, i))) {
        h = (h ^ p[at - from]) * 0x100000001b3u;
    }
    return gc_mix(h ^ t[i].size);
}

#endif
