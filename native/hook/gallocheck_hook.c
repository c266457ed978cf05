/* gallocheck_hook.c: writes down what a program's ggml graph allocators do, for `gallocheck plan FILE`.
 *
 * One file of C99 with GNU attributes, for Linux; it needs ggml.h and ggml-impl.h of the tree and nothing else.
 * docs/plan.md says how to build it. Two ways in:
 *
 *   -DGALLOCHECK_HOOK_WRAP  compiled into a program that has ggml inside, linked with @wrap.args
 *   otherwise               a shared library for LD_PRELOAD, before a ggml that is a shared library
 *   -DGALLOCHECK_HOOK_EARLY as well, for trees before February 2024, whose tensors have no flags
 *
 * GALLOCHECK_PLAN=FILE says where to; unset, nothing is done. FILE gets JSON lines, each by one write(2), so a
 * crash loses none. The hook only tells what it saw; what is right is for the reader to say. Lines by "line":
 *
 *   start      format and version
 *   type       a buffer type: name, alignment, largest buffer
 *   allocator  a new graph allocator and the type of each of its slots; freed: it is gone
 *   share      an allocator begins to share its buffers with others
 *   buffer     a buffer is allocated (size 0 and ok false: it could not be); free: it is gone
 *   graph      tensors in execution order, leafs first; written once for all graphs that are the same
 *   call       an allocator is asked to measure, reserve or bind a graph: the last line, where it never comes back
 *   measure, reserve   sizes by slot
 *   bind       where each tensor is afterwards: [buffer, offset, bytes]; before: [tensor, buffer, offset] of those
 *              that had a place
 *   compute    where each tensor is when its computation begins
 *
 * Buffers are numbered, so that a new one at an old address is another. Buffer -1: none; -2: one that is gone.
 */
#define _GNU_SOURCE
#include "ggml.h"
#include "ggml-impl.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the functions that are hooked, and those that are asked: handles are void *, so that any tree fits ---- */

#ifdef GALLOCHECK_HOOK_WRAP
#define OURS(name) __wrap_##name
#define THEIRS(result, name, params) extern result __real_##name params __attribute__((weak))
#define REAL(name) __real_##name
#else
#define OURS(name) name
#define THEIRS(result, name, params) static result(*real_##name) params
#define REAL(name) (real_##name ? real_##name : (*(void **) &real_##name = next_of(#name), real_##name))
#endif
#define EXPORT __attribute__((visibility("default")))

/* An argument that a tree's function does not take (leafs, before mid-2024) is passed in a register and ignored. */
#ifdef GALLOCHECK_HOOK_EARLY
THEIRS(void *, ggml_gallocr_new, (void));
#else
THEIRS(void *, ggml_gallocr_new, (void * type));
#endif
THEIRS(void *, ggml_gallocr_new_n, (void ** types, int n));
THEIRS(void, ggml_gallocr_free, (void * galloc));
THEIRS(bool, ggml_gallocr_reserve, (void * galloc, struct ggml_cgraph * graph));
THEIRS(bool, ggml_gallocr_reserve_n, (void * galloc, struct ggml_cgraph * graph, const int * nodes, const int * leafs));
THEIRS(void, ggml_gallocr_reserve_n_size,
       (void * galloc, struct ggml_cgraph * graph, const int * nodes, const int * leafs, size_t * sizes));
#ifdef GALLOCHECK_HOOK_EARLY /* the first of 2024: planners without buffers of their own */
THEIRS(size_t, ggml_gallocr_alloc_graph, (void * galloc, void * memory, struct ggml_cgraph * graph));
THEIRS(size_t, ggml_allocr_alloc_graph, (void * alloc, struct ggml_cgraph * graph));
extern bool ggml_tallocr_is_measure(void * memory);
extern bool ggml_allocr_is_measure(void * alloc);
#else
THEIRS(bool, ggml_gallocr_alloc_graph, (void * galloc, struct ggml_cgraph * graph));
#endif
THEIRS(bool, ggml_gallocr_set_resizable, (void * galloc, void * owner));
THEIRS(void, ggml_gallocr_set_shared_buffers, (void * galloc, void * group));
THEIRS(void *, ggml_backend_buft_alloc_buffer, (void * type, size_t size));
THEIRS(void, ggml_backend_buffer_free, (void * buffer));
THEIRS(int, ggml_backend_graph_compute, (void * backend, struct ggml_cgraph * graph));
THEIRS(int, ggml_backend_graph_compute_async, (void * backend, struct ggml_cgraph * graph));
THEIRS(int, ggml_backend_sched_graph_compute, (void * sched, struct ggml_cgraph * graph));
THEIRS(int, ggml_backend_sched_graph_compute_async, (void * sched, struct ggml_cgraph * graph));

