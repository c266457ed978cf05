// session.h: a session of the subject, one operation a line.
#pragma once

#include "check.h"

namespace gc::test {

struct session {
    gc_session * s;
    gc_obs seen{};
    uint32_t fail_types = 0; // for the next operation
    int32_t fail_nth = 0;

    // Types of 16 bytes alignment without limits; configs: all types, then the first, then the last alone.
    explicit session(int n_types = 1, uint64_t granularity = 1);
    explicit session(const gc_setup & setup) : s(gc_open(&setup)) { CHECK(s); }
    ~session() { CHECK(gc_close(s) == 0); } // G5

    int define(const tensors & t) { return gc_define(s, t.all.data(), uint32_t(t.all.size())); }
    int graph(uint64_t size, uint64_t second = 0); // one output of that size on slot 0, one on slot 1

    int run(int kind, int alloc = 0, int other = 0, int graph = 0, uint64_t value = 0, uint32_t flags = 0);
    int start(int alloc, int config = 0) { return run(GC_NEW, alloc, config); }
    int free(int alloc) { return run(GC_FREE, alloc); }
    int own(int alloc) { return run(GC_OWN, alloc); }
    int borrow(int alloc, int of) { return run(GC_BORROW, alloc, of); }
    int reserve(int alloc, int graph) { return run(GC_RESERVE, alloc, 0, graph); }
    int measure(int alloc, int graph) { return run(GC_MEASURE, alloc, 0, graph); }
    int alloc(int alloc, int graph) { return run(GC_ALLOC, alloc, 0, graph); }
    int compute(int alloc, uint32_t flags = 0) { return run(GC_COMPUTE, alloc, 0, 0, 0, flags); }
    int shrink(int alloc) { return run(GC_SHRINK, alloc); }
    int remake(int alloc) { return run(GC_REMAKE, alloc); }
    int capacity(int type, uint64_t bytes) { return run(GC_CAPACITY, 0, type, 0, bytes); }

    const gc_obs & look(int alloc) {
        run(GC_LOOK, alloc);
        return seen;
    }
    uint64_t generation(int alloc) { return look(alloc).generation; }
    uint64_t shrink_generation(int alloc) { return look(alloc).shrink_generation; }
    uint64_t asked(int alloc, int type = 0, int chunk = 0) { return look(alloc).asked[type][chunk]; }
    uint64_t used(int type = 0) { return look(0).used[type]; }
};

gc_setup plain_setup(int n_types, uint64_t granularity);

} // namespace gc::test
