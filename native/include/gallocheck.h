/* gallocheck.h: the one C interface that every subject exports.
 *
 * A subject is a shared library around a graph allocator. A session holds up
 * to GC_MAX_TYPES simulated devices (one buffer type each), the allocators
 * opened on them, and the graphs defined so far. Operations and observations
 * are fixed-width records, so one call runs a whole batch. All sizes are
 * bytes. The binding (native/binding.py) reads this file as it stands: keep it
 * to enums with plain values, structs and prototypes.
 */
#ifndef GALLOCHECK_H
#define GALLOCHECK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    GC_ABI        = 1,  /* bumped whenever anything in this file changes */
    GC_MAX_TYPES  = 4,  /* buffer types, each on a device of its own */
    GC_MAX_CHUNKS = 16, /* buffers in a row that make up one type's memory */
    GC_MAX_SLOTS  = 6,  /* buffer types in an allocator's list, duplicates counted */
    GC_MAX_CONFIGS = 4, /* different slot lists in a session */
    GC_MAX_ALLOCS = 4,  /* allocators alive at once */
    GC_MAX_SRC    = 4   /* sources of a tensor */
};

/* What a subject can do; selects the clauses that apply to it. */
enum {
    GC_CAP_PLAN       = 1,   /* P and G: plain graph allocator */
    GC_CAP_RESIZABLE  = 2,   /* R: owner and borrower (resizable pair) */
    GC_CAP_GROUP      = 4,   /* R: shared group object, any number of members */
    GC_CAP_SCHED      = 8,   /* C: allocators of configs may be driven through a scheduler */
    GC_CAP_EXACT      = 16,  /* the reference model predicts every observation exactly */
    GC_CAP_REMAKE     = 32,  /* R14: an owner can be remade under a living borrower */
    GC_CAP_BREAKDOWN  = 64,  /* R13: reports bytes per allocator, borrowed ones left out */
    GC_CAP_CANARY     = 128, /* wrong on purpose */
    GC_CAP_EMPTY_CHUNKS = 256 /* chunks of zero bytes are visible in `asked` at their own index */
};

/* One buffer type and its device. */
typedef struct gc_type {
    uint64_t alignment;   /* power of two, 1 to 4096 */
    uint64_t max_size;    /* largest single buffer */
    uint64_t granularity; /* buffers are rounded up to a multiple of this (1 to 2 MiB) */
    uint64_t capacity;    /* device memory; UINT64_MAX: no limit */
} gc_type;

typedef struct gc_setup {
    uint32_t n_types;
    uint32_t n_configs;
    gc_type  types[4];    /* [GC_MAX_TYPES] */
    int32_t  n_slots[4];  /* [GC_MAX_CONFIGS] */
    int32_t  slots[4][6]; /* [GC_MAX_CONFIGS][GC_MAX_SLOTS]: type of each slot; first occurrences ascend */
} gc_setup;

/* Tensor flags. */
enum {
    GC_LEAF     = 1,  /* given, not computed; leafs have no sources */
    GC_INPUT    = 2,  /* written by the caller before compute */
    GC_OUTPUT   = 4,  /* read by the caller after compute */
    GC_INPLACE  = 8,  /* the operation may write over a source */
    GC_PREALLOC = 16, /* a leaf that already has memory of its own (a weight) */
    GC_LAYOUT   = 32  /* same bytes, another layout: never the same layout as one without */
};

/* Tensors of a graph, in execution order. A view has view_src >= 0, exactly
 * one source, which is view_src, and lies inside it; view_src is never itself
 * a view. `slot` modulo the allocator's slot count says where it should go. */
typedef struct gc_tensor {
    uint64_t size;      /* bytes of content */
    uint64_t pad;       /* extra bytes that the buffer type asks for beside them */
    uint64_t view_offs;
    int32_t  view_src;  /* index of the tensor viewed, or -1 */
    int32_t  src[4];    /* [GC_MAX_SRC]: earlier tensors, -1: none */
    uint32_t flags;
    int32_t  slot;
    uint32_t reserved;
} gc_tensor;

enum {
    GC_NEW      = 0,  /* alloc := new plain allocator of config `other`; flags: GC_BY_SCHED */
    GC_FREE     = 1,  /* free alloc; a borrower or owner detaches by this */
    GC_OWN      = 2,  /* alloc becomes an owner */
    GC_BORROW   = 3,  /* alloc becomes the borrower of `other` */
    GC_RESERVE  = 4,  /* reserve `graph` */
    GC_MEASURE  = 5,  /* measure `graph`: sizes only */
    GC_ALLOC    = 6,  /* bind `graph` */
    GC_COMPUTE  = 7,  /* compute the bound graph; flags: GC_UNCHECKED, GC_ASYNC */
    GC_SHRINK   = 8,  /* request a shrink */
    GC_CAPACITY = 9,  /* device `other` has `value` bytes from now on */
    GC_LOOK     = 10, /* observe alloc, change nothing */
    GC_REMAKE   = 11, /* R14: alloc (an owner) is replaced by a new owner of the same config */
    GC_SYNC     = 12, /* scheduler: wait for work in flight */
    GC_RESET    = 13, /* scheduler: forget the bound graph */
    GC_N_KINDS  = 14
};

