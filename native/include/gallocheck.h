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
    GC_ABI        = 2,  /* bumped whenever anything in this file changes */
    GC_MAX_TYPES  = 5,  /* buffer types: simple ones, each on a device of its own, and meta types over them */
    GC_MAX_CHUNKS = 16, /* buffers in a row that make up one type's memory */
    GC_MAX_SLOTS  = 6,  /* buffer types in an allocator's list, duplicates counted */
    GC_MAX_CONFIGS = 4, /* different slot lists in a session */
    GC_MAX_ALLOCS = 4,  /* allocators alive at once */
    GC_MAX_SRC    = 4,  /* sources of a tensor */
    GC_MAX_STREAMS = 4, /* of a device; allocator n computes on stream n */
    GC_MAX_CONTEXTS = 2, /* inference contexts: 0 the target, 1 the draft */
    GC_MAX_LANES  = 2,  /* of a context; context c's lane l is allocator c * GC_MAX_LANES + l */
    GC_MAX_SERVER_SLOTS = 4 /* of the server */
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
    GC_CAP_EMPTY_CHUNKS = 256, /* chunks of zero bytes are visible in `asked` at their own index */
    GC_CAP_COUNTED  = 512,   /* S: the strategies GC_COUNTED and GC_APART */
    GC_CAP_META     = 1024,  /* M: types over several devices */
    GC_CAP_POOL     = 2048,  /* V: device pools */
    GC_CAP_CAPTURE  = 4096,  /* Q: captured graphs */
    GC_CAP_CONTEXTS = 8192,  /* W: target and draft contexts */
    GC_CAP_SERVER   = 16384, /* T: a server with slots */
    GC_CAP_NO_MEASURE = 32768 /* there is no function that measures: GC_MEASURE is GC_MISUSE, P12 does not apply */
};

/* One buffer type. A simple one (meta 0) is memory of the device with its own
 * index. A meta type has no device of its own: each of its buffers is one simple
 * buffer, of the same size, on every device of `meta` (M1). */
typedef struct gc_type {
    uint64_t alignment;   /* power of two, 1 to 4096 */
    uint64_t max_size;    /* largest single buffer */
    uint64_t granularity; /* buffers are rounded up to a multiple of this (power of two, 1 to 2 MiB);
                             of a meta type: at least that of each of its devices */
    uint64_t capacity;    /* device memory; UINT64_MAX: no limit; of a meta type: of no meaning */
    uint32_t meta;        /* bit d: has a part on device d; only simple types' devices; 0: a simple type */
    uint32_t reserved;
} gc_type;

/* How owner and borrower share (strategy), and which pool devices have. */
enum {
    GC_PAIR        = 0, /* R: one set of buffers of the larger of two requirements */
    GC_COUNTED     = 1, /* S: one set of buffers by reference count, with detach */
    GC_APART       = 2, /* buffers of one's own: GC_BORROW is refused */
    GC_NO_POOL     = 0,
    GC_VMM_POOL    = 1,
    GC_LEGACY_POOL = 2
};

/* Memory kinds of a context (W7). */
enum {
    GC_KV             = 0, /* plain KV cache */
    GC_KV_WINDOW      = 1, /* sliding window beside it */
    GC_HYBRID         = 2, /* recurrent state beside it */
    GC_HYBRID_WINDOW  = 3,
    GC_HYBRID_INDEXER = 4, /* an indexer cache that follows the attention cache */
    GC_OTHER_MEMORY   = 5, /* has no bounded reservation */
    GC_N_MEMORIES     = 6
};

/* Options of a context. */
enum {
    GC_PHASE_AWARE  = 1, /* reserve for generation until a prompt comes; the draft may share */
    GC_LIVE_CONTEXT = 2  /* reserve for the used part of the cache */
};

