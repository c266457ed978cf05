#include "buffer.h"

#include <bit>

#include "defects.h"
#include "must.h"

namespace gc {
namespace {

uint64_t range(const device & d, uint64_t size) {
    return (size + d.page - 1) / d.page * d.page;
}

} // namespace

bool make_part(const device & d, int ordinal, uint64_t asked, buffer & b) {
    const cuda::location where = {cuda::on_device, ordinal};
    cuda::allocation_prop prop{};
    prop.type = cuda::pinned_memory;
    prop.where = where;
    b.size = d.real(asked);
    if (d.api->mem_create(&b.memory, b.size, &prop, 0) != cuda::success) {
        b = {};
        return false;
    }
    if (d.api->mem_address_reserve(&b.base, range(d, b.size), 0, 0, 0) != cuda::success) {
        must(d.api->mem_release(b.memory));
        b = {};
        return false;
    }
    const cuda::access_desc access = {where, cuda::access_read_write};
    must(d.api->mem_map(b.base, b.size, 0, b.memory, 0));
    must(d.api->mem_set_access(b.base, b.size, &access, 1));
    return true;
}

void free_part(const device & d, buffer & b) {
    if (b.size == 0) return;
    must(d.api->mem_unmap(b.base, b.size));
    must(d.api->mem_release(b.memory));
    must(d.api->mem_address_free(b.base, range(d, b.size)));
    b = {};
}

uint64_t device::real(uint64_t asked) const {
    return (asked + granularity - 1) / granularity * granularity;
}

int device::parts() const {
    return meta ? std::popcount(meta) : 1;
}

int device::on(int part) const {
    if (!meta) return ordinal;
    uint32_t rest = meta;
    while (part-- > 0) rest &= rest - 1;
    return std::countr_zero(rest);
}

uint64_t entry::real_size(const device & d) const {
    uint64_t sum = 0;
    for (const uint64_t a : asked) {
        if (a > 0) sum += d.real(a); // most are none, and a division is dear
    }
    return sum;
}

bool entry::fits(const device & d, const chunk_sizes & need) const {
    for (int c = 0; c < GC_MAX_CHUNKS; c++) {
        if (need[c] > asked[c] && need[c] > d.real(asked[c])) return false;
    }
    return true;
}

void free_entry(const device & d, entry & e) {
    for (int c = 0; c < GC_MAX_CHUNKS; c++) {
        if (e.asked[c] > 0) free_buffer(d, e.chunk[c]); // most are none
    }
    e.asked = {};
}

bool make_entry(const device & d, entry & e, const chunk_sizes & want) {
    e.asked = want;
    for (int c = 0; c < GC_MAX_CHUNKS; c++) {
        if (want[c] > 0 && !make_buffer(d, want[c], e.chunk[c])) {
            if (GC_PLANTED(FAILURE_LEAKS_CHUNKS)) e = {};
            free_entry(d, e);
            return false;
        }
    }
    return true;
}

} // namespace gc
