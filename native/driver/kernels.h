// kernels.h: the kernels that compute a graph, by name, and their parameters.
//
// kernels.cu has them for a card, emulated_kernels.cpp for the emulated driver;
// both do exactly what gc_oracle.h says a tensor holds. Every kernel takes one
// struct by value. A word is where a kernel puts what it finds: host memory that
// the card reaches too. This file is compiled by nvcc as well: plain types only.
#ifndef GC_KERNELS_H
#define GC_KERNELS_H

#include <stdint.h>

namespace gc::kernels {

// A word of `verify`: the first wrong offset, or this.
constexpr uint64_t nothing_wrong = ~uint64_t(0);
// What a bad source does to its reader's value.
constexpr uint64_t damage = 0x6261645f73726300u;

// Sets n words to `value`.
struct set_words {
    uint64_t * words;
    uint64_t n;
    uint64_t value;
};

// Writes the whole stream of `value`, `size` bytes, at `to`.
struct fill {
    uint8_t * to;
    uint64_t size;
    uint64_t value;
};

// Compares `size` bytes at `at`, which show the stream of `value` (in all `whole` bytes) from
// `from` on, with that stream: only what `fill` writes, from offset `first` of the stream on. The
// first wrong offset (counted at `at` from 0) goes to `word`, which held nothing_wrong.
struct verify {
    const uint8_t * at;
    uint64_t size;
    uint64_t from;
    uint64_t first;
    uint64_t whole;
    uint64_t value;
    uint64_t * word;
};

// As `fill`, with `value` damaged once for each of the n words at `words` that found something
// wrong; then, where `part` is not 0, mixed as the part of a meta tensor is: gc_mix(value + part).
struct node {
    uint8_t * to;
    uint64_t size;
    uint64_t value;
    const uint64_t * words;
    uint64_t n;
    uint64_t part;
};

// Folds those bytes that `verify` would compare into the digest at `word`.
struct digest {
    const uint8_t * at;
    uint64_t size;
    uint64_t from;
    uint64_t first;
    uint64_t whole;
    uint64_t * word;
};

enum kernel { k_set_words, k_fill, k_verify, k_node, k_digest, n_kernels };
constexpr const char * names[n_kernels] = {"gc_set_words", "gc_fill", "gc_verify", "gc_node", "gc_digest"};

// How they are launched: threads a block, and at most so many blocks (every thread takes a stride).
// `verify` and `digest` are one block.
constexpr unsigned block_threads = 256;
constexpr unsigned most_blocks = 1024;

} // namespace gc::kernels

#endif
