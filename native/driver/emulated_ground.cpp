// emulated_ground.cpp: device memory as the host's: mmap and mprotect.
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "emulated_world.h"

namespace gc::emulated {
namespace {

constexpr uint64_t arena_size = uint64_t(1) << 40;
constexpr uint64_t backed_most = uint64_t(1) << 36;
constexpr uint64_t huge_page = uint64_t(1) << 21;

[[noreturn]] void die(const char * what) {
    std::perror(what);
    std::abort();
}

char * host(cuda::device_ptr p) {
    return reinterpret_cast<char *>(p); // NOLINT: a device address is a host address here
}

// Bytes of host memory behind so many bytes of a device; only the start of a huge range has any.
uint64_t backed(uint64_t size) {
    return page_up(std::min(size, backed_most));
}

// Fresh addresses without access, and behind them one page that faults; null where there are none left.
char * new_addresses(world & w, uint64_t size, uint64_t alignment) {
    for (;;) {
        if (!w.arenas.empty()) {
            arena & a = w.arenas.back();
            const uint64_t top = reinterpret_cast<uint64_t>(a.base) + a.top;
            const uint64_t skip = (alignment - top % alignment) % alignment;
            if (a.size - a.top >= skip && a.size - a.top - skip > size) { // one page more: it faults
                a.top += skip + size + page();
                return a.base + a.top - size - page();
            }
        }
        const uint64_t needed = size + alignment + page();
        uint64_t bytes = std::max(arena_size, needed);
        void * p = MAP_FAILED;
        for (;; bytes /= 2) { // ThreadSanitizer leaves less room
            p = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (p != MAP_FAILED) break;
            if (bytes / 2 < needed) return nullptr;
        }
        w.arenas.push_back({static_cast<char *>(p), bytes, 0});
    }
}

cuda::device_ptr reserve(uint64_t size, uint64_t alignment) {
    return reinterpret_cast<cuda::device_ptr>(new_addresses(*here, backed(size), alignment));
}

void unreserve(cuda::device_ptr, uint64_t) {} // an address is never given out twice

bool map(cuda::device_ptr, uint64_t) {
    return true; // without access
}

void allow(cuda::device_ptr at, uint64_t size, int access) {
    const int protection = access == cuda::access_none ? PROT_NONE
                         : access == cuda::access_read ? PROT_READ
                                                       : PROT_READ | PROT_WRITE;
    if (mprotect(host(at), backed(size), protection) != 0) die("mprotect");
    if (size >= huge_page) madvise(host(at), backed(size), MADV_NOHUGEPAGE); // a page touched costs a page
}

void unmap(cuda::device_ptr at, uint64_t size) { // fresh pages without access: the old content is gone
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    if (mmap(host(at), backed(size), PROT_NONE, flags, -1, 0) == MAP_FAILED) die("mmap");
}

cuda::device_ptr allocate(uint64_t size) {
    const cuda::device_ptr at = reserve(size, page());
    if (at) allow(at, size, cuda::access_read_write);
    return at;
}

void * host_allocate(uint64_t size) {
    return std::aligned_alloc(64, (size + 63) / 64 * 64);
}

void host_free(void * at) {
    std::free(at);
}

void copy_in(cuda::device_ptr to, const void * from, uint64_t size) {
    std::memcpy(host(to), from, size);
}

void copy_out(void * to, cuda::device_ptr from, uint64_t size) {
    std::memcpy(to, host(from), size);
}

void set(cuda::device_ptr to, unsigned char value, uint64_t size) {
    std::memset(host(to), value, size);
}

void settle() {}

} // namespace

const ground on_host = {backed_most, reserve, unreserve, map,     allow,    unmap, allocate, unmap,
                        host_allocate, host_free, copy_in, copy_out, set,   true,     settle};

} // namespace gc::emulated
