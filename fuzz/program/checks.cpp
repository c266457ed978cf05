//[ @is_weight|@find_buffer|@get_placed
//
// checks

//]
//[ @find_buffer
// the buffer that is alive and holds the address, or NULL
static dummy_buffer * find_buffer(const void * address) {
    for (dummy_backend * backend : backends) {
        for (dummy_buffer * b : backend->buffers) {
            if ((uint8_t *) address >= b->base && (uint8_t *) address < b->base + b->size) {
                return b;
            }
        }
    }
    return nullptr;
}

//]
//[ @where
static std::string where(const ggml_tensor * t) {
    dummy_buffer * b = find_buffer(t->data);
    if (!b) {
        return t->data ? "an address that is in no buffer" : "no address";
    }
    const std::vector<dummy_buffer *> & all = b->backend->buffers;
    return std::string(b->backend->name) + " buffer " + std::to_string(std::find(all.begin(), all.end(), b) - all.begin())
        + " offset " + std::to_string((uint8_t *) t->data - b->base);
}

//]
//[ @get_view_source
static ggml_tensor * get_view_source(ggml_tensor * t) { return t->view_src ? t->view_src : t; }

//]
//[ @is_weight
//[ weights
static bool is_weight(const test_graph & g, ggml_tensor * t) {
    return std::find(g.weights.begin(), g.weights.end(), get_view_source(t)) != g.weights.end();
}
//]
//[ no_weights
static bool is_weight(const test_graph &, ggml_tensor *) { return false; }
//]

//]
//[ @get_placed
// the tensors that need memory from the allocator
static std::vector<ggml_tensor *> get_placed(const test_graph & g) {
    std::vector<ggml_tensor *> placed;
    for (ggml_tensor * t : g.tensors) {
        if (!t->view_src && !is_weight(g, t) && get_alloc_size(t) > 0) {
            placed.push_back(t);
        }
    }
    return placed;
}

//]
//[ @check_all_allocated
static void check_all_allocated(const test_graph & g) {
    for (ggml_tensor * t : get_placed(g)) {
        dummy_buffer * b = find_buffer(t->data);
        if (expect(b, "%s is in a buffer that is alive (it is at %s)", t->name, where(t).c_str())) {
            const size_t offset = (uint8_t *) t->data - b->base;
            expect(get_alloc_size(t) <= b->size - offset, "%s, %zu bytes at %zu, ends inside its buffer of %zu bytes",
                   t->name, get_alloc_size(t), offset, b->size);
        }
    }
}

//]
//[ @check_alignment
static void check_alignment(const test_graph & g) {
    for (ggml_tensor * t : get_placed(g)) {
        if (dummy_buffer * b = find_buffer(t->data)) {
            const size_t offset = (uint8_t *) t->data - b->base;
            expect(offset % b->backend->alignment == 0, "%s at %zu is at a multiple of the alignment %zu", t->name, offset,
                   b->backend->alignment);
        }
    }
}

//]
//[ @check_views
static void check_views(const test_graph & g) {
    for (ggml_tensor * t : g.tensors) {
        if (t->view_src && ggml_nbytes(t) > 0) {
            expect(t->data == (char *) t->view_src->data + t->view_offs, "%s is %zu bytes behind the start of %s (it is at %s, %s at %s)",
                   t->name, t->view_offs, t->view_src->name, where(t).c_str(), t->view_src->name, where(t->view_src).c_str());
        }
    }
}

//]
//[ @check_weights_stay
static void check_weights_stay(const test_graph & g) {
    for (size_t i = 0; i < g.weights.size(); i++) {
        ggml_tensor * t = g.weights[i];
        expect(t->buffer == g.weight_buffers[i] && t->data == ggml_backend_buffer_get_base(g.weight_buffers[i]),
               "%s stays in its own memory", t->name);
    }
}

//]
//[ @check_no_overlap
struct lifetime { int first, last; };

static const int forever = INT_MAX;

static bool reads(ggml_tensor * node, ggml_tensor * t) {
    return std::any_of(node->src, node->src + GGML_MAX_SRC, [t](ggml_tensor * s) { return s && get_view_source(s) == t; });
}

// an output, or shown by a view that is one
static bool is_output(const test_graph & g, ggml_tensor * t) {
    return std::any_of(g.tensors.begin(), g.tensors.end(), [t](ggml_tensor * o) {
        return (o->flags & GGML_TENSOR_FLAG_OUTPUT) && ggml_nbytes(o) > 0 && get_view_source(o) == t;
    });
}

