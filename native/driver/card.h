// card.h: a session's logical devices on one real card.
//
// A card's driver under the emulated driver's rules: every call first goes to an
// emulated world, which checks it and keeps account (logical devices with
// capacities, granularities and injected failures, work in flight until somebody
// waits for it); what it lets pass is then done on the card, with real virtual
// memory, streams, graphs and kernels. All logical devices are device 0 of the
// card. A granularity below the card's is rounded up to it on the card only.
#pragma once

#include "emulated.h"
#include "libcuda.h"

namespace gc::card {

struct world;

world * open(const emulated::device_setup * devices, int n); // libcuda::load() is not null
void close(world * w);
void enter(world * w); // this thread's calls go to it
emulated::world * account(world * w);
const cuda::driver & table();
// Memory of the card, without the account's checks.
void peek(void * to, cuda::device_ptr from, uint64_t size);
void poke(cuda::device_ptr to, uint8_t value);

} // namespace gc::card
