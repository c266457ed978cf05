// emulated_light.cpp: device memory without a system call, for thousands of short traces.
//
// One process has one pool of memory that is there from the start; the world that
// holds it gives addresses out once, from the bottom up, and starts at the bottom
// again when it is closed. What is taken away is poisoned, not unmapped: a stale read
// shows as wrong bytes where the host's ground faults. What does not fit in the pool,
// and every other world at the same time, is on the host's ground.
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "emulated_world.h"

namespace gc::emulated {
namespace {

constexpr uint64_t pool_size = uint64_t(64) << 20;
constexpr uint64_t largest = uint64_t(1) << 18; // of one range; larger ones are the host's
constexpr int poison = 0xa5;

std::atomic<const world *> holder = nullptr;
char * base = nullptr;
uint64_t top = 0; // of the holder

char * host(cuda::device_ptr p) {
    return reinterpret_cast<char *>(p); // NOLINT: a device address is a host address here
}

bool light(cuda::device_ptr at) {
    return at - reinterpret_cast<uint64_t>(base) < pool_size;
}

cuda::device_ptr reserve(uint64_t size, uint64_t alignment) {
    const uint64_t start = (top + alignment - 1) / alignment * alignment, bytes = page_up(size);
    if (size > largest || start + bytes > pool_size) return on_host.reserve(size, alignment);
    top = start + bytes;
    return reinterpret_cast<uint64_t>(base) + start;
}

void unreserve(cuda::device_ptr at, uint64_t size) {
    if (!light(at)) on_host.unreserve(at, size);
}

bool map(cuda::device_ptr at, uint64_t size) {
    if (!light(at)) return on_host.map(at, size);
    std::memset(host(at), 0, page_up(size));
    return true;
}

void allow(cuda::device_ptr at, uint64_t size, int access) {
    if (!light(at)) on_host.allow(at, size, access);
}

void unmap(cuda::device_ptr at, uint64_t size) {
    if (!light(at)) return on_host.unmap(at, size);
    std::memset(host(at), poison, page_up(size));
}

cuda::device_ptr allocate(uint64_t size) {
    const cuda::device_ptr at = reserve(size, page());
    if (at && map(at, size)) allow(at, size, cuda::access_read_write);
    return at;
}

const ground on_pool = [] {
    ground g = on_host;
    g.reserve = reserve, g.unreserve = unreserve, g.map = map, g.allow = allow;
    g.unmap = g.free = unmap, g.allocate = allocate;
    return g;
}();

} // namespace

void take_pool(world & w) {
    const world * nobody = nullptr;
    if (!holder.compare_exchange_strong(nobody, &w)) return;
    if (!base) {
        void * p = mmap(nullptr, pool_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) return give_pool(w);
        base = static_cast<char *>(p);
    }
    w.on = &on_pool;
    w.pool = {base, pool_size, 0};
}

void give_pool(world & w) {
    if (holder != &w) return;
    top = 0;
    holder = nullptr;
}

} // namespace gc::emulated
