/* subject.h: the parts of the ggml subject and what they share.
 *
 *   arena.cpp    memory whose addresses are never used twice
 *   device.cpp   our buffers and buffer types, as ggml sees them
 *   devices.cpp  our devices and their events; early.cpp: in trees that have backends alone
 *   stream.cpp   our backends: work that is queued, and done when somebody waits
 *   meta.cpp     buffer types over several devices, by the tree's meta backend
 *   oracle.cpp   what a node does when it is computed, and what is checked around it
 *   graph.cpp    graph definitions, and the ggml graphs built from them
 *   bound.cpp    where the tensors of a bound graph are
 *   plain.cpp    the tree's graph allocator; measured.cpp: in trees whose own has no buffers
 *   make.cpp     allocators and schedulers: made, freed, made anew
 *   sharing.cpp  owners and borrowers, by whatever a tree offers for them
 *   drive.cpp    the tree's public interface, called for each operation
 *   observe.cpp  what is seen of an allocator after it
 *   adapter.cpp  gallocheck.h
 */
#ifndef GC_GGML_SUBJECT_H
#define GC_GGML_SUBJECT_H

#include "gallocheck.h"
#include "gc_oracle.h"

#include "early.h"
#ifdef GC_EXTRA_HEADER /* the overlay's declarations, in a tree that has none of its own */
#include GC_EXTRA_HEADER
#endif

#include <deque>
#include <map>
#include <memory>
#include <vector>