extern const char * ggml_backend_buft_name(void * type);
extern size_t       ggml_backend_buft_get_alignment(void * type);
extern size_t       ggml_backend_buft_get_max_size(void * type) __attribute__((weak));
extern size_t       ggml_backend_buft_get_alloc_size(void * type, struct ggml_tensor * tensor);
extern void *       ggml_backend_buffer_get_base(void * buffer);
extern size_t       ggml_backend_buffer_get_size(void * buffer);
extern void *       ggml_backend_buffer_get_type(void * buffer) __attribute__((weak));
extern size_t       ggml_gallocr_get_buffer_size(void * galloc, int slot) __attribute__((weak));
extern bool         ggml_op_can_inplace(enum ggml_op op) __attribute__((weak)); /* not every tree shows it */

#ifndef GALLOCHECK_HOOK_WRAP
static void * next_of(const char * name) {
    void * found = dlsym(RTLD_NEXT, name);
    if (!found) {
        fprintf(stderr, "gallocheck: no library that the program is linked with has %s; name ggml's in LD_PRELOAD, "
                        "behind the hook\n", name);
        abort();
    }
    return found;
}
#endif

/* ---- the file ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t  once = PTHREAD_ONCE_INIT;
static int             file = -1;

static struct {
    char * text;
    size_t size, room;
} out; /* the line that is being made */

static void grow(size_t more) {
    while (out.size + more > out.room) {
        out.room = out.room ? 2 * out.room : 1 << 16;
        out.text = realloc(out.text, out.room);
        if (!out.text) {
            abort();
        }
    }
}

__attribute__((format(printf, 1, 2))) static void put(const char * format, ...) {
    va_list args;
    grow(1024); /* longer than any piece: text of the program's own goes through put_text */
    va_start(args, format);
    out.size += (size_t) vsnprintf(out.text + out.size, 1024, format, args);
    va_end(args);
}

/* A JSON string. Bytes that are not plain ASCII become \u00xx, so that any name is read back. */
static void put_text(const char * text) {
    put("\"");
    for (; text && *text; text++) {
        unsigned char c = (unsigned char) *text;
        if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\') {
            put("\\u%04x", c);
        } else {
            grow(1);
            out.text[out.size++] = (char) c;
        }
    }
    put("\"");
}

static void end_line(void) {
    put("}\n");
    for (size_t at = 0; at < out.size;) {
        ssize_t n = write(file, out.text + at, out.size - at);
        if (n < 0 && errno != EINTR) {
            break; /* a full disk is no reason to stop the program */
        }
        at += n > 0 ? (size_t) n : 0;
    }
    out.size = 0;
}

static void begin(void) {
    const char * path = getenv("GALLOCHECK_PLAN");
    if (!path || !*path) {
        return;
    }
    file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file < 0) {
        fprintf(stderr, "gallocheck: %s cannot be written (%s); nothing is recorded\n", path, strerror(errno));
        return;
    }
    put("{\"line\":\"start\",\"format\":\"gallocheck plan\",\"version\":1,\"process\":%ld", (long) getpid());
    end_line();
}

static bool on(void) {
    pthread_once(&once, begin);
    return file >= 0;
}

/* ---- what is known: lists of a few dozen entries, searched from the end ---- */

struct list {
    void * items;
    int    n, room;
};

