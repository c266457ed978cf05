/* early.cpp: what devices.cpp is in trees that have backends alone: buffer types and
 * backends are asked themselves, and so they are for events.
 */
#include "subject.h"
#include "fit.h"

#ifndef GC_HAVE_DEVICES

#include <unistd.h>

/* When such a tree aborts it runs a debugger on itself; the newer ones can be told not to. It finds none. */
extern "C" __attribute__((visibility("hidden"))) int execlp(const char *, const char *, ...) { _exit(127); }

namespace gc {

GC_MEMBER(supports_backend)
GC_MEMBER(get_default_buffer_type)
GC_MEMBER(supports_op)
GC_MEMBER(event_new)
GC_MEMBER(event_free)
GC_MEMBER(event_record)
GC_MEMBER(event_wait)
GC_MEMBER(event_synchronize)
GC_MEMBER(guid)

/* events: trees that have a scheduler */

#ifdef GC_HAVE_SCHED

static Event & event_of(ggml_backend_event_t e) { return *static_cast<Event *>(e->context); }

static ggml_backend_event_t event_new(ggml_backend_t b) {
    return new ggml_backend_event{b, new Event{backend_of(b).session}};
}

static void event_free(ggml_backend_event_t e) {
    delete &event_of(e);
    delete e;
}

static void event_record(ggml_backend_event_t e) { record(backend_of(e->backend), event_of(e)); }
static void event_wait(ggml_backend_t b, ggml_backend_event_t e) { wait_for(backend_of(b), event_of(e)); }
static void event_synchronize(ggml_backend_event_t e) { finish(event_of(e)); }

static void add_events(ggml_backend & b) {
    put_event_new(b.iface, event_new);
    put_event_free(b.iface, event_free);
    put_event_record(b.iface, event_record);
    put_event_wait(b.iface, event_wait);
    put_event_synchronize(b.iface, event_synchronize);
}

/* A scheduler's last backend has to be the tree's own: it is known by its id. */
static void pass_as_host(ggml_backend & b) {
    ggml_backend_t host = ggml_backend_cpu_init();
    put_guid(b, host->guid);
    ggml_backend_free(host);
}

#else

static void add_events(ggml_backend &) {}
static void pass_as_host(ggml_backend &) {}

#endif

static bool supports_backend(ggml_backend_buffer_type_t memory, ggml_backend_t b) {
    return is_ours(b) && backend_of(b).device == static_cast<Part *>(memory->context);
}

static ggml_backend_buffer_type_t default_memory(ggml_backend_t b) { return &backend_of(b).device->memory; }
static bool supports_op(ggml_backend_t, const ggml_tensor *) { return true; }

ggml_backend_device device_of(Part & p, bool host) { return {&p, host}; }

void belongs_to(ggml_backend_buffer_type & memory, ggml_backend_dev_t) { put_supports_backend(memory.iface, supports_backend); }

void belongs_to(ggml_backend & b, ggml_backend_dev_t device, bool events) {
    put_get_default_buffer_type(b.iface, default_memory);
    put_supports_op(b.iface, supports_op);
    if (events) {
        add_events(b);
    }
    if (device->host) {
        pass_as_host(b);
    }
}

} // namespace gc

#endif
