/* A subject for tests of the binding and of the process around subjects. It
 * keeps sizes and addresses as a bump allocator would, and misbehaves on order:
 * a CAPACITY operation with one of the values below. Compile with -DTOY_ABI=n
 * for another interface version, -DTOY_LACKS for a missing function,
 * -DTOY_DIES for one that cannot even be loaded. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gallocheck.h"

enum {
    ABORT = 666001, FAULT = 666002, HANG = 666003, EXIT = 666004, LEAK = 666005, SLOW = 666006,
    ABORT_AT_CLOSE = 666007, STATUS = 666008, ABORT_AT_LOOK = 666009, ABORT_AT_PLACES = 666010,
    HANG_AT_CLOSE = 666011, CLOSE_FILES = 666012, FORK = 666013, CHATTER = 666014
};

struct gc_session {
    gc_setup    setup;
    gc_tensor * graphs[4096];
    uint32_t    sizes[4096];
    int32_t     n_graphs;
    int32_t     config[GC_MAX_ALLOCS]; /* -1: not alive */
    int32_t     bound[GC_MAX_ALLOCS];
    uint64_t    need[GC_MAX_ALLOCS];
    uint64_t    generation[GC_MAX_ALLOCS];
    uint64_t    leak;
    int         at_close, at_look, at_places;
};

static uint32_t planted;
static int      sessions; /* since the process started: shows that a fresh child is fresh */

#ifndef TOY_ABI
#define TOY_ABI GC_ABI
#endif
uint32_t     gc_abi(void) { return TOY_ABI; }
uint64_t     gc_capabilities(void) { return GC_CAP_PLAN | GC_CAP_RESIZABLE; }
const char * gc_describe(void) { return "toy"; }

#ifdef TOY_DIES
__attribute__((constructor)) static void die(void) { fprintf(stderr, "toy: no device\n"); abort(); }
#endif

gc_session * gc_open(const gc_setup * setup) {
    if (setup->n_types == 0) {
        return NULL;
    }
    gc_session * s = calloc(1, sizeof *s);
    s->setup = *setup;
    memset(s->config, -1, sizeof s->config);
    memset(s->bound, -1, sizeof s->bound);
    sessions++;
    return s;
}

uint64_t gc_close(gc_session * s) {
    if (s->at_close == ABORT_AT_CLOSE) {
        abort();
    }
    while (s->at_close == HANG_AT_CLOSE) {
    }
    uint64_t leak = s->leak;
    for (int32_t g = 0; g < s->n_graphs; g++) {
        free(s->graphs[g]);
    }
    free(s);
    return leak;
}

int32_t gc_define(gc_session * s, const gc_tensor * tensors, uint32_t n) {
    if (n == 1 && tensors[0].size == 13) { /* a graph that this subject does not take */
        return -1;
    }
    gc_tensor * copy = malloc((n + 1) * sizeof *copy);
    memcpy(copy, tensors, n * sizeof *copy);
    s->graphs[s->n_graphs] = copy;
    s->sizes[s->n_graphs] = n;
    return s->n_graphs++;
}

static uint64_t total(const gc_session * s, int32_t graph) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < s->sizes[graph]; i++) {
        sum += s->graphs[graph][i].size;
    }
    return sum;
}

static int32_t misbehave(gc_session * s, uint64_t order) {
    switch (order) {
        case ABORT: fprintf(stderr, "toy.c:42: assertion failed: it fits\n"); abort();
        case FAULT: *(volatile int *) 16 = 1; break;
        case HANG: for (;;) { } break;
        case EXIT: exit(7);
        case LEAK: s->leak = 4096; break;
        case SLOW: usleep(150000); break;
        case ABORT_AT_CLOSE: case HANG_AT_CLOSE: s->at_close = (int) order; break;
        case STATUS: return 7;
        case ABORT_AT_LOOK: s->at_look = 1; break;
        case ABORT_AT_PLACES: s->at_places = 1; break;
        case CLOSE_FILES: for (int fd = 3; fd < 256; fd++) { close(fd); } for (;;) { } break;
        case FORK: if (fork() == 0) { for (;;) { pause(); } } abort();
        case CHATTER: for (int i = 0; i < 1000; i++) { printf("line %d\n", i); } fflush(stdout); abort();
        default: break;
    }
    return GC_DONE;
}

static int32_t step(gc_session * s, const gc_op * op, gc_obs * obs) {
    const int32_t a = op->alloc;
    const int     alive = s->config[a] >= 0;
    switch (op->kind) {
        case GC_CAPACITY: return misbehave(s, op->value);
        case GC_NEW:
            if (alive) {
                return GC_MISUSE;
            }
            s->config[a] = op->other;
            return GC_DONE;
        case GC_FREE:
            if (!alive) {
                return GC_MISUSE;
            }
            s->config[a] = s->bound[a] = -1;
            s->need[a] = 0;
            return GC_DONE;
        default: break;
    }
    if (!alive || op->graph < 0 || op->graph >= s->n_graphs + (op->kind == GC_LOOK)) {
        return GC_MISUSE;
    }
    switch (op->kind) {
        case GC_RESERVE:
        case GC_ALLOC:
            if (op->fail_nth == 1) {
                return GC_REFUSED;
            }
            if (total(s, op->graph) > s->need[a]) {
                s->need[a] = total(s, op->graph);
                s->generation[a]++;
                obs->allocations = 1;
            }
            if (op->kind == GC_ALLOC) {
                s->bound[a] = op->graph;
            }
            return GC_DONE;
        case GC_MEASURE: obs->measured[0] = total(s, op->graph); return GC_DONE;
        case GC_COMPUTE: obs->digest = planted + 1000u * (uint64_t) sessions; return s->bound[a] < 0 ? GC_MISUSE : GC_DONE;
        case GC_LOOK:
            if (s->at_look) {
                fprintf(stderr, "toy: looked at\n");
                abort();
            }
            return GC_DONE;
        default: return GC_DONE;
    }
}

void gc_run(gc_session * s, const gc_op * ops, gc_obs * obs, uint64_t n, volatile uint64_t * progress) {
    for (uint64_t i = 0; i < n; i++) {
        *progress = i;
        memset(&obs[i], 0, sizeof obs[i]);
        obs[i].bad_node = obs[i].bad_src = -1;
        obs[i].status = step(s, &ops[i], &obs[i]);
        const int32_t a = ops[i].alloc;
        obs[i].generation = s->generation[a];
        obs[i].asked[0][0] = obs[i].reported[0] = obs[i].owned[0] = s->need[a];
        for (int k = 0; k < GC_MAX_ALLOCS; k++) {
            obs[i].used[0] += s->need[k];
        }
    }
    *progress = n;
}

#ifndef TOY_LACKS
uint32_t gc_places(gc_session * s, int32_t alloc, gc_place * out, uint32_t max) {
    if (s->at_places) {
        abort();
    }
    if (s->bound[alloc] < 0) {
        return 0;
    }
    const int32_t graph = s->bound[alloc];
    uint64_t      at = 0;
    for (uint32_t i = 0; i < s->sizes[graph] && i < max; i++) {
        out[i] = (gc_place) { 0, 0, at };
        at += s->graphs[graph][i].size;
    }
    return s->sizes[graph];
}
#endif

int32_t gc_plant(uint32_t n) {
    planted = n;
    return n <= 1;
}
