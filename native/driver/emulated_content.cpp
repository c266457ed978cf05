// emulated_content.cpp: copies, and memory that the driver places itself.
#include <algorithm>

#include "emulated_world.h"

namespace gc::emulated {
namespace {

// A stretch of accessible memory, from `at` on.
struct stretch {
    uint64_t at, size;
    int access;
};

// The stretch that the address is in; of size 0 where there is none.
stretch stretch_of(const world & w, cuda::device_ptr ptr) {
    for (const mapping & m : w.mappings) {
        const uint64_t size = std::min(m.size, w.on->most);
        if (m.at <= ptr && ptr - m.at < size) return {m.at, size, m.access};
    }
    for (const block & b : w.blocks) {
        const uint64_t size = std::min(b.size, w.on->most);
        if (b.at <= ptr && ptr - b.at < size) return {b.at, size, cuda::access_read_write};
    }
    return {ptr, 0, cuda::access_none};
}

// The range lies in memory that exists, with at least this access.
bool accessible(const world & w, cuda::device_ptr ptr, uint64_t size, int access) {
    while (size > 0) {
        const stretch s = stretch_of(w, ptr);
        if (s.size == 0 || (s.access & access) != access) return false;
        const uint64_t step = std::min<uint64_t>(size, s.size - (ptr - s.at));
        ptr += step;
        size -= step;
    }
    return true;
}

// What a copy waits for, or why it is refused.
cuda::result ready(locked & lock, cuda::device_ptr at, uint64_t size, int access) {
    if (current) {
        if (const cuda::result r = legacy_now(*here, current)) return r;
        run_legacy(*here, lock);
    }
    return accessible(*here, at, size, access) ? cuda::success : cuda::invalid_value;
}

} // namespace

namespace content {

cuda::result memcpy_htod(cuda::device_ptr to, const void * from, size_t size) {
    if (!here) return cuda::not_initialized;
    locked lock(here->mutex);
    if (const cuda::result r = ready(lock, to, size, cuda::access_read_write)) return r;
    if (size > 0) here->on->copy_in(to, from, size);
    return cuda::success;
}

cuda::result memcpy_dtoh(void * to, cuda::device_ptr from, size_t size) {
    if (!here) return cuda::not_initialized;
    locked lock(here->mutex);
    if (const cuda::result r = ready(lock, from, size, cuda::access_read)) return r;
    if (size > 0) here->on->copy_out(to, from, size);
    return cuda::success;
}

cuda::result memset_d8(cuda::device_ptr to, unsigned char value, size_t size) {
    if (!here) return cuda::not_initialized;
    locked lock(here->mutex);
    if (const cuda::result r = ready(lock, to, size, cuda::access_read_write)) return r;
    if (size > 0) here->on->set(to, value, size);
    return cuda::success;
}

cuda::result mem_alloc(cuda::device_ptr * ptr, size_t size) {
    if (!here) return cuda::not_initialized;
    locked lock(here->mutex);
    if (!current) return cuda::invalid_context;
    if (!ptr || size == 0) return cuda::invalid_value;
    if (const cuda::result r = unsafe_now(*here)) return r;
    const int device = int(current - here->gpus.data());
    const uint64_t unit = current->granularity, over = size % unit ? unit - size % unit : 0;
    const bool told_to = told_to_fail(*here, device);
    if (told_to || size > UINT64_MAX - over || current->used > current->capacity) return cuda::out_of_memory;
    if (size + over > current->capacity - current->used) return cuda::out_of_memory;
    const cuda::device_ptr p = here->on->allocate(size + over);
    if (!p) return cuda::out_of_memory;
    *ptr = p;
    current->used += size + over;
    here->blocks.push_back({*ptr, size + over, device});
    return cuda::success;
}

cuda::result mem_free(cuda::device_ptr ptr) {
    if (!here) return cuda::not_initialized;
    locked lock(here->mutex);
    if (!current) return cuda::invalid_context;
    if (ptr == 0) return cuda::success;
    if (const cuda::result r = unsafe_now(*here)) return r;
    auto & all = here->blocks;
    const auto b = std::find_if(all.begin(), all.end(), [&](const block & x) { return x.at == ptr; });
    if (b == all.end()) return cuda::invalid_value;
    const block gone = *b;
    *b = all.back();
    all.pop_back();
    take_from_work(*here, lock, gone.at, gone.size);
    here->on->free(gone.at, gone.size);
    here->gpus[gone.device].used -= gone.size;
    return cuda::success;
}

cuda::result mem_host_alloc(void ** ptr, size_t size, unsigned flags) {
    if (!here) return cuda::not_initialized;
    locked lock(here->mutex);
    if (!current) return cuda::invalid_context;
    if (!ptr || size == 0 || flags > 7) return cuda::invalid_value;
    if (const cuda::result r = unsafe_now(*here)) return r;
    void * p = here->on->host_allocate(size);
    if (!p) return cuda::out_of_memory;
    *ptr = p;
    here->host_memory.push_back(*ptr);
    return cuda::success;
}

cuda::result mem_free_host(void * ptr) {
    if (!here) return cuda::not_initialized;
    locked lock(here->mutex);
    if (!current) return cuda::invalid_context;
    if (const cuda::result r = unsafe_now(*here)) return r;
    auto & all = here->host_memory;
    const auto p = std::find(all.begin(), all.end(), ptr);
    if (p == all.end()) return cuda::invalid_value;
    *p = all.back();
    all.pop_back();
    here->on->host_free(ptr);
    return cuda::success;
}

} // namespace content
} // namespace gc::emulated
