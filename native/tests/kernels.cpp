// The kernels for a card and those of the emulated driver do the same. kernels.cu is compiled for the
// host here, each block as one thread.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "check.h"
#include "emulated_kernels.h"

namespace {

struct index3 {
    unsigned x = 0;
};
index3 blockIdx, blockDim, gridDim, threadIdx;

unsigned long long atomicMin(unsigned long long * p, unsigned long long x) {
    const unsigned long long before = *p;
    *p = std::min(before, x);
    return before;
}

} // namespace

#define __device__
#define __global__
#define __shared__ static
#define __syncthreads()
#include "kernels.cu"
#undef __shared__

using gc::emulated::kernel_codes;
namespace kernels = gc::kernels;

namespace {

template <class P> void on_card(void (*f)(P), P parameters, unsigned blocks = 1) {
    gridDim.x = blocks;
    blockDim.x = 1;
    for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) {
        f(parameters);
    }
}

template <class P> void emulated(kernels::kernel k, const P & parameters) {
    kernel_codes[k].run(&parameters);
}

constexpr uint64_t edge_bytes = 65536, page_bytes = 4096;
const uint64_t sizes[] = {1, 7, 8, 300, 2 * edge_bytes - 1, 2 * edge_bytes, 2 * edge_bytes + 1, 3 * edge_bytes + 77,
                          64 * page_bytes, 300'001};

struct shown { // a view of `size` bytes from `from` on
    uint64_t from, size, first;
};

// Views of a stream of `whole` bytes; `first` as gc_first gives it.
std::vector<shown> views(uint64_t whole) {
    std::vector<shown> all;
    for (const uint64_t from : {uint64_t(0), uint64_t(1), whole / 3, whole / 2 + 5, whole - 1}) {
        if (from >= whole) continue;
        uint64_t first = from;
        while (whole > 2 * edge_bytes && first >= edge_bytes && first < whole - edge_bytes && first % page_bytes) first++;
        all.push_back({from, whole - from, first});
        if (whole - from > 10) all.push_back({from, (whole - from) / 2, first});
    }
    return all;
}

} // namespace

TEST(card_kernels_fill_like_the_emulated_ones) {
    for (const uint64_t size : sizes) {
        std::vector<uint8_t> a(size, 1), b(size, 1);
        on_card(gc_fill, kernels::fill{a.data(), size, 77}, 3);
        emulated(kernels::k_fill, kernels::fill{b.data(), size, 77});
        CHECK(a == b);
        const uint64_t words[] = {kernels::nothing_wrong, 5, 0};
        for (const uint64_t part : {0, 2}) {
            on_card(gc_node, kernels::node{a.data(), size, 9, words, 3, part}, 5);
            emulated(kernels::k_node, kernels::node{b.data(), size, 9, words, 3, part});
            CHECK(a == b);
        }
    }
}

TEST(card_kernels_find_like_the_emulated_ones) {
    for (const uint64_t size : sizes) {
        std::vector<uint8_t> memory(size);
        emulated(kernels::k_fill, kernels::fill{memory.data(), size, 77});
        for (const shown & v : views(size)) {
            const auto both = [&] {
                uint64_t a = kernels::nothing_wrong, b = a;
                const uint8_t * at = memory.data() + v.from;
                on_card(gc_verify, kernels::verify{at, v.size, v.from, v.first, size, 77, &a});
                emulated(kernels::k_verify, kernels::verify{at, v.size, v.from, v.first, size, 77, &b});
                CHECK(a == b);
                return a;
            };
            CHECK(both() == kernels::nothing_wrong);
            for (uint64_t at = v.from; at < v.from + v.size; at += 1 + (at - v.from) * 2 / 3) {
                memory[at] ^= 1;
                both();
                memory[at] ^= 1;
            }
        }
    }
}

TEST(card_kernels_digest_like_the_emulated_ones) {
    for (const uint64_t size : sizes) {
        std::vector<uint8_t> memory(size);
        emulated(kernels::k_fill, kernels::fill{memory.data(), size, 5});
        for (const shown & v : views(size)) {
            uint64_t a = 3, b = 3;
            on_card(gc_digest, kernels::digest{memory.data() + v.from, v.size, v.from, v.first, size, &a});
            emulated(kernels::k_digest, kernels::digest{memory.data() + v.from, v.size, v.from, v.first, size, &b});
            CHECK(a == b && a != 3);
        }
    }
    uint64_t words[5] = {1, 1, 1, 1, 1};
    on_card(gc_set_words, kernels::set_words{words, 4, 9}, 2);
    CHECK(words[0] == 9 && words[3] == 9 && words[4] == 1);
}
