// emulated.cpp: see emulated.h. The rules are those that the CUDA driver's
// documentation states for its virtual memory functions; each is one early
// return with the documented error code.
#include "emulated.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace gc::emulated {
namespace {

struct gpu {
    uint64_t granularity, capacity, used;
};

struct arena { // host addresses, handed out once from the bottom up
    char * base;
    uint64_t size, top;
};

struct reservation {
    cuda::device_ptr base;
    uint64_t size;
};

struct physical { // memory of a device: alive until it is released and unmapped
    cuda::allocation handle;
    uint64_t size;
    int device;
    bool released, mapped;
};

struct mapping {
    cuda::device_ptr at;
    uint64_t size;
    cuda::allocation handle;
    int access;
};

constexpr uint64_t arena_size = uint64_t(1) << 40;
constexpr uint64_t huge_page = uint64_t(1) << 21;

[[noreturn]] void die(const char * what) {
    std::perror(what);
    std::abort();
}

} // namespace

struct world {
    std::vector<gpu> gpus;
    std::vector<arena> arenas;
    std::vector<reservation> reservations;
    std::vector<physical> memory;
    std::vector<mapping> mappings;
    cuda::allocation last_handle = 0;
    uint64_t tried = 0;
    int fail_nth = 0;
    uint32_t fail_devices = 0;
};

namespace {

thread_local world * here = nullptr;
thread_local gpu * current = nullptr; // the current context's device

uint64_t page_up(uint64_t x) {
    return (x + page() - 1) / page() * page();
}

char * host(cuda::device_ptr p) {
    return reinterpret_cast<char *>(p); // NOLINT: a device address is a host address here
}

// Bytes of host memory behind a mapping; only the start of a huge one has any.
uint64_t backed(uint64_t size) {
    return page_up(std::min(size, backed_max));
}

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
        const uint64_t bytes = std::max(arena_size, size + alignment + page());
        void * p = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) {
            return nullptr;
        }
        w.arenas.push_back({static_cast<char *>(p), bytes, 0});
    }
}

physical * find(world & w, cuda::allocation handle) {
    for (physical & m : w.memory) {
        if (m.handle == handle) {
            return &m;
        }
    }
    return nullptr;
}

// The reservation that holds the range: of those that begin below it, the last.
const reservation * reservation_of(const world & w, cuda::device_ptr ptr, uint64_t size) {
    const reservation * best = nullptr;
    for (const reservation & r : w.reservations) {
        if (r.base <= ptr && (!best || r.base > best->base)) {
            best = &r;
        }
    }
    return best && ptr - best->base <= best->size && size <= best->size - (ptr - best->base) ? best : nullptr;
}

// Calls f for each of the mappings that make up the range exactly; false, and
// no call, where mappings do not.
template <class F> bool each_whole_mapping(world & w, cuda::device_ptr ptr, uint64_t size, F f) {
    std::vector<mapping *> all;
    uint64_t done = 0;
    while (done < size) {
        auto m = std::find_if(w.mappings.begin(), w.mappings.end(), [&](auto & x) { return x.at == ptr + done; });
        if (m == w.mappings.end() || m->size > size - done) {
            return false;
        }
        all.push_back(&*m);
        done += m->size == size - done ? m->size : page_up(m->size);
    }
    if (done != size) {
        return false;
    }
    std::for_each(all.begin(), all.end(), [&](mapping * m) { f(*m); });
    return !all.empty();
}

void drop_if_unused(world & w, physical * m) {
    if (m->released && !m->mapped) {
        w.gpus[m->device].used -= m->size;
        *m = w.memory.back();
        w.memory.pop_back();
    }
}

bool valid_prop(const cuda::allocation_prop * p) {
    return p && p->type == cuda::pinned_memory && p->where.type == cuda::on_device;
}

bool valid_device(int id) {
    return id >= 0 && id < int(here->gpus.size());
}

// ---- the table's functions ------------------------------------------------

cuda::result primary_ctx_retain(cuda::context * ctx, int device) {
    if (!here) return cuda::not_initialized;
    if (!ctx) return cuda::invalid_value;
    if (!valid_device(device)) return cuda::invalid_device;
    *ctx = &here->gpus[device];
    return cuda::success;
}

cuda::result ctx_set_current(cuda::context ctx) {
    if (!here) return cuda::not_initialized;
    const auto mine = [&](gpu & g) { return &g == ctx; };
    if (ctx && std::none_of(here->gpus.begin(), here->gpus.end(), mine)) return cuda::invalid_context;
    current = static_cast<gpu *>(ctx);
    return cuda::success;
}