// from the step that writes it (inputs: before all) to the last one that reads it or a view of it
static lifetime get_lifetime(const test_graph & g, int index) {
    ggml_tensor * t = g.tensors[index];
    if (is_weight(g, t)) {
        return { -1, forever };
    }
    int first = -1, last = -1;
    for (int i = (int) g.tensors.size() - 1; i >= 0; i--) {
        if (reads(g.tensors[i], t)) {
            first = i;
            last  = std::max(last, i);
        }
    }
    if (t->flags & GGML_TENSOR_FLAG_INPUT) {
        first = -1;
    } else if (t->op != GGML_OP_NONE || first < 0) {
        first = index;
    }
    return { first, is_output(g, t) ? forever : std::max(first, last) };
}

static bool memory_overlap(ggml_tensor * a, ggml_tensor * b) {
    const size_t a0 = (size_t) a->data, b0 = (size_t) b->data; // differences may not wrap round, sums may
    return a0 && b0 && (b0 >= a0 ? b0 - a0 < get_alloc_size(a) && get_alloc_size(b) : a0 - b0 < get_alloc_size(b) && get_alloc_size(a));
}

static bool same_layout(ggml_tensor * a, ggml_tensor * b) {
    return a->type == b->type && std::equal(a->ne, a->ne + GGML_MAX_DIMS, b->ne) && std::equal(a->nb, a->nb + GGML_MAX_DIMS, b->nb);
}

// `t` writes over `other`, which it reads
static bool can_reuse_memory(const test_graph & g, ggml_tensor * t, ggml_tensor * other) {
    if (t->op != GGML_OP_ADD || is_weight(g, other) || is_output(g, other)) {
        return false;
    }
    return std::any_of(t->src, t->src + GGML_MAX_SRC, [&](ggml_tensor * s) {
        return s && get_view_source(s) == other && s->data == t->data && same_layout(s, t);
    });
}

static void check_no_overlap(const test_graph & g) {
    for (int i = 0; i < (int) g.tensors.size(); i++) {
        for (int j = 0; j < i; j++) {
            ggml_tensor * t = g.tensors[i], * o = g.tensors[j];
            if (t->view_src || o->view_src || !memory_overlap(t, o) || (is_weight(g, t) && is_weight(g, o))) {
                continue;
            }
            const lifetime a = get_lifetime(g, j), b = get_lifetime(g, i);
            const bool both_alive = a.first <= b.last && b.first <= a.last;
            expect(!both_alive || (a.last == b.first && can_reuse_memory(g, t, o)),
                   "%s (%zu bytes at %s) overlaps %s (%zu bytes at %s), which is %s", t->name, get_alloc_size(t), where(t).c_str(),
                   o->name, get_alloc_size(o), where(o).c_str(), a.last == forever ? "needed to the end" : "still to be read");
        }
    }
}

//]
//[ @check_max_size
// no buffer is larger than the largest, but where one tensor alone is, or in the last of 16
static void check_max_size(const test_graph & g) {
    for (dummy_backend * backend : backends) {
        for (size_t i = 0; i < backend->buffers.size() && i < 15; i++) {
            dummy_buffer * b = backend->buffers[i];
            size_t allowed = backend->max_size;
            for (ggml_tensor * t : get_placed(g)) {
                const size_t size = (get_alloc_size(t) + backend->alignment - 1) / backend->alignment * backend->alignment;
                allowed = find_buffer(t->data) == b ? std::max(allowed, size) : allowed;
            }
            expect(b->@ASKED@ <= allowed, "buffer %zu of %s, %zu bytes, is no larger than %zu", i, backend->name, b->@ASKED@, allowed);
        }
    }
}

//]
//[ @check_highest_end
// a buffer that was made for this graph is as large as the highest end of any tensor in it
static void check_highest_end(const test_graph & g) {
    for (dummy_backend * backend : backends) {
        for (dummy_buffer * b : backend->buffers) {
            size_t end = 0;
            for (ggml_tensor * t : get_placed(g)) {
                if (find_buffer(t->data) == b) {
                    const size_t size = (get_alloc_size(t) + backend->alignment - 1) / backend->alignment * backend->alignment;
                    end = std::max(end, (uint8_t *) t->data - b->base + size);
                }
            }
            expect(b->@ASKED@ <= end, "a buffer of %s has %zu bytes, its tensors end at %zu", backend->name, b->@ASKED@, end);
        }
    }
}

