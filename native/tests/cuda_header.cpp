// The table of cuda_table.h is the binary interface of cuda.h, where that header is at hand: the same
// values, and functions of as many parameters of the same sizes. All of it at compile time.
#include "cuda_table.h"

#if __has_include(<cuda.h>)
#include <cuda.h>

#include <array>

namespace {

namespace ours = gc::cuda;

template <class F> struct shape;
template <class R, class... A> struct shape<R (*)(A...)> {
    static constexpr std::array<size_t, sizeof...(A) + 1> sizes = {sizeof(R), sizeof(A)...};
};

template <class A, class B> constexpr bool same_shape() {
    if constexpr (shape<A>::sizes.size() != shape<B>::sizes.size()) return false;
    else return shape<A>::sizes == shape<B>::sizes;
}

#define SAME(member, symbol) static_assert(same_shape<decltype(ours::driver::member), decltype(&symbol)>(), #symbol)

// The names as cuda.h maps them to versioned symbols; libcuda.cpp asks for the same ones.
SAME(primary_ctx_retain, cuDevicePrimaryCtxRetain);
SAME(ctx_set_current, cuCtxSetCurrent);
SAME(ctx_get_current, cuCtxGetCurrent);
SAME(mem_get_info, cuMemGetInfo);
SAME(mem_granularity, cuMemGetAllocationGranularity);
SAME(mem_address_reserve, cuMemAddressReserve);
SAME(mem_address_free, cuMemAddressFree);
SAME(mem_create, cuMemCreate);
SAME(mem_release, cuMemRelease);
SAME(mem_map, cuMemMap);
SAME(mem_unmap, cuMemUnmap);
SAME(mem_set_access, cuMemSetAccess);
SAME(memcpy_htod, cuMemcpyHtoD);
SAME(memcpy_dtoh, cuMemcpyDtoH);
SAME(memset_d8, cuMemsetD8);
SAME(mem_alloc, cuMemAlloc);
SAME(mem_free, cuMemFree);
SAME(mem_host_alloc, cuMemHostAlloc);
SAME(mem_free_host, cuMemFreeHost);
SAME(ctx_synchronize, cuCtxSynchronize);
SAME(stream_create, cuStreamCreate);
SAME(stream_destroy, cuStreamDestroy);
SAME(stream_synchronize, cuStreamSynchronize);
SAME(stream_query, cuStreamQuery);
SAME(event_create, cuEventCreate);
SAME(event_destroy, cuEventDestroy);
SAME(event_record, cuEventRecord);
SAME(event_synchronize, cuEventSynchronize);
SAME(stream_wait_event, cuStreamWaitEvent);
SAME(module_load_data, cuModuleLoadData);
SAME(module_unload, cuModuleUnload);
SAME(module_get_function, cuModuleGetFunction);
SAME(launch_kernel, cuLaunchKernel);
SAME(stream_begin_capture, cuStreamBeginCapture);
SAME(stream_end_capture, cuStreamEndCapture);
SAME(stream_is_capturing, cuStreamIsCapturing);
SAME(thread_exchange_capture_mode, cuThreadExchangeStreamCaptureMode);
SAME(graph_instantiate, cuGraphInstantiateWithFlags);
SAME(graph_launch, cuGraphLaunch);
SAME(graph_exec_destroy, cuGraphExecDestroy);
SAME(graph_destroy, cuGraphDestroy);

#define VALUE(mine, theirs) static_assert(int(mine) == int(theirs), #theirs)

VALUE(ours::success, CUDA_SUCCESS);
VALUE(ours::invalid_value, CUDA_ERROR_INVALID_VALUE);
VALUE(ours::out_of_memory, CUDA_ERROR_OUT_OF_MEMORY);
VALUE(ours::not_initialized, CUDA_ERROR_NOT_INITIALIZED);
VALUE(ours::invalid_device, CUDA_ERROR_INVALID_DEVICE);
VALUE(ours::invalid_image, CUDA_ERROR_INVALID_IMAGE);
VALUE(ours::invalid_context, CUDA_ERROR_INVALID_CONTEXT);
VALUE(ours::invalid_handle, CUDA_ERROR_INVALID_HANDLE);
VALUE(ours::illegal_state, CUDA_ERROR_ILLEGAL_STATE);
VALUE(ours::not_found, CUDA_ERROR_NOT_FOUND);
VALUE(ours::not_ready, CUDA_ERROR_NOT_READY);
VALUE(ours::illegal_address, CUDA_ERROR_ILLEGAL_ADDRESS);
VALUE(ours::launch_failed, CUDA_ERROR_LAUNCH_FAILED);
VALUE(ours::not_supported, CUDA_ERROR_NOT_SUPPORTED);
VALUE(ours::capture_unsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
VALUE(ours::capture_invalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
VALUE(ours::capture_merge, CUDA_ERROR_STREAM_CAPTURE_MERGE);
VALUE(ours::capture_unmatched, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
VALUE(ours::capture_unjoined, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
VALUE(ours::capture_isolation, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
VALUE(ours::capture_implicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
VALUE(ours::captured_event, CUDA_ERROR_CAPTURED_EVENT);
VALUE(ours::capture_wrong_thread, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
VALUE(ours::stream_non_blocking, CU_STREAM_NON_BLOCKING);
VALUE(ours::event_disable_timing, CU_EVENT_DISABLE_TIMING);
VALUE(ours::host_portable, CU_MEMHOSTALLOC_PORTABLE);
VALUE(ours::host_device_map, CU_MEMHOSTALLOC_DEVICEMAP);
VALUE(ours::capture_global, CU_STREAM_CAPTURE_MODE_GLOBAL);
VALUE(ours::capture_thread_local, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
VALUE(ours::capture_relaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
VALUE(ours::capture_none, CU_STREAM_CAPTURE_STATUS_NONE);
VALUE(ours::capture_active, CU_STREAM_CAPTURE_STATUS_ACTIVE);
VALUE(ours::capture_status_invalidated, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
VALUE(ours::pinned_memory, CU_MEM_ALLOCATION_TYPE_PINNED);
VALUE(ours::on_device, CU_MEM_LOCATION_TYPE_DEVICE);
VALUE(ours::access_none, CU_MEM_ACCESS_FLAGS_PROT_NONE);
VALUE(ours::access_read, CU_MEM_ACCESS_FLAGS_PROT_READ);
VALUE(ours::access_read_write, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
VALUE(ours::granularity_minimum, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
VALUE(ours::granularity_recommended, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);

static_assert(sizeof(ours::allocation_prop) == sizeof(CUmemAllocationProp));
static_assert(offsetof(ours::allocation_prop, where) == offsetof(CUmemAllocationProp, location));
static_assert(sizeof(ours::access_desc) == sizeof(CUmemAccessDesc));
static_assert(offsetof(ours::access_desc, flags) == offsetof(CUmemAccessDesc, flags));

} // namespace

#endif
