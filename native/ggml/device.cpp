/* device.cpp: our buffer types, devices and backends, as ggml sees them.
 *
 * Interface structs gained members over time: they are zeroed and filled by
 * member name, so that one source fits all trees. No backend reads another
 * type's buffers and no buffer is host memory, so that a scheduler has to copy.
 */
#include "subject.h"
#include "defects.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace gc {

static constexpr uint64_t page = 4096;
static constexpr uint8_t  guard = 0x5a;

static Type & type_of(ggml_backend_buffer_type_t buft) { return *static_cast<Type *>(buft->context); }

/* buffers */

static void buffer_free(ggml_backend_buffer_t ggml) {
    Buffer &  b = *static_cast<Buffer *>(ggml->context);
    Session & s = *b.session;
    if (!b.live) {
        std::fprintf(stderr, "gallocheck: a buffer of type %d was freed twice\n", b.type);
        std::abort();
    }
    if (b.busy) {
        s.run.report(GC_FREED_BUSY, -1, -1, 0);
    }
    check_guard(s, b);
    b.live = false;
    s.types[b.type].used -= b.real;
    for (size_t i = 0; i < s.live.size(); i++) {
        if (s.live[i] == &b) {
            s.live.erase(s.live.begin() + i);
            break;
        }
    }
    s.arena.drop(b.base, b.mapped);
}

static void * buffer_base(ggml_backend_buffer_t ggml) { return static_cast<Buffer *>(ggml->context)->base; }

static void buffer_memset(ggml_backend_buffer_t, ggml_tensor * t, uint8_t value, size_t offset, size_t size) {
    std::memset(static_cast<char *>(t->data) + offset, value, size);
}

static void buffer_set(ggml_backend_buffer_t, ggml_tensor * t, const void * from, size_t offset, size_t size) {
    std::memcpy(static_cast<char *>(t->data) + offset, from, size);
}

static void buffer_get(ggml_backend_buffer_t, const ggml_tensor * t, void * to, size_t offset, size_t size) {
    std::memcpy(to, static_cast<const char *>(t->data) + offset, size);
}

/* A copy moves what the oracle touches: all of small tensors, samples of large ones. */
static bool buffer_copy(ggml_backend_buffer_t, const ggml_tensor * src, ggml_tensor * dst) {
    const Info * info = static_cast<const Info *>(src->extra);
    if (!info) {
        return false;
    }
    const gc_tensor * t = info->graph->tensors.data();
    const uint64_t    from = t[info->index].view_offs, end = from + t[info->index].size;
    for (uint64_t at = gc_first(t, info->index); at < end; at = gc_next(at, gc_whole(t, info->index))) {
        static_cast<uint8_t *>(dst->data)[at - from] = static_cast<const uint8_t *>(src->data)[at - from];
    }
    return true;
}

static void buffer_clear(ggml_backend_buffer_t ggml, uint8_t value) {
    const Buffer & b = *static_cast<Buffer *>(ggml->context);
    std::memset(b.base, value, b.real);
}

static ggml_backend_buffer_i buffer_interface() {
    ggml_backend_buffer_i i;
    std::memset(&i, 0, sizeof(i));
    i.free_buffer = buffer_free;
    i.get_base = buffer_base;
    i.memset_tensor = buffer_memset;
    i.set_tensor = buffer_set;
    i.get_tensor = buffer_get;
    i.cpy_tensor = buffer_copy;
    i.clear = buffer_clear;
    return i;
}

void check_guard(Session & s, const Buffer & b) {
    for (uint64_t i = b.real; i < b.mapped && Arena::is_real(b.base); i++) {
        if (b.base[i] != guard) {
            s.run.report(GC_BAD_GUARD, -1, -1, i);
            return;
        }
    }
}

/* buffer types */

static bool round_up(uint64_t size, uint64_t unit, uint64_t * out) {
    return !__builtin_add_overflow(size, unit - 1, out) && ((*out -= *out % unit), true);
}

