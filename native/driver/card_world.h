// card_world.h: what a card's world holds, for the files of card.h alone.
#pragma once

#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "card.h"

namespace gc::card {

// Addresses with real memory: whole units of the card's granularity. Mappings of
// smaller logical granularity share it.
struct run {
    cuda::device_ptr at;
    uint64_t size;
    cuda::allocation memory;
    int mappings;
    bool accessible;
};

// The real handle for each of the account's, of one kind.
using handles = std::unordered_map<const void *, void *>;

struct world {
    const libcuda::library * real = nullptr;
    emulated::world * account = nullptr;

    std::mutex mutex; // of what follows
    std::unordered_map<cuda::device_ptr, uint64_t> reserved; // real sizes; kept until the end: no address comes back
    std::vector<run> runs;
    std::unordered_set<cuda::device_ptr> unseen; // mappings whose content is still to be wiped
    std::unordered_set<cuda::device_ptr> blocks;
    handles streams, events, graphs, execs, modules, functions;
};

inline constinit thread_local world * here = nullptr;

// Ends the process: the card's driver failed where the account says that it cannot.
// A fault of the card ends it as a fault of the host would.
void must(cuda::result r, const char * what);
// While it lives, no capture forbids this thread's calls.
class unbound {
  public:
    unbound();
    ~unbound();

  private:
    int mode_ = cuda::capture_relaxed;
};
// Waits for all streams that are not captured.
void settle();

extern const emulated::ground on_card; // card_memory.cpp
void release_all(world & w);           // memory, at the end

} // namespace gc::card
