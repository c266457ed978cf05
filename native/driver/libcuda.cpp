#include "libcuda.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>

namespace gc::libcuda {
namespace {

std::string reason;

struct opener { // resolves symbols; remembers the first that is missing
    void * handle;
    const char * missing = nullptr;

    template <class F> void get(F & f, const char * name) {
        f = reinterpret_cast<F>(dlsym(handle, name));
        if (!f && !missing) missing = name;
    }
};

void resolve(opener & o, cuda::driver & d) {
    o.get(d.primary_ctx_retain, "cuDevicePrimaryCtxRetain");
    o.get(d.ctx_set_current, "cuCtxSetCurrent");
    o.get(d.ctx_get_current, "cuCtxGetCurrent");
    o.get(d.mem_get_info, "cuMemGetInfo_v2");
    o.get(d.mem_granularity, "cuMemGetAllocationGranularity");
    o.get(d.mem_address_reserve, "cuMemAddressReserve");
    o.get(d.mem_address_free, "cuMemAddressFree");
    o.get(d.mem_create, "cuMemCreate");
    o.get(d.mem_release, "cuMemRelease");
    o.get(d.mem_map, "cuMemMap");
    o.get(d.mem_unmap, "cuMemUnmap");
    o.get(d.mem_set_access, "cuMemSetAccess");
    o.get(d.memcpy_htod, "cuMemcpyHtoD_v2");
    o.get(d.memcpy_dtoh, "cuMemcpyDtoH_v2");
    o.get(d.memset_d8, "cuMemsetD8_v2");
    o.get(d.mem_alloc, "cuMemAlloc_v2");
    o.get(d.mem_free, "cuMemFree_v2");
    o.get(d.mem_host_alloc, "cuMemHostAlloc");
    o.get(d.mem_free_host, "cuMemFreeHost");
    o.get(d.ctx_synchronize, "cuCtxSynchronize");
    o.get(d.stream_create, "cuStreamCreate");
    o.get(d.stream_destroy, "cuStreamDestroy_v2");
    o.get(d.stream_synchronize, "cuStreamSynchronize");
    o.get(d.stream_query, "cuStreamQuery");
    o.get(d.event_create, "cuEventCreate");
    o.get(d.event_destroy, "cuEventDestroy_v2");
    o.get(d.event_record, "cuEventRecord");
    o.get(d.event_synchronize, "cuEventSynchronize");
    o.get(d.stream_wait_event, "cuStreamWaitEvent");
    o.get(d.module_load_data, "cuModuleLoadData");
    o.get(d.module_unload, "cuModuleUnload");
    o.get(d.module_get_function, "cuModuleGetFunction");
    o.get(d.launch_kernel, "cuLaunchKernel");
    o.get(d.stream_begin_capture, "cuStreamBeginCapture_v2");
    o.get(d.stream_end_capture, "cuStreamEndCapture");
    o.get(d.stream_is_capturing, "cuStreamIsCapturing");
    o.get(d.thread_exchange_capture_mode, "cuThreadExchangeStreamCaptureMode");
    o.get(d.graph_instantiate, "cuGraphInstantiateWithFlags");
    o.get(d.graph_launch, "cuGraphLaunch");
    o.get(d.graph_exec_destroy, "cuGraphExecDestroy");
    o.get(d.graph_destroy, "cuGraphDestroy");
}

// What is asked once, and is not in the table.
struct setup {
    cuda::result (*init)(unsigned flags);
    cuda::result (*get_version)(int * version);
    cuda::result (*get_count)(int * n);
    cuda::result (*get_device)(int * device, int ordinal);
    cuda::result (*get_name)(char * name, int size, int device);

    explicit setup(opener & o) {
        o.get(init, "cuInit");
        o.get(get_version, "cuDriverGetVersion");
        o.get(get_count, "cuDeviceGetCount");
        o.get(get_device, "cuDeviceGet");
        o.get(get_name, "cuDeviceGetName");
    }
};

bool failed(cuda::result r, const char * what) {
    if (r != cuda::success) reason = std::string(what) + " answered with CUDA error " + std::to_string(r) + ".";
    return r != cuda::success;
}

bool start(library & l, const setup & s) {
    int n = 0, device = 0;
    char name[256] = "";
    if (failed(s.init(0), "cuInit") || failed(s.get_version(&l.version), "cuDriverGetVersion")) return false;
    if (failed(s.get_count(&n), "cuDeviceGetCount")) return false;
    if (n < 1) {
        reason = "The CUDA driver knows of no GPU.";
        return false;
    }
    if (failed(s.get_device(&device, 0), "cuDeviceGet")) return false;
    if (failed(s.get_name(name, sizeof(name), device), "cuDeviceGetName")) return false;
    l.card = name;
    if (failed(l.table.primary_ctx_retain(&l.context, device), "cuDevicePrimaryCtxRetain")) return false;
    cuda::allocation_prop prop{};
    prop.type = cuda::pinned_memory;
    prop.where = {cuda::on_device, 0};
    size_t unit = 0;
    const cuda::result r = l.table.mem_granularity(&unit, &prop, cuda::granularity_minimum);
    l.granularity = unit;
    return !failed(r, "cuMemGetAllocationGranularity");
}

bool open(library & l) {
    opener o = {dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)};
    if (!o.handle) {
        reason = "There is no CUDA driver here (libcuda.so.1 cannot be loaded).";
        return false;
    }
    const setup s(o);
    resolve(o, l.table);
    if (o.missing) {
        reason = std::string("libcuda.so.1 is too old: it has no ") + o.missing + ".";
        return false;
    }
    return start(l, s);
}

} // namespace

const library * load() {
    static library l;
    static const bool there = open(l);
    return there ? &l : nullptr;
}

const std::string & why_not() {
    load();
    return reason;
}

} // namespace gc::libcuda