static void * append(struct list * list, size_t size) {
    if (list->n == list->room) {
        list->room  = list->room ? 2 * list->room : 64;
        list->items = realloc(list->items, size * (size_t) list->room);
        if (!list->items) {
            abort();
        }
    }
    return memset((char *) list->items + size * (size_t) list->n++, 0, size);
}

struct type {
    void * handle;
    char   name[64];
    size_t alignment, most;
};
struct buffer { /* the number is the index */
    void * handle;
    char * base;
    size_t size;
    int    type;
    bool   gone, met; /* met: its allocation was not seen, so its end may not be seen either */
};
struct allocator {
    void * handle; /* NULL: it is gone */
    int    slots;
};

static struct list types, buffers, allocators, hashes;
#define TYPE(i) ((struct type *) types.items)[i]
#define BUFFER(i) ((struct buffer *) buffers.items)[i]
#define ALLOCATOR(i) ((struct allocator *) allocators.items)[i]

/* The number of a type. One that is made anew at an old address is another. */
static int type_of(void * handle) {
    struct type now = { .handle = handle, .alignment = ggml_backend_buft_get_alignment(handle), .most = SIZE_MAX };
    if (ggml_backend_buft_get_max_size) {
        now.most = ggml_backend_buft_get_max_size(handle);
    }
    snprintf(now.name, sizeof now.name, "%s", ggml_backend_buft_name(handle));
    for (int i = types.n - 1; i >= 0; i--) {
        struct type * t = &TYPE(i);
        if (t->handle == handle && t->alignment == now.alignment && t->most == now.most && !strcmp(t->name, now.name)) {
            return i;
        }
    }
    *(struct type *) append(&types, sizeof now) = now;
    put("{\"line\":\"type\",\"type\":%d,\"name\":", types.n - 1);
    put_text(now.name);
    put(",\"alignment\":%zu,\"max_size\":%zu", now.alignment, now.most);
    end_line();
    return types.n - 1;
}

/* The number of a living buffer; -2 of one that is gone, -1 of none. One that was made before we looked is met here. */
static int buffer_of(void * handle, bool living) {
    if (!handle) {
        return -1;
    }
    for (int i = buffers.n - 1; i >= 0; i--) {
        struct buffer * b = &BUFFER(i);
        if (b->handle == handle) {
            if (b->met && living && ggml_backend_buffer_get_size(handle) != b->size) {
                break; /* another one at the old address */
            }
            return b->gone ? -2 : i;
        }
    }
    if (!living || !ggml_backend_buffer_get_type) {
        return -1; /* never seen, and nobody says that it may be touched */
    }
    struct buffer met = { .handle = handle, .size = ggml_backend_buffer_get_size(handle), .met = true };
    met.base          = met.size ? ggml_backend_buffer_get_base(handle) : NULL;
    met.type          = type_of(ggml_backend_buffer_get_type(handle));
    *(struct buffer *) append(&buffers, sizeof met) = met;
    put("{\"line\":\"buffer\",\"buffer\":%d,\"type\":%d,\"allocator\":-1,\"asked\":%zu,\"size\":%zu,\"ok\":true",
        buffers.n - 1, met.type, met.size, met.size);
    end_line();
    return buffers.n - 1;
}

static int allocator_of(void * handle) {
    for (int i = allocators.n - 1; i >= 0; i--) {
        if (ALLOCATOR(i).handle == handle) {
            return i;
        }
    }
    return -1;
}

static __thread int  inside    = -1; /* the allocator whose call this thread is in */
static __thread int  depth     = 0;  /* of hooked calls: only the outermost is a line */
static __thread int  making    = 0;  /* of buffers that are made of others (meta) */
static __thread long computing = 0;  /* number of the scheduler's computation that this thread is in */
static long          computes  = 0;

/* ---- graphs ---- */

struct seen {
    struct ggml_tensor ** list; /* leafs and what else is read, then nodes: in execution order */
    int                   n, room;
    struct ggml_tensor ** key; /* open addressing: tensor and its index */
    int *                 value;
    size_t                slots;
};

static int index_of(const struct seen * s, const struct ggml_tensor * t) {
    for (size_t h = ((uintptr_t) t >> 4) * 0x9e3779b97f4a7c15u % s->slots; s->key[h]; h = (h + 1) % s->slots) {
        if (s->key[h] == t) {
            return s->value[h];
        }
    }
    return -1;
}

