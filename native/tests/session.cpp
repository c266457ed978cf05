#include "session.h"

namespace gc::test {

gc_setup plain_setup(int n_types, uint64_t granularity) {
    gc_setup s{};
    s.n_types = uint32_t(n_types);
    s.n_configs = 3;
    for (int t = 0; t < n_types; t++) {
        s.types[t] = {16, UINT64_MAX, granularity, UINT64_MAX};
        s.slots[0][t] = t;
    }
    s.n_slots[0] = n_types;
    s.n_slots[1] = s.n_slots[2] = 1;
    s.slots[2][0] = n_types - 1;
    return s;
}

session::session(int n_types, uint64_t granularity) : session(plain_setup(n_types, granularity)) {}

int session::graph(uint64_t size, uint64_t second) {
    tensors t;
    t.node(size, {}, GC_OUTPUT);
    if (second) t.node(second, {}, GC_OUTPUT, 1);
    return define(t);
}

int session::run(int kind, int alloc, int other, int graph, uint64_t value, uint32_t flags) {
    const gc_op op = {kind, alloc, other, graph, fail_types, fail_nth, flags, 0, value};
    uint64_t progress = 0;
    gc_run(s, &op, &seen, 1, &progress);
    CHECK(progress == 1 && seen.trouble == 0);
    fail_types = 0;
    fail_nth = 0;
    return seen.status;
}

} // namespace gc::test
