// emulated.h: a CUDA driver without a GPU, on mmap and mprotect.
//
// A world is a set of devices with an address space of its own, as a process
// with GPUs would see it. Addresses are host addresses, so a "kernel" is plain
// code; they are never given out twice within a world, and whatever is not
// mapped with access faults. Work of a stream is done as late as may be: when
// somebody waits for it. Rules that differ from the real driver:
//   - granularity may be as small as a byte: accounting goes by it, mapping by
//     the host's page;
//   - one handle is mapped once (a second map answers not_supported);
//   - of a reservation only the first bytes can be touched (ground::most);
//   - kernels of every device reach the memory of all;
//   - memory is taken away from under queued work without an error: that work
//     is not done then, and counts as a hazard.
// Several threads may use a world; each thread's calls go to the world that it
// entered last.
#pragma once

#include <cstdint>

#include "cuda_table.h"

namespace gc::emulated {

struct device_setup {
    uint64_t granularity; // bytes, at least 1; a power of two or not
    uint64_t capacity;    // bytes; UINT64_MAX: no limit
};

struct world;

// What memory is made of and kernels run on: the host, or a card (card.cpp). The
// world has checked every range. Those that get something fail where there is no
// more: address 0, null, false.
struct ground {
    uint64_t most; // bytes of a range, from its start, that have memory; the rest is addresses alone
    cuda::device_ptr (*reserve)(uint64_t size, uint64_t alignment);
    void (*unreserve)(cuda::device_ptr at, uint64_t size);
    bool (*map)(cuda::device_ptr at, uint64_t size);
    void (*allow)(cuda::device_ptr at, uint64_t size, int access);
    void (*unmap)(cuda::device_ptr at, uint64_t size);
    cuda::device_ptr (*allocate)(uint64_t size);
    void (*free)(cuda::device_ptr at, uint64_t size);
    void * (*host_allocate)(uint64_t size);
    void (*host_free)(void * at);
    void (*copy_in)(cuda::device_ptr to, const void * from, uint64_t size);
    void (*copy_out)(void * to, cuda::device_ptr from, uint64_t size);
    void (*set)(cuda::device_ptr to, unsigned char value, uint64_t size);
    bool runs_kernels; // the world does, on the host; else whoever launches them
    void (*settle)();  // waits for what runs elsewhere: memory is taken away from under it
};

// On the host's ground where `on` is null; `light`: emulated_light.cpp says what is cheaper then.
world * open(const device_setup * devices, int n, const ground * on = nullptr, bool light = false);
void close(world * w); // whatever it still holds is gone, work that nobody waited for too
void enter(world * w); // no context is current then
const cuda::driver & table();

// Below what is in use nothing is taken away, but nothing more can be had.
void set_capacity(world * w, int device, uint64_t bytes);
// Counts allocations and hazards from here on; makes the nth allocation (1 is
// the first; 0: none) and all on the devices in the bit set fail with out_of_memory.
void start_operation(world * w, uint32_t fail_devices, int fail_nth);
// What counts as an allocation in this thread: mem_create and mem_alloc, or,
// while this is on, each of mem_create, mem_map, mem_set_access and mem_alloc.
void count_steps(world * w, bool on);
uint64_t allocations(world * w); // tried since start_operation
uint64_t hazards(world * w);     // times that memory was freed or unmapped under queued work since then
uint64_t used(world * w, int device);
uint64_t reserved(world * w); // bytes of address ranges that were not given back, on all devices
uint64_t graphs_left(world * w); // graphs, and what was instantiated of them, that were not destroyed
uint64_t page(); // the host's page
uint64_t most(const world * w); // of a range, the bytes that can be touched

} // namespace gc::emulated