/* An inference context (W). Its graph is a template: see gc_tensor's `scale`. */
typedef struct gc_context {
    int32_t  config;     /* slot list of its allocators; -1: there is no such context */
    int32_t  graph;      /* number of its template graph */
    uint32_t memory;     /* GC_KV ... */
    uint32_t options;    /* GC_PHASE_AWARE ... */
    uint32_t lanes;      /* 1 to GC_MAX_LANES */
    uint32_t cells;      /* of the whole cache; a multiple of 8 */
    uint32_t window;     /* cells of the sliding window */
    uint32_t generation; /* tokens of a generation batch, at least 1 */
    uint32_t batch;      /* tokens of a micro-batch, at least `generation` */
    uint32_t nodes;      /* tensors that its schedulers are made for; 0: as many as its graph has */
} gc_context;

typedef struct gc_setup {
    uint32_t n_types;
    uint32_t n_configs;
    gc_type  types[5];    /* [GC_MAX_TYPES] */
    int32_t  n_slots[4];  /* [GC_MAX_CONFIGS] */
    int32_t  slots[4][6]; /* [GC_MAX_CONFIGS][GC_MAX_SLOTS]: type of each slot; first occurrences ascend */
    uint32_t strategy;    /* GC_PAIR ... */
    uint32_t pool;        /* GC_NO_POOL ... */
    uint64_t pool_range;  /* addresses that a VMM pool reserves, bytes */
    gc_context contexts[2]; /* [GC_MAX_CONTEXTS] */
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
    uint32_t scale;     /* of a template: GC_SCALE_..., what `size` is multiplied by; elsewhere 0 */
} gc_tensor;

/* A context's graph for a batch is its template with sizes multiplied (docs/choices.md says by which cells). */
enum {
    GC_SCALE_NONE      = 0,
    GC_SCALE_TOKENS    = 1, /* by tokens */
    GC_SCALE_ATTENTION = 2, /* by tokens and attention cells */
    GC_SCALE_WINDOW    = 3, /* by tokens and cells of the sliding window */
    GC_SCALE_INDEXER   = 4, /* by tokens and indexer cells */
    GC_N_SCALES        = 5
};

enum {
    GC_NEW      = 0,  /* alloc := new plain allocator of config `other`; flags: GC_BY_SCHED (`value`: the
                         tensors that its scheduler is made for, 0: any number) */
    GC_FREE     = 1,  /* free alloc; a borrower or owner detaches by this */
    GC_OWN      = 2,  /* alloc becomes an owner */
    GC_BORROW   = 3,  /* alloc becomes the borrower of `other`; under GC_COUNTED `value` has GC_ONE_... bits (S4) */
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

    /* V: pools. `other`: the device, `alloc`: its stream. */
    GC_POOL_ALLOC = 14, /* a block of `value` bytes */
    GC_POOL_FREE  = 15, /* the block handed out `value` blocks before the latest that is still out (0: the latest) */
    GC_TRIM       = 16, /* `other`: a type; the pools of its device, or of every device of a meta type (V4) */

    /* Q: captured graphs; one an allocator. */
    GC_CAPTURE_BEGIN = 17, /* what alloc computes from now on is recorded */
    GC_CAPTURE_END   = 18, /* the record becomes alloc's captured graph */
    GC_LAUNCH        = 19, /* replay alloc's captured graph; flags: GC_UNCHECKED, GC_ASYNC */
    GC_DROP          = 20, /* drop alloc's captured graph */

    /* W: contexts. `alloc`: the context, 0 or 1. */
    GC_CTX_OPEN   = 21, /* make its schedulers and reserve */
    GC_CTX_CLOSE  = 22,
    GC_CTX_ATTACH = 23, /* the draft (1) shares the workspace of the target (0): GC_DONE, GC_REFUSED or GC_FAILED (W6);
                           under GC_COUNTED `value` has GC_ONE_... bits */
    GC_CTX_DECODE = 24, /* `value` tokens; `other`: cells in use; flags: GC_ASYNC, GC_UNCHECKED */
    GC_CTX_SYNC   = 25,
    GC_CTX_NODES  = 26, /* its graphs may have `value` tensors from now on (C3, R14) */
    GC_CTX_TRIM   = 27, /* give back transient memory: the pools of its devices */

