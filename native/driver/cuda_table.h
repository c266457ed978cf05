// cuda_table.h: the CUDA driver as a table of functions.
//
// The allocator calls the driver only through this table, so the same compiled
// code runs on libcuda.so.1 and on the emulated driver (emulated.cpp). Types,
// values and signatures are those of the driver's binary interface, written
// down here so that no CUDA header is needed. All sizes are bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gc::cuda {

using result = int;                    // CUresult
using device_ptr = unsigned long long; // CUdeviceptr
using allocation = unsigned long long; // CUmemGenericAllocationHandle: physical memory
using context = void *;                // CUcontext
using stream = void *;                 // CUstream; null: the legacy default stream
using event = void *;                  // CUevent
using module = void *;                 // CUmodule
using function = void *;               // CUfunction
using graph = void *;                  // CUgraph
using graph_exec = void *;             // CUgraphExec

enum : result {
    success = 0,
    invalid_value = 1,
    out_of_memory = 2,
    not_initialized = 3,
    invalid_device = 101,
    invalid_image = 200,
    invalid_context = 201,
    invalid_handle = 400,
    not_found = 500,
    not_ready = 600,
    illegal_address = 700,
    launch_failed = 719,
    not_supported = 801,
    capture_unsupported = 900, // CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
    capture_invalidated = 901,
    capture_merge = 902,        // two captures would become one
    capture_unmatched = 903,    // ended on another stream than it began on
    capture_unjoined = 904,     // a stream that joined it did not come back
    capture_isolation = 905,    // a captured stream would wait for work outside
    capture_implicit = 906,     // the legacy stream would wait for a captured one
    captured_event = 907,       // the event was recorded in a capture: it never happens
    capture_wrong_thread = 908, // ended by another thread than began it
    illegal_state = 401,
};

enum : unsigned { stream_non_blocking = 1, event_disable_timing = 2 };
enum : unsigned { host_portable = 1, host_device_map = 2 }; // CU_MEMHOSTALLOC_...
enum : int { capture_global = 0, capture_thread_local = 1, capture_relaxed = 2 }; // CUstreamCaptureMode
enum : int { capture_none = 0, capture_active = 1, capture_status_invalidated = 2 }; // CUstreamCaptureStatus

enum : int { pinned_memory = 1 };                                       // CUmemAllocationType
enum : int { on_device = 1 };                                           // CUmemLocationType
enum : int { access_none = 0, access_read = 1, access_read_write = 3 }; // CUmemAccess_flags
enum : int { granularity_minimum = 0, granularity_recommended = 1 };    // CUmemAllocationGranularity_flags

struct location { // CUmemLocation
    int type;
    int id;
};

struct allocation_prop { // CUmemAllocationProp
    int type;
    int requested_handle_types;
    location where;
    void * win32_handle_meta_data;
    unsigned char compression_type;
    unsigned char gpu_direct_rdma_capable;
    unsigned short usage;
    unsigned char reserved[4];
};
static_assert(sizeof(allocation_prop) == 32);

struct access_desc { // CUmemAccessDesc
    location where;
    int flags;
};
static_assert(sizeof(access_desc) == 12);

struct driver {
    // Contexts: mem_get_info speaks of the device of the thread's current one.
    result (*primary_ctx_retain)(context * ctx, int device);
    result (*ctx_set_current)(context ctx);
    result (*ctx_get_current)(context * ctx);
    result (*mem_get_info)(size_t * free, size_t * total);

    // Virtual memory: addresses and physical memory come and go apart.
    result (*mem_granularity)(size_t * granularity, const allocation_prop * prop, int option);
    result (*mem_address_reserve)(device_ptr * ptr, size_t size, size_t alignment, device_ptr hint,
                                  unsigned long long flags);
    result (*mem_address_free)(device_ptr ptr, size_t size);
    result (*mem_create)(allocation * handle, size_t size, const allocation_prop * prop, unsigned long long flags);
    result (*mem_release)(allocation handle);
    result (*mem_map)(device_ptr ptr, size_t size, size_t offset, allocation handle, unsigned long long flags);
    result (*mem_unmap)(device_ptr ptr, size_t size);
    result (*mem_set_access)(device_ptr ptr, size_t size, const access_desc * desc, size_t count);

    // Content.
    result (*memcpy_htod)(device_ptr to, const void * from, size_t size);
    result (*memcpy_dtoh)(void * to, device_ptr from, size_t size);
    result (*memset_d8)(device_ptr to, unsigned char value, size_t size);

    // Memory without virtual addresses of one's own, as the legacy pool takes it.
    result (*mem_alloc)(device_ptr * ptr, size_t size);
    result (*mem_free)(device_ptr ptr);

    // Host memory that kernels reach at the same address. It is no device memory: nothing counts it.
    result (*mem_host_alloc)(void ** ptr, size_t size, unsigned flags);
    result (*mem_free_host)(void * ptr);

    // Streams and events: work of one stream runs in order, and later than its launch.
    result (*ctx_synchronize)();
    result (*stream_create)(stream * s, unsigned flags);
    result (*stream_destroy)(stream s);
    result (*stream_synchronize)(stream s);
    result (*stream_query)(stream s); // not_ready: has work in flight
    result (*event_create)(event * e, unsigned flags);
    result (*event_destroy)(event e);
    result (*event_record)(event e, stream s);
    result (*event_synchronize)(event e);
    result (*stream_wait_event)(stream s, event e, unsigned flags);

    // Code: the kernels of kernels.h, by name.
    result (*module_load_data)(module * m, const void * image);
    result (*module_unload)(module m);
    result (*module_get_function)(function * f, module m, const char * name);
    result (*launch_kernel)(function f, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                            unsigned block_y, unsigned block_z, unsigned shared_bytes, stream s, void ** params,
                            void ** extra);

    // Captured graphs: what a stream is given while it is captured is recorded, not run.
    result (*stream_begin_capture)(stream s, int mode);
    result (*stream_end_capture)(stream s, graph * g);
    result (*stream_is_capturing)(stream s, int * status);
    result (*thread_exchange_capture_mode)(int * mode); // what the thread may call while captures go on
    result (*graph_instantiate)(graph_exec * e, graph g, unsigned long long flags);
    result (*graph_launch)(graph_exec e, stream s);
    result (*graph_exec_destroy)(graph_exec e);
    result (*graph_destroy)(graph g);
};

} // namespace gc::cuda
