/* alloc.c: the tree's graph allocator with buffers that can be shared.
 *
 * The tree's own ggml-alloc.c is included with its public functions renamed. It
 * plans; what its buffers are is decided here. While it plans it is shown buffers
 * of endless size, so that it never replaces any; while it binds it is shown those
 * of roles.c, chunk by chunk; at all other times it has none. That also mends what
 * would break sharing: a plan used for a graph that it was not made for (G4), a
 * measure that changes plan or buffers (P12), sizes that wrap round (P13).
 */
#define ggml_gallocr_new_n           tree_gallocr_new_n
#define ggml_gallocr_new             tree_gallocr_new
#define ggml_gallocr_free            tree_gallocr_free
#define ggml_gallocr_reserve         tree_gallocr_reserve
#define ggml_gallocr_reserve_n       tree_gallocr_reserve_n
#define ggml_gallocr_reserve_n_size  tree_gallocr_reserve_n_size
#define ggml_gallocr_alloc_graph     tree_gallocr_alloc_graph
#define ggml_gallocr_get_buffer_size tree_gallocr_get_buffer_size

#include "ggml-alloc.c"

#undef ggml_gallocr_new_n
#undef ggml_gallocr_new
#undef ggml_gallocr_free
#undef ggml_gallocr_reserve
#undef ggml_gallocr_reserve_n
#undef ggml_gallocr_reserve_n_size
#undef ggml_gallocr_alloc_graph
#undef ggml_gallocr_get_buffer_size

#include "meta.h"
#include "roles.h"

/* The tree's header was read under the other names. */
ggml_gallocr_t ggml_gallocr_new(ggml_backend_buffer_type_t buft);
ggml_gallocr_t ggml_gallocr_new_n(ggml_backend_buffer_type_t * bufts, int n);
void   ggml_gallocr_free(ggml_gallocr_t g);
bool   ggml_gallocr_reserve(ggml_gallocr_t g, struct ggml_cgraph * graph);
bool   ggml_gallocr_reserve_n(ggml_gallocr_t g, struct ggml_cgraph * graph, const int * nodes, const int * leafs);
void   ggml_gallocr_reserve_n_size(ggml_gallocr_t g, struct ggml_cgraph * graph, const int * nodes, const int * leafs, size_t * sizes);
bool   ggml_gallocr_alloc_graph(ggml_gallocr_t g, struct ggml_cgraph * graph);
size_t ggml_gallocr_get_buffer_size(ggml_gallocr_t g, int id);

_Static_assert(GGML_VBUFFER_MAX_CHUNKS == ROLE_CHUNKS, "the tree's number of chunks");

/* Larger than any plan. */
static struct ggml_backend_buffer endless_chunk = { .size = SIZE_MAX };

static void show_endless(ggml_gallocr_t g, struct vbuffer * endless) {
    for (int c = 0; c < ROLE_CHUNKS; c++) {
        endless->chunks[c] = &endless_chunk;
    }
    for (int i = 0; i < g->n_buffers; i++) {
        g->buffers[i] = endless;
    }
}

static void show_none(ggml_gallocr_t g) {
    for (int i = 0; i < g->n_buffers; i++) {
        g->buffers[i] = NULL;
    }
}

static struct role * role_of(ggml_gallocr_t g) { return role_find(g); }

static bool is_placed(const struct ggml_tensor * t) { return !t->view_src && !t->data && !t->buffer; }

/* What a tensor takes of the buffer type that asks for most. */
static size_t placed_size(ggml_gallocr_t g, const struct ggml_tensor * t) {
    size_t largest = 0;
    for (int i = 0; i < g->n_buffers; i++) {
        const size_t size = ggml_backend_buft_get_alloc_size(g->bufts[i], t);
        const size_t align = g->buf_tallocs[i]->alignment;
        largest = MAX(largest, size > SIZE_MAX/2 ? SIZE_MAX/2 : (size + align - 1)/align*align);
    }
    return largest;
}

/* P13: true where no sum that the tree's planner forms can wrap round. */
static bool sums_stay_small(ggml_gallocr_t g, const struct ggml_cgraph * graph) {
    size_t left = SIZE_MAX/2 - 1;
    for (int i = 0; i < graph->n_leafs + graph->n_nodes; i++) {
        const struct ggml_tensor * t = i < graph->n_leafs ? graph->leafs[i] : graph->nodes[i - graph->n_leafs];
        const size_t size = is_placed(t) ? placed_size(g, t) : 0;
        if (size > left) {
            return false;
        }
        left -= size;
    }
    return true;
}

