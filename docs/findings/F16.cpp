// P12, measuring changes nothing: Measuring a graph (sizes only) gives what reserving it would give, and
// changes no buffer and no bound address. A graph may be allocated after a measure only if the buffers still
// fit.
// Asked: measure graph 0 (2 tensors, 200 bytes) by allocator 0.
// Seen:  measure gives [0, 256] bytes by slot, reserve gives [256, 0] (on ggml 0.15.3, meta backend).
// This program is red on ggml 0.15.3 (exit 1: FAILED: 256 bytes are measured for entry 0 of the list (there
// are 0)), green on ggml 0.15.3 with the overlay.
// Written by gallocheck 0.1.0 from a saved failure.
// Build, in the folder that holds the tree's include/ and src/, no library needed:
//     cc -w -DNDEBUG -D_GNU_SOURCE '-DGGML_VERSION="-"' '-DGGML_COMMIT="-"' -I include -I src program.cpp src/ggml-alloc.c src/ggml-backend-meta.cpp src/ggml-backend.cpp src/ggml-quants.c src/ggml-threading.cpp src/ggml.c src/ggml.cpp -lstdc++ -lm -lpthread -o program

#include "ggml.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-backend-impl.h"

#include <algorithm>
#include <climits>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>
#include <sys/mman.h>
#include <unistd.h>

static int n_failed = 0;

static void step(const char * what) { fprintf(stderr, "%s\n", what); }

static bool expect(bool ok, const char * format, ...) {
    if (!ok) {
        n_failed++;
        va_list args;
        va_start(args, format);
        fprintf(stderr, "FAILED: ");
        vfprintf(stderr, format, args);
        fprintf(stderr, "\n");
        va_end(args);
    }
    return ok;
}

//
// dummy backend: its memory is gone for good once it is freed, so that stale use faults

struct dummy_backend;

struct dummy_buffer {
    dummy_backend * backend;
    uint8_t *       base;
    size_t          size;
    bool            alive = true;
};

struct dummy_backend {
    const char * name;
    size_t       alignment;

    ggml_backend_buffer_type buffer_type = {};
    ggml_backend_device      device = {}, cpu = {};

    std::vector<dummy_buffer *> buffers; // alive, in order of allocation

    dummy_backend(const char * name, size_t alignment);
};

static void dummy_backend_buffer_free(ggml_backend_buffer_t buffer) {
    dummy_buffer * b = (dummy_buffer *) buffer->context;
    GGML_ASSERT(b->alive);
    b->alive = false;
    std::vector<dummy_buffer *> & all = b->backend->buffers;
    all.erase(std::find(all.begin(), all.end(), b));
    mprotect(b->base, b->size, PROT_NONE); // not unmapped: nothing else ever gets the address
}

static void * dummy_backend_buffer_get_base(ggml_backend_buffer_t buffer) {
    return ((dummy_buffer *) buffer->context)->base;
}

static bool dummy_backend_buffer_cpy_tensor(ggml_backend_buffer_t, const ggml_tensor *, ggml_tensor *) {
    return true; // contents do not matter here
}

static ggml_backend_buffer_t dummy_backend_alloc_buffer(ggml_backend_buffer_type_t buft, size_t size) {
    dummy_backend * backend = (dummy_backend *) buft->context;
    if (size > SIZE_MAX / 2) {
        return nullptr;
    }
    const size_t page = 4096; // one more page, behind the end, stays shut
    void * base = mmap(nullptr, size + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        return nullptr;
    }
    mprotect(base, size, PROT_READ | PROT_WRITE);

    dummy_buffer * b = new dummy_buffer();
    b->backend = backend;
    b->base    = (uint8_t *) base;
    b->size    = size;
    backend->buffers.push_back(b);

    ggml_backend_buffer_i iface = {};
    iface.free_buffer = dummy_backend_buffer_free;
    iface.get_base    = dummy_backend_buffer_get_base;
    iface.cpy_tensor  = dummy_backend_buffer_cpy_tensor;
    return ggml_backend_buffer_init(buft, iface, b, size);
}

static const char * dummy_backend_get_name(ggml_backend_buffer_type_t buft) {
    return ((dummy_backend *) buft->context)->name;
}

static size_t dummy_backend_get_alignment(ggml_backend_buffer_type_t buft) {
    return ((dummy_backend *) buft->context)->alignment;
}

static bool dummy_backend_is_host(ggml_backend_buffer_type_t) { return false; }

dummy_backend::dummy_backend(const char * name, size_t alignment) : name(name), alignment(alignment) {
    buffer_type.context             = this;
    buffer_type.iface.get_name      = dummy_backend_get_name;
    buffer_type.iface.alloc_buffer  = dummy_backend_alloc_buffer;
    buffer_type.iface.get_alignment = dummy_backend_get_alignment;
    buffer_type.iface.is_host       = dummy_backend_is_host;
    buffer_type.device              = &device;
    for (ggml_backend_device * dev : { &device, &cpu }) {
        dev->context             = this;
        dev->iface.get_name      = [](ggml_backend_dev_t d) { return ((dummy_backend *) d->context)->name; };
        dev->iface.supports_op   = [](ggml_backend_dev_t, const ggml_tensor *) { return true; };
        dev->iface.supports_buft = [](ggml_backend_dev_t d, ggml_backend_buffer_type_t buft) { return buft->context == d->context; };
        dev->iface.get_buffer_type = [](ggml_backend_dev_t d) { return &((dummy_backend *) d->context)->buffer_type; };
    }
    device.iface.get_type = [](ggml_backend_dev_t) { return GGML_BACKEND_DEVICE_TYPE_GPU; };
    cpu.iface.get_type    = [](ggml_backend_dev_t) { return GGML_BACKEND_DEVICE_TYPE_CPU; };
}

