/* subject.h: the parts of the ggml subject and what they share.
 *
 *   arena.cpp    memory whose addresses are never used twice
 *   device.cpp   our buffer types, buffers, devices and backends, as ggml sees them
 *   oracle.cpp   what a node does when it is computed, and what is checked around it
 *   graph.cpp    graph definitions, and the ggml graphs built from them
 *   drive.cpp    the tree's public interface, called for each operation
 *   adapter.cpp  gallocheck.h
 */
#ifndef GC_GGML_SUBJECT_H
#define GC_GGML_SUBJECT_H

#include "gallocheck.h"
#include "gc_oracle.h"

#include "ggml.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-backend-impl.h"
#ifdef GC_EXTRA_HEADER /* the overlay's declarations, in a tree that has none of its own */
#include GC_EXTRA_HEADER
#endif

#include <memory>
#include <vector>

namespace gc {

struct Session;
struct Graph;

/* One device allocation. Records outlive the memory, so that a second free is noticed. */
struct Buffer {
    Session * session;
    int       type;
    int       pool;    /* which allocators use it: those whose pool for the type is this one */
    uint64_t  serial;  /* counts up; never used twice */
    uint8_t * base;
    uint64_t  asked, real, mapped; /* as asked for, rounded to granularity, rounded to pages */
    uint32_t  busy = 0;            /* bit: backend with work in flight on it */
    bool      live = true;
};

/* Address space, handed out upwards and never again. */
struct Arena {
    ~Arena();
    uint8_t * take(uint64_t bytes); /* readable, writable, zero; NULL where it is too much */
    uint8_t * pretend(uint64_t bytes); /* addresses alone: any touch faults */
    void      drop(uint8_t * base, uint64_t bytes); /* gone for good: a touch faults */
    static bool is_real(const uint8_t * base);

    struct Range { uint8_t * base; uint64_t size; };
    std::vector<Range> ranges;
    uint64_t           next = 0; /* first unused byte of the last range */
    uint64_t           next_pretended;
    Arena();
};

/* What a tensor of ours points at through `extra`. */
struct Info {
    const Graph * graph;
    uint32_t      index;
};

/* A graph as defined, with all that follows from it alone. */
struct Graph {
    uint32_t               number = 0;
    std::vector<gc_tensor> tensors;
    std::vector<uint64_t>  values; /* content of each, see gc_oracle.h */
    std::vector<Info>      infos;
    std::vector<uint8_t *> fixed;    /* memory of preallocated leafs */
    std::vector<int64_t>   elements; /* what ggml is told about sizes */

    uint32_t root(uint32_t i) const { return tensors[i].view_src >= 0 ? tensors[i].view_src : i; }
    bool     is(uint32_t i, uint32_t flag) const { return (tensors[i].flags & flag) != 0; }
};

/* A ggml graph built from a definition; ggml lets each be allocated once. */
struct Instance {
    ~Instance() { ggml_free(context); }
    const Graph *              graph = nullptr;
    std::vector<char>          memory;
    ggml_context *             context = nullptr;
    ggml_cgraph *              cgraph = nullptr;
    std::vector<ggml_tensor *> tensors;
    std::vector<int>           node_slots, leaf_slots;
    /* known once bound */
    std::vector<gc_place> places;
    std::vector<uint64_t> serials; /* of the buffers that it uses */
    uint64_t              generation = 0;
};

struct Backend {
    ggml_backend ggml;
    Session *    session;
    int          type;
    uint32_t     bit; /* in Buffer::busy */
};

/* A shared group (GC_CAP_GROUP); freed with its last member. */
struct Group {
    ~Group();
    void * handle = nullptr;
    int    pools[GC_MAX_TYPES];
};

struct Alloc {
    bool                 live = false;
    int                  index = 0, config = 0, n_slots = 0;
    ggml_gallocr_t       plain = nullptr; /* one of the two */
    ggml_backend_sched_t sched = nullptr;
    std::vector<std::unique_ptr<Backend>> backends; /* sched: one a slot */
    int                       pools[GC_MAX_TYPES];
    bool                      role = false; /* owner, borrower, or member of a group */
    bool                      reserved = false;
    std::shared_ptr<Group>    group;
    bool                      founder = false; /* made the group */
    std::unique_ptr<Instance> bound;
    bool                      lapsed = false;    /* sched: it has dropped the bound graph: allocate again */
    const Graph *             forgotten = nullptr; /* sched: what was bound before a reset (C4) */
};

/* State of the operation that runs. */
struct Running {
    uint32_t fail_types = 0;
    int32_t  fail_nth = 0;
    uint64_t allocations = 0;
    bool     failed = false; /* the device refused an allocation */
    Alloc *  alloc = nullptr;
    bool     async = false;
    const Instance *  lazy = nullptr; /* plain leafs of this graph are written by their first reader */
    std::vector<bool> written;
    uint32_t trouble = 0;
    int32_t  bad_node = -1, bad_src = -1;
    uint64_t bad_offset = 0;

    void report(uint32_t what, int32_t node, int32_t src, uint64_t offset);
};

struct Type {
    Session *                session;
    int                      index;
    gc_type                  spec;
    uint64_t                 used = 0;
    ggml_backend_buffer_type device, fixed; /* accounted memory; memory of preallocated leafs */
    ggml_backend_device      accelerator, cpu;
    ggml_backend_buffer_t    fixed_buffer = nullptr;
};

struct Session {
    ~Session();
    gc_setup setup;
    Type     types[GC_MAX_TYPES];
    Arena    arena;
    std::vector<std::unique_ptr<Buffer>> buffers; /* all there ever were */
    std::vector<Buffer *>                live;    /* in allocation order */
    std::vector<std::unique_ptr<Graph>>  graphs;
    std::vector<uint64_t>                huge; /* sizes that ggml's integers can't hold */
    Alloc    allocs[GC_MAX_ALLOCS];
    Backend  host; /* computes for plain allocators */
    int      n_pools = 0;
    Running  run;

    int    type_of(const Alloc & a, int32_t slot) const;
    Buffer * at(const void * address) const; /* the live buffer that holds it, or NULL */
};

/* device.cpp */
void device_init(Session * s);
void backend_init(Backend & b, Session * s, int type, bool cpu, uint32_t bit);
void device_done(Session * s);

/* oracle.cpp */
void compute_node(Session & s, const Backend & b, ggml_tensor * node);
void before_compute(Session & s, Instance & in, bool all_leafs);
uint64_t after_compute(Session & s, const Instance & in); /* digest */
void scramble(const Instance & in);
void check_guard(Session & s, const Buffer & b);

/* graph.cpp */
int32_t define(Session & s, const gc_tensor * tensors, uint32_t n);
std::unique_ptr<Instance> build(Session & s, const Alloc & a, const Graph & g);
void locate(Session & s, const Alloc & a, Instance & in);

/* drive.cpp */
constexpr uint32_t none = UINT32_MAX;
uint64_t capabilities();
bool can_measure();
int32_t drive(Session & s, const gc_op & op, gc_obs & obs);
void release(Session & s, Alloc & a);
void observe(Session & s, Alloc & a, gc_obs & obs);

} // namespace gc

/* The public handle. */
struct gc_session : gc::Session {};

#endif