cuda::result mem_get_info(size_t * free, size_t * total) {
    if (!here) return cuda::not_initialized;
    if (!current) return cuda::invalid_context;
    if (!free || !total) return cuda::invalid_value;
    *total = current->capacity;
    *free = current->capacity - std::min(current->capacity, current->used);
    return cuda::success;
}

cuda::result mem_granularity(size_t * granularity, const cuda::allocation_prop * prop, int option) {
    if (!here) return cuda::not_initialized;
    if (!granularity || !valid_prop(prop)) return cuda::invalid_value;
    if (option != cuda::granularity_minimum && option != cuda::granularity_recommended) return cuda::invalid_value;
    if (!valid_device(prop->where.id)) return cuda::invalid_device;
    *granularity = here->gpus[prop->where.id].granularity;
    return cuda::success;
}

cuda::result mem_address_reserve(cuda::device_ptr * ptr, size_t size, size_t alignment, cuda::device_ptr,
                                 unsigned long long flags) {
    if (!here) return cuda::not_initialized;
    if (!ptr || size == 0 || size % page() != 0 || flags != 0) return cuda::invalid_value;
    if (alignment != 0 && !std::has_single_bit(alignment)) return cuda::invalid_value;
    const char * p = new_addresses(*here, backed(size), std::max<uint64_t>(alignment, page()));
    if (!p) return cuda::out_of_memory;
    *ptr = reinterpret_cast<cuda::device_ptr>(p);
    here->reservations.push_back({*ptr, size});
    return cuda::success;
}

cuda::result mem_address_free(cuda::device_ptr ptr, size_t size) {
    if (!here) return cuda::not_initialized;
    auto & all = here->reservations;
    const auto r = std::find_if(all.begin(), all.end(), [&](auto & x) { return x.base == ptr; });
    if (r == all.end() || r->size != size) return cuda::invalid_value;
    for (const mapping & m : here->mappings) {
        if (reservation_of(*here, m.at, m.size) == &*r) return cuda::invalid_value; // still mapped
    }
    *r = all.back();
    all.pop_back();
    return cuda::success;
}

cuda::result mem_create(cuda::allocation * handle, size_t size, const cuda::allocation_prop * prop,
                        unsigned long long flags) {
    if (!here) return cuda::not_initialized;
    if (!handle || !valid_prop(prop) || flags != 0) return cuda::invalid_value;
    if (!valid_device(prop->where.id)) return cuda::invalid_device;
    gpu & g = here->gpus[prop->where.id];
    if (size == 0 || size % g.granularity != 0) return cuda::invalid_value;
    here->tried++;
    const bool told_to = here->tried == uint64_t(here->fail_nth) || (here->fail_devices >> prop->where.id & 1);
    if (told_to || g.used > g.capacity || size > g.capacity - g.used) return cuda::out_of_memory;
    g.used += size;
    *handle = ++here->last_handle;
    here->memory.push_back({*handle, size, prop->where.id, false, false});
    return cuda::success;
}

cuda::result mem_release(cuda::allocation handle) {
    if (!here) return cuda::not_initialized;
    physical * m = find(*here, handle);
    if (!m || m->released) return cuda::invalid_value;
    m->released = true; // a mapping keeps it alive
    drop_if_unused(*here, m);
    return cuda::success;
}

cuda::result mem_map(cuda::device_ptr ptr, size_t size, size_t offset, cuda::allocation handle,
                     unsigned long long flags) {
    if (!here) return cuda::not_initialized;
    physical * m = find(*here, handle);
    if (!m || m->released || size != m->size || offset != 0 || flags != 0) return cuda::invalid_value;
    const reservation * r = reservation_of(*here, ptr, size);
    if (!r || (ptr - r->base) % page() != 0) return cuda::invalid_value;
    for (const mapping & x : here->mappings) {
        const bool same = reservation_of(*here, x.at, x.size) == r;
        if (same && x.at < ptr + size && ptr < x.at + page_up(x.size)) return cuda::invalid_value; // mapped already
    }
    if (m->mapped) return cuda::not_supported;
    m->mapped = true;
    here->mappings.push_back({ptr, size, handle, cuda::access_none});
    return cuda::success;
}

cuda::result mem_unmap(cuda::device_ptr ptr, size_t size) {
    if (!here) return cuda::not_initialized;
    const bool whole = each_whole_mapping(*here, ptr, size, [](mapping & x) {
        if (x.access != cuda::access_none) { // fresh pages without access: the old content is gone
            const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
            if (mmap(host(x.at), backed(x.size), PROT_NONE, flags, -1, 0) == MAP_FAILED) die("mmap");
        }
        physical * m = find(*here, x.handle);
        m->mapped = false;
        drop_if_unused(*here, m);
        x.handle = 0;
    });
    if (!whole) return cuda::invalid_value;
    std::erase_if(here->mappings, [](const mapping & x) { return x.handle == 0; });
    return cuda::success;
}