/* Operation flags. */
enum {
    GC_UNCHECKED = 1, /* compute without comparing generations first (R12's counter-test) */
    GC_ASYNC     = 2, /* return with work in flight */
    GC_BY_SCHED  = 4  /* GC_NEW: through the scheduler */
};

typedef struct gc_op {
    int32_t  kind;
    int32_t  alloc;      /* 0 to GC_MAX_ALLOCS - 1 */
    int32_t  other;
    int32_t  graph;
    uint32_t fail_types; /* bit t: every allocation on type t fails during this operation */
    int32_t  fail_nth;   /* the n-th allocation of this operation fails (1 is the first); 0: none */
    uint32_t flags;
    uint32_t reserved;
    uint64_t value;
} gc_op;

/* Status of an operation. */
enum {
    GC_MISUSE  = -1, /* refused by the harness side of the subject: no such allocator, graph or bound graph */
    GC_REFUSED = 0,  /* the allocator returned false */
    GC_DONE    = 1,
    GC_STALE   = 2   /* compute: the bound graph is of an older generation and was dropped (R12) */
};

/* What went wrong in memory while the operation ran. */
enum {
    GC_BAD_SOURCE    = 1, /* a source did not hold what it must when its reader ran */
    GC_BAD_OUTPUT    = 2, /* an output did not hold what it must after the last node */
    GC_BAD_PREALLOC  = 4, /* preallocated content was changed */
    GC_FREED_BUSY    = 8, /* a buffer was freed while work in flight used it (C1) */
    GC_BAD_GUARD     = 16 /* bytes between a buffer's end and its mapping's end were written (P3) */
};

typedef struct gc_obs {
    int32_t  status;
    uint32_t trouble;          /* GC_BAD_..., or'ed */
    int32_t  bad_node;         /* first trouble: the reader (or the output), -1: none */
    int32_t  bad_src;          /* first trouble: which source of it, -1: none */
    uint64_t bad_offset;       /* first trouble: first wrong byte */
    uint64_t generation;       /* what alloc reads; 0 where it has none */
    uint64_t shrink_generation;
    uint64_t digest;           /* compute: hash over all outputs' bytes */
    uint64_t used[4];          /* [GC_MAX_TYPES]: device bytes in use, rounded as the device rounds */
    uint64_t reported[6];      /* [GC_MAX_SLOTS]: buffer size as alloc reports it for each slot */
    uint64_t measured[6];      /* [GC_MAX_SLOTS]: measure: size for each slot */
    uint64_t asked[4][16];     /* [GC_MAX_TYPES][GC_MAX_CHUNKS]: bytes asked for, chunk by chunk, of the buffers alloc uses now */
    uint64_t owned[4];         /* [GC_MAX_TYPES]: device bytes that alloc owns (borrowed ones left out), GC_CAP_BREAKDOWN */
    uint64_t allocations;      /* device allocations tried during this operation */
} gc_obs;

/* Where a tensor of the bound graph is. */
typedef struct gc_place {
    int32_t  type;    /* -1: not in the allocator's memory (preallocated) */
    int32_t  chunk;
    uint64_t offset;  /* in the chunk */
} gc_place;

typedef struct gc_session gc_session;

uint32_t     gc_abi(void);
uint64_t     gc_capabilities(void);
const char * gc_describe(void);

/* NULL where the setup makes no sense. */
gc_session * gc_open(const gc_setup * setup);
/* Frees every allocator, then returns the device bytes still in use (G5: 0). */
uint64_t     gc_close(gc_session * s);
/* The graph's number in the session, or -1 where the tensors make no sense. */
int32_t      gc_define(gc_session * s, const gc_tensor * tensors, uint32_t n);
/* Runs n operations; *progress is the index of the one running (n when done). */
void         gc_run(gc_session * s, const gc_op * ops, gc_obs * obs, uint64_t n, volatile uint64_t * progress);
/* Placements of alloc's bound graph, a tensor each; returns their number, 0 where nothing is bound. */
uint32_t     gc_places(gc_session * s, int32_t alloc, gc_place * out, uint32_t max);
/* Switches planted defect n on (0: none); false where this build has none. */
int32_t      gc_plant(uint32_t n);

#ifdef __cplusplus
}
#endif
#endif
