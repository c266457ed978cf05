/* device.cpp: our buffers and buffer types, as ggml sees them.
 *
 * Interface structs gained members over time: they are zeroed and filled by
 * member name, so that one source fits all trees. No backend reads another
 * type's buffers and no buffer is host memory, so that a scheduler has to copy.
 */
#include "subject.h"
#include "defects.h"
#include "fit.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace gc {

GC_MEMBER(get_name)
GC_MEMBER(memset_tensor)
GC_MEMBER(init_tensor)
GC_MEMBER(cpy_tensor)
GC_MEMBER(reset)
GC_MEMBER(get_max_size)

static constexpr uint64_t page = 4096;
static constexpr uint8_t  guard = 0x5a;

static Part & part_of(ggml_backend_buffer_type_t buft) { return *static_cast<Part *>(buft->context); }

/* buffers */

static void buffer_free(ggml_backend_buffer_t ggml) {
    Buffer &  b = *static_cast<Buffer *>(ggml->context);
    Session & s = *b.session;
    if (!b.live) {
        std::fprintf(stderr, "gallocheck: a buffer of type %d was freed twice\n", b.type);
        std::abort();
    }
    if (b.in_flight) {
        s.run.report(GC_FREED_BUSY, -1, -1, 0);
        run_everything(s); /* while the memory is still there */
    }
    check_guard(s, b);
    b.live = false;
    if (b.pool >= 0) {
        s.types[b.device].used -= b.real;
    }
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

static void buffer_set(ggml_backend_buffer_t ggml, ggml_tensor * t, const void * from, size_t offset, size_t size) {
    const Session & s = *static_cast<Buffer *>(ggml->context)->session;
    if (s.run.set_at) {
        s.run.set_at->push_back(static_cast<uint8_t *>(t->data));
    }
    std::memcpy(static_cast<char *>(t->data) + offset, from, size);
}

static void buffer_get(ggml_backend_buffer_t, const ggml_tensor * t, void * to, size_t offset, size_t size) {
    std::memcpy(to, static_cast<const char *>(t->data) + offset, size);
}

/* A copy moves what the oracle touches: all of small tensors, samples of large ones. Not from a meta buffer,
 * whose tensors have no address of their own. */
static bool buffer_copy(ggml_backend_buffer_t, const ggml_tensor * src, ggml_tensor * dst) {
    const Info * info = static_cast<const Info *>(src->extra);
    if (!info || !src->buffer || src->buffer->iface.get_base != buffer_base) {
        return false;
    }
    copy_bytes(*info->graph, info->index, static_cast<uint8_t *>(dst->data), static_cast<const uint8_t *>(src->data));
    return true;
}

static void buffer_clear(ggml_backend_buffer_t ggml, uint8_t value) {
    const Buffer & b = *static_cast<Buffer *>(ggml->context);
    std::memset(b.base, value, b.real);
}

/* A part's tensor is the meta backend's; some trees leave it to the device to say what it is. */
template <class R> static R buffer_init_tensor(ggml_backend_buffer_t ggml, ggml_tensor * t) {
    const Buffer & b = *static_cast<Buffer *>(ggml->context);
    if (b.session->is_meta(b.type) && !is_copy(t)) {
        t->extra = const_cast<Info *>(info_of(*b.session, t));
    }
    return success<R>();
}

template <class I> struct Result;
template <class R, class... A> struct Result<R (*)(A...)> { using type = R; };

static const char * buffer_name(ggml_backend_buffer_t) { return "gallocheck"; }

static void buffer_reset(ggml_backend_buffer_t ggml) {
    Buffer * b = static_cast<Buffer *>(ggml->context);
    if (b->session->run.named) {
        b->session->run.named->push_back(b);
    }
}

static ggml_backend_buffer_i buffer_interface() {
    ggml_backend_buffer_i i;
    std::memset(&i, 0, sizeof(i));
    i.free_buffer = buffer_free;
    i.get_base = buffer_base;
    put_get_name(i, buffer_name);
    put_memset_tensor(i, buffer_memset);
    i.init_tensor = buffer_init_tensor<Result<decltype(i.init_tensor)>::type>;
    i.set_tensor = buffer_set;
    i.get_tensor = buffer_get;
    i.cpy_tensor = buffer_copy;
    i.clear = buffer_clear;
    i.reset = buffer_reset;
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

/* Memory of a device, or NULL where it has none left or was told to fail. */
static uint8_t * device_memory(Session & s, int device, uint64_t real, uint64_t mapped) {
    if (s.run.uncounted) {
        return s.arena.take(mapped);
    }
    const uint64_t nth = ++s.run.allocations;
    const uint64_t used = s.types[device].used, capacity = s.types[device].spec.capacity;
    const bool injected = (s.run.fail_types >> device & 1) || (s.run.fail_nth > 0 && nth == (uint64_t) s.run.fail_nth);
    if (injected || used > capacity || real > capacity - used) {
        return nullptr;
    }
    uint8_t * base = s.arena.take(mapped);
    return base ? base : s.arena.pretend(mapped);
}

static ggml_backend_buffer_t refused(Session & s) {
    s.run.failed = true;
    if (GC_PLANTED(REFUSAL_IS_THROWN) && s.run.alloc && s.run.alloc->by_sched) throw std::bad_alloc();
    return nullptr;
}

static ggml_backend_buffer_t type_alloc(ggml_backend_buffer_type_t buft, size_t size) {
    Part &    p = part_of(buft);
    Session & s = *p.type->session;
    uint64_t real = 0, mapped = 0;
    const bool sane = p.device >= 0 && round_up(size, p.type->spec.granularity, &real) && round_up(real, page, &mapped);
    if (!sane) {
        s.run.allocations++;
        return refused(s);
    }
    uint8_t * base = device_memory(s, p.device, real, mapped);
    if (!base) {
        return refused(s);
    }
    if (Arena::is_real(base)) {
        std::memset(base + real, guard, mapped - real);
    }
    auto b = std::make_unique<Buffer>();
    b->session = &s;
    b->type = p.type->index;
    b->device = p.device;
    b->part = p.number;
    b->pool = !s.run.uncounted && s.run.alloc ? s.run.alloc->pools[p.type->index] : -1;
    b->serial = s.buffers.size() + 1;
    b->base = base;
    b->asked = size;
    b->real = real;
    b->mapped = mapped;
    if (b->pool >= 0) {
        s.types[p.device].used += real;
    }
    s.live.push_back(b.get());
    s.buffers.push_back(std::move(b));
    return ggml_backend_buffer_init(buft, buffer_interface(), s.live.back(), real);
}

const char * name_of(const Part & p) {
    static const char * names[] = {"T0", "T1", "T2", "T3", "T4", "host"};
    return names[p.device >= 0 ? p.device : GC_MAX_TYPES];
}

static const char * type_name(ggml_backend_buffer_type_t buft) { return name_of(part_of(buft)); }
static size_t type_alignment(ggml_backend_buffer_type_t buft) { return part_of(buft).type->spec.alignment; }
static size_t type_max_size(ggml_backend_buffer_type_t buft) { return part_of(buft).type->spec.max_size; }
static bool   type_is_host(ggml_backend_buffer_type_t) { return false; }

bool is_copy(const ggml_tensor * t) { return std::strstr(t->name, "#t") != nullptr; }

/* Tensors are named tGRAPH.INDEX; the scheduler's copies after what they copy: DEVICE#tGRAPH.INDEX#COPY. */
const Info * info_of(const Session & s, const ggml_tensor * t) {
    if (t->extra) {
        return static_cast<const Info *>(t->extra);
    }
    unsigned graph = 0, index = 0;
    const char * name = is_copy(t) ? std::strstr(t->name, "#t") + 1 : t->name;
    if (std::sscanf(name, "t%u.%u", &graph, &index) != 2 || graph >= s.graphs.size()) {
        return nullptr;
    }
    const Graph & g = *s.graphs[graph];
    return index < g.infos.size() ? &g.infos[index] : nullptr;
}

static size_t type_alloc_size(ggml_backend_buffer_type_t buft, const ggml_tensor * t) {
    const Info * info = info_of(*part_of(buft).type->session, t);
    if (!info) {
        return ggml_nbytes(t);
    }
    const gc_tensor & d = info->graph->tensors[info->index];
    uint64_t size = 0;
    return __builtin_add_overflow(d.size, d.pad, &size) ? UINT64_MAX : size;
}

static ggml_backend_buffer_type buffer_type(Part & p) {
    ggml_backend_buffer_type b;
    std::memset(&b, 0, sizeof(b));
    b.iface.get_name = type_name;
    b.iface.alloc_buffer = type_alloc;
    b.iface.get_alignment = type_alignment;
    put_get_max_size(b.iface, type_max_size);
    b.iface.get_alloc_size = type_alloc_size;
    b.iface.is_host = type_is_host;
    b.context = &p;
    belongs_to(b, &p.ggml);
    return b;
}

ggml_backend_buffer_type_t Type::memory() { return meta ? meta_memory(*this) : &own.memory; }

void part_init(Part & p, Type & t, int number, int device_number) {
    p.type = &t;
    p.number = number;
    p.device = device_number;
    p.ggml = device_of(p, false);
    p.memory = buffer_type(p);
}

/* Preallocated leafs seem to lie in one never-ending buffer of each type. */
static void * fixed_base(ggml_backend_buffer_t) { return reinterpret_cast<void *>(page); }
static void   fixed_free(ggml_backend_buffer_t) {}

static void simple_init(Session * s, Type & t, int index, int device_number) {
    t.session = s;
    t.index = index;
    part_init(t.own, t, 0, device_number);
    t.cpu = device_of(t.own, true);
    t.fixed = t.own.memory;
}

static void fixed_init(Type & t) {
    ggml_backend_buffer_i iface = buffer_interface();
    iface.get_base = fixed_base;
    iface.free_buffer = fixed_free;
    iface.init_tensor = nullptr;
    iface.reset = nullptr;
    t.fixed_buffer = ggml_backend_buffer_init(&t.fixed, iface, nullptr, SIZE_MAX / 2);
    ggml_backend_buffer_set_usage(t.fixed_buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
}

void device_init(Session * s) {
    for (uint32_t i = 0; i < s->setup.n_types; i++) {
        Type & t = s->types[i];
        t.spec = s->setup.types[i];
        simple_init(s, t, (int) i, (int) i);
        if (t.spec.meta) {
            meta_init(s, t);
        } else {
            fixed_init(t);
        }
    }
    s->nowhere.spec = {1, UINT64_MAX, 1, 0, 0, 0};
    simple_init(s, s->nowhere, 0, -1);
    backend_init(s->host, s, &s->types[0].cpu, &s->host_stream, true);
}

void device_done(Session * s) {
    for (uint32_t i = 0; i < s->setup.n_types; i++) {
        ggml_backend_buffer_free(s->types[i].fixed_buffer);
        meta_done(s->types[i]);
    }
}

} // namespace gc