namespace gc {

struct Session;
struct Graph;
struct Weights;
struct Alloc;
struct Part;

#ifdef GC_HAVE_GALLOCR
using Plain = ggml_gallocr_t;
#else
using Plain = struct Measured *;
#endif

constexpr int max_parts = GC_MAX_TYPES; /* devices of a meta type */

/* One device allocation. Records outlive the memory, so that a second free is noticed. */
struct Buffer {
    Session * session;
    int       type;    /* whose it is; of a part of a meta type's buffer: the meta type */
    int       device;  /* whose memory it is */
    int       part;    /* which of the meta type's devices, from 0 */
    int       pool;    /* which allocators use it: those whose pool for the type is this one; -1: not counted */
    uint64_t  serial;  /* counts up; never used twice */
    uint8_t * base;
    uint64_t  asked, real, mapped; /* as asked for, rounded to granularity, rounded to pages */
    uint32_t  in_flight = 0;       /* pieces of queued work that touch it */
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

/* The preallocated leafs of one graph on one meta type, in a buffer of the tree's. */
struct Weights {
    ~Weights();
    ggml_context *             context = nullptr;
    ggml_backend_buffer_t      buffer = nullptr;
    std::vector<ggml_tensor *> tensors; /* by index; NULL where it is no such leaf */
    std::vector<uint8_t *>     where[max_parts]; /* by index: the address on each device */
};

/* A graph as defined, with all that follows from it alone. */
struct Graph {
    uint32_t               number = 0;
    std::vector<gc_tensor> tensors;
    std::vector<uint64_t>  values; /* content of each, see gc_oracle.h */
    std::vector<Info>      infos;
    std::vector<uint8_t *> fixed;    /* memory of preallocated leafs */
    std::vector<int64_t>   elements; /* what ggml is told about sizes */
    std::map<int, std::unique_ptr<Weights>> weights; /* by meta type: the preallocated leafs on it */

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
    std::vector<int>      parts; /* of each tensor: on how many devices it is */
    std::vector<uint8_t *> where[max_parts];   /* of each tensor: its address there */
    std::vector<std::pair<uint8_t *, uint32_t>> copies; /* a scheduler's, on simple types, with what is copied */
};

/* A piece of work, by value: what it was launched with stays as it was, whatever ggml does to its tensors. */
struct Work {
    enum Kind { node, copy, wait } kind = node;
    const Graph * graph = nullptr;
    uint32_t      index = 0;            /* the tensor computed, or copied */
    int           part = 0;             /* which device of a meta type computes it */
    uint8_t *     to = nullptr;
    uint8_t *     from[GC_MAX_SRC] = {};
    bool          copied[GC_MAX_SRC] = {}; /* the source is a scheduler's copy: it holds what the first device has */
    struct Stream * other = nullptr;    /* wait: for this stream to have done so much */
    uint64_t      until = 0;
    std::vector<Buffer *> buffers;      /* those that it touches */
};

/* Work in order; none is done before somebody waits for it. */
struct Stream {
    std::deque<Work> queue;
    uint64_t         queued = 0, done = 0;
};

struct Backend {
    ggml_backend ggml;
    Session *    session;
    Part *       device; /* whose it is */
    int          part;
    Stream *     stream;
    bool         at_once; /* a host's: work is done when it is queued */
    bool         first;   /* of its scheduler */
};

/* A meta type's device j, as ggml sees it. */
struct Part {
    struct Type *            type;
    int                      number, device;
    ggml_backend_buffer_type memory;
    ggml_backend_device      ggml;
};

/* A shared group (GC_CAP_GROUP); freed with its last member. */
struct Group {
    ~Group();
    void * handle = nullptr;
    int    pools[GC_MAX_TYPES];
};

/* What a caller adds to a reading where it put a new allocator in the place of an old one. */
struct Readings { uint64_t generation = 0, shrink = 0; };

/* A caller's books on one allocator: what it made, and what it is bound to. */
struct Alloc {
    bool                 live = false;
    int                  index = 0, config = 0, n_slots = 0;
    bool                 by_sched = false;
    Plain                plain = nullptr; /* one of the two */
    ggml_backend_sched_t sched = nullptr;
    uint64_t             nodes = 0;       /* sched: tensors that it is made for, 0: any number */
    uint64_t             made_for = 0;    /* sched: what the tree was told */
    std::vector<std::unique_ptr<Backend>> own; /* our backends */
    std::vector<ggml_backend_t> backends;      /* sched: one a slot, at times a host's behind them; plain: the computing one */
    std::vector<ggml_backend_t> metas;         /* those of them that the tree made */
    std::map<std::pair<int, int>, std::unique_ptr<Stream>> streams; /* by type and part */
    int                       pools[GC_MAX_TYPES];
    bool                      role = false;  /* owner, borrower, or member of a group */
    bool                      owner = false;
    int                       lender = -1;   /* of a borrower: its owner, -1: gone */
    bool                      behind = false; /* R14: its owner was made anew, it has not reserved since */
    bool                      asked = false;  /* of the owner of one that is behind: it has requested a shrink since */
    Readings                  past;
    bool                      reserved = false;
    const Graph *             planned = nullptr; /* what was reserved last, where that succeeded */
    std::shared_ptr<Group>    group;
    bool                      founder = false; /* made the group */
    std::shared_ptr<Instance> bound;
    bool                      lapsed = false;    /* sched: it has dropped the bound graph: allocate again */
    std::shared_ptr<Instance> flying;            /* sched: what was launched last and not waited for */

    bool in_flight() const;
};

/* State of the operation that runs. */
struct Running {
    uint32_t fail_types = 0;
    int32_t  fail_nth = 0;
    uint64_t allocations = 0;
    bool     failed = false; /* the device refused an allocation */
    Alloc *  alloc = nullptr;
    int32_t  kind = 0;
    bool     uncounted = false; /* memory for weights: of no device */
    const Instance *  lazy = nullptr; /* plain leafs of this graph are written by their first reader */
    std::vector<bool> written[max_parts];
    std::vector<Buffer *> * named = nullptr;   /* buffers that ggml reset, in order (meta.cpp) */
    std::vector<uint8_t *> * set_at = nullptr; /* where ggml set tensors, in order */
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
    /* of a simple type */
    Part                     own;
    ggml_backend_device      cpu;   /* the same device as a host: a scheduler's last */
    ggml_backend_buffer_type fixed; /* memory of preallocated leafs */
    ggml_backend_buffer_t    fixed_buffer = nullptr;
    /* of a meta type */
    int                      n_parts = 0;
    Part                     parts[max_parts];
    ggml_backend_dev_t       meta = nullptr;
    std::unique_ptr<Weights> anchor; /* what a node without sources reads */

    ggml_backend_buffer_type_t memory(); /* what allocators are given */
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
    Stream   host_stream;
    Backend  host;    /* computes for plain allocators */
    Type     nowhere; /* a scheduler ends with a host's backend, which has no memory where a meta type is last */
    int      n_pools = 0;
    Running  run;

