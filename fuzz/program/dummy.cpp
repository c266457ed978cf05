static int n_failed = 0;

static void step(const char * what) { fprintf(stderr, "%s\n", what); }

//[ @expect
static bool expect(bool ok, const char * format, ...) {
    if (!ok) {
        n_failed++;
        va_list args;
        va_start(args, format);
        fprintf(stderr, "FAILED: ");
        vfprintf(stderr, format, args);
        fprintf(stderr, "\n");
        va_end(args);
    }
    return ok;
}

//]
//
// dummy backend: its memory is gone for good once it is freed, so that stale use faults

struct dummy_backend;

struct dummy_buffer {
    dummy_backend * backend;
    uint8_t *       base;
    size_t          size;
    //[ granularity
    size_t          asked; // before it was rounded up
    //]
    bool            alive = true;
    //[ busy
    unsigned        busy  = 0; // bit: a backend that has work in flight on it
    //]
};

struct dummy_backend {
    const char * name;
    size_t       alignment;
    //[ max_size
    size_t       max_size = SIZE_MAX; // of one buffer
    //]
    //[ granularity
    size_t       granularity = 1;     // buffers are rounded up to a multiple of it
    //]
    //[ capacity
    size_t       capacity = SIZE_MAX; // of all buffers together
    //]
    //[ capacity
    size_t       used = 0;
    //]
    //[ fail_types
    bool         fails = false;       // every allocation
    //]

    ggml_backend_buffer_type buffer_type = {};
    //[ weights
    ggml_backend_buffer_type weight_type = {}; // of tensors that have memory of their own
    //]
    //[ sched
    ggml_backend_device      device = {}, cpu = {};
    //]

    std::vector<dummy_buffer *> buffers; // alive, in order of allocation

    dummy_backend(const char * name, size_t alignment);
};

//[ fail_nth
static int fail_in = 0; // the n-th allocation from now on fails, 0: none
//]
//[ counts
static int n_allocated = 0, n_freed = 0;
//]

static void dummy_backend_buffer_free(ggml_backend_buffer_t buffer) {
    dummy_buffer * b = (dummy_buffer *) buffer->context;
    GGML_ASSERT(b->alive);
    //[ busy
    expect(!b->busy, "no buffer of %s is freed while work in flight uses it", b->backend->name);
    //]
    //[ counts
    n_freed++;
    //]
    //[ capacity
    b->backend->used -= b->size;
    //]
    b->alive = false;
    std::vector<dummy_buffer *> & all = b->backend->buffers;
    all.erase(std::find(all.begin(), all.end(), b));
    mprotect(b->base, b->size, PROT_NONE); // not unmapped: nothing else ever gets the address
}

static void * dummy_backend_buffer_get_base(ggml_backend_buffer_t buffer) {
    return ((dummy_buffer *) buffer->context)->base;
}

//[ sched
static bool dummy_backend_buffer_cpy_tensor(ggml_backend_buffer_t, const ggml_tensor *, ggml_tensor *) {
    return true; // contents do not matter here
}

//]
static ggml_backend_buffer_t dummy_backend_alloc_buffer(ggml_backend_buffer_type_t buft, size_t size) {
    dummy_backend * backend = (dummy_backend *) buft->context;
    //[ counts
    n_allocated++;
    //]
    //[ fail_nth
    if (fail_in > 0 && --fail_in == 0) {
        return nullptr;
    }
    //]
    //[ fail_types
    if (backend->fails) {
        return nullptr;
    }
    //]
    if (size > SIZE_MAX / 2) {
        return nullptr;
    }
    //[ granularity
    const size_t asked = size;
    size = (size + backend->granularity - 1) / backend->granularity * backend->granularity;
    //]
    //[ capacity
    if (size > backend->capacity || backend->used > backend->capacity - size) {
        return nullptr;
    }
    //]
    const size_t page = 4096; // one more page, behind the end, stays shut
    void * base = mmap(nullptr, size + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        return nullptr;
    }
    mprotect(base, size, PROT_READ | PROT_WRITE);

    dummy_buffer * b = new dummy_buffer();
    b->backend = backend;
    b->base    = (uint8_t *) base;
    b->size    = size;
    //[ granularity
    b->asked   = asked;
    //]
    //[ capacity
    backend->used += size;
    //]
    backend->buffers.push_back(b);

    ggml_backend_buffer_i iface = {};
    iface.free_buffer = dummy_backend_buffer_free;
    iface.get_base    = dummy_backend_buffer_get_base;
    //[ sched
    iface.cpy_tensor  = dummy_backend_buffer_cpy_tensor;
    //]
    return ggml_backend_buffer_init(buft, iface, b, size);
}

static const char * dummy_backend_get_name(ggml_backend_buffer_type_t buft) {
    return ((dummy_backend *) buft->context)->name;
}

static size_t dummy_backend_get_alignment(ggml_backend_buffer_type_t buft) {
    return ((dummy_backend *) buft->context)->alignment;
}

//[ max_size
static size_t dummy_backend_get_max_size(ggml_backend_buffer_type_t buft) {
    return ((dummy_backend *) buft->context)->max_size;
}

//]
//[ sched
static bool dummy_backend_is_host(ggml_backend_buffer_type_t) { return false; }

//]
//[ @get_alloc_size
// tensors that the buffer type wants more bytes for than they have keep that number in `extra`
static size_t get_alloc_size(const ggml_tensor * t) { return t->extra ? (size_t) t->extra : ggml_nbytes(t); }

//]
//[ alloc_size
static size_t dummy_backend_get_alloc_size(ggml_backend_buffer_type_t, const ggml_tensor * t) { return get_alloc_size(t); }

//]
dummy_backend::dummy_backend(const char * name, size_t alignment) : name(name), alignment(alignment) {
    buffer_type.context             = this;
    buffer_type.iface.get_name      = dummy_backend_get_name;
    buffer_type.iface.alloc_buffer  = dummy_backend_alloc_buffer;
    buffer_type.iface.get_alignment = dummy_backend_get_alignment;
    //[ max_size
    buffer_type.iface.get_max_size  = dummy_backend_get_max_size;
    //]
    //[ alloc_size
    buffer_type.iface.get_alloc_size = dummy_backend_get_alloc_size;
    //]
    //[ sched
    buffer_type.iface.is_host       = dummy_backend_is_host;
    buffer_type.device              = &device;
    //]
    //[ weights
    weight_type = buffer_type;
    //]
    //[ sched
    for (ggml_backend_device * dev : { &device, &cpu }) {
        dev->context             = this;
        dev->iface.get_name      = [](ggml_backend_dev_t d) { return ((dummy_backend *) d->context)->name; };
        dev->iface.supports_op   = [](ggml_backend_dev_t, const ggml_tensor *) { return true; };
        dev->iface.supports_buft = [](ggml_backend_dev_t d, ggml_backend_buffer_type_t buft) { return buft->context == d->context; };
        dev->iface.get_buffer_type = [](ggml_backend_dev_t d) { return &((dummy_backend *) d->context)->buffer_type; };
    }
    device.iface.get_type = [](ggml_backend_dev_t) { return GGML_BACKEND_DEVICE_TYPE_GPU; };
    cpu.iface.get_type    = [](ggml_backend_dev_t) { return GGML_BACKEND_DEVICE_TYPE_CPU; };
    //]
}