//]
//[ @check_large_enough
// no tensor needs more than the largest buffer that its type has
static void check_large_enough(const test_graph & g, const std::vector<dummy_backend *> & list) {
    for (size_t i = 0; i < g.tensors.size(); i++) {
        ggml_tensor * t = g.tensors[i];
        size_t largest = 0;
        for (dummy_buffer * b : list[g.ids[i]]->buffers) {
            largest = std::max(largest, b->size);
        }
        expect(t->view_src || is_weight(g, t) || get_alloc_size(t) <= largest,
               "%s needs %zu bytes: there is a buffer that large (the largest has %zu)", t->name, get_alloc_size(t), largest);
    }
}

//]
//[ @check_same_offsets
static void check_same_offsets(const test_graph & g, const test_graph & other) {
    for (size_t i = 0; i < g.tensors.size(); i++) {
        ggml_tensor * t = g.tensors[i], * o = other.tensors[i];
        dummy_buffer * a = find_buffer(t->data), * b = find_buffer(o->data);
        if (get_alloc_size(t) > 0 && !t->view_src && a && b) {
            const size_t have = (uint8_t *) t->data - a->base, want = (uint8_t *) o->data - b->base;
            expect(have == want, "%s is at %zu, where a new allocator puts it (at %zu)", t->name, have, want);
        }
    }
}

//]
//[ @check_buffers
// the buffers of a backend that are alive, by their sizes as asked for, in any order
static void check_buffers(const dummy_backend & backend, std::vector<size_t> want) {
    std::vector<size_t> have;
    for (dummy_buffer * b : backend.buffers) {
        have.push_back(b->@ASKED@);
    }
    std::sort(have.begin(), have.end());
    std::sort(want.begin(), want.end());
    auto list = [](const std::vector<size_t> & sizes) {
        std::string text;
        for (size_t size : sizes) {
            text += (text.empty() ? "" : ", ") + std::to_string(size);
        }
        return "{" + text + "}";
    };
    expect(have == want, "buffers of %s are %s bytes (they are %s)", backend.name, list(want).c_str(), list(have).c_str());
}

//]
//[ @note_buffers
// buffers that a bound graph uses
static void note_buffers(test_graph & g) {
    for (ggml_tensor * t : g.tensors) {
        dummy_buffer * b = ggml_nbytes(t) ? find_buffer(t->data) : nullptr;
        if (b) {
            g.used.push_back(b);
        }
    }
}

//]
//[ @is_stale
static bool is_stale(const test_graph & g) {
    return std::any_of(g.used.begin(), g.used.end(), [](dummy_buffer * b) { return !b->alive; });
}

//]
//[ @touch
// what a compute would do to a tensor's memory
static void touch(ggml_tensor * t) {
    if (size_t size = ggml_nbytes(t)) {
        volatile uint8_t * data = (uint8_t *) t->data;
        data[0] = data[size - 1] = 1;
    }
}

//]
//[ @touch_all
static void touch_all(const test_graph & g) {
    for (ggml_tensor * t : g.tensors) {
        if (!is_weight(g, t)) {
            touch(t);
        }
    }
}

//]
//[ @buffer_state
struct buffer_state { uint64_t generation, shrink; };

//]
//[ pair_state
static buffer_state get_state(ggml_gallocr_t galloc) {
    buffer_state s;
    ggml_gallocr_get_resizable_state(galloc, &s.generation, &s.shrink);
    return s;
}

//]
//[ sched_pair_state
static buffer_state get_state(ggml_backend_sched_t sched) {
    buffer_state s;
    ggml_backend_sched_get_buffer_state(sched, &s.generation, &s.shrink);
    return s;
}

//]
//[ group_state
static buffer_state get_state(ggml_gallocr_shared_buffers_t group) {
    return { ggml_gallocr_shared_buffers_generation(group), ggml_gallocr_shared_buffers_plan_generation(group) };
}

//]
//[ sched_group_state
static buffer_state get_state(ggml_backend_sched_t sched) {
    return { ggml_backend_sched_shared_buffers_generation(sched), ggml_backend_sched_shared_buffers_plan_generation(sched) };
}

//]
