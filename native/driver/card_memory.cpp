// card_memory.cpp: the ground of a world on a card; see emulated.h.
#include <algorithm>

#include "card_world.h"

namespace gc::card {
namespace {

const cuda::driver & real() {
    return here->real->table;
}

uint64_t unit_up(uint64_t x) {
    return (x + here->real->granularity - 1) / here->real->granularity * here->real->granularity;
}

uint64_t unit_down(uint64_t x) {
    return x / here->real->granularity * here->real->granularity;
}

// Of a range that no card could hold only the start has addresses, and less of it memory.
constexpr uint64_t addresses_most = uint64_t(1) << 36, backed_most = uint64_t(1) << 30;

uint64_t backed(uint64_t size) {
    return std::min(size, backed_most);
}

void wait_for_legacy() {
    must(real().stream_synchronize(nullptr), "cuStreamSynchronize");
}

cuda::device_ptr reserve(uint64_t size, uint64_t alignment) {
    const std::scoped_lock lock(here->mutex);
    cuda::device_ptr p = 0;
    const uint64_t all = unit_up(std::min(size, addresses_most)) + here->real->granularity; // one unit more: it faults
    alignment = std::max(alignment, here->real->granularity);
    if (real().mem_address_reserve(&p, all, alignment, 0, 0) != cuda::success) return 0;
    here->reserved[p] = all;
    return p;
}

void unreserve(cuda::device_ptr, uint64_t) {} // at the end of the world

bool make_run(cuda::device_ptr at, uint64_t size) {
    cuda::allocation_prop prop{};
    prop.type = cuda::pinned_memory;
    prop.where = {cuda::on_device, 0};
    run r = {at, size, 0, 0, false};
    if (real().mem_create(&r.memory, size, &prop, 0) != cuda::success) return false;
    if (real().mem_map(at, size, 0, r.memory, 0) != cuda::success) {
        must(real().mem_release(r.memory), "cuMemRelease");
        return false;
    }
    here->runs.push_back(r);
    return true;
}

void drop_run(const run & r) {
    must(real().mem_unmap(r.at, r.size), "cuMemUnmap");
    must(real().mem_release(r.memory), "cuMemRelease");
}

void drop_unused() {
    std::erase_if(here->runs, [](const run & r) {
        if (r.mappings > 0) return false;
        drop_run(r);
        return true;
    });
}

// Calls f for every run that the range touches.
template <class F> void each_run(cuda::device_ptr at, uint64_t size, F f) {
    for (run & r : here->runs) {
        if (r.at < at + size && at < r.at + r.size) f(r);
    }
}

// Makes real memory under the part of the range that has none.
bool make_missing(cuda::device_ptr at, uint64_t size) {
    const cuda::device_ptr end = unit_up(at + size);
    for (cuda::device_ptr p = unit_down(at); p < end;) {
        cuda::device_ptr covered = p, next = end; // [p, covered) has memory; the next run begins at `next`
        for (const run & r : here->runs) {
            if (r.at <= p && p < r.at + r.size) covered = r.at + r.size;
            if (r.at > p) next = std::min(next, r.at);
        }
        if (covered == p) {
            if (!make_run(p, next - p)) return false;
            covered = next;
        }
        p = covered;
    }
    return true;
}

bool map(cuda::device_ptr at, uint64_t size) {
    const std::scoped_lock lock(here->mutex);
    const unbound any;
    size = backed(size);
    const bool made = make_missing(at, size);
    if (made) each_run(at, size, [](run & r) { r.mappings++; });
    drop_unused();
    if (made) here->unseen.insert(at);
    return made;
}

// Access is real for whole runs; what a mapping held before it is gone, as on the host.
void allow(cuda::device_ptr at, uint64_t size, int access) {
    const std::scoped_lock lock(here->mutex);
    const unbound any;
    if (access == cuda::access_none) return;
    size = backed(size);
    const cuda::access_desc all = {{cuda::on_device, 0}, cuda::access_read_write};
    each_run(at, size, [&](run & r) {
        if (!r.accessible) must(real().mem_set_access(r.at, r.size, &all, 1), "cuMemSetAccess");
        r.accessible = true;
    });
    if (!here->unseen.erase(at)) return;
    const uint64_t page = emulated::page();
    must(real().memset_d8(at, 0, (size + page - 1) / page * page), "cuMemsetD8");
    wait_for_legacy();
}

void unmap(cuda::device_ptr at, uint64_t size) {
    const std::scoped_lock lock(here->mutex);
    const unbound any;
    here->unseen.erase(at);
    each_run(at, backed(size), [](run & r) { r.mappings--; });
    drop_unused();
}

cuda::device_ptr allocate(uint64_t size) {
    const std::scoped_lock lock(here->mutex);
    const unbound any;
    cuda::device_ptr p = 0;
    size = backed(size);
    if (real().mem_alloc(&p, size) != cuda::success) return 0;
    must(real().memset_d8(p, 0, size), "cuMemsetD8");
    wait_for_legacy();
    here->blocks.insert(p);
    return p;
}

void free(cuda::device_ptr at, uint64_t) {
    const std::scoped_lock lock(here->mutex);
    const unbound any;
    here->blocks.erase(at);
    must(real().mem_free(at), "cuMemFree");
}

// Pinned memory is slow to get: what a world gives back, the next one takes.
struct kept_host_memory {
    std::mutex mutex;
    std::unordered_map<void *, uint64_t> sizes;
    std::vector<void *> spare;
};

kept_host_memory & kept() {
    static auto * k = new kept_host_memory; // the driver outlives us
    return *k;
}

void * host_allocate(uint64_t size) {
    kept_host_memory & k = kept();
    const std::scoped_lock lock(k.mutex);
    const auto fits = [&](void * p) { return k.sizes[p] >= size && k.sizes[p] / 2 <= size; };
    const auto found = std::find_if(k.spare.begin(), k.spare.end(), fits);
    if (found != k.spare.end()) {
        void * p = *found;
        k.spare.erase(found);
        return p;
    }
    const unbound any;
    void * p = nullptr;
    const unsigned flags = cuda::host_portable | cuda::host_device_map;
    if (real().mem_host_alloc(&p, size, flags) != cuda::success) return nullptr;
    k.sizes[p] = size;
    return p;
}

void host_free(void * at) {
    kept_host_memory & k = kept();
    const std::scoped_lock lock(k.mutex);
    k.spare.push_back(at);
}

void copy_in(cuda::device_ptr to, const void * from, uint64_t size) {
    const unbound any;
    must(real().memcpy_htod(to, from, size), "cuMemcpyHtoD");
}

void copy_out(void * to, cuda::device_ptr from, uint64_t size) {
    const unbound any;
    must(real().memcpy_dtoh(to, from, size), "cuMemcpyDtoH");
}

void set(cuda::device_ptr to, unsigned char value, uint64_t size) {
    const unbound any;
    must(real().memset_d8(to, value, size), "cuMemsetD8");
    wait_for_legacy();
}

} // namespace

const emulated::ground on_card = {backed_most, reserve,       unreserve, map,     allow,    unmap, allocate, free,
                                  host_allocate, host_free, copy_in, copy_out, set,   false,    settle};

void release_all(world & w) {
    for (const run & r : w.runs) {
        drop_run(r);
    }
    for (const cuda::device_ptr p : w.blocks) {
        must(real().mem_free(p), "cuMemFree");
    }
    for (const auto & [at, size] : w.reserved) {
        must(real().mem_address_free(at, size), "cuMemAddressFree");
    }
}

void peek(void * to, cuda::device_ptr from, uint64_t size) {
    if (size > 0) copy_out(to, from, size);
}

void poke(cuda::device_ptr to, uint8_t value) {
    copy_in(to, &value, 1);
}

} // namespace gc::card
