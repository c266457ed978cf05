/* stream.cpp: our backends, as ggml sees them. A device computes and copies on a
 * stream: work is queued by value, and done as late as it may be, when somebody
 * waits for it. A host (a scheduler's last backend) does its work at once, as
 * ggml expects of it. Slots of one type are one stream: ggml takes it for granted
 * that backends which share memory see each other's work.
 */
#include "subject.h"
#include "defects.h"

#include <cstring>

namespace gc {

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

static Backend & backend_of(ggml_backend_t ggml) { return *static_cast<Backend *>(ggml->context); }

static const char * backend_name(ggml_backend_t ggml) { return ggml->device->iface.get_name(ggml->device); }
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
            w.from[j] = bytes(node->src[j]);
            w.copied[j] = is_copy(node->src[j]);
            touches(*b.session, w, info.graph->tensors[t.src[j]].size ? w.from[j] : nullptr);
        }
    }
    return w;
}

/* Trees differ in what else they hand to graph_compute; the type of the member says it. */
template <class F> struct Compute;
template <class... A> struct Compute<ggml_status (*)(ggml_backend_t, ggml_cgraph *, A...)> {
    static ggml_status run(ggml_backend_t ggml, ggml_cgraph * graph, A...) {
        const Backend & b = backend_of(ggml);
        for (int i = 0; i < ggml_graph_n_nodes(graph); i++) {
            if (has_work(ggml_graph_node(graph, i))) {
                push(*b.stream, work_of(b, ggml_graph_node(graph, i)));
            }
        }
        if (b.at_once) {
            run_all(b);
        }
        return GGML_STATUS_SUCCESS;
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

struct Event {
    Session * session;
    Stream *  stream = nullptr; /* not recorded yet */
    uint64_t  until = 0;
};

static Event & event_of(ggml_backend_event_t e) { return *static_cast<Event *>(e->context); }

static ggml_backend_event_t event_new(ggml_backend_dev_t device) {
    Session * s = static_cast<Part *>(device->context)->type->session;
    return new ggml_backend_event{device, new Event{s}};
}

static void event_free(ggml_backend_dev_t, ggml_backend_event_t e) {
    delete &event_of(e);
    delete e;
}

static void event_record(ggml_backend_t ggml, ggml_backend_event_t e) {
    event_of(e).stream = backend_of(ggml).stream;
    event_of(e).until = backend_of(ggml).stream->queued;
}

static void event_wait(ggml_backend_t ggml, ggml_backend_event_t e) {
    const Event & event = event_of(e);
    if (event.stream && event.stream != backend_of(ggml).stream) {
        push(*backend_of(ggml).stream, wait_for(*event.stream, event.until));
    }
}

static void event_synchronize(ggml_backend_dev_t, ggml_backend_event_t e) {
    const Event & event = event_of(e);
    if (event.stream) {
        run_until(*event.session, *event.stream, event.until);
    }
}

void device_events(ggml_backend_device & d) {
    d.iface.event_new = event_new;
    d.iface.event_free = event_free;
    d.iface.event_synchronize = event_synchronize;
}

/* making them */

void backend_init(Backend & b, Session * s, ggml_backend_dev_t device, Stream * stream, bool at_once) {
    static uint8_t id[16] = {'g', 'a', 'l', 'l', 'o', 'c', 'h', 'e', 'c', 'k'};
    std::memset(&b.ggml, 0, sizeof(b.ggml));
    b.ggml.guid = &id;
    b.ggml.iface.get_name = backend_name;
    b.ggml.iface.free = backend_free;
    b.ggml.iface.cpy_tensor_async = copy_async;
    b.ggml.iface.synchronize = backend_synchronize;
    b.ggml.iface.graph_compute = Compute<decltype(b.ggml.iface.graph_compute)>::run;
    if (!at_once) {
        b.ggml.iface.event_record = event_record;
        b.ggml.iface.event_wait = event_wait;
    }
    b.ggml.device = device;
    b.ggml.context = &b;
    b.session = s;
    b.part = static_cast<Part *>(device->context)->number;
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