static ggml_backend_buffer_t type_alloc(ggml_backend_buffer_type_t buft, size_t size) {
    Type &    t = type_of(buft);
    Session & s = *t.session;
    const uint64_t nth = ++s.run.allocations;
    uint64_t real = 0, mapped = 0;
    const bool fits = round_up(size, t.spec.granularity, &real) && round_up(real, page, &mapped)
        && t.used <= t.spec.capacity && real <= t.spec.capacity - t.used;
    const bool injected = (s.run.fail_types >> t.index & 1) || (s.run.fail_nth > 0 && nth == (uint64_t) s.run.fail_nth);
    uint8_t * base = fits && !injected ? s.arena.take(mapped) : nullptr;
    if (base) {
        std::memset(base + real, guard, mapped - real);
    } else if (fits && !injected) {
        base = s.arena.pretend(mapped);
    }
    if (!base) {
        s.run.failed = true;
        if (GC_PLANTED(REFUSAL_IS_THROWN) && s.run.alloc && s.run.alloc->sched) throw std::bad_alloc();
        return nullptr;
    }
    t.used += real;
    auto b = std::make_unique<Buffer>();
    b->session = &s;
    b->type = t.index;
    b->pool = s.run.alloc ? s.run.alloc->pools[t.index] : -1;
    b->serial = s.buffers.size() + 1;
    b->base = base;
    b->asked = size;
    b->real = real;
    b->mapped = mapped;
    s.live.push_back(b.get());
    s.buffers.push_back(std::move(b));
    return ggml_backend_buffer_init(buft, buffer_interface(), s.live.back(), real);
}

static const char * type_name(ggml_backend_buffer_type_t buft) {
    static const char * names[GC_MAX_TYPES] = {"T0", "T1", "T2", "T3"};
    return names[type_of(buft).index];
}

static size_t type_alignment(ggml_backend_buffer_type_t buft) { return type_of(buft).spec.alignment; }
static size_t type_max_size(ggml_backend_buffer_type_t buft) { return type_of(buft).spec.max_size; }
static bool   type_is_host(ggml_backend_buffer_type_t) { return false; }

/* The scheduler's copies are tensors of its own, named after what they copy. */
static const Info * info_of(const Session & s, const ggml_tensor * t) {
    if (t->extra) {
        return static_cast<const Info *>(t->extra);
    }
    unsigned graph = 0, index = 0;
    const char * name = std::strstr(t->name, "#t");
    if (!name || std::sscanf(name, "#t%u.%u#", &graph, &index) != 2 || graph >= s.graphs.size()) {
        return nullptr;
    }
    const Graph & g = *s.graphs[graph];
    return index < g.infos.size() ? &g.infos[index] : nullptr;
}

static size_t type_alloc_size(ggml_backend_buffer_type_t buft, const ggml_tensor * t) {
    const Info * info = info_of(*type_of(buft).session, t);
    if (!info) {
        return ggml_nbytes(t);
    }
    const gc_tensor & d = info->graph->tensors[info->index];
    uint64_t size = 0;
    return __builtin_add_overflow(d.size, d.pad, &size) ? UINT64_MAX : size;
}

static ggml_backend_buffer_type buffer_type(Type & t) {
    ggml_backend_buffer_type b;
    std::memset(&b, 0, sizeof(b));
    b.iface.get_name = type_name;
    b.iface.alloc_buffer = type_alloc;
    b.iface.get_alignment = type_alignment;
    b.iface.get_max_size = type_max_size;
    b.iface.get_alloc_size = type_alloc_size;
    b.iface.is_host = type_is_host;
    b.device = &t.accelerator;
    b.context = &t;
    return b;
}

/* devices */

static Type & type_of(ggml_backend_dev_t dev) { return *static_cast<Type *>(dev->context); }
static const char * device_name(ggml_backend_dev_t dev) { return type_name(&type_of(dev).device); }
static ggml_backend_buffer_type_t device_buffer_type(ggml_backend_dev_t dev) { return &type_of(dev).device; }
static bool device_supports_op(ggml_backend_dev_t, const ggml_tensor *) { return true; }
static enum ggml_backend_dev_type type_accelerator(ggml_backend_dev_t) { return GGML_BACKEND_DEVICE_TYPE_GPU; }
static enum ggml_backend_dev_type type_cpu(ggml_backend_dev_t) { return GGML_BACKEND_DEVICE_TYPE_CPU; }

static bool device_supports_type(ggml_backend_dev_t dev, ggml_backend_buffer_type_t buft) {
    return buft == &type_of(dev).device || buft == &type_of(dev).fixed;
}

static void device_memory(ggml_backend_dev_t dev, size_t * free, size_t * total) {
    const Type & t = type_of(dev);
    *total = t.spec.capacity;
    *free = t.spec.capacity > t.used ? t.spec.capacity - t.used : 0;
}