/* P5: the tree's planner keeps outputs, but not what an output is a view of. Marks
 * that too; returns how many were marked, to be unmarked. */
static int mark_roots(struct ggml_cgraph * graph, struct ggml_tensor ** marked) {
    int n = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        struct ggml_tensor * t = graph->nodes[i];
        if ((t->flags & GGML_TENSOR_FLAG_OUTPUT) && t->view_src && !(t->view_src->flags & GGML_TENSOR_FLAG_OUTPUT)) {
            t->view_src->flags |= GGML_TENSOR_FLAG_OUTPUT;
            marked[n++] = t->view_src;
        }
    }
    return n;
}

/* Plans with the tree's own planner; no buffer changes. */
static bool plan(ggml_gallocr_t g, struct ggml_cgraph * graph, const int * nodes, const int * leafs) {
    if (!sums_stay_small(g, graph)) {
        return false;
    }
    struct ggml_tensor ** marked = calloc(graph->n_nodes + 1, sizeof(marked[0]));
    const int n_marked = mark_roots(graph, marked);
    struct vbuffer endless;
    show_endless(g, &endless);
    const bool ok = tree_gallocr_reserve_n(g, graph, nodes, leafs);
    show_none(g);
    for (int i = 0; i < n_marked; i++) {
        marked[i]->flags &= ~GGML_TENSOR_FLAG_OUTPUT;
    }
    free(marked);
    return ok;
}

/* What a plan depends on (G4), as words: sizes, layouts, flags, views, and who reads whom. */
struct words { uint64_t * at; size_t n; };

static void put(struct words * w, uint64_t word) { w->at[w->n++] = word; }

struct positions { struct ggml_hash_set set; uint64_t * at; };

static uint64_t position(struct positions * p, struct ggml_tensor * t) {
    const size_t i = t ? ggml_hash_find(&p->set, t) : GGML_HASHSET_FULL;
    return i != GGML_HASHSET_FULL && ggml_bitset_get(p->set.used, i) ? p->at[i] : UINT64_MAX;
}

enum { WORDS_A_TENSOR = GGML_MAX_SRC + 2*GGML_MAX_DIMS + 8 };

static void put_tensor(ggml_gallocr_t g, struct words * w, struct positions * p, const struct ggml_tensor * t) {
    put(w, t->op);
    put(w, t->flags & (GGML_TENSOR_FLAG_INPUT | GGML_TENSOR_FLAG_OUTPUT));
    put(w, t->type);
    put(w, is_placed(t));
    put(w, is_placed(t) ? placed_size(g, t) : 0);
    put(w, position(p, t->view_src));
    put(w, t->view_src ? t->view_offs : 0);
    for (int d = 0; d < GGML_MAX_DIMS; d++) {
        put(w, t->ne[d]);
        put(w, t->nb[d]);
    }
    for (int j = 0; j < GGML_MAX_SRC; j++) {
        put(w, position(p, t->src[j]));
    }
}

static struct words describe(ggml_gallocr_t g, struct ggml_cgraph * graph) {
    const size_t n = graph->n_leafs + graph->n_nodes;
    struct words w = { malloc((n*WORDS_A_TENSOR + 2)*sizeof(uint64_t)), 0 };
    struct positions p = { ggml_hash_set_new(n + n/4 + 1), NULL };
    p.at = malloc(p.set.size*sizeof(uint64_t));
    for (size_t i = 0; i < n; i++) {
        struct ggml_tensor * t = i < (size_t) graph->n_leafs ? graph->leafs[i] : graph->nodes[i - graph->n_leafs];
        p.at[ggml_hash_find_or_insert(&p.set, t)] = i;
    }
    put(&w, graph->n_leafs);
    put(&w, graph->n_nodes);
    for (size_t i = 0; i < n; i++) {
        put_tensor(g, &w, &p, i < (size_t) graph->n_leafs ? graph->leafs[i] : graph->nodes[i - graph->n_leafs]);
    }
    free(p.at);
    ggml_hash_set_free(&p.set);
    return w;
}

static bool plan_is_for(ggml_gallocr_t g, struct ggml_cgraph * graph) {
    const struct role * r = role_of(g);
    struct words w = describe(g, graph);
    const bool same = r->plan && r->n_plan == w.n && memcmp(r->plan, w.at, w.n*sizeof(uint64_t)) == 0;
    free(w.at);
    return same;
}

