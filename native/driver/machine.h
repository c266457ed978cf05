// machine.h: the devices of one session, whichever driver they are on: the
// emulated one, or a card's libcuda.so.1 (GALLOCHECK_DRIVER=cuda) with logical
// devices on it. A session has one; a thread enters it before it calls the table.
#pragma once

#include <cstdint>

#include "cuda_table.h"
#include "kernels.h"

namespace gc::machine {

struct device_setup {
    uint64_t granularity; // bytes
    uint64_t capacity;    // bytes; UINT64_MAX: no limit
};

struct world;

world * open(const device_setup * devices, int n); // ends the process with one sentence where there is no such driver
void close(world * w);
void enter(world * w); // this thread's calls go to it; device 0's context is current
world * here();        // the one that this thread entered last, or null
const cuda::driver & table(world * w);
const char * describe(); // the driver, in a few words

// Below what is in use nothing is taken away, but nothing more can be had.
void set_capacity(world * w, int device, uint64_t bytes);
// Counts allocations and hazards from here on; makes the nth allocation (1 is
// the first; 0: none) and all on the devices in the bit set fail with out_of_memory.
void start_operation(world * w, uint32_t fail_devices, int fail_nth);
// While this is on, each of mem_create, mem_map and mem_set_access of this
// thread counts as an allocation (pools), else mem_create alone; mem_alloc always.
void count_steps(world * w, bool on);
uint64_t allocations(world * w); // tried since start_operation
uint64_t hazards(world * w);     // times that memory was freed or unmapped under queued work since then
uint64_t used(world * w, int device);
uint64_t reserved(world * w); // bytes of address ranges that were not given back, on all devices
uint64_t graphs(world * w); // graphs, and what was instantiated of them, that were not destroyed
uint64_t most(const world * w); // of a buffer, the bytes from its start that can be touched
uint64_t page(); // addresses are reserved in multiples of it

// Host memory that kernels reach too, zero, so many bytes; it counts as nothing.
// It lives until its world is closed. `host_most`: no more than this of one tensor
// is asked for, bytes.
void * host_memory(world * w, uint64_t size);
uint64_t host_most();

// Device memory without the driver's checks, also behind a buffer's end up to the
// page's: whether n bytes are zero, and a write of one.
bool all_zero(world * w, cuda::device_ptr at, uint64_t n);
void poke(world * w, cuda::device_ptr at, uint8_t value);

// For compute, which counts as nothing: the functions of kernels.h, a stream for
// who has none, and words that kernels and host both reach. Words that a captured
// graph or work in flight may still write are not given out again before the
// world is closed: `later`.
struct kit {
    cuda::stream stream;
    cuda::function code[kernels::n_kernels];
};
const kit & kit_of(world * w);
uint64_t * words(world * w, uint64_t n);
void give_back(world * w, uint64_t * words, bool later);

} // namespace gc::machine