static void add(struct seen * s, struct ggml_tensor * t) {
    if (!t || s->n == s->room || index_of(s, t) >= 0) {
        return;
    }
    size_t h = ((uintptr_t) t >> 4) * 0x9e3779b97f4a7c15u % s->slots;
    while (s->key[h]) {
        h = (h + 1) % s->slots;
    }
    s->key[h]       = t;
    s->value[h]     = s->n;
    s->list[s->n++] = t;
}

static struct seen room_for(const struct ggml_cgraph * g) {
    struct seen s = { .room = g->n_leafs + g->n_nodes * (GGML_MAX_SRC + 2) + 1 };
    s.slots       = 2 * (size_t) s.room + 1;
    s.list        = calloc((size_t) s.room, sizeof *s.list);
    s.key         = calloc(s.slots, sizeof *s.key);
    s.value       = calloc(s.slots, sizeof *s.value);
    if (!s.list || !s.key || !s.value) {
        abort();
    }
    return s;
}

static void forget(struct seen * s) {
    free(s->list);
    free(s->key);
    free(s->value);
}

/* What is no node: what it shows comes before it. */
static void add_given(struct seen * all, struct ggml_tensor * t, const struct seen * nodes) {
    if (t && index_of(nodes, t) < 0) {
        if (t->view_src && index_of(nodes, t->view_src) < 0) {
            add(all, t->view_src);
        }
        add(all, t);
    }
}

/* Every tensor that the graph is about: leafs, and what nodes read or show that is no node itself; then the nodes. */
static struct seen tensors_of(const struct ggml_cgraph * g) {
    struct seen nodes = room_for(g), all = room_for(g);
    for (int i = 0; i < g->n_nodes; i++) {
        add(&nodes, g->nodes[i]);
    }
    for (int i = 0; g->leafs && i < g->n_leafs; i++) {
        add_given(&all, g->leafs[i], &nodes);
    }
    for (int i = 0; i < g->n_nodes; i++) {
        add_given(&all, g->nodes[i]->view_src, &nodes);
        for (int j = 0; j < GGML_MAX_SRC; j++) {
            add_given(&all, g->nodes[i]->src[j], &nodes);
        }
    }
    for (int i = 0; i < nodes.n; i++) {
        add(&all, nodes.list[i]);
    }
    forget(&nodes);
    return all;
}

static void put_tensor(const struct seen * s, int i, bool leaf) {
    struct ggml_tensor * t = s->list[i];
    put("%s{\"at\":%" PRIuPTR ",\"name\":", i ? "," : "", (uintptr_t) t);
    put_text(t->name);
    put(",\"op\":\"%s\",\"leaf\":%s,\"bytes\":%zu,\"layout\":\"%s", ggml_op_name(t->op), leaf ? "true" : "false",
        ggml_nbytes(t), ggml_type_name(t->type));
    for (int d = 0; d < GGML_MAX_DIMS; d++) {
        put("%s%" PRId64 "/%zu", d ? "," : " ", t->ne[d], t->nb[d]);
    }
    put("\"");
#ifndef GALLOCHECK_HOOK_EARLY
    put(",\"input\":%s,\"output\":%s", t->flags & GGML_TENSOR_FLAG_INPUT ? "true" : "false",
        t->flags & GGML_TENSOR_FLAG_OUTPUT ? "true" : "false");
#endif
    if (ggml_op_can_inplace) {
        put(",\"inplace\":%s", ggml_op_can_inplace(t->op) ? "true" : "false");
    }
    if (t->view_src) {
        put(",\"view\":%d,\"offset\":%zu", index_of(s, t->view_src), t->view_offs);
    }
    put(",\"src\":[");
    for (int j = 0, n = 0; j < GGML_MAX_SRC; j++) {
        if (!leaf && t->src[j]) { /* what a given tensor was made from does not matter here */
            put("%s%d", n++ ? "," : "", index_of(s, t->src[j]));
        }
    }
    put("]}");
}

