#include "emulated_kernels.h"

#include "gc_oracle.h"
#include "stream.h"

namespace gc::emulated {
namespace {

using namespace kernels;

// A tensor as gc_oracle.h wants it: number 1 views number 0, which holds the whole stream.
struct shown {
    gc_tensor t[2] = {};
    shown(uint64_t size, uint64_t from, uint64_t whole) {
        t[0].size = whole;
        t[0].view_src = -1;
        t[1].size = size;
        t[1].view_offs = from;
    }
};

void run(const set_words & p) {
    for (uint64_t i = 0; i < p.n; i++) {
        p.words[i] = p.value;
    }
}

void run(const kernels::fill & p) {
    gc::fill(p.to, p.size, p.value);
}

void run(const kernels::verify & p) {
    const shown s(p.size, p.from, p.whole);
    const uint64_t wrong = gc::verify(p.at, s.t, 1, p.value);
    if (wrong < p.size) *p.word = wrong;
}

void run(const node & p) {
    uint64_t value = p.value;
    for (uint64_t i = 0; i < p.n; i++) {
        if (p.words[i] != nothing_wrong) value = gc_mix(value ^ damage);
    }
    gc::fill(p.to, p.size, p.part ? gc_mix(value + p.part) : value);
}

void run(const digest & p) {
    const shown s(p.size, p.from, p.whole);
    *p.word = gc_digest(*p.word, p.at, s.t, 1);
}

range touches(const set_words &) {
    return {0, 0};
}

range touches(const kernels::fill & p) {
    return {uint64_t(p.to), p.size};
}

range touches(const kernels::verify & p) {
    return {uint64_t(p.at), p.size};
}

range touches(const node & p) {
    return {uint64_t(p.to), p.size};
}

range touches(const digest & p) {
    return {uint64_t(p.at), p.size};
}

template <class P> constexpr kernel_code code(kernel k) {
    static_assert(sizeof(P) <= max_parameters);
    return {names[k], sizeof(P), [](const void * p) { run(*static_cast<const P *>(p)); },
            [](const void * p) { return touches(*static_cast<const P *>(p)); }};
}

} // namespace

const kernel_code kernel_codes[n_kernels] = {code<set_words>(k_set_words), code<kernels::fill>(k_fill),
                                             code<kernels::verify>(k_verify), code<node>(k_node),
                                             code<digest>(k_digest)};

} // namespace gc::emulated
