// buffer.h: device memory of one buffer type.
//
// A simple buffer is an address range with physical memory mapped to it. A
// buffer of a meta type has a simple one, of the same size, on every device of
// the type (M1); of a simple type it has one. An entry is the up to 16 buffers
// (chunks) that an allocator's memory of one type is.
#pragma once

#include <array>
#include <cstdint>

#include "cuda_table.h"
#include "gallocheck.h"

namespace gc {

using chunk_sizes = std::array<uint64_t, GC_MAX_CHUNKS>; // bytes, chunk by chunk; 0: none

inline constexpr int MAX_PARTS = GC_MAX_TYPES - 1;

// Where a type's buffers are.
struct device {
    const cuda::driver * api;
    int ordinal;          // of the device; of a meta type of no meaning
    uint64_t granularity; // as the driver says; of a meta type as its setup says
    uint64_t page;        // addresses are reserved in multiples of it
    uint32_t meta = 0;    // bit k: a part is on device k; 0: a simple type

    uint64_t real(uint64_t asked) const; // what is given for `asked` bytes, on each device
    int parts() const;                   // how many devices
    int on(int part) const;              // ordinal of the device of that part
};

struct buffer {
    cuda::device_ptr base = 0;
    uint64_t size = 0; // what the device gave
    cuda::allocation memory = 0;
};

struct meta_buffer {
    std::array<buffer, MAX_PARTS> part; // in the order of the devices
};

// On one device: false, and nothing changed, where it cannot be had.
bool make_part(const device & d, int ordinal, uint64_t asked, buffer & b);
void free_part(const device & d, buffer & b);
// On every device of the type, or on none (meta.cpp).
bool make_buffer(const device & d, uint64_t asked, meta_buffer & b);
void free_buffer(const device & d, meta_buffer & b);

struct entry {
    chunk_sizes asked{};
    std::array<meta_buffer, GC_MAX_CHUNKS> chunk;

    bool empty() const { return asked == chunk_sizes{}; }
    uint64_t real_size(const device & d) const;                    // all chunks as each device gave them
    bool fits(const device & d, const chunk_sizes & need) const;   // no chunk needs more than it really has
};

// Frees all chunks.
void free_entry(const device & d, entry & e);
// Makes all chunks of an empty entry, or none: false where one cannot be had.
bool make_entry(const device & d, entry & e, const chunk_sizes & want);

} // namespace gc
