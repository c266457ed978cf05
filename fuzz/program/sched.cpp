//
// a backend for each entry in a scheduler's list; work is in flight until somebody waits for it

struct dummy_stream {
    ggml_backend backend = {};
    //[ busy
    unsigned     bit;
    //]

    dummy_stream(dummy_backend & on, bool last, unsigned index) {
        static uint8_t id[16] = { 1 };
        backend.guid    = &id;
        backend.device  = last ? &on.cpu : &on.device; // a scheduler wants a CPU at the end
        backend.context = this;
        backend.iface.get_name    = [](ggml_backend_t b) { return b->device->iface.get_name(b->device); };
        backend.iface.free        = [](ggml_backend_t) {};
        backend.iface.synchronize = synchronize;
        // trees differ in what else they hand over
        backend.iface.graph_compute = [](ggml_backend_t b, ggml_cgraph * graph, auto...) { return compute(b, graph); };
        //[ busy
        bit = 1u << index;
        //]
    }

    static void synchronize(ggml_backend_t b) {
        //[ busy
        for (dummy_backend * backend : backends) {
            for (dummy_buffer * buffer : backend->buffers) {
                buffer->busy &= ~((dummy_stream *) b->context)->bit;
            }
        }
        //]
    }

    static enum ggml_status compute(ggml_backend_t b, ggml_cgraph * graph) {
        //[ compute
        for (int i = 0; i < ggml_graph_n_nodes(graph); i++) {
            ggml_tensor * node = ggml_graph_node(graph, i);
            touch(node);
            //[ busy
            use(b, node);
            std::for_each(node->src, node->src + GGML_MAX_SRC, [b](ggml_tensor * s) { use(b, s); });
            //]
        }
        //]
        return GGML_STATUS_SUCCESS;
    }
    //[ busy

    static void use(ggml_backend_t b, ggml_tensor * t) {
        if (dummy_buffer * buffer = t && ggml_nbytes(t) ? find_buffer(t->data) : nullptr) {
            buffer->busy |= ((dummy_stream *) b->context)->bit;
        }
    }
    //]
};

// tells the scheduler where each tensor should go
static void place(ggml_backend_sched_t sched, ggml_backend_t * list, const test_graph & g) {
    for (size_t i = 0; i < g.tensors.size(); i++) {
        if (!is_weight(g, g.tensors[i])) {
            ggml_backend_sched_set_tensor_backend(sched, g.tensors[i], list[g.ids[i]]);
        }
    }
}

