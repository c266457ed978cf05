// kernels.cu: the kernels of kernels.h for a card; native/driver/emulated_kernels.cpp
// is the same for the host. Built to PTX by native/driver/make_ptx.py.
#include "kernels.h"

using namespace gc::kernels;

namespace {

// gc_oracle.h's rules once more: what byte i of a stream is, and which bytes of a large one are touched.
constexpr uint64_t edge = 65536, page = 4096;

__device__ uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

__device__ uint8_t stream_byte(uint64_t value, uint64_t i) {
    return uint8_t(mix(value + (i >> 3)) >> ((i & 7) * 8));
}

// The touched offsets of a stream, numbered from 0: how many lie below offset `at`, and the nth.
__device__ uint64_t touched_below(uint64_t at, uint64_t whole) {
    if (whole <= 2 * edge || at <= edge) return at;
    const uint64_t last = whole - edge; // from here on every byte
    const uint64_t below = at < last ? at : last;
    const uint64_t pages = (below + page - 1) / page - edge / page; // multiples of a page in [edge, below)
    return edge + pages + (at - below);
}

__device__ uint64_t touched(uint64_t n, uint64_t whole) {
    if (whole <= 2 * edge || n < edge) return n;
    const uint64_t last = whole - edge;
    const uint64_t pages = (last + page - 1) / page - edge / page;
    return n - edge < pages ? edge + (n - edge) * page : last + (n - edge - pages);
}

__device__ uint64_t thread() {
    return uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ uint64_t threads() {
    return uint64_t(gridDim.x) * blockDim.x;
}

__device__ void write(uint8_t * to, uint64_t size, uint64_t value) {
    const uint64_t n = touched_below(size, size);
    for (uint64_t i = thread(); i < n; i += threads()) {
        const uint64_t at = touched(i, size);
        to[at] = stream_byte(value, at);
    }
}

} // namespace

extern "C" __global__ void gc_set_words(set_words p) {
    for (uint64_t i = thread(); i < p.n; i += threads()) {
        p.words[i] = p.value;
    }
}

extern "C" __global__ void gc_fill(fill p) {
    write(p.to, p.size, p.value);
}

// One block: what its threads find first is compared in shared memory, so that the word, which is
// the host's memory, needs no atomics.
extern "C" __global__ void gc_verify(verify p) {
    __shared__ unsigned long long least;
    if (threadIdx.x == 0) least = nothing_wrong;
    __syncthreads();
    const uint64_t from = touched_below(p.first, p.whole), to = touched_below(p.from + p.size, p.whole);
    for (uint64_t i = from + threadIdx.x; i < to; i += blockDim.x) {
        const uint64_t at = touched(i, p.whole);
        if (p.at[at - p.from] != stream_byte(p.value, at)) {
            atomicMin(&least, (unsigned long long) (at - p.from));
            break; // a thread's offsets ascend
        }
    }
    __syncthreads();
    if (threadIdx.x == 0 && least < *p.word) *p.word = least;
}

extern "C" __global__ void gc_node(node p) {
    uint64_t value = p.value;
    for (uint64_t i = 0; i < p.n; i++) {
        if (p.words[i] != nothing_wrong) value = mix(value ^ damage);
    }
    write(p.to, p.size, p.part ? mix(value + p.part) : value);
}

// One block: all threads fetch a tile, the first folds it.
extern "C" __global__ void gc_digest(digest p) {
    __shared__ uint8_t tile[4096];
    const uint64_t from = touched_below(p.first, p.whole), to = touched_below(p.from + p.size, p.whole);
    uint64_t h = *p.word;
    for (uint64_t i = from; i < to; i += sizeof(tile)) {
        const uint64_t n = to - i < sizeof(tile) ? to - i : sizeof(tile);
        for (uint64_t k = threadIdx.x; k < n; k += blockDim.x) {
            tile[k] = p.at[touched(i + k, p.whole) - p.from];
        }
        __syncthreads();
        for (uint64_t k = 0; threadIdx.x == 0 && k < n; k++) {
            h = (h ^ tile[k]) * 0x100000001b3ull;
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) *p.word = mix(h ^ p.size);
}