/* The number of the graph; a line the first time that one like it is met. */
static int graph_of(const struct seen * s, const struct ggml_cgraph * g) {
    size_t start = out.size; /* 0: nobody is in the middle of a line */
    put("\"nodes\":%d,\"tensors\":[", g->n_nodes);
    for (int i = 0; i < s->n; i++) {
        put_tensor(s, i, i < s->n - g->n_nodes);
    }
    put("],\"leafs\":["); /* in the graph's own order; a scheduler's copies are nodes as well */
    for (int i = 0; g->leafs && i < g->n_leafs; i++) {
        put("%s%d", i ? "," : "", index_of(s, g->leafs[i]));
    }
    put("]");
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = start; i < out.size; i++) {
        hash = (hash ^ (unsigned char) out.text[i]) * 0x100000001b3u;
    }
    for (int i = hashes.n - 1; i >= 0; i--) {
        if (((uint64_t *) hashes.items)[i] == hash) {
            out.size = start;
            return i;
        }
    }
    *(uint64_t *) append(&hashes, sizeof hash) = hash;
    char head[64];
    int  n = snprintf(head, sizeof head, "{\"line\":\"graph\",\"graph\":%d,", hashes.n - 1);
    grow((size_t) n);
    memmove(out.text + start + n, out.text + start, out.size - start);
    memcpy(out.text + start, head, (size_t) n);
    out.size += (size_t) n;
    end_line();
    return hashes.n - 1;
}

/* [buffer, offset, bytes]. `living`: what it points to may be touched, for it was bound just now. */
struct spot {
    int      buffer;
    uint64_t offset;
    size_t   bytes;
};

static struct spot spot_of(struct ggml_tensor * t, bool living) {
    struct ggml_tensor * root = t->view_src && !t->buffer ? t->view_src : t;
    struct spot          at   = { buffer_of(root->buffer, living), (uint64_t) (uintptr_t) t->data, ggml_nbytes(t) };
    if (at.buffer >= 0) {
        at.offset = (uint64_t) ((char *) t->data - BUFFER(at.buffer).base);
        if (!t->view_src && living) {
            at.bytes = ggml_backend_buft_get_alloc_size(TYPE(BUFFER(at.buffer).type).handle, t);
        }
    }
    return at;
}

static void put_spots(const struct spot * spots, int n) {
    for (int i = 0; i < n; i++) {
        put("%s[%d,%" PRIu64 ",%zu]", i ? "," : "", spots[i].buffer, spots[i].offset, spots[i].bytes);
    }
}

static struct spot * spots_of(const struct seen * s, bool living) {
    struct spot * spots = calloc((size_t) s->n + 1, sizeof *spots);
    if (!spots) {
        abort();
    }
    for (int i = 0; i < s->n; i++) {
        spots[i] = spot_of(s->list[i], living);
    }
    return spots;
}

/* ---- allocators ---- */

static void put_sizes(void * galloc, int allocator) {
    put(",\"sizes\":[");
    for (int i = 0; ggml_gallocr_get_buffer_size && i < ALLOCATOR(allocator).slots; i++) {
        put("%s%zu", i ? "," : "", ggml_gallocr_get_buffer_size(galloc, i));
    }
    put("]");
}

static int new_allocator(void * handle, void ** list, int n) {
    int numbers[64], most = n < 64 ? n : 64;
    for (int i = 0; i < most; i++) {
        numbers[i] = type_of(list[i]);
    }
    struct allocator made = { handle, most };
    *(struct allocator *) append(&allocators, sizeof made) = made;
    put("{\"line\":\"allocator\",\"allocator\":%d,\"types\":[", allocators.n - 1);
    for (int i = 0; i < most; i++) {
        put("%s%d", i ? "," : "", numbers[i]);
    }
    put("]");
    end_line();
    return allocators.n - 1;
}

/* Every hooked call of an allocator is between these; `enter` is false where nothing is to be written. */
static bool enter(void * galloc, int * allocator, int * before) {
    *before = inside;
    if (!on() || depth++) {
        return false;
    }
    pthread_mutex_lock(&lock);
    *allocator = allocator_of(galloc);
    if (*allocator < 0) {
        *allocator = new_allocator(galloc, NULL, 0); /* made before we looked */
    }
    pthread_mutex_unlock(&lock);
    inside = *allocator;
    return true;
}

