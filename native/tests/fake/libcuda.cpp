// libcuda.cpp: a libcuda.so.1 without a card, for tests of what goes by the real driver: the
// names of the binary interface on an emulated world of one device with a card's granularity.
#include <cstring>
#include <mutex>

#include "emulated.h"

using namespace gc;
using namespace gc::cuda;

namespace {

const driver & api = emulated::table();

void enter() {
    static emulated::world * const only = [] {
        const emulated::device_setup card = {uint64_t(2) << 20, uint64_t(1) << 36};
        return emulated::open(&card, 1);
    }();
    thread_local bool entered = false;
    if (!entered) emulated::enter(only);
    entered = true;
}

} // namespace

#define NAME(symbol) extern "C" __attribute__((visibility("default"))) result symbol
#define FORWARD(symbol, function, parameters, ...) \
    NAME(symbol) parameters {                      \
        enter();                                   \
        return api.function(__VA_ARGS__);          \
    }

NAME(cuInit)(unsigned) { return success; }
NAME(cuDriverGetVersion)(int * version) { *version = 13000; return success; }
NAME(cuDeviceGetCount)(int * n) { *n = 1; return success; }
NAME(cuDeviceGet)(int * device, int ordinal) { *device = ordinal; return success; }
NAME(cuDeviceGetName)(char * name, int size, int) {
    std::strncpy(name, "a card that is none", size_t(size));
    return success;
}

FORWARD(cuDevicePrimaryCtxRetain, primary_ctx_retain, (context * c, int d), c, d)
FORWARD(cuCtxSetCurrent, ctx_set_current, (context c), c)
FORWARD(cuCtxGetCurrent, ctx_get_current, (context * c), c)
FORWARD(cuMemGetInfo_v2, mem_get_info, (size_t * f, size_t * t), f, t)
FORWARD(cuMemGetAllocationGranularity, mem_granularity, (size_t * g, const allocation_prop * p, int o), g, p, o)
FORWARD(cuMemAddressReserve, mem_address_reserve,
        (device_ptr * p, size_t n, size_t a, device_ptr h, unsigned long long f), p, n, a, h, f)
FORWARD(cuMemAddressFree, mem_address_free, (device_ptr p, size_t n), p, n)
FORWARD(cuMemCreate, mem_create, (allocation * h, size_t n, const allocation_prop * p, unsigned long long f), h, n, p, f)
FORWARD(cuMemRelease, mem_release, (allocation h), h)
FORWARD(cuMemMap, mem_map, (device_ptr p, size_t n, size_t o, allocation h, unsigned long long f), p, n, o, h, f)
FORWARD(cuMemUnmap, mem_unmap, (device_ptr p, size_t n), p, n)
FORWARD(cuMemSetAccess, mem_set_access, (device_ptr p, size_t n, const access_desc * d, size_t c), p, n, d, c)
FORWARD(cuMemcpyHtoD_v2, memcpy_htod, (device_ptr t, const void * f, size_t n), t, f, n)
FORWARD(cuMemcpyDtoH_v2, memcpy_dtoh, (void * t, device_ptr f, size_t n), t, f, n)
FORWARD(cuMemsetD8_v2, memset_d8, (device_ptr t, unsigned char v, size_t n), t, v, n)
FORWARD(cuMemAlloc_v2, mem_alloc, (device_ptr * p, size_t n), p, n)
FORWARD(cuMemFree_v2, mem_free, (device_ptr p), p)
FORWARD(cuMemHostAlloc, mem_host_alloc, (void ** p, size_t n, unsigned f), p, n, f)
FORWARD(cuMemFreeHost, mem_free_host, (void * p), p)
FORWARD(cuCtxSynchronize, ctx_synchronize, ())
FORWARD(cuStreamCreate, stream_create, (stream * s, unsigned f), s, f)
FORWARD(cuStreamDestroy_v2, stream_destroy, (stream s), s)
FORWARD(cuStreamSynchronize, stream_synchronize, (stream s), s)
FORWARD(cuStreamQuery, stream_query, (stream s), s)
FORWARD(cuEventCreate, event_create, (event * e, unsigned f), e, f)
FORWARD(cuEventDestroy_v2, event_destroy, (event e), e)
FORWARD(cuEventRecord, event_record, (event e, stream s), e, s)
FORWARD(cuEventSynchronize, event_synchronize, (event e), e)
FORWARD(cuStreamWaitEvent, stream_wait_event, (stream s, event e, unsigned f), s, e, f)
FORWARD(cuModuleLoadData, module_load_data, (module * m, const void * i), m, i)
FORWARD(cuModuleUnload, module_unload, (module m), m)
FORWARD(cuModuleGetFunction, module_get_function, (function * f, module m, const char * n), f, m, n)
FORWARD(cuLaunchKernel, launch_kernel,
        (function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned sh,
         stream s, void ** p, void ** e),
        f, gx, gy, gz, bx, by, bz, sh, s, p, e)
FORWARD(cuStreamBeginCapture_v2, stream_begin_capture, (stream s, int m), s, m)
FORWARD(cuStreamEndCapture, stream_end_capture, (stream s, graph * g), s, g)
FORWARD(cuStreamIsCapturing, stream_is_capturing, (stream s, int * st), s, st)
FORWARD(cuThreadExchangeStreamCaptureMode, thread_exchange_capture_mode, (int * m), m)
FORWARD(cuGraphInstantiateWithFlags, graph_instantiate, (graph_exec * e, graph g, unsigned long long f), e, g, f)
FORWARD(cuGraphLaunch, graph_launch, (graph_exec e, stream s), e, s)
FORWARD(cuGraphExecDestroy, graph_exec_destroy, (graph_exec e), e)
FORWARD(cuGraphDestroy, graph_destroy, (graph g), g)
