// buffer.h: device memory of one buffer type.
//
// A buffer is an address range with physical memory mapped to it. An entry is
// the up to 16 buffers (chunks) that an allocator's memory of one type is.
#pragma once

#include <array>
#include <cstdint>

#include "cuda_table.h"
#include "gallocheck.h"

namespace gc {

using chunk_sizes = std::array<uint64_t, GC_MAX_CHUNKS>; // bytes, chunk by chunk; 0: none

struct device {
    const cuda::driver * api;
    int ordinal;
    uint64_t granularity; // as the driver says
    uint64_t page;        // addresses are reserved in multiples of it

    uint64_t real(uint64_t asked) const; // what the device gives for `asked` bytes
};

struct buffer {
    cuda::device_ptr base = 0;
    uint64_t size = 0; // what the device gave
    cuda::allocation memory = 0;
};

struct entry {
    chunk_sizes asked{};
    std::array<buffer, GC_MAX_CHUNKS> chunk;

    bool empty() const { return asked == chunk_sizes{}; }
    uint64_t real_size(const device & d) const;                    // all chunks as the device gave them
    bool fits(const device & d, const chunk_sizes & need) const;   // no chunk needs more than it really has
};

// Frees all chunks.
void free_entry(const device & d, entry & e);
// Makes all chunks of an empty entry, or none: false where one cannot be had.
bool make_entry(const device & d, entry & e, const chunk_sizes & want);

} // namespace gc
