// P13, extreme sizes fail cleanly: Sizes near the largest integer fail cleanly; they never wrap round to a
// small buffer. A zero-sized tensor, a zero-sized chunk between others, and an empty graph work.
// Asked: alloc graph 1 (1 tensor, 0 bytes) by allocator 0.
// Seen:  aborted: ggml-backend.cpp:124: GGML_ASSERT(buffer) failed (on ggml 0.15.3, meta backend).
// This program is red on ggml 0.15.3 (exit 134: abort: GGML_ASSERT(buffer) failed), green on ggml 0.15.3 with
// the overlay.
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
    return ggml_backend_buffer_init(buft, iface, b, size);
}

static const char * dummy_backend_get_name(ggml_backend_buffer_type_t buft) {
    return ((dummy_backend *) buft->context)->name;
}

static size_t dummy_backend_get_alignment(ggml_backend_buffer_type_t buft) {
    return ((dummy_backend *) buft->context)->alignment;
}

dummy_backend::dummy_backend(const char * name, size_t alignment) : name(name), alignment(alignment) {
    buffer_type.context             = this;
    buffer_type.iface.get_name      = dummy_backend_get_name;
    buffer_type.iface.alloc_buffer  = dummy_backend_alloc_buffer;
    buffer_type.iface.get_alignment = dummy_backend_get_alignment;
}

static const size_t max_tensors = 1; // of a graph

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

    ggml_tensor * node(const char * name, size_t size, std::vector<ggml_tensor *> sources, int id = 0) {
        ggml_tensor * t = leaf(name, size, id);
        t->op = GGML_OP_MUL_MAT;
        std::copy(sources.begin(), sources.end(), t->src);
        return t;
    }
};

static dummy_backend T0("T0", 32);

//
// the failure

static void graph_0(test_graph & g) {
    (void) g; // empty
}

static void graph_1(test_graph & g) {
    g.node("n0", 0, {});
}

int main() {
    step("0. new allocator 0 on type 0");
    ggml_gallocr_t galloc0 = ggml_gallocr_new(&T0.buffer_type);

    step("1. reserve graph 0 (0 tensors, 0 bytes) by allocator 0");
    test_graph g1(graph_0);
    bool ok1 = ggml_gallocr_reserve(galloc0, g1.graph);
    fprintf(stderr, "   returns %s\n", ok1 ? "true" : "false");

    // this is where it goes wrong
    step("2. alloc graph 1 (1 tensor, 0 bytes) by allocator 0");
    test_graph g2(graph_1);
    bool ok2 = ggml_gallocr_alloc_graph(galloc0, g2.graph);
    fprintf(stderr, "   returns %s\n", ok2 ? "true" : "false");

    step("free everything");
    ggml_gallocr_free(galloc0);

    fprintf(stderr, "%s\n", n_failed ? "not as expected" : "all as expected");
    return n_failed ? 1 : 0;
}