    /* T: the server. `alloc`: the slot. */
    GC_SLOT_ENTER = 28, /* a request comes */
    GC_SLOT_STEP  = 29, /* `value` tokens of it: the target decodes, the draft (where there is one) too */
    GC_SLOT_LEAVE = 30, /* the request is done */
    GC_N_KINDS    = 31
};

/* GC_BORROW under GC_COUNTED: what is so of the two; all four are needed (S4). */
enum {
    GC_ONE_SEQUENCE = 1,
    GC_ONE_DEVICE   = 2,
    GC_ON_CUDA      = 4,
    GC_NATIVE_MTP   = 8,
    GC_VALIDATED    = 15
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
    GC_STALE   = 2,  /* compute, launch: the graph is of an older generation and was dropped (R12, Q1) */
    GC_FAILED  = 3   /* attach: the attempt failed, the draft has no scheduler until one succeeds (W6) */
};

/* What went wrong in memory while the operation ran. */
enum {
    GC_BAD_SOURCE    = 1, /* a source did not hold what it must when its reader ran */
    GC_BAD_OUTPUT    = 2, /* an output did not hold what it must after the last node */
    GC_BAD_PREALLOC  = 4, /* preallocated content was changed */
    GC_FREED_BUSY    = 8, /* a buffer was freed while work in flight used it (C1) */
    GC_BAD_GUARD     = 16, /* bytes between a buffer's end and its mapping's end were written (P3) */
    GC_BAD_POOL      = 32  /* a pool's block did not hold what was written to it */
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
    uint64_t used[5];          /* [GC_MAX_TYPES]: device bytes in use, rounded as the device rounds */
    uint64_t reported[6];      /* [GC_MAX_SLOTS]: buffer size as alloc reports it for each slot */
    uint64_t measured[6];      /* [GC_MAX_SLOTS]: measure: size for each slot */
    uint64_t asked[5][16];     /* [GC_MAX_TYPES][GC_MAX_CHUNKS]: bytes asked for, chunk by chunk, of the buffers alloc uses now */
    uint64_t owned[5];         /* [GC_MAX_TYPES]: device bytes that alloc owns (borrowed ones left out), GC_CAP_BREAKDOWN;
                                  of a meta type: on each of its devices */
    uint64_t allocations;      /* device allocations tried during this operation */

    /* C: what alloc's scheduler says; 0 where it has none */
    uint64_t sched_generation;
    uint64_t sched_shrink_generation;
    uint64_t nodes;            /* tensors that it is made for, 0: any number */
    uint32_t in_flight;        /* 1: alloc has work in flight (of a context: one of its lanes) */
    uint32_t reason;           /* S4: why a borrow was refused: the GC_ONE_... bits that are missing */

    /* V, Q: after an operation of a pool, of the pool that it names; pooled: always */
    uint64_t pooled[5];        /* [GC_MAX_TYPES]: physical bytes that the pools of device t hold */
    uint64_t released;         /* GC_TRIM and all that trims: bytes given back to the devices */
    uint64_t base;             /* first address of the pool's range, 0: not reserved yet */
    uint64_t mapped;           /* physical bytes of the pool */
    uint64_t out;              /* bytes of it that are handed out */
    uint64_t address;          /* GC_POOL_ALLOC: of the block */
    uint32_t captured;         /* bit n: allocator n has a captured graph; always */
    uint32_t capturing;        /* bit n: allocator n is being captured; always */

    /* W: after an operation of a context, of that context */
    uint32_t tokens[2];        /* [GC_MAX_LANES]: what the lane is reserved for */
    uint32_t cells[2];         /* [GC_MAX_LANES] */
    uint32_t fewer[2];         /* [GC_MAX_LANES]: calls in a row that needed less (W2) */
    uint32_t reserves;         /* reservations that this operation made */
    uint32_t waits;            /* times that this operation waited for the other context (W4) */
    uint32_t attached;         /* 1: the draft shares the target's workspace */
    uint32_t busy;             /* T: bit n: slot n has a request; always */
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
/* Frees every allocator and pool, then returns the device bytes still in use and, where the subject knows
   them, the bytes of address ranges still reserved and the number of captured graphs that the driver
   still has (G5: 0). */
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
