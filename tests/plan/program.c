/* A small real program on a tree's public functions: what it does with graphs is its argument.
 *
 *   good     reserve, bind and compute a graph, twice
 *   threads  four threads with an allocator each do the same, thirty times
 *   stale    bind a graph, reserve a larger one (its buffer is replaced), compute the first
 *
 * It computes on a backend of its own that only adds, since fetched trees come without kernels.
 */
#include "ggml.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-impl.h"
#include "ggml-backend-impl.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef STATUS
#define STATUS enum ggml_status
#define SUCCESS GGML_STATUS_SUCCESS
#else
#define SUCCESS true
#endif

static const char * name_of(ggml_backend_t backend) {
    (void) backend;
    return "adder";
}

static bool touch = true; /* whether computing touches memory */

static STATUS compute(ggml_backend_t backend, struct ggml_cgraph * graph) {
    (void) backend;
    for (int i = 0; touch && i < graph->n_nodes; i++) {
        struct ggml_tensor * t = graph->nodes[i];
        for (int64_t k = 0; t->op == GGML_OP_ADD && k < ggml_nelements(t); k++) {
            ((float *) t->data)[k] = ((float *) t->src[0]->data)[k] + ((float *) t->src[1]->data)[k];
        }
    }
    return SUCCESS;
}

static struct ggml_tensor * cache; /* memory of the program's own, that graphs write into by a view */

static void make_cache(int n) {
    struct ggml_init_params params = { (size_t) 1 << 16, NULL, true };
    struct ggml_context *   ctx    = ggml_init(params);
    cache = ggml_set_name(ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4 * n), "cache");
    ggml_backend_alloc_ctx_tensors_from_buft(ctx, ggml_backend_cpu_buffer_type());
}

/* x is an input; a chain of sums, of which some are read late, a product, views that are read and written, and an
 * output. */
static struct ggml_cgraph * build(struct ggml_context ** context, int n) {
    struct ggml_init_params params = { (size_t) 1 << 20, NULL, true };
    struct ggml_context *   ctx    = *context = ggml_init(params);
    struct ggml_tensor *    x      = ggml_set_name(ggml_new_tensor_1d(ctx, GGML_TYPE_F32, n), "x");
    struct ggml_tensor *    w      = ggml_set_name(ggml_new_tensor_2d(ctx, GGML_TYPE_F32, n, n), "w");
    ggml_set_input(x);
    ggml_set_input(w);
    struct ggml_tensor * early = ggml_set_name(ggml_mul_mat(ctx, w, x), "early");
    struct ggml_tensor * sum   = ggml_set_name(ggml_add(ctx, early, x), "mixed");
    for (int i = 0; i < 4; i++) {
        sum = ggml_add(ctx, ggml_mul_mat(ctx, w, sum), x);
        ggml_format_name(sum, "sum %d", i);
    }
    struct ggml_tensor * kept = ggml_cpy(ctx, sum, ggml_view_1d(ctx, cache, n, 4 * n));
    sum                       = ggml_add_inplace(ctx, ggml_mul_mat(ctx, w, sum), ggml_scale_inplace(ctx, kept, 2));
    struct ggml_tensor * half = ggml_set_name(ggml_view_1d(ctx, sum, n / 2, 0), "half");
    struct ggml_tensor * end  = ggml_set_name(ggml_add(ctx, ggml_mul_mat(ctx, w, sum), early), "end");
    struct ggml_tensor * out  = ggml_set_name(ggml_mul(ctx, end, ggml_repeat(ctx, half, end)), "out");
    ggml_set_output(out);
    struct ggml_cgraph * graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, out);
    return graph;
}

static void clear(struct ggml_cgraph * graph) {
    for (int i = 0; i < graph->n_leafs; i++) {
        memset(graph->leafs[i]->data, 0, ggml_nbytes(graph->leafs[i]));
    }
}

static void * work(void * backend) {
    for (int i = 0; i < 30; i++) {
        ggml_gallocr_t        galloc = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
        struct ggml_context * context;
        struct ggml_cgraph *  graph = build(&context, 16 + 16 * (i % 3));
        if (!ggml_gallocr_reserve(galloc, graph) || !ggml_gallocr_alloc_graph(galloc, graph)) {
            abort();
        }
        clear(graph);
        ggml_backend_graph_compute(backend, graph);
        ggml_gallocr_free(galloc);
        ggml_free(context);
    }
    return NULL;
}

int main(int argc, char ** argv) {
    const char *        what    = argc > 1 ? argv[1] : "good";
    struct ggml_backend backend = { .iface = { .get_name = name_of, .graph_compute = compute } };
    make_cache(128);
    if (!strcmp(what, "threads")) {
        pthread_t threads[4];
        for (int i = 0; i < 4; i++) {
            pthread_create(&threads[i], NULL, work, &backend);
        }
        for (int i = 0; i < 4; i++) {
            pthread_join(threads[i], NULL);
        }
        puts("done");
        return 0;
    }
    ggml_gallocr_t      galloc  = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
    struct ggml_context *first, *second, *large;
    struct ggml_cgraph * graph = build(&first, 64);

    if (!ggml_gallocr_reserve(galloc, graph) || !ggml_gallocr_alloc_graph(galloc, graph)) {
        return 1;
    }
    if (!strcmp(what, "stale")) {
        ggml_gallocr_reserve(galloc, build(&large, 128));
        touch = false; /* it is gone: what the hook sees of it is enough */
    } else {
        clear(graph);
    }
    ggml_backend_graph_compute(&backend, graph);
    if (!strcmp(what, "good")) {
        struct ggml_cgraph * again = build(&second, 64);
        ggml_gallocr_alloc_graph(galloc, again);
        clear(again);
        ggml_backend_graph_compute(&backend, again);
        ggml_free(second);
    }
    ggml_gallocr_free(galloc);
    ggml_free(first);
    puts("done");
    return 0;
}
