/* stream.cpp: our backends, as ggml sees them. A device computes and copies on a
 * stream: work is queued by value, and done as late as it may be, when somebody
 * waits for it. A host (a scheduler's last backend) does its work at once, as
 * ggml expects of it. Slots of one type are one stream: ggml takes it for granted
 * that backends which share memory see each other's work.
 */
#include "subject.h"
#include "defects.h"
#include "fit.h"
#include "probe.h"

#include <cstring>

GC_PROBE(ggml_graph_n_nodes)

namespace gc {

GC_MEMBER(guid)
GC_MEMBER(cpy_tensor_async)

/* streams */

static void run_one(Session & s, Stream & stream);

static void run_until(Session & s, Stream & stream, uint64_t count) {
    while (stream.done < count && !stream.queue.empty()) {
        run_one(s, stream);
    }
}

static void run_one(Session & s, Stream & stream) {
    const Work w = stream.queue.front();
    if (w.kind == Work::wait) {
        run_until(s, *w.other, w.until);
    } else if (w.kind == Work::copy) {
        copy_bytes(*w.graph, w.index, w.to, w.from[0]);
    } else {
        compute(s, w);
    }
    for (Buffer * b : w.buffers) {
        b->in_flight--;
    }
    stream.queue.pop_front();
    stream.done++;
}

static void push(Stream & stream, Work w) {
    for (Buffer * b : w.buffers) {
        b->in_flight++;
    }
    stream.queue.push_back(std::move(w));
    stream.queued++;
}

void run_everything(Session & s) {
    for (Alloc & a : s.allocs) {
        for (auto & stream : a.streams) {
            run_until(s, *stream.second, stream.second->queued);
        }
    }
}

bool Alloc::in_flight() const {
    for (const auto & stream : streams) {
        if (!stream.second->queue.empty()) {
            return true;
        }
    }
    return false;
}

/* backends */

Backend & backend_of(ggml_backend_t ggml) { return *static_cast<Backend *>(ggml->context); }

static const char * backend_name(ggml_backend_t ggml) { return name_of(*backend_of(ggml).device); }
static void backend_free(ggml_backend_t) {}

bool is_ours(ggml_backend_t ggml) { return ggml->iface.get_name == backend_name; }

static void run_all(const Backend & b) { run_until(*b.session, *b.stream, b.stream->queued); }

/* Synchronizing inside a compute stays right: what the defects are about is work that somebody relies on having ended. */
static bool forgets_to_wait(const Backend & b) {
    if (b.session->run.kind == GC_COMPUTE) return false;
    if (GC_PLANTED(SYNCHRONIZE_RETURNS_EARLY)) return true;
    return GC_PLANTED(LATER_BACKENDS_RUN_ON) && !b.first;
}

static void backend_synchronize(ggml_backend_t ggml) {
    const Backend & b = backend_of(ggml);
    if (!forgets_to_wait(b)) {
        run_all(b);
    }
}

static void touches(const Session & s, Work & w, const void * address) {
    if (Buffer * b = s.at(address)) {
        w.buffers.push_back(b);
    }
}

static uint8_t * bytes(const ggml_tensor * t) { return static_cast<uint8_t *>(t->data); }

/* Of a view there is nothing to do. */
static bool has_work(const ggml_tensor * node) {
    const Info * info = static_cast<const Info *>(node->extra);
    return info && info->graph->tensors[info->index].view_src < 0;
}

static Work work_of(const Backend & b, const ggml_tensor * node) {
    const Info & info = *static_cast<const Info *>(node->extra);
    const gc_tensor & t = info.graph->tensors[info.index];
    Work w;
    w.graph = info.graph;
    w.index = info.index;
    w.part = b.part;
    w.to = bytes(node);
    if (t.size) {
        touches(*b.session, w, w.to);
    }
    for (int j = 0; j < GC_MAX_SRC; j++) {
        if (t.src[j] >= 0) {
            const ggml_tensor * src = node->src[src_slot(*info.graph, info.index, j)];
            w.from[j] = bytes(src);
            w.copied[j] = is_copy(src);
            touches(*b.session, w, info.graph->tensors[t.src[j]].size ? w.from[j] : nullptr);
        }
    }
    return w;
}

template <class G> static std::vector<ggml_tensor *> nodes_of(G graph) {
    std::vector<ggml_tensor *> nodes;
    if constexpr (has_ggml_graph_n_nodes<G>) {
        for (int i = 0; i < ggml_graph_n_nodes(graph); i++) {
            nodes.push_back(ggml_graph_node(graph, i));
        }
    } else {
        nodes.assign(graph->nodes, graph->nodes + graph->n_nodes);
    }
    return nodes;
}

/* Trees differ in what else they hand to graph_compute, and in what it returns; the type of the member says it. */
template <class F> struct Compute;
template <class R, class... A> struct Compute<R (*)(ggml_backend_t, ggml_cgraph *, A...)> {
    static R run(ggml_backend_t ggml, ggml_cgraph * graph, A...) {
        const Backend & b = backend_of(ggml);
        for (const ggml_tensor * node : nodes_of(graph)) {
            if (has_work(node)) {
                push(*b.stream, work_of(b, node));
            }
        }
        if (b.at_once) {
            run_all(b);
        }
        return success<R>();
    }
};

static Work wait_for(Stream & other, uint64_t until) {
    Work w;
    w.kind = Work::wait;
    w.other = &other;
    w.until = until;
    return w;
}

/* As ggml-backend.h says: after all that is queued in `from`; `to` waits for it. */
static bool copy_async(ggml_backend_t from, ggml_backend_t to, const ggml_tensor * src, ggml_tensor * dst) {
    const Info * info = static_cast<const Info *>(src->extra);
    if (!info || !is_ours(from) || !is_ours(to) || backend_of(from).at_once || backend_of(to).at_once) {
        return false;
    }
    const Backend & b = backend_of(from);
    Work w;
    w.kind = Work::copy;
    w.graph = info->graph;
    w.index = info->index;
    w.to = bytes(dst);
    w.from[0] = bytes(src);
    if (info->graph->tensors[info->index].size) {
        touches(*b.session, w, w.to);
        touches(*b.session, w, w.from[0]);
    }
    push(*b.stream, std::move(w));
    if (backend_of(to).stream != b.stream) {
        push(*backend_of(to).stream, wait_for(*b.stream, b.stream->queued));
    }
    return true;
}

/* events */

void record(const Backend & b, Event & e) {
    e.stream = b.stream;
    e.until = b.stream->queued;
}

void wait_for(const Backend & b, const Event & e) {
    if (e.stream && e.stream != b.stream) {
        push(*b.stream, wait_for(*e.stream, e.until));
    }
}

void finish(const Event & e) {
    if (e.stream) {
        run_until(*e.session, *e.stream, e.until);
    }
}

/* making them */

void backend_init(Backend & b, Session * s, ggml_backend_dev_t device, Stream * stream, bool at_once) {
    static uint8_t id[16] = {'g', 'a', 'l', 'l', 'o', 'c', 'h', 'e', 'c', 'k'};
    std::memset(&b.ggml, 0, sizeof(b.ggml));
    put_guid(b.ggml, &id);
    b.ggml.iface.get_name = backend_name;
    b.ggml.iface.free = backend_free;
    put_cpy_tensor_async(b.ggml.iface, copy_async);
    b.ggml.iface.synchronize = backend_synchronize;
    b.ggml.iface.graph_compute = Compute<decltype(b.ggml.iface.graph_compute)>::run;
    b.ggml.context = &b;
    b.session = s;
    b.device = static_cast<Part *>(device->context);
    b.part = b.device->number;
    belongs_to(b.ggml, device, !at_once);
    b.stream = stream;
    b.at_once = at_once;
    b.first = false;
}

/* A meta backend asks its devices for backends; these belong to the allocator that it is made for. */
ggml_backend_t backend_for(ggml_backend_dev_t device, const char *) {
    const Part & p = *static_cast<Part *>(device->context);
    Alloc & a = *p.type->session->run.alloc;
    auto & stream = a.streams[{p.type->index, p.number}];
    if (!stream) {
        stream = std::make_unique<Stream>();
    }
    a.own.push_back(std::make_unique<Backend>());
    backend_init(*a.own.back(), p.type->session, device, stream.get(), !a.by_sched);
    return &a.own.back()->ggml;
}

} // namespace gc
