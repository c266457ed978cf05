/* meta.cpp: buffer types over several devices, by the tree's own meta backend
 * (GC_HAVE_META is set where probes/meta.cpp compiles). Only its public functions
 * are called: the tree makes the meta device from devices of ours, and everything
 * else from that. All tensors are mirrored: every device has all of each.
 *
 * What the meta backend does not say, where a tensor is on each device, its public
 * functions still tell: resetting a meta buffer resets its simple buffers, device
 * by device, and a tensor lies at the same offset in each of them.
 */
#include "subject.h"

#include <cstdlib>
#include <cstring>
#include <malloc.h>

namespace gc {

Weights::~Weights() {
    ggml_backend_buffer_free(buffer);
    ggml_free(context);
}

#ifdef GC_HAVE_META

uint64_t meta_capability() { return GC_CAP_META; }

bool meta_sane(const gc_setup & s, const gc_type & t) {
    for (uint32_t d = 0; d < 32; d++) {
        if ((t.meta >> d & 1) && (d >= s.n_types || s.types[d].meta)) {
            return false;
        }
    }
    return true;
}

/* Some trees let parts of a tensor repeat. */
template <class S> static auto no_repeats(S & state, int) -> decltype(state.nr[0] = 1, void()) { state.nr[0] = 1; }
template <class S> static void no_repeats(S &, long) {}

static ggml_backend_meta_split_state mirrored(const ggml_tensor *, void *) {
    ggml_backend_meta_split_state state;
    std::memset(&state, 0, sizeof(state));
    state.axis = GGML_BACKEND_SPLIT_AXIS_MIRRORED;
    state.n_segments = 1;
    no_repeats(state, 0);
    return state;
}

/* With every buffer the meta backend allocates hundreds of MiB that it hardly touches. A run in which the C
 * library fills what it allocates (MALLOC_PERTURB_) would touch all of it. */
static void fill_allocations(bool really) {
    const char * byte = getenv("MALLOC_PERTURB_");
    mallopt(M_PERTURB, really && byte ? atoi(byte) : 0);
}

void meta_init(Session * s, Type & t) {
    fill_allocations(false);
    ggml_backend_dev_t devices[max_parts];
    for (int d = 0; d < (int) s->setup.n_types; d++) {
        if (t.spec.meta >> d & 1) {
            part_init(t.parts[t.n_parts], t, t.n_parts, d);
            devices[t.n_parts] = &t.parts[t.n_parts].ggml;
            t.n_parts++;
        }
    }
    t.meta = ggml_backend_meta_device(devices, (size_t) t.n_parts, mirrored, nullptr);
}

ggml_backend_buffer_type_t meta_memory(Type & t) { return ggml_backend_dev_buffer_type(t.meta); }
ggml_backend_t meta_backend(Type & t) { return ggml_backend_dev_init(t.meta, nullptr); }

/* weights: allocated by the tree, on every device; of no device's capacity */

static void allocate(Session & s, Type & t, Weights & w) {
    const bool before = s.run.uncounted;
    s.run.uncounted = true;
    w.buffer = ggml_backend_alloc_ctx_tensors_from_buft(w.context, t.memory());
    s.run.uncounted = before;
    if (w.buffer) {
        ggml_backend_buffer_set_usage(w.buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    }
}

static std::unique_ptr<Weights> room_for(size_t tensors) {
    auto w = std::make_unique<Weights>();
    w->context = ggml_init({(tensors + 1) * ggml_tensor_overhead(), nullptr, true});
    return w;
}

ggml_tensor * meta_anchor(Type & t) {
    if (!t.anchor) {
        t.anchor = room_for(1);
        t.anchor->tensors.push_back(ggml_new_tensor_1d(t.anchor->context, GGML_TYPE_I8, 1));
        ggml_set_name(t.anchor->tensors[0], "anchor");
        allocate(*t.session, t, *t.anchor);
    }
    return t.anchor->tensors[0];
}

/* Sets the weight's content, the same on every device, and notes where it went. */
static void fill(Session & s, const Graph & g, const Type & t, Weights & w, uint32_t i) {
    std::vector<uint8_t> content(g.tensors[i].size);
    gc_fill(content.data(), content.size(), g.values[i]);
    std::vector<uint8_t *> at;
    s.run.set_at = &at;
    ggml_backend_tensor_set(w.tensors[i], content.data(), 0, content.size());
    s.run.set_at = nullptr;
    for (int part = 0; part < t.n_parts; part++) {
        w.where[part][i] = part < (int) at.size() ? at[part] : nullptr;
    }
}

const Weights & meta_weights(Session & s, Graph & g, Type & t) {
    std::unique_ptr<Weights> & w = g.weights[t.index];
    if (w) {
        return *w;
    }
    const uint32_t n = (uint32_t) g.tensors.size();
    w = room_for(n);
    w->tensors.resize(n);
    for (auto & where : w->where) {
        where.resize(n);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (g.is(i, GC_PREALLOC)) {
            w->tensors[i] = ggml_new_tensor_1d(w->context, GGML_TYPE_I8, g.elements[i]);
            w->tensors[i]->extra = &g.infos[i];
            ggml_format_name(w->tensors[i], "t%u.%u", g.number, i);
        }
    }
    allocate(s, t, *w);
    for (uint32_t i = 0; i < n; i++) {
        if (w->tensors[i] && g.tensors[i].size) {
            fill(s, g, t, *w, i);
        }
    }
    return *w;
}

void meta_done(Type & t) {
    t.anchor = nullptr;
    if (t.meta) {
        fill_allocations(true);
    }
}

std::vector<Buffer *> meta_parts(Session & s, ggml_backend_buffer_t buffer) {
    std::vector<Buffer *> parts;
    if (buffer && ggml_backend_buffer_is_meta(buffer)) {
        s.run.named = &parts;
        ggml_backend_buffer_reset(buffer);
        s.run.named = nullptr;
    }
    return parts;
}

uint64_t meta_offset(const ggml_tensor * t) {
    const ggml_backend_buffer_t buffer = t->view_src ? t->view_src->buffer : t->buffer;
    return (uint64_t) (static_cast<const uint8_t *>(t->data) - static_cast<const uint8_t *>(ggml_backend_buffer_get_base(buffer)));
}

#else

uint64_t meta_capability() { return 0; }
bool     meta_sane(const gc_setup &, const gc_type & t) { return !t.meta; }
void     meta_init(Session *, Type &) {}
void     meta_done(Type &) {}
ggml_backend_buffer_type_t meta_memory(Type &) { return nullptr; }
ggml_backend_t meta_backend(Type &) { return nullptr; }
ggml_tensor *  meta_anchor(Type &) { return nullptr; }
const Weights & meta_weights(Session &, Graph & g, Type & t) { return *g.weights[t.index]; }
std::vector<Buffer *> meta_parts(Session &, ggml_backend_buffer_t) { return {}; }
uint64_t meta_offset(const ggml_tensor *) { return 0; }

#endif

} // namespace gc
