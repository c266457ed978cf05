//
// graphs: tensors are made by hand, because an allocator looks at nothing but sizes, sources, views, flags, and
// whether an operation may work in place (GGML_OP_ADD may, GGML_OP_MUL_MAT may not)

struct test_graph {
    ggml_context * ctx;
    ggml_cgraph *  graph;
    std::vector<ggml_tensor *> tensors; // in order of execution
    std::vector<int>           ids;     // where each should go: an index in the allocator's list of buffer types
    //[ node_ids
    std::vector<int>           node_ids, leaf_ids;
    //]
    //[ weights
    std::vector<ggml_tensor *>         weights; // leafs that have memory of their own
    std::vector<ggml_backend_buffer_t> weight_buffers;
    //]
    //[ @note_buffers
    std::vector<dummy_buffer *> used; // what it was bound to
    //]

    explicit test_graph(void (*build)(test_graph &)) {
        ggml_init_params params = {};
        params.mem_size = max_tensors * ggml_tensor_overhead() + ggml_graph_overhead_custom(max_tensors, false);
        params.no_alloc = true;
        ctx   = ggml_init(params);
        graph = ggml_new_graph_custom(ctx, max_tensors, false);
        build(*this);
        for (bool leafs : { true, false }) {
            for (size_t i = 0; i < tensors.size(); i++) {
                if ((tensors[i]->op == GGML_OP_NONE) == leafs) {
                    ggml_build_forward_expand(graph, tensors[i]);
                    //[ node_ids
                    (leafs ? leaf_ids : node_ids).push_back(ids[i]);
                    //]
                }
            }
        }
    }

    test_graph(const test_graph &) = delete;

    ~test_graph() {
        //[ weights
        for (ggml_backend_buffer_t buffer : weight_buffers) {
            ggml_backend_buffer_free(buffer);
        }
        //]
        ggml_free(ctx);
    }

    ggml_tensor * leaf(const char * name, size_t size, int id = 0) {
        ggml_tensor * t = ggml_new_tensor_1d(ctx, GGML_TYPE_I8, size);
        ggml_set_name(t, name);
        tensors.push_back(t);
        ids.push_back(id);
        return t;
    }

    //[ @input
    ggml_tensor * input(const char * name, size_t size, int id = 0) {
        ggml_tensor * t = leaf(name, size, id);
        ggml_set_input(t);
        return t;
    }

    //]
    //[ @weight
    ggml_tensor * weight(const char * name, size_t size, dummy_backend & backend, int id = 0) {
        ggml_tensor * t = leaf(name, size, id);
        ggml_backend_buffer_i iface = {};
        iface.get_base    = [](ggml_backend_buffer_t b) { return b->context; };
        iface.free_buffer = [](ggml_backend_buffer_t b) { free(b->context); };
        t->buffer = ggml_backend_buffer_init(&backend.weight_type, iface, aligned_alloc(4096, size / 4096 * 4096 + 4096), size + 1);
        t->data   = ggml_backend_buffer_get_base(t->buffer);
        ggml_backend_buffer_set_usage(t->buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
        weights.push_back(t);
        weight_buffers.push_back(t->buffer);
        return t;
    }

    //]
    //[ @node
    ggml_tensor * node(const char * name, size_t size, std::vector<ggml_tensor *> sources, int id = 0) {
        ggml_tensor * t = leaf(name, size, id);
        t->op = GGML_OP_MUL_MAT;
        std::copy(sources.begin(), sources.end(), t->src);
        return t;
    }

    //]
    //[ @node_inplace
    ggml_tensor * node_inplace(const char * name, size_t size, std::vector<ggml_tensor *> sources, int id = 0) {
        ggml_tensor * t = node(name, size, sources, id);
        t->op = GGML_OP_ADD;
        return t;
    }

    //]
    //[ @view
    ggml_tensor * view(const char * name, ggml_tensor * source, size_t size, size_t offset, int id = 0) {
        ggml_tensor * t = ggml_view_1d(ctx, source, size, offset);
        ggml_set_name(t, name);
        tensors.push_back(t);
        ids.push_back(id);
        return t;
    }

    //]
    //[ @view_of_huge
    // ggml_view_1d would check the bounds, but ggml was not told the real size of `source`
    ggml_tensor * view_of_huge(const char * name, ggml_tensor * source, size_t size, size_t offset, int id = 0) {
        ggml_tensor * t = leaf(name, size, id);
        t->op = GGML_OP_VIEW;
        t->src[0] = t->view_src = source;
        t->view_offs = offset;
        return t;
    }

    //]
};

//[ @set_other_layout
// the same bytes in another layout: nothing depends on this stride but the comparison of layouts
static void set_other_layout(ggml_tensor * t) { t->nb[3] += 1; }

//]
//[ @set_alloc_size
static void set_alloc_size(ggml_tensor * t, size_t size) { t->extra = (void *) size; }

//]
//[ @huge
// sizes that ggml's signed integers cannot hold: it is told a large number that stands for each,
// the buffer type asks for the size itself
static const size_t huge = (size_t) 1 << 62;

//]
