// P5, outputs are kept: An output is never freed and never overwritten.
// Asked: alloc graph 0 (4 tensors, 192 bytes) by allocator 0.
// Seen:  tensor 3 at type 0, chunk 0, offset 0 overlaps tensor 0 at type 0, chunk 0, offset 0, which is
// needed to the end, as an output (on ggml 0.15.3, meta backend).
// This program is red on ggml 0.15.3 (exit 1: FAILED: out3 (64 bytes at T0 buffer 0 offset 0) overlaps
// n0 (64 bytes at T0 buffer 0 offset 0), which is needed to the end), green on ggml 0.15.3 with the
// overlay.
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

// tensors that the buffer type wants more bytes for than they have keep that number in `extra`
static size_t get_alloc_size(const ggml_tensor * t) { return t->extra ? (size_t) t->extra : ggml_nbytes(t); }

dummy_backend::dummy_backend(const char * name, size_t alignment) : name(name), alignment(alignment) {
    buffer_type.context             = this;
    buffer_type.iface.get_name      = dummy_backend_get_name;
    buffer_type.iface.alloc_buffer  = dummy_backend_alloc_buffer;
    buffer_type.iface.get_alignment = dummy_backend_get_alignment;
}

static const size_t max_tensors = 4; // of a graph

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

    ggml_tensor * view(const char * name, ggml_tensor * source, size_t size, size_t offset, int id = 0) {
        ggml_tensor * t = ggml_view_1d(ctx, source, size, offset);
        ggml_set_name(t, name);
        tensors.push_back(t);
        ids.push_back(id);
        return t;
    }
};

static dummy_backend T0("T0", 32);
static dummy_backend * const backends[] = { &T0 };

//
// checks

// the buffer that is alive and holds the address, or NULL
static dummy_buffer * find_buffer(const void * address) {
    for (dummy_backend * backend : backends) {
        for (dummy_buffer * b : backend->buffers) {
            if ((uint8_t *) address >= b->base && (uint8_t *) address < b->base + b->size) {
                return b;
            }
        }
    }
    return nullptr;
}

static std::string where(const ggml_tensor * t) {
    dummy_buffer * b = find_buffer(t->data);
    if (!b) {
        return t->data ? "an address that is in no buffer" : "no address";
    }
    const std::vector<dummy_buffer *> & all = b->backend->buffers;
    return std::string(b->backend->name) + " buffer " + std::to_string(std::find(all.begin(), all.end(), b) - all.begin())
        + " offset " + std::to_string((uint8_t *) t->data - b->base);
}

static ggml_tensor * get_view_source(ggml_tensor * t) { return t->view_src ? t->view_src : t; }

static bool is_weight(const test_graph &, ggml_tensor *) { return false; }

struct lifetime { int first, last; };

static const int forever = INT_MAX;

static bool reads(ggml_tensor * node, ggml_tensor * t) {
    return std::any_of(node->src, node->src + GGML_MAX_SRC, [t](ggml_tensor * s) { return s && get_view_source(s) == t; });
}

// an output, or shown by a view that is one
static bool is_output(const test_graph & g, ggml_tensor * t) {
    return std::any_of(g.tensors.begin(), g.tensors.end(), [t](ggml_tensor * o) {
        return (o->flags & GGML_TENSOR_FLAG_OUTPUT) && ggml_nbytes(o) > 0 && get_view_source(o) == t;
    });
}

// from the step that writes it (inputs: before all) to the last one that reads it or a view of it
static lifetime get_lifetime(const test_graph & g, int index) {
    ggml_tensor * t = g.tensors[index];
    if (is_weight(g, t)) {
        return { -1, forever };
    }
    int first = -1, last = -1;
    for (int i = (int) g.tensors.size() - 1; i >= 0; i--) {
        if (reads(g.tensors[i], t)) {
            first = i;
            last  = std::max(last, i);
        }
    }
    if (t->flags & GGML_TENSOR_FLAG_INPUT) {
        first = -1;
    } else if (t->op != GGML_OP_NONE || first < 0) {
        first = index;
    }
    return { first, is_output(g, t) ? forever : std::max(first, last) };
}

static bool memory_overlap(ggml_tensor * a, ggml_tensor * b) {
    const size_t a0 = (size_t) a->data, b0 = (size_t) b->data; // differences may not wrap round, sums may
    return a0 && b0 && (b0 >= a0 ? b0 - a0 < get_alloc_size(a) && get_alloc_size(b) : a0 - b0 < get_alloc_size(b) && get_alloc_size(a));
}

static bool same_layout(ggml_tensor * a, ggml_tensor * b) {
    return a->type == b->type && std::equal(a->ne, a->ne + GGML_MAX_DIMS, b->ne) && std::equal(a->nb, a->nb + GGML_MAX_DIMS, b->nb);
}

// `t` writes over `other`, which it reads
static bool can_reuse_memory(const test_graph & g, ggml_tensor * t, ggml_tensor * other) {
    if (t->op != GGML_OP_ADD || is_weight(g, other) || is_output(g, other)) {
        return false;
    }
    return std::any_of(t->src, t->src + GGML_MAX_SRC, [&](ggml_tensor * s) {
        return s && get_view_source(s) == other && s->data == t->data && same_layout(s, t);
    });
}

static void check_no_overlap(const test_graph & g) {
    for (int i = 0; i < (int) g.tensors.size(); i++) {
        for (int j = 0; j < i; j++) {
            ggml_tensor * t = g.tensors[i], * o = g.tensors[j];
            if (t->view_src || o->view_src || !memory_overlap(t, o) || (is_weight(g, t) && is_weight(g, o))) {
                continue;
            }
            const lifetime a = get_lifetime(g, j), b = get_lifetime(g, i);
            const bool both_alive = a.first <= b.last && b.first <= a.last;
            expect(!both_alive || (a.last == b.first && can_reuse_memory(g, t, o)),
                   "%s (%zu bytes at %s) overlaps %s (%zu bytes at %s), which is %s", t->name, get_alloc_size(t), where(t).c_str(),
                   o->name, get_alloc_size(o), where(o).c_str(), a.last == forever ? "needed to the end" : "still to be read");
        }
    }
}

//
// the failure

static void graph_0(test_graph & g) {
    ggml_tensor * n0 = g.node("n0", 64, {});
    ggml_tensor * out_view1 = g.view("out_view1", n0, 64, 0);
    ggml_set_output(out_view1);
    ggml_tensor * n2 = g.node("n2", 64, { out_view1 });
    ggml_tensor * out3 = g.node("out3", 64, { n2 });
    ggml_set_output(out3);
}

int main() {
    step("0. new allocator 0 on type 0");
    ggml_gallocr_t galloc0 = ggml_gallocr_new(&T0.buffer_type);

    // this is where it goes wrong
    step("1. alloc graph 0 (4 tensors, 192 bytes) by allocator 0");
    test_graph g1(graph_0);
    bool ok1 = ggml_gallocr_alloc_graph(galloc0, g1.graph);
    fprintf(stderr, "   returns %s\n", ok1 ? "true" : "false");
    if (ok1) {
        check_no_overlap(g1);
    }

    step("free everything");
    ggml_gallocr_free(galloc0);

    fprintf(stderr, "%s\n", n_failed ? "not as expected" : "all as expected");
    return n_failed ? 1 : 0;
}