/* Before the call: its graph, whose number is returned. */
static int tell_call(const char * what, int allocator, const struct seen * s, const struct ggml_cgraph * g) {
    int graph = graph_of(s, g);
    put("{\"line\":\"call\",\"call\":\"%s\",\"allocator\":%d,\"graph\":%d", what, allocator, graph);
    end_line();
    return graph;
}

static void leave(int before) {
    if (file >= 0) {
        depth--;
    }
    inside = before;
}

EXPORT void * OURS(ggml_gallocr_new_n)(void ** list, int n) {
    bool   outer = on() && !depth++;
    void * made  = REAL(ggml_gallocr_new_n)(list, n);
    if (outer && made) {
        pthread_mutex_lock(&lock);
        new_allocator(made, list, n);
        pthread_mutex_unlock(&lock);
    }
    depth -= file >= 0;
    return made;
}

#ifdef GALLOCHECK_HOOK_EARLY
EXPORT void * OURS(ggml_gallocr_new)(void) {
    return REAL(ggml_gallocr_new)(); /* it is met when it first binds: only then is its memory known */
}
#else
EXPORT void * OURS(ggml_gallocr_new)(void * type) {
    bool   outer = on() && !depth++;
    void * made  = REAL(ggml_gallocr_new)(type);
    if (outer && made) {
        pthread_mutex_lock(&lock);
        new_allocator(made, &type, 1);
        pthread_mutex_unlock(&lock);
    }
    depth -= file >= 0;
    return made;
}
#endif

EXPORT void OURS(ggml_gallocr_free)(void * galloc) {
    int  allocator, before;
    bool outer = galloc && enter(galloc, &allocator, &before);
    REAL(ggml_gallocr_free)(galloc);
    if (outer) {
        pthread_mutex_lock(&lock);
        put("{\"line\":\"freed\",\"allocator\":%d", allocator);
        end_line();
        ALLOCATOR(allocator).handle = NULL;
        pthread_mutex_unlock(&lock);
    }
    if (galloc) {
        leave(before);
    }
}

/* What a call is about. Outermost calls only; `graph` -1: not to be told. */
struct asked {
    int           allocator, before, graph;
    struct seen   s;
    void **       given; /* of a bind: where tensors were before */
};

static struct asked ask(const char * what, void * galloc, struct ggml_cgraph * graph, bool binds) {
    struct asked a = { .graph = -1 };
    if (enter(galloc, &a.allocator, &a.before)) {
        pthread_mutex_lock(&lock);
        a.s     = tensors_of(graph);
        a.graph = tell_call(what, a.allocator, &a.s, graph);
        if (binds) { /* what has a place already is to be left there */
            a.given = calloc((size_t) a.s.n + 1, sizeof *a.given);
            for (int i = 0; a.given && i < a.s.n; i++) {
                a.given[i] = a.s.list[i]->data;
            }
        }
        pthread_mutex_unlock(&lock);
    }
    return a;
}

static void done(struct asked * a) {
    if (a->graph >= 0) {
        free(a->given);
        forget(&a->s);
    }
    leave(a->before);
}

static void put_slots(const int * ids, int n) {
    put(",\"slots\":[");
    for (int i = 0; ids && i < n; i++) {
        put("%s%d", i ? "," : "", ids[i]);
    }
    put("]");
}

static void tell_reserve(const struct asked * a, void * galloc, const int * nodes, int n, bool ok) {
    if (a->graph >= 0) {
        pthread_mutex_lock(&lock);
        put("{\"line\":\"reserve\",\"allocator\":%d,\"graph\":%d,\"ok\":%s", a->allocator, a->graph, ok ? "true" : "false");
        put_sizes(galloc, a->allocator);
        put_slots(nodes, n);
        end_line();
        pthread_mutex_unlock(&lock);
    }
}