cuda::result mem_set_access(cuda::device_ptr ptr, size_t size, const cuda::access_desc * desc, size_t count) {
    if (!here) return cuda::not_initialized;
    if (!desc || count != 1 || desc->where.type != cuda::on_device) return cuda::invalid_value;
    if (!valid_device(desc->where.id)) return cuda::invalid_device;
    const int flags = desc->flags;
    if (flags != cuda::access_none && flags != cuda::access_read && flags != cuda::access_read_write) {
        return cuda::invalid_value;
    }
    const int protection = flags == cuda::access_none ? PROT_NONE
                         : flags == cuda::access_read ? PROT_READ
                                                      : PROT_READ | PROT_WRITE;
    const bool whole = each_whole_mapping(*here, ptr, size, [&](mapping & x) {
        if (mprotect(host(x.at), backed(x.size), protection) != 0) die("mprotect");
        if (x.size >= huge_page) madvise(host(x.at), backed(x.size), MADV_NOHUGEPAGE); // a page touched costs a page
        x.access = flags;
    });
    return whole ? cuda::success : cuda::invalid_value;
}

// The range lies in mappings with at least this access, on memory that exists.
bool accessible(cuda::device_ptr ptr, uint64_t size, int access) {
    while (size > 0) {
        const auto & all = here->mappings;
        const auto m = std::find_if(all.begin(), all.end(), [&](auto & x) {
            return x.at <= ptr && ptr - x.at < std::min(x.size, backed_max) && (x.access & access) == access;
        });
        if (m == all.end()) return false;
        const uint64_t step = std::min<uint64_t>(size, std::min(m->size, backed_max) - (ptr - m->at));
        ptr += step;
        size -= step;
    }
    return true;
}

cuda::result memcpy_htod(cuda::device_ptr to, const void * from, size_t size) {
    if (!here) return cuda::not_initialized;
    if (!accessible(to, size, cuda::access_read_write)) return cuda::invalid_value;
    if (size > 0) std::memcpy(host(to), from, size);
    return cuda::success;
}

cuda::result memcpy_dtoh(void * to, cuda::device_ptr from, size_t size) {
    if (!here) return cuda::not_initialized;
    if (!accessible(from, size, cuda::access_read)) return cuda::invalid_value;
    if (size > 0) std::memcpy(to, host(from), size);
    return cuda::success;
}

cuda::result memset_d8(cuda::device_ptr to, unsigned char value, size_t size) {
    if (!here) return cuda::not_initialized;
    if (!accessible(to, size, cuda::access_read_write)) return cuda::invalid_value;
    if (size > 0) std::memset(host(to), value, size);
    return cuda::success;
}

} // namespace

world * open(const device_setup * devices, int n) {
    auto * w = new world;
    for (int i = 0; i < n; i++) {
        w->gpus.push_back({devices[i].granularity, devices[i].capacity, 0});
    }
    return w;
}

void close(world * w) {
    for (const arena & a : w->arenas) {
        munmap(a.base, a.size);
    }
    if (here == w) {
        enter(nullptr);
    }
    delete w;
}

void enter(world * w) {
    if (here != w) {
        here = w;
        current = nullptr;
    }
}

const cuda::driver & table() {
    static const cuda::driver t = {primary_ctx_retain, ctx_set_current,  mem_get_info, mem_granularity,
                                   mem_address_reserve, mem_address_free, mem_create,   mem_release,
                                   mem_map,            mem_unmap,        mem_set_access, memcpy_htod,
                                   memcpy_dtoh,        memset_d8,
                                   // the rest is the driver helper's
                                   nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                                   nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                                   nullptr, nullptr, nullptr, nullptr, nullptr};
    return t;
}

void set_capacity(world * w, int device, uint64_t bytes) {
    w->gpus[device].capacity = bytes;
}

void start_operation(world * w, uint32_t fail_devices, int fail_nth) {
    w->tried = 0;
    w->fail_devices = fail_devices;
    w->fail_nth = fail_nth;
}

uint64_t allocations(const world * w) {
    return w->tried;
}

uint64_t used(const world * w, int device) {
    return w->gpus[device].used;
}

uint64_t page() {
    static const auto size = uint64_t(sysconf(_SC_PAGESIZE));
    return size;
}

} // namespace gc::emulated
