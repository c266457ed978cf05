// emulated_world.h: what a world holds, for the emulated driver's own files.
// Where a function takes a world, the caller holds its mutex.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "emulated.h"
#include "emulated_kernels.h"

namespace gc::emulated {

struct gpu {
    uint64_t granularity, capacity, used;
};

// ---- memory ---------------------------------------------------------------

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

struct block { // what mem_alloc gave
    cuda::device_ptr at;
    uint64_t size; // rounded up to the granularity
    int device;
};

// ---- work -----------------------------------------------------------------

struct stream_state;
struct record;

struct command {
    enum { launch, replay, wait } kind;
    bool lost = false;                                // memory that it touches is gone: it is not done
    const kernel_code * code = nullptr;               // launch
    std::array<std::byte, max_parameters> parameters{}; // launch
    std::shared_ptr<const record> graph = nullptr;    // replay
    stream_state * on = nullptr;                      // wait: until `until` pieces of this stream's work are done
    uint64_t until = 0;
};

struct record { // a graph: launches in the order of the calls
    std::vector<command> commands;
};

// How much of each stream's captured work is known to come before.
using frontier = std::map<const stream_state *, uint64_t>;

struct capture {
    stream_state * origin;
    int mode;
    std::thread::id thread;
    bool invalid = false;
    record taken;
    std::map<stream_state *, frontier> members; // the streams that take part; each knows its own work too
};

struct stream_state {
    gpu * device;
    bool blocking;             // it waits for the legacy stream, which waits for it
    std::deque<command> queue; // the first `begun` are being run
    uint64_t submitted = 0, done = 0, begun = 0;
    bool busy = false;         // a thread runs its work
    uint64_t low = UINT64_MAX, high = 0; // between them lies what its work touches, since it last had none
    std::shared_ptr<capture> in;
};

struct event_state {
    stream_state * on = nullptr; // null: never recorded, which counts as done
    uint64_t until = 0;
    std::shared_ptr<capture> in; // recorded in this capture, knowing `at`
    frontier at;
};

struct function_state {
    const kernel_code * code;
    gpu * device;
};

struct module_state {
    std::array<function_state, kernels::n_kernels> functions;
};

struct graph_exec_state {
    std::shared_ptr<const record> of;
};

struct world {
    std::mutex mutex;
    std::condition_variable ran; // some work is done

    const ground * on;
    std::vector<gpu> gpus;     // as many as at the start
    std::vector<arena> arenas; // of the host's ground
    arena pool{};              // the light ground's, where this world holds it
    std::vector<reservation> reservations;
    std::vector<physical> memory;
    std::vector<mapping> mappings;
    std::vector<block> blocks;
    std::vector<void *> host_memory;
    cuda::allocation last_handle = 0;

    std::vector<std::unique_ptr<stream_state>> legacy, streams, gone; // gone: destroyed, events may know them
    std::vector<std::unique_ptr<event_state>> events;
    std::vector<std::unique_ptr<module_state>> modules;
    std::vector<std::unique_ptr<record>> graphs;
    std::vector<std::unique_ptr<graph_exec_state>> execs;

