// meta.h (M): buffers with a part on each of several devices, and the maps from
// tensors to the addresses of their parts. Simple types are those of one part.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "buffer.h"
#include "gc_oracle.h"

namespace gc {

// Where a tensor is: an address on each device of its type; of a tensor in no memory of the
// allocator's (a weight) its one address.
struct addresses {
    int parts = 0;
    std::array<uint8_t *, MAX_PARTS> part{};
    std::array<int, MAX_PARTS> device{-1, -1, -1, -1}; // its ordinal; -1: none
};

// From the tensors of a bound graph, by index, to where they are. It belongs to one allocator (M2).
using address_map = std::vector<addresses>;

// What an allocator knows of the simple buffers that it binds into: the address of each part of
// each chunk. A borrower's are an alias of the owner's: the same simple buffers, not owned. It is
// right for as long as the generation does not change (M3).
struct alias {
    std::array<std::array<std::array<cuda::device_ptr, MAX_PARTS>, GC_MAX_CHUNKS>, GC_MAX_TYPES> base{};

    void see(int t, const entry & e); // the buffers of type t as they are now
};

// What device j of a tensor's type holds of a tensor with that value: the stream of this.
inline uint64_t part_value(uint64_t value, int j) {
    return j == 0 ? value : gc_mix(value + uint64_t(j));
}

} // namespace gc
