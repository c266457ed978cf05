// emulated_memory.cpp: virtual memory. The rules are those that the CUDA driver's
// documentation states; each is one early return with the documented error code.
#include <algorithm>
#include <bit>

#include "emulated_world.h"

namespace gc::emulated {
namespace {

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

} // namespace

namespace memory {

cuda::result mem_get_info(size_t * free, size_t * total) {
    if (!here) return cuda::not_initialized;
    locked lock(here->mutex);
    if (!current) return cuda::invalid_context;
    if (!free || !total) return cuda::invalid_value;
    *total = current->capacity;
    *free = current->capacity - std::min(current->capacity, current->used);
    return cuda::success;
}

cuda::result mem_granularity(size_t * granularity, const cuda::allocation_prop * prop, int option) {
    if (!here) return cuda::not_initialized;
    locked lock(here->mutex);
    if (!granularity || !valid_prop(prop)) return cuda::invalid_value;
    if (option != cuda::granularity_minimum && option != cuda::granularity_recommended) return cuda::invalid_value;
    if (!valid_device(prop->where.id)) return cuda::invalid_device;
    *granularity = here->gpus[prop->where.id].granularity;
    return cuda::success;
}

cuda::result mem_address_reserve(cuda::device_ptr * ptr, size_t size, size_t alignment, cuda::device_ptr,
                                 unsigned long long flags) {
    if (!here) return cuda::not_initialized;
    locked lock(here->mutex);
    if (!ptr || size == 0 || size % page() != 0 || flags != 0) return cuda::invalid_value;
    if (alignment != 0 && !std::has_single_bit(alignment)) return cuda::invalid_value;
    const cuda::device_ptr p = here->on->reserve(size, std::max<uint64_t>(alignment, page()));
    if (!p) return cuda::out_of_memory;
    *ptr = p;
    here->reservations.push_back({*ptr, size});
    return cuda::success;
}

cuda::result mem_address_free(cuda::device_ptr ptr, size_t size) {
    if (!here) return cuda::not_initialized;
    locked lock(here->mutex);
    auto & all = here->reservations;
    const auto r = std::find_if(all.begin(), all.end(), [&](auto & x) { return x.base == ptr; });
    if (r == all.end() || r->size != size) return cuda::invalid_value;
    for (const mapping & m : here->mappings) {
        if (reservation_of(*here, m.at, m.size) == &*r) return cuda::invalid_value; // still mapped
    }
    *r = all.back();
    all.pop_back();
    here->on->unreserve(ptr, size);
    return cuda::success;
}

cuda::result mem_create(cuda::allocation * handle, size_t size, const cuda::allocation_prop * prop,
                        unsigned long long flags) {
    if (!here) return cuda::not_initialized;
    locked lock(here->mutex);
    if (!handle || !valid_prop(prop) || flags != 0) return cuda::invalid_value;
    if (!valid_device(prop->where.id)) return cuda::invalid_device;
    gpu & g = here->gpus[prop->where.id];
    if (size == 0 || size % g.granularity != 0) return cuda::invalid_value;
    const bool told_to = told_to_fail(*here, prop->where.id);
    if (told_to || g.used > g.capacity || size > g.capacity - g.used) return cuda::out_of_memory;
    g.used += size;
    *handle = ++here->last_handle;
    here->memory.push_back({*handle, size, prop->where.id, false, false});
    return cuda::success;
}

cuda::result mem_release(cuda::allocation handle) {
    if (!here) return cuda::not_initialized;
    locked lock(here->mutex);
    physical * m = find(*here, handle);
    if (!m || m->released) return cuda::invalid_value;
    m->released = true; // a mapping keeps it alive
    drop_if_unused(*here, m);
    return cuda::success;
}

cuda::result mem_map(cuda::device_ptr ptr, size_t size, size_t offset, cuda::allocation handle,
                     unsigned long long flags) {
    if (!here) return cuda::not_initialized;
    locked lock(here->mutex);
    physical * m = find(*here, handle);
    if (!m || m->released || size != m->size || offset != 0 || flags != 0) return cuda::invalid_value;
    const reservation * r = reservation_of(*here, ptr, size);
    if (!r || (ptr - r->base) % page() != 0) return cuda::invalid_value;
    for (const mapping & x : here->mappings) {
        const bool same = reservation_of(*here, x.at, x.size) == r;
        if (same && x.at < ptr + size && ptr < x.at + page_up(x.size)) return cuda::invalid_value; // mapped already
    }
    if (m->mapped) return cuda::not_supported;
    if (steps_count && told_to_fail(*here, m->device)) return cuda::out_of_memory;
    if (!here->on->map(ptr, size)) return cuda::out_of_memory;
    m->mapped = true;
    here->mappings.push_back({ptr, size, handle, cuda::access_none});
    return cuda::success;
}

cuda::result mem_unmap(cuda::device_ptr ptr, size_t size) {
    if (!here) return cuda::not_initialized;
    locked lock(here->mutex);
    if (!each_whole_mapping(*here, ptr, size, [](mapping &) {})) return cuda::invalid_value;
    take_from_work(*here, lock, ptr, size);
    each_whole_mapping(*here, ptr, size, [](mapping & x) {
        here->on->unmap(x.at, x.size);
        physical * m = find(*here, x.handle);
        m->mapped = false;
        drop_if_unused(*here, m);
        x.handle = 0;
    });
    std::erase_if(here->mappings, [](const mapping & x) { return x.handle == 0; });
    return cuda::success;
}

cuda::result mem_set_access(cuda::device_ptr ptr, size_t size, const cuda::access_desc * desc, size_t count) {
    if (!here) return cuda::not_initialized;
    locked lock(here->mutex);
    if (!desc || count != 1 || desc->where.type != cuda::on_device) return cuda::invalid_value;
    if (!valid_device(desc->where.id)) return cuda::invalid_device;
    const int flags = desc->flags;
    if (flags != cuda::access_none && flags != cuda::access_read && flags != cuda::access_read_write) {
        return cuda::invalid_value;
    }
    if (!each_whole_mapping(*here, ptr, size, [](mapping &) {})) return cuda::invalid_value;
    if (steps_count && told_to_fail(*here, desc->where.id)) return cuda::out_of_memory;
    each_whole_mapping(*here, ptr, size, [&](mapping & x) {
        here->on->allow(x.at, x.size, flags);
        x.access = flags;
    });
    return cuda::success;
}

} // namespace memory
} // namespace gc::emulated