/* Publishes the requirement of the plan just made. */
static void publish(ggml_gallocr_t g, struct ggml_cgraph * graph) {
    struct role * r = role_of(g);
    free(r->plan);
    const struct words w = describe(g, graph);
    r->plan = w.at;
    r->n_plan = w.n;
    for (int i = 0; i < g->n_buffers; i++) {
        for (int c = 0; c < ROLE_CHUNKS; c++) {
            r->required[role_type(r, g->bufts[i])][c] = ggml_dyn_tallocr_max_size(g->buf_tallocs[i], c);
        }
    }
}

static int first_of_type(ggml_gallocr_t g, int i) {
    int first = 0;
    while (g->bufts[first] != g->bufts[i]) {
        first++;
    }
    return first;
}

/* M3: who binds gets its own alias of a meta buffer, made now. */
static ggml_backend_buffer_t chunk_for(struct role * r, int t, int c) {
    const struct entry * e = r->entries[t];
    if (!e->chunks[c]) {
        return e->nothing;
    }
    return r->aliases[t][c] = overlay_alias(e->chunks[c], r->aliases[t][c]);
}

/* Binds by the current plan, which fits both the graph and the buffers. */
static bool bind(ggml_gallocr_t g, struct ggml_cgraph * graph) {
    struct role * r = role_of(g);
    struct vbuffer * shown = calloc(g->n_buffers, sizeof(*shown));
    for (int i = 0; i < g->n_buffers; i++) {
        g->buffers[i] = &shown[i];
        if (first_of_type(g, i) < i) {
            shown[i] = shown[first_of_type(g, i)];
            continue;
        }
        const int t = role_type(r, g->bufts[i]);
        for (int c = 0; c < ROLE_CHUNKS; c++) {
            shown[i].chunks[c] = chunk_for(r, t, c);
        }
    }
    const bool ok = tree_gallocr_alloc_graph(g, graph);
    show_none(g);
    free(shown);
    return ok;
}

static bool only_one_type(ggml_gallocr_t g) { return role_of(g)->n_types == 1; }

ggml_gallocr_t ggml_gallocr_new_n(ggml_backend_buffer_type_t * bufts, int n) {
    ggml_gallocr_t g = tree_gallocr_new_n(bufts, n);
    struct role * r = role_new(g);
    for (int i = 0; i < n; i++) {
        role_type(r, bufts[i]);
    }
    return g;
}

ggml_gallocr_t ggml_gallocr_new(ggml_backend_buffer_type_t buft) { return ggml_gallocr_new_n(&buft, 1); }

void ggml_gallocr_free(ggml_gallocr_t g) {
    if (g) {
        role_free(role_of(g));
        tree_gallocr_free(g);
    }
}

bool ggml_gallocr_reserve_n(ggml_gallocr_t g, struct ggml_cgraph * graph, const int * nodes, const int * leafs) {
    if (!plan(g, graph, nodes, leafs)) {
        return false;
    }
    publish(g, graph);
    return role_fit(role_of(g));
}

bool ggml_gallocr_reserve(ggml_gallocr_t g, struct ggml_cgraph * graph) {
    return ggml_gallocr_reserve_n(g, graph, NULL, NULL);
}

void ggml_gallocr_reserve_n_size(
        ggml_gallocr_t g, struct ggml_cgraph * graph, const int * nodes, const int * leafs, size_t * sizes) {
    ggml_gallocr_t other = tree_gallocr_new_n(g->bufts, g->n_buffers);
    const bool ok = plan(other, graph, nodes, leafs);
    for (int i = 0; i < g->n_buffers; i++) {
        bool first = true;
        for (int j = 0; j < i; j++) {
            first = first && g->bufts[j] != g->bufts[i];
        }
        sizes[i] = ok ? 0 : SIZE_MAX;
        for (int c = 0; ok && first && c < ROLE_CHUNKS; c++) {
            sizes[i] += ggml_dyn_tallocr_max_size(other->buf_tallocs[i], c);
        }
    }
    tree_gallocr_free(other);
}

bool ggml_gallocr_alloc_graph(ggml_gallocr_t g, struct ggml_cgraph * graph) {
    if (plan_is_for(g, graph) && role_fits(role_of(g))) {
        return bind(g, graph);
    }
    return only_one_type(g) && ggml_gallocr_reserve(g, graph) && bind(g, graph);
}

size_t ggml_gallocr_get_buffer_size(ggml_gallocr_t g, int id) {
    GGML_ASSERT(id >= 0 && id < g->n_buffers);
    struct role * r = role_of(g);
    for (int i = 0; i < id; i++) {
        if (g->bufts[i] == g->bufts[id]) {
            return 0;
        }
    }
    return entry_size(r->entries[role_type(r, g->bufts[id])]);
}