static const size_t max_tensors = 2; // of a graph

//
// graphs: tensors are made by hand, because an allocator looks at nothing but sizes, sources, views, flags, and
// whether an operation may work in place (GGML_OP_ADD may, GGML_OP_MUL_MAT may not)

struct test_graph {
    ggml_context * ctx;
    ggml_cgraph *  graph;
    std::vector<ggml_tensor *> tensors; // in order of execution
    std::vector<int>           ids;     // where each should go: an index in the allocator's list of buffer types

    explicit test_graph(void (*build)(test_graph &)) {
        ggml_init_params params = {};
        params.mem_size = max_tensors * ggml_tensor_overhead() + ggml_graph_overhead_custom(max_tensors, false);
        params.no_alloc = true;
        ctx   = ggml_init(params);
        graph = ggml_new_graph_custom(ctx, max_tensors, false);
        build(*this);
        for (bool leafs : { true, false }) {
            for (size_t i = 0; i < tensors.size(); i++) {
                if ((tensors[i]->op == GGML_OP_NONE) == leafs) {
                    ggml_build_forward_expand(graph, tensors[i]);
                }
            }
        }
    }

    test_graph(const test_graph &) = delete;

    ~test_graph() {
        ggml_free(ctx);
    }

    ggml_tensor * leaf(const char * name, size_t size, int id = 0) {
        ggml_tensor * t = ggml_new_tensor_1d(ctx, GGML_TYPE_I8, size);
        ggml_set_name(t, name);
        tensors.push_back(t);
        ids.push_back(id);
        return t;
    }

    ggml_tensor * input(const char * name, size_t size, int id = 0) {
        ggml_tensor * t = leaf(name, size, id);
        ggml_set_input(t);
        return t;
    }

    ggml_tensor * node(const char * name, size_t size, std::vector<ggml_tensor *> sources, int id = 0) {
        ggml_tensor * t = leaf(name, size, id);
        t->op = GGML_OP_MUL_MAT;
        std::copy(sources.begin(), sources.end(), t->src);
        return t;
    }
};

static dummy_backend T0("T0", 32);
static dummy_backend T1("T1", 32);

//
// checks

static bool is_weight(const test_graph &, ggml_tensor *) { return false; }

//
// a backend for each entry in a scheduler's list; work is in flight until somebody waits for it

struct dummy_stream {
    ggml_backend backend = {};

    dummy_stream(dummy_backend & on, bool last, unsigned index) {
        static uint8_t id[16] = { 1 };
        backend.guid    = &id;
        backend.device  = last ? &on.cpu : &on.device; // a scheduler wants a CPU at the end
        backend.context = this;
        backend.iface.get_name    = [](ggml_backend_t b) { return b->device->iface.get_name(b->device); };
        backend.iface.free        = [](ggml_backend_t) {};
        backend.iface.synchronize = synchronize;
        // trees differ in what else they hand over
        backend.iface.graph_compute = [](ggml_backend_t b, ggml_cgraph * graph, auto...) { return compute(b, graph); };
    }

    static void synchronize(ggml_backend_t b) {
    }

    static enum ggml_status compute(ggml_backend_t b, ggml_cgraph * graph) {
        return GGML_STATUS_SUCCESS;
    }
};

// tells the scheduler where each tensor should go
static void place(ggml_backend_sched_t sched, ggml_backend_t * list, const test_graph & g) {
    for (size_t i = 0; i < g.tensors.size(); i++) {
        if (!is_weight(g, g.tensors[i])) {
            ggml_backend_sched_set_tensor_backend(sched, g.tensors[i], list[g.ids[i]]);
        }
    }
}

//
// the failure

static void graph_0(test_graph & g) {
    ggml_tensor * in0 = g.input("in0", 100);
    ggml_tensor * out1 = g.node("out1", 100, { in0 });
    ggml_set_output(out1);
}

int main() {
    step("0. new allocator 0 on types 0, 1 through the scheduler");
    dummy_stream b0_0(T0, false, 0);
    dummy_stream b0_1(T1, true, 1);
    ggml_backend_t backends0[] = { &b0_0.backend, &b0_1.backend };
    ggml_backend_buffer_type_t bufts0[] = { &T0.buffer_type, &T1.buffer_type };
    ggml_backend_sched_t sched0 = ggml_backend_sched_new(backends0, bufts0, 2, 64, false, false);

    // this is where it goes wrong
    step("1. measure graph 0 (2 tensors, 200 bytes) by allocator 0");
    test_graph g1(graph_0);
    ggml_backend_sched_reset(sched0);
    place(sched0, backends0, g1);
    size_t sizes1[2] = {};
    ggml_backend_sched_reserve_size(sched0, g1.graph, sizes1);
    expect(sizes1[0] == 256, "256 bytes are measured for entry 0 of the list (there are %zu)", sizes1[0]);
    expect(sizes1[1] == 0, "0 bytes are measured for entry 1 of the list (there are %zu)", sizes1[1]);

    step("free everything");
    ggml_backend_sched_synchronize(sched0);
    ggml_backend_sched_free(sched0);

    fprintf(stderr, "%s\n", n_failed ? "not as expected" : "all as expected");
    return n_failed ? 1 : 0;
}