    int    type_of(const Alloc & a, int32_t slot) const;
    bool   is_meta(int type) const { return types[type].n_parts > 0; }
    Buffer * at(const void * address) const; /* the live buffer that holds it, or NULL */
};

/* A point in a stream's work. */
struct Event {
    Session * session;
    Stream *  stream = nullptr; /* not recorded yet */
    uint64_t  until = 0;
};

/* device.cpp */
void device_init(Session * s);
void device_done(Session * s);
const char * name_of(const Part & p);
const Info * info_of(const Session & s, const ggml_tensor * t); /* of a scheduler's copy: of what it copies */
bool is_copy(const ggml_tensor * t);
void part_init(Part & p, Type & t, int number, int device);

/* devices.cpp, early.cpp */
ggml_backend_device device_of(Part & p, bool host);
void belongs_to(ggml_backend_buffer_type & memory, ggml_backend_dev_t device); /* what it has of the device's */
void belongs_to(ggml_backend & backend, ggml_backend_dev_t device, bool events);

/* stream.cpp */
void backend_init(Backend & b, Session * s, ggml_backend_dev_t device, Stream * stream, bool at_once);
ggml_backend_t backend_for(ggml_backend_dev_t device, const char * params); /* of the allocator being made; the tree frees it */
void run_everything(Session & s);
bool is_ours(ggml_backend_t b);
Backend & backend_of(ggml_backend_t b); /* of ours */
void record(const Backend & b, Event & e);
void wait_for(const Backend & b, const Event & e); /* all that is queued later */
void finish(const Event & e);

/* meta.cpp */
uint64_t meta_capability(); /* GC_CAP_META, or 0 */
bool     meta_sane(const gc_setup & s, const gc_type & t);
void     meta_init(Session * s, Type & t);
void     meta_done(Type & t);
ggml_backend_buffer_type_t meta_memory(Type & t);
ggml_backend_t meta_backend(Type & t);
ggml_tensor * meta_anchor(Type & t); /* a weight of one byte, for nodes without sources */
const Weights & meta_weights(Session & s, Graph & g, Type & t);
std::vector<Buffer *> meta_parts(Session & s, ggml_backend_buffer_t buffer); /* its simple buffers, device by device */
uint64_t meta_offset(const ggml_tensor * t); /* of a tensor in its meta buffer */
uint64_t part_value(uint64_t value, int part);

/* oracle.cpp */
void compute(Session & s, const Work & w);
void copy_bytes(const Graph & g, uint32_t i, uint8_t * to, const uint8_t * from);
void before_compute(Session & s, const Instance & in, bool all_leafs);
uint64_t after_compute(Session & s, const Instance & in); /* digest */
void scramble(const Instance & in);
void check_guard(Session & s, const Buffer & b);

/* graph.cpp */
int32_t define(Session & s, const gc_tensor * tensors, uint32_t n);
std::shared_ptr<Instance> build(Session & s, const Alloc & a, Graph & g);
int src_slot(const Graph & g, uint32_t i, int j); /* where ggml has source j of a tensor */

/* bound.cpp */
void locate(Session & s, const Alloc & a, Instance & in);

/* make.cpp */
int32_t make(Session & s, Alloc & a, int config, bool by_sched, uint64_t nodes);
void    release(Session & s, Alloc & a);
int32_t remake(Session & s, Alloc & a);                       /* R14 */
bool    enlarge(Session & s, Alloc & a, const Graph & g);     /* C3: a scheduler that is large enough for the graph */
bool    catch_up(Session & s, Alloc & a);                     /* R14: a borrower that is behind follows its owner */
bool    has_type(const Session & s, const Alloc & a, int type);
bool    partner_in_flight(const Session & s, const Alloc & a);

/* drive.cpp */
constexpr uint32_t none = UINT32_MAX;
uint64_t capabilities();
bool can_measure();
int32_t drive(Session & s, const gc_op & op, gc_obs & obs);

/* observe.cpp */
void observe(Session & s, Alloc & a, gc_obs & obs);

} // namespace gc

/* The public handle. */
struct gc_session : gc::Session {};

#endif
