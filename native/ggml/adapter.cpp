/* adapter.cpp: gallocheck.h over a ggml tree. */
#include "subject.h"
#include "defects.h"
#include "probe.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

GC_PROBE(ggml_log_set)

namespace gc {

#ifdef GC_WITH_DEFECTS
defect planted = defect::none;
#endif

int Session::type_of(const Alloc & a, int32_t slot) const { return setup.slots[a.config][slot % a.n_slots]; }

Buffer * Session::at(const void * address) const {
    const uint8_t * p = static_cast<const uint8_t *>(address);
    for (Buffer * b : live) {
        if (p >= b->base && p < b->base + b->real) {
            return b;
        }
    }
    return nullptr;
}

Session::~Session() {
    graphs.clear(); /* weights on meta types are the tree's buffers */
    device_done(this);
}

static bool sane(const gc_setup & s) {
    if (s.n_types < 1 || s.n_types > GC_MAX_TYPES || s.n_configs > GC_MAX_CONFIGS || s.strategy != GC_PAIR || s.pool != GC_NO_POOL) {
        return false;
    }
    for (const gc_context & c : s.contexts) {
        if (c.config >= 0) {
            return false; /* no tree has contexts */
        }
    }
    for (uint32_t i = 0; i < s.n_types; i++) {
        const gc_type & t = s.types[i];
        if (!t.alignment || (t.alignment & (t.alignment - 1)) || t.alignment > 4096 || !t.granularity || !t.max_size
            || !meta_sane(s, t)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < s.n_configs; i++) {
        if (s.n_slots[i] < 1 || s.n_slots[i] > GC_MAX_SLOTS) {
            return false;
        }
        for (int32_t j = 0; j < s.n_slots[i]; j++) {
            if (s.slots[i][j] < 0 || s.slots[i][j] >= (int32_t) s.n_types) {
                return false;
            }
        }
    }
    return true;
}

static const Session * running = nullptr; /* for the log */

/* Errors go to stderr, but not what ggml says when the device refused: the status tells that. */
static void log(ggml_log_level level, const char * text, void *) {
    if (level == GGML_LOG_LEVEL_ERROR && !(running && running->run.failed)) {
        std::fputs(text, stderr);
    }
}

template <class L> static void set_log(L sink) {
    if constexpr (has_ggml_log_set<L, void *>) {
        call_ggml_log_set(sink, (void *) nullptr);
    }
}

/* ggml would run a debugger on itself when it aborts. */
__attribute__((constructor)) static void start() {
    setenv("GGML_NO_BACKTRACE", "1", 0);
    set_log(log);
}

static void step(Session & s, const gc_op & op, gc_obs & obs) {
    std::memset(&obs, 0, sizeof(obs));
    s.run = Running();
    const bool known = op.alloc >= 0 && op.alloc < GC_MAX_ALLOCS;
    if (known) {
        s.run.alloc = &s.allocs[op.alloc];
        s.run.kind = op.kind;
        s.run.fail_types = op.fail_types;
        s.run.fail_nth = op.fail_nth;
        obs.status = drive(s, op, obs);
    } else {
        obs.status = GC_MISUSE;
    }
    if (known && s.run.alloc->live) {
        observe(s, *s.run.alloc, obs);
    }
    for (uint32_t t = 0; t < s.setup.n_types; t++) {
        obs.used[t] = s.types[t].used;
    }
    obs.trouble = s.run.trouble;
    obs.bad_node = s.run.bad_node;
    obs.bad_src = s.run.bad_src;
    obs.bad_offset = s.run.bad_offset;
    obs.allocations = s.run.allocations;
}

} // namespace gc

#ifndef GC_TREE_NAME
#define GC_TREE_NAME "ggml"
#endif

extern "C" {

uint32_t gc_abi(void) { return GC_ABI; }

uint64_t gc_capabilities(void) { return gc::capabilities(); }

const char * gc_describe(void) {
    static const std::string text = std::string(GC_TREE_NAME)
        + (gc::capabilities() & GC_CAP_RESIZABLE ? ", resizable pair" : "")
        + (gc::capabilities() & GC_CAP_GROUP ? ", shared group" : "")
        + (gc::capabilities() & GC_CAP_META ? ", meta backend" : "")
        + (gc::can_measure() ? "" : ", does not measure");
    return text.c_str();
}

gc_session * gc_open(const gc_setup * setup) {
    if (!setup || !gc::sane(*setup)) {
        return nullptr;
    }
    auto * s = new gc_session();
    s->setup = *setup;
    for (int i = 0; i < GC_MAX_ALLOCS; i++) {
        s->allocs[i].index = i;
    }
    gc::device_init(s);
    return s;
}

uint64_t gc_close(gc_session * s) {
    uint64_t used = 0;
    s->run = gc::Running();
    for (gc::Alloc & a : s->allocs) {
        if (a.live) {
            gc::release(*s, a);
        }
    }
    for (uint32_t t = 0; t < s->setup.n_types; t++) {
        used += s->types[t].used;
    }
    gc::running = nullptr;
    delete s;
    return used;
}

int32_t gc_define(gc_session * s, const gc_tensor * tensors, uint32_t n) { return gc::define(*s, tensors, n); }

void gc_run(gc_session * s, const gc_op * ops, gc_obs * obs, uint64_t n, volatile uint64_t * progress) {
    gc::running = s;
    for (uint64_t i = 0; i < n; i++) {
        if (progress) {
            *progress = i;
        }
        gc::step(*s, ops[i], obs[i]);
    }
    if (progress) {
        *progress = n;
    }
}

uint32_t gc_places(gc_session * s, int32_t alloc, gc_place * out, uint32_t max) {
    if (alloc < 0 || alloc >= GC_MAX_ALLOCS || !s->allocs[alloc].bound) {
        return 0;
    }
    const std::vector<gc_place> & places = s->allocs[alloc].bound->places;
    for (uint32_t i = 0; i < places.size() && i < max; i++) {
        out[i] = places[i];
    }
    return (uint32_t) places.size();
}

int32_t gc_plant([[maybe_unused]] uint32_t n) {
#ifdef GC_WITH_DEFECTS
    switch (n) {
        case 0:
#define GC_DEFECT(number, clause, name, what) case number:
#include "defects.def"
#undef GC_DEFECT
            gc::planted = gc::defect(n);
            return 1;
        default: return 0;
    }
#else
    return n == 0;
#endif
}

} // extern "C"