EXPORT bool OURS(ggml_gallocr_reserve)(void * galloc, struct ggml_cgraph * graph) {
    struct asked a  = ask("reserve", galloc, graph, false);
    bool         ok = REAL(ggml_gallocr_reserve)(galloc, graph);
    tell_reserve(&a, galloc, NULL, 0, ok);
    done(&a);
    return ok;
}

EXPORT bool OURS(ggml_gallocr_reserve_n)(void * galloc, struct ggml_cgraph * graph, const int * nodes, const int * leafs) {
    struct asked a  = ask("reserve", galloc, graph, false);
    bool         ok = REAL(ggml_gallocr_reserve_n)(galloc, graph, nodes, leafs);
    tell_reserve(&a, galloc, nodes, graph->n_nodes, ok);
    done(&a);
    return ok;
}

EXPORT void OURS(ggml_gallocr_reserve_n_size)(void * galloc, struct ggml_cgraph * graph, const int * nodes,
                                              const int * leafs, size_t * sizes) {
    struct asked a = ask("measure", galloc, graph, false);
    REAL(ggml_gallocr_reserve_n_size)(galloc, graph, nodes, leafs, sizes);
    if (a.graph >= 0) {
        pthread_mutex_lock(&lock);
        put("{\"line\":\"measure\",\"allocator\":%d,\"graph\":%d,\"sizes\":[", a.allocator, a.graph);
        for (int i = 0; i < ALLOCATOR(a.allocator).slots; i++) {
            put("%s%zu", i ? "," : "", sizes[i]);
        }
        put("]");
        put_slots(nodes, graph->n_nodes);
        end_line();
        pthread_mutex_unlock(&lock);
    }
    done(&a);
}

static void tell_bind(const struct asked * a, void * galloc, bool ok) {
    struct spot * spots = spots_of(&a->s, ok); /* may meet buffers, so before the line begins */
    put("{\"line\":\"bind\",\"allocator\":%d,\"graph\":%d,\"ok\":%s,\"during\":%ld", a->allocator, a->graph,
        ok ? "true" : "false", computing);
    put_sizes(galloc, a->allocator);
    put(",\"places\":[");
    put_spots(spots, ok ? a->s.n : 0);
    put("],\"before\":[");
    for (int i = 0, n = 0; a->given && i < a->s.n; i++) {
        bool        stayed = a->given[i] == a->s.list[i]->data;
        struct spot was    = { -1, (uint64_t) (uintptr_t) a->given[i], 0 };
        if (a->given[i]) {
            was = stayed ? spots[i] : was;
            put("%s[%d,%d,%" PRIu64 "]", n++ ? "," : "", i, was.buffer, was.offset);
        }
    }
    put("]");
    end_line();
    free(spots);
}

static void tell_bound(struct asked * a, void * galloc, bool ok) {
    if (a->graph >= 0) {
        pthread_mutex_lock(&lock);
        tell_bind(a, galloc, ok);
        pthread_mutex_unlock(&lock);
    }
    done(a);
}

#ifdef GALLOCHECK_HOOK_EARLY
EXPORT size_t OURS(ggml_gallocr_alloc_graph)(void * galloc, void * memory, struct ggml_cgraph * graph) {
    if (ggml_tallocr_is_measure(memory)) { /* it plans, and its places are of no memory */
        return REAL(ggml_gallocr_alloc_graph)(galloc, memory, graph);
    }
    struct asked a    = ask("bind", galloc, graph, true);
    size_t       size = REAL(ggml_gallocr_alloc_graph)(galloc, memory, graph);
    tell_bound(&a, galloc, true);
    return size;
}

EXPORT size_t OURS(ggml_allocr_alloc_graph)(void * alloc, struct ggml_cgraph * graph) {
    if (ggml_allocr_is_measure(alloc)) {
        return REAL(ggml_allocr_alloc_graph)(alloc, graph);
    }
    struct asked a    = ask("bind", alloc, graph, true);
    size_t       size = REAL(ggml_allocr_alloc_graph)(alloc, graph);
    tell_bound(&a, alloc, true);
    return size;
}
#else
EXPORT bool OURS(ggml_gallocr_alloc_graph)(void * galloc, struct ggml_cgraph * graph) {
    struct asked a  = ask("bind", galloc, graph, true);
    bool         ok = REAL(ggml_gallocr_alloc_graph)(galloc, graph);
    tell_bound(&a, galloc, ok);
    return ok;
}
#endif