static void device_props(ggml_backend_dev_t dev, ggml_backend_dev_props * props) {
    std::memset(props, 0, sizeof(*props));
    props->name = props->description = device_name(dev);
    props->type = dev->iface.get_type(dev);
    device_memory(dev, &props->memory_free, &props->memory_total);
}

static ggml_backend_device device(Type & t, bool cpu) {
    ggml_backend_device d;
    std::memset(&d, 0, sizeof(d));
    d.iface.get_name = device_name;
    d.iface.get_description = device_name;
    d.iface.get_memory = device_memory;
    d.iface.get_type = cpu ? type_cpu : type_accelerator;
    d.iface.get_props = device_props;
    d.iface.get_buffer_type = device_buffer_type;
    d.iface.supports_op = device_supports_op;
    d.iface.supports_buft = device_supports_type;
    d.context = &t;
    return d;
}

/* backends: work is done at once, but counts as in flight until somebody waits */

static Backend & backend_of(ggml_backend_t ggml) { return *static_cast<Backend *>(ggml->context); }
static const char * backend_name(ggml_backend_t b) { return type_name(&backend_of(b).session->types[backend_of(b).type].device); }
static void backend_free(ggml_backend_t) {}

/* Of its scheduler. The host's backend is alone. */
[[maybe_unused]] static bool is_first(const Backend & b) { return b.bit == 1u << 31 || __builtin_ctz(b.bit) % GC_MAX_SLOTS == 0; }

static void backend_synchronize(ggml_backend_t ggml) {
    Backend & b = backend_of(ggml);
    if (GC_PLANTED(SYNCHRONIZE_RETURNS_EARLY)) return;
    if (GC_PLANTED(LATER_BACKENDS_RUN_ON) && !is_first(b)) return;
    for (Buffer * buffer : b.session->live) {
        buffer->busy &= ~b.bit;
    }
}

/* Trees differ in what else they hand to graph_compute; the type of the member says it. */
template <class F> struct Compute;
template <class... A> struct Compute<ggml_status (*)(ggml_backend_t, ggml_cgraph *, A...)> {
    static ggml_status run(ggml_backend_t ggml, ggml_cgraph * graph, A...) {
        Backend & b = backend_of(ggml);
        for (int i = 0; i < ggml_graph_n_nodes(graph); i++) {
            compute_node(*b.session, b, ggml_graph_node(graph, i));
        }
        return GGML_STATUS_SUCCESS;
    }
};

void backend_init(Backend & b, Session * s, int type, bool cpu, uint32_t bit) {
    static uint8_t id[16] = {'g', 'a', 'l', 'l', 'o', 'c', 'h', 'e', 'c', 'k'};
    std::memset(&b.ggml, 0, sizeof(b.ggml));
    b.ggml.guid = &id;
    b.ggml.iface.get_name = backend_name;
    b.ggml.iface.free = backend_free;
    b.ggml.iface.synchronize = backend_synchronize;
    b.ggml.iface.graph_compute = Compute<decltype(b.ggml.iface.graph_compute)>::run;
    b.ggml.device = cpu ? &s->types[type].cpu : &s->types[type].accelerator;
    b.ggml.context = &b;
    b.session = s;
    b.type = type;
    b.bit = bit;
}

/* Preallocated leafs seem to lie in one never-ending buffer of each type. */
static void * fixed_base(ggml_backend_buffer_t) { return reinterpret_cast<void *>(page); }
static void   fixed_free(ggml_backend_buffer_t) {}

void device_init(Session * s) {
    for (uint32_t i = 0; i < s->setup.n_types; i++) {
        Type & t = s->types[i];
        t.session = s;
        t.index = (int) i;
        t.spec = s->setup.types[i];
        t.device = t.fixed = buffer_type(t);
        t.accelerator = device(t, false);
        t.cpu = device(t, true);
        ggml_backend_buffer_i iface = buffer_interface();
        iface.get_base = fixed_base;
        iface.free_buffer = fixed_free;
        t.fixed_buffer = ggml_backend_buffer_init(&t.fixed, iface, nullptr, SIZE_MAX / 2);
        ggml_backend_buffer_set_usage(t.fixed_buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    }
    backend_init(s->host, s, 0, true, 1u << 31);
}

void device_done(Session * s) {
    for (uint32_t i = 0; i < s->setup.n_types; i++) {
        ggml_backend_buffer_free(s->types[i].fixed_buffer);
    }
}

} // namespace gc
