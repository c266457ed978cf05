/* devices.cpp: our devices and their events, as ggml sees them. */
#include "subject.h"

#ifdef GC_HAVE_DEVICES

#include <cstring>

namespace gc {

/* events */

static Event & event_of(ggml_backend_event_t e) { return *static_cast<Event *>(e->context); }

static ggml_backend_event_t event_new(ggml_backend_dev_t device) {
    Session * s = static_cast<Part *>(device->context)->type->session;
    return new ggml_backend_event{device, new Event{s}};
}

static void event_free(ggml_backend_dev_t, ggml_backend_event_t e) {
    delete &event_of(e);
    delete e;
}

static void event_record(ggml_backend_t b, ggml_backend_event_t e) { record(backend_of(b), event_of(e)); }
static void event_wait(ggml_backend_t b, ggml_backend_event_t e) { wait_for(backend_of(b), event_of(e)); }
static void event_synchronize(ggml_backend_dev_t, ggml_backend_event_t e) { finish(event_of(e)); }

/* devices */

static Part & part_of(ggml_backend_dev_t dev) { return *static_cast<Part *>(dev->context); }
static const char * device_name(ggml_backend_dev_t dev) { return name_of(part_of(dev)); }
static ggml_backend_buffer_type_t device_buffer_type(ggml_backend_dev_t dev) { return &part_of(dev).memory; }
static bool device_supports_op(ggml_backend_dev_t, const ggml_tensor *) { return true; }
static enum ggml_backend_dev_type type_accelerator(ggml_backend_dev_t) { return GGML_BACKEND_DEVICE_TYPE_GPU; }
static enum ggml_backend_dev_type type_cpu(ggml_backend_dev_t) { return GGML_BACKEND_DEVICE_TYPE_CPU; }

static bool device_supports_type(ggml_backend_dev_t dev, ggml_backend_buffer_type_t buft) {
    const Part & p = part_of(dev);
    return buft == &p.memory || buft == &p.type->fixed;
}

static void device_bytes(ggml_backend_dev_t dev, size_t * free, size_t * total) {
    const Part & p = part_of(dev);
    const Type & t = p.device >= 0 ? p.type->session->types[p.device] : *p.type;
    *total = t.spec.capacity;
    *free = t.spec.capacity > t.used ? t.spec.capacity - t.used : 0;
}

static void device_props(ggml_backend_dev_t dev, ggml_backend_dev_props * props) {
    std::memset(props, 0, sizeof(*props));
    props->name = props->description = device_name(dev);
    props->type = dev->iface.get_type(dev);
    device_bytes(dev, &props->memory_free, &props->memory_total);
    props->caps.async = props->caps.events = dev->iface.event_new != nullptr;
}

/* Trees ask a device of several for what its backends can do together. */
static const char * no_name(ggml_backend_reg_t) { return "gallocheck"; }
static size_t no_devices(ggml_backend_reg_t) { return 0; }
static ggml_backend_dev_t no_device(ggml_backend_reg_t, size_t) { return nullptr; }
static ggml_backend_reg registry = {GGML_BACKEND_API_VERSION, {no_name, no_devices, no_device, nullptr}, nullptr};

ggml_backend_device device_of(Part & p, bool host) {
    ggml_backend_device d;
    std::memset(&d, 0, sizeof(d));
    d.iface.get_name = device_name;
    d.iface.get_description = device_name;
    d.iface.get_memory = device_bytes;
    d.iface.get_type = host ? type_cpu : type_accelerator;
    d.iface.get_props = device_props;
    d.iface.init_backend = backend_for;
    d.iface.get_buffer_type = device_buffer_type;
    d.iface.supports_op = device_supports_op;
    d.iface.supports_buft = device_supports_type;
    if (!host) {
        d.iface.event_new = event_new;
        d.iface.event_free = event_free;
        d.iface.event_synchronize = event_synchronize;
    }
    d.reg = &registry;
    d.context = &p;
    return d;
}

void belongs_to(ggml_backend_buffer_type & memory, ggml_backend_dev_t device) { memory.device = device; }

void belongs_to(ggml_backend & backend, ggml_backend_dev_t device, bool events) {
    backend.device = device;
    if (events) {
        backend.iface.event_record = event_record;
        backend.iface.event_wait = event_wait;
    }
}

} // namespace gc

#endif