/* Trees in which allocators share their buffers (R): from now on what it has is not its own alone. */
static void tell_share(void * galloc) {
    int allocator, before;
    if (enter(galloc, &allocator, &before)) {
        pthread_mutex_lock(&lock);
        put("{\"line\":\"share\",\"allocator\":%d", allocator);
        end_line();
        pthread_mutex_unlock(&lock);
    }
    leave(before);
}

EXPORT bool OURS(ggml_gallocr_set_resizable)(void * galloc, void * owner) {
    tell_share(galloc);
    return REAL(ggml_gallocr_set_resizable)(galloc, owner);
}

EXPORT void OURS(ggml_gallocr_set_shared_buffers)(void * galloc, void * group) {
    tell_share(galloc);
    REAL(ggml_gallocr_set_shared_buffers)(galloc, group);
}

/* ---- buffers ---- */

EXPORT void * OURS(ggml_backend_buft_alloc_buffer)(void * type, size_t size) {
    if (!on()) {
        return REAL(ggml_backend_buft_alloc_buffer)(type, size);
    }
    making++;
    void * made = REAL(ggml_backend_buft_alloc_buffer)(type, size);
    making--;
    pthread_mutex_lock(&lock);
    struct buffer now = { .handle = made, .type = type_of(type), .gone = !made };
    if (made) {
        now.size = ggml_backend_buffer_get_size(made);
        now.base = now.size ? ggml_backend_buffer_get_base(made) : NULL;
    }
    *(struct buffer *) append(&buffers, sizeof now) = now;
    put("{\"line\":\"buffer\",\"buffer\":%d,\"type\":%d,\"allocator\":%d,\"asked\":%zu,\"size\":%zu,\"ok\":%s",
        buffers.n - 1, now.type, making ? -1 : inside, size, now.size, made ? "true" : "false");
    end_line();
    pthread_mutex_unlock(&lock);
    return made;
}

EXPORT void OURS(ggml_backend_buffer_free)(void * buffer) {
    if (buffer && on()) { /* before it is gone: another thread may get its address at once */
        pthread_mutex_lock(&lock);
        int number = buffer_of(buffer, false);
        if (number >= 0) {
            BUFFER(number).gone = true;
            put("{\"line\":\"free\",\"buffer\":%d", number);
            end_line();
        }
        pthread_mutex_unlock(&lock);
    }
    REAL(ggml_backend_buffer_free)(buffer);
}

/* ---- computations ---- */

static long tell_compute(struct ggml_cgraph * g, const char * by) {
    pthread_mutex_lock(&lock);
    struct seen   s     = tensors_of(g);
    int           id    = graph_of(&s, g);
    struct spot * spots = spots_of(&s, false);
    long          n     = ++computes;
    put("{\"line\":\"compute\",\"compute\":%ld,\"by\":\"%s\",\"graph\":%d,\"places\":[", n, by, id);
    put_spots(spots, s.n);
    put("]");
    end_line();
    free(spots);
    forget(&s);
    pthread_mutex_unlock(&lock);
    return n;
}

/* A backend's computation, unless it is a part of a scheduler's or of another's. */
#define COMPUTES(name, who)                                             \
    EXPORT int OURS(name)(void * computer, struct ggml_cgraph * graph) { \
        long before = computing;                                        \
        if (on() && !computing) {                                       \
            computing = tell_compute(graph, who);                       \
        }                                                               \
        int result = REAL(name)(computer, graph);                       \
        computing  = before;                                            \
        return result;                                                  \
    }

COMPUTES(ggml_backend_graph_compute, "backend")
COMPUTES(ggml_backend_graph_compute_async, "backend")
COMPUTES(ggml_backend_sched_graph_compute, "sched")
COMPUTES(ggml_backend_sched_graph_compute_async, "sched")