    uint64_t tried = 0, hazards = 0;
    int fail_nth = 0;
    uint32_t fail_devices = 0;
};

using locked = std::unique_lock<std::mutex>;

inline constinit thread_local world * here = nullptr;
inline constinit thread_local gpu * current = nullptr; // the current context's device
inline constinit thread_local bool steps_count = false;

inline bool valid_device(int id) {
    return id >= 0 && id < int(here->gpus.size());
}

// Counts an allocation; true where it was told to fail.
bool told_to_fail(world & w, int device);
extern const ground on_host;
// The world's memory is the light ground's, where no other world has it; and is no longer.
void take_pool(world & w);
void give_pool(world & w);

inline uint64_t page_up(uint64_t x) {
    return (x + page() - 1) / page() * page();
}

// The owner of that handle in a list, or null.
template <class T> T * find(const std::vector<std::unique_ptr<T>> & all, const void * handle) {
    for (const auto & x : all) {
        if (x.get() == handle) return x.get();
    }
    return nullptr;
}

// Takes it out of its list.
template <class T> std::unique_ptr<T> take(std::vector<std::unique_ptr<T>> & all, const T * which) {
    for (auto & x : all) {
        if (x.get() == which) {
            std::unique_ptr<T> out = std::move(x);
            x = std::move(all.back());
            all.pop_back();
            return out;
        }
    }
    return nullptr;
}

// The stream of that handle (null: the current device's legacy stream), or null.
stream_state * stream_of(world & w, cuda::stream handle);
// Gives a stream a piece of work, or records it where the stream is captured.
cuda::result submit(world & w, stream_state & s, command c);
// Does the stream's first `until` pieces of work, and what they wait for. The lock is off while kernels run.
void run_until(world & w, locked & lock, stream_state & s, uint64_t until);
// What a call that goes by the legacy stream of the current device waits for.
void run_legacy(world & w, locked & lock);
// The range is to be taken away: queued work that touches it is lost, running work is waited for.
void take_from_work(world & w, locked & lock, cuda::device_ptr at, uint64_t size);

// success, or what forbids a call that no capture bears, or one that goes by the legacy stream.
cuda::result unsafe_now(world & w);
cuda::result legacy_now(world & w, gpu * device);
// For streams that are captured: the call invalidates the capture.
cuda::result spoil(stream_state & s, cuda::result why);

// The table's functions, by file.
namespace code {
cuda::result module_load_data(cuda::module *, const void *);
cuda::result module_unload(cuda::module);
cuda::result module_get_function(cuda::function *, cuda::module, const char *);
cuda::result launch_kernel(cuda::function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                           cuda::stream, void **, void **);
} // namespace code

namespace memory {
cuda::result mem_get_info(size_t *, size_t *);
cuda::result mem_granularity(size_t *, const cuda::allocation_prop *, int);
cuda::result mem_address_reserve(cuda::device_ptr *, size_t, size_t, cuda::device_ptr, unsigned long long);
cuda::result mem_address_free(cuda::device_ptr, size_t);
cuda::result mem_create(cuda::allocation *, size_t, const cuda::allocation_prop *, unsigned long long);
cuda::result mem_release(cuda::allocation);
cuda::result mem_map(cuda::device_ptr, size_t, size_t, cuda::allocation, unsigned long long);
cuda::result mem_unmap(cuda::device_ptr, size_t);
cuda::result mem_set_access(cuda::device_ptr, size_t, const cuda::access_desc *, size_t);
} // namespace memory

namespace content {
cuda::result memcpy_htod(cuda::device_ptr, const void *, size_t);
cuda::result memcpy_dtoh(void *, cuda::device_ptr, size_t);
cuda::result memset_d8(cuda::device_ptr, unsigned char, size_t);
cuda::result mem_alloc(cuda::device_ptr *, size_t);
cuda::result mem_free(cuda::device_ptr);
cuda::result mem_host_alloc(void **, size_t, unsigned);
cuda::result mem_free_host(void *);
} // namespace content

namespace work {
cuda::result ctx_synchronize();
cuda::result stream_create(cuda::stream *, unsigned);
cuda::result stream_destroy(cuda::stream);
cuda::result stream_synchronize(cuda::stream);
cuda::result stream_query(cuda::stream);
cuda::result event_create(cuda::event *, unsigned);
cuda::result event_destroy(cuda::event);
cuda::result event_record(cuda::event, cuda::stream);
cuda::result event_synchronize(cuda::event);
cuda::result stream_wait_event(cuda::stream, cuda::event, unsigned);
} // namespace work

namespace graphs {
cuda::result stream_begin_capture(cuda::stream, int);
cuda::result stream_end_capture(cuda::stream, cuda::graph *);
cuda::result stream_is_capturing(cuda::stream, int *);
cuda::result thread_exchange_capture_mode(int *);
cuda::result graph_instantiate(cuda::graph_exec *, cuda::graph, unsigned long long);
cuda::result graph_launch(cuda::graph_exec, cuda::stream);
cuda::result graph_exec_destroy(cuda::graph_exec);
cuda::result graph_destroy(cuda::graph);
} // namespace graphs

} // namespace gc::emulated
