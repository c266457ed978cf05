/* arena.cpp: device memory. Each allocation lies between inaccessible pages, at
 * addresses that no earlier allocation of the session had; freed memory stays
 * inaccessible, so that a stale pointer faults and never finds a successor.
 */
#include "subject.h"

#include <sys/mman.h>

namespace gc {

static constexpr uint64_t page = 4096;
static constexpr uint64_t largest_range = 1ull << 42; /* of address space, not of memory */

static uint8_t * map(void * where, uint64_t bytes, int access, int fixed) {
    void * p = mmap(where, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
    return p == MAP_FAILED ? nullptr : static_cast<uint8_t *>(p);
}

/* Addresses that no process has: user space ends far below. */
static constexpr uint64_t first_pretended = 1ull << 48, end_pretended = 0 - first_pretended;

Arena::Arena() : next_pretended(first_pretended) {}

bool Arena::is_real(const uint8_t * base) { return reinterpret_cast<uintptr_t>(base) < first_pretended; }

Arena::~Arena() {
    for (const Range & r : ranges) {
        munmap(r.base, r.size);
    }
}

uint8_t * Arena::take(uint64_t bytes) {
    if (bytes > largest_range / 2) {
        return nullptr;
    }
    const uint64_t need = bytes + page; /* the page after it stays shut */
    uint64_t size = largest_range;
    while (ranges.empty() || ranges.back().size - next < need) {
        if (size < need) {
            return nullptr;
        }
        if (uint8_t * base = map(nullptr, size, PROT_NONE, 0)) {
            ranges.push_back({base, size});
            next = page;
        } else {
            size /= 2; /* a machine that limits address space */
        }
    }
    uint8_t * base = ranges.back().base + next;
    if (mprotect(base, bytes, PROT_READ | PROT_WRITE) != 0) {
        return nullptr;
    }
    next += need;
    return base;
}

/* A device without limit grants what no machine has: a plan of that size can be looked at, not computed. */
uint8_t * Arena::pretend(uint64_t bytes) {
    if (bytes > end_pretended - next_pretended - page) {
        return nullptr;
    }
    uint8_t * base = reinterpret_cast<uint8_t *>(next_pretended);
    next_pretended += bytes + page;
    return base;
}

void Arena::drop(uint8_t * base, uint64_t bytes) {
    if (is_real(base)) {
        map(base, bytes, PROT_NONE, MAP_FIXED);
    }
}

} // namespace gc
