#include "compute.h"

#include <algorithm>
#include <array>

#include "defects.h"
#include "gc_oracle.h"
#include "machine.h"
#include "must.h"
#include "pair.h"

namespace gc {

namespace {

// Where a check's word is, and what it means if the kernel found something there.
struct finding {
    uint32_t trouble;
    int32_t node, src;
};

} // namespace

// Words: the digest's, then one for each check, in the order of the launches.
struct flight {
    machine::world * world;
    uint64_t * words;
    std::vector<finding> checks;
    bool captured; // its kernels may run again
    bool has_landed = false;
};

namespace {

// Puts a graph's kernels on a stream.
class run {
  public:
    run(const bound_graph & bound, const launch_options & options)
        : b(bound), g(*bound.of), how(options), written(g.size()) {
        scratch_bytes = how.scratch ? scratch_size(g) : 0;
    }

    flight * all() {
        f = new flight{machine::here(), nullptr, {}, is_captured()};
        code = machine::kit_of(f->world).code;
        const uint64_t most = most_checks();
        f->words = machine::words(f->world, 1 + most);
        f->checks.reserve(most);
        start(kernels::k_set_words, kernels::set_words{f->words, 1, 0}, 1);
        start(kernels::k_set_words, kernels::set_words{f->words + 1, most, kernels::nothing_wrong}, most);
        given();
        for (uint32_t i = 0; i < g.size(); i++) {
            if (!g.has(i, GC_LEAF)) node(i);
        }
        for (uint32_t i = 0; i < g.size(); i++) {
            if (g.has(i, GC_OUTPUT)) output(i);
            if (g.has(i, GC_PREALLOC)) check(i, {GC_BAD_PREALLOC, int32_t(i), -1});
        }
        return f;
    }

  private:
    bool is_captured() const {
        int status = cuda::capture_none;
        must(how.api->stream_is_capturing(how.stream, &status), "stream_is_capturing");
        return status != cuda::capture_none;
    }

    // At most one for each source, as output, as preallocated and for scratch, on each device.
    uint64_t most_checks() const {
        uint64_t n = 0;
        int parts = 1;
        for (uint32_t i = 0; i < g.size(); i++) {
            const gc_tensor & t = g.tensors[i];
            n += uint64_t(std::count_if(t.src, t.src + GC_MAX_SRC, [](int32_t s) { return s >= 0; })) + 3;
            parts = std::max(parts, where(i).parts);
        }
        return n * uint64_t(parts);
    }

    // Where tensor i is; where its map was taken away from it, at no address that there is.
    addresses where(uint32_t i) const {
        return b.map && i < b.map->size() ? (*b.map)[i] : addresses{1, {nullptr}};
    }

    // `bytes`: how many bytes or words the kernel goes through.
    template <class P> void start(kernels::kernel k, P parameters, uint64_t bytes) {
        const bool one_block = k == kernels::k_verify || k == kernels::k_digest;
        const uint64_t blocks = (bytes + kernels::block_threads - 1) / kernels::block_threads;
        const auto grid = unsigned(std::clamp<uint64_t>(blocks, 1, one_block ? 1 : kernels::most_blocks));
        void * all[] = {&parameters};
        must(how.api->launch_kernel(code[k], grid, 1, 1, kernels::block_threads, 1, 1, 0, how.stream,
                                    all, nullptr),
             kernels::names[k]);
    }

    void given() { // a leaf that is read waits for its first reader
        for (uint32_t i = 0; i < g.size(); i++) {
            const bool now = g.has(i, GC_INPUT) || !g.read[i];
            if (g.has(i, GC_LEAF) && !g.has(i, GC_PREALLOC) && now) fill(i);
        }
    }

    void fill(uint32_t i) {
        const uint64_t size = g.tensors[i].size;
        const addresses at = where(i);
        for (int j = 0; size > 0 && j < at.parts; j++) {
            start(kernels::k_fill, kernels::fill{at.part[j], size, part_value(g.values[i], j)}, size);
        }
        written[i] = true;
    }

    // Tensor i holds what it must.
    void check(uint32_t i, const finding & otherwise) {
        const gc_tensor & t = g.tensors[i];
        const uint64_t first = gc_first(g.tensors.data(), i), whole = gc_whole(g.tensors.data(), i);
        const addresses at = where(i);
        for (int j = 0; t.size > 0 && j < at.parts; j++) {
            const uint64_t value = part_value(g.values[i], j);
            uint64_t * word = next_word(otherwise);
            start(kernels::k_verify, kernels::verify{at.part[j], t.size, t.view_offs, first, whole, value, word}, t.size);
        }
    }

    uint64_t * next_word(const finding & otherwise) {
        f->checks.push_back(otherwise);
        return f->words + f->checks.size();
    }

    void node(uint32_t i) {
        const uint64_t before = f->checks.size();
        for (int j = 0; j < GC_MAX_SRC; j++) {
            const int32_t s = g.tensors[i].src[j];
            if (s < 0) continue;
            const bool waits = g.has(uint32_t(s), GC_LEAF) && !g.has(uint32_t(s), GC_PREALLOC) && !written[s];
            if (waits) fill(uint32_t(s));
            if (!g.is_view(i)) check(uint32_t(s), {GC_BAD_SOURCE, int32_t(i), j}); // a view reads nothing
        }
        if (g.is_view(i)) return;
        const addresses at = where(i);
        const uint64_t n = f->checks.size() - before;
        for (int j = 0; j < at.parts; j++) {
            uint8_t * scratch = scratch_of(at.device[j]);
            mark(scratch, i);
            result(i, at.part[j], j, f->words + 1 + before, n);
            check_mark(scratch, i);
        }
        written[i] = true;
    }

    // Writes node i's value, damaged by what is in its sources' n words, on its jth device.
    void result(uint32_t i, uint8_t * to, int j, const uint64_t * words, uint64_t n) {
        const uint64_t size = g.tensors[i].size;
        if (size > 0) start(kernels::k_node, kernels::node{to, size, g.values[i], words, n, uint64_t(j)}, size);
    }

    uint8_t * scratch_of(int device) const { // null: none
        return scratch_bytes > 0 && device >= 0 ? const_cast<uint8_t *>(how.scratch[device]) : nullptr;
    }

    // What node i writes to its scratch before it writes its result, and finds there afterwards.
    uint64_t mark_of(uint32_t i) const { return gc_mix(~g.values[i]); }

    void mark(uint8_t * scratch, uint32_t i) {
        if (!scratch) return;
        start(kernels::k_fill, kernels::fill{scratch, scratch_bytes, mark_of(i)}, scratch_bytes);
    }

    void check_mark(const uint8_t * scratch, uint32_t i) {
        if (!scratch) return;
        uint64_t * word = next_word({GC_BAD_POOL, int32_t(i), -1});
        const uint64_t n = scratch_bytes;
        start(kernels::k_verify, kernels::verify{scratch, n, 0, 0, n, mark_of(i), word}, n);
    }

    void output(uint32_t i) {
        const gc_tensor & t = g.tensors[i];
        check(i, {GC_BAD_OUTPUT, int32_t(i), -1});
        start(kernels::k_digest,
              kernels::digest{where(i).part[0], t.size, t.view_offs, gc_first(g.tensors.data(), i),
                              gc_whole(g.tensors.data(), i), f->words},
              t.size);
    }

    const bound_graph & b;
    const graph & g;
    const launch_options & how;
    std::vector<bool> written;
    uint64_t scratch_bytes = 0;
    const cuda::function * code = nullptr;
    flight * f = nullptr;
};

// Nothing was written between the buffer's end and its last page's end.
bool guard_holds(const buffer & b, uint64_t page) {
    const uint64_t rest = (page - b.size % page) % page;
    if (rest == 0 || b.size > machine::most(machine::here())) return true; // its end cannot be touched
    const cuda::device_ptr end = b.base + b.size;
    if (GC_PLANTED(WRITES_BEHIND_BUFFER)) machine::poke(machine::here(), end, 1);
    return machine::all_zero(machine::here(), end, rest);
}

} // namespace

flight * launch(const bound_graph & b, const launch_options & how) {
    return run(b, how).all();
}

findings landed(flight & f) {
    findings all;
    f.has_landed = true;
    all.digest = f.words[0];
    for (size_t i = 0; i < f.checks.size(); i++) {
        if (f.words[1 + i] == kernels::nothing_wrong) continue;
        const finding & c = f.checks[i];
        if (!all.trouble) {
            all.bad_node = c.node;
            all.bad_src = c.src;
            all.bad_offset = f.words[1 + i];
        }
        all.trouble |= c.trouble;
    }
    return all;
}

void forget(flight * f) {
    machine::give_back(f->world, f->words, f->captured || !f->has_landed);
    delete f;
}

findings compute(const bound_graph & b) {
    machine::world * w = machine::here();
    const cuda::driver & api = machine::table(w);
    const cuda::stream s = machine::kit_of(w).stream;
    flight * f = launch(b, {&api, s, nullptr});
    must(api.stream_synchronize(s), "stream_synchronize");
    const findings found = landed(*f);
    forget(f);
    return found;
}

uint64_t scratch_size(const graph & g) {
    uint64_t largest = 0;
    for (uint32_t i = 0; i < g.size(); i++) {
        if (!g.has(i, GC_LEAF) && !g.is_view(i)) largest = std::max(largest, g.tensors[i].size);
    }
    return (std::min<uint64_t>(largest, 4096) + 127) / 128 * 128;
}

uint32_t guard_trouble(const gallocr & a) {
    for (int t = 0; t < GC_MAX_TYPES; t++) {
        if (!a.has_type(t)) continue;
        for (const meta_buffer & c : a.holding(t).chunk) {
            const auto holds = [&](const buffer & part) { return guard_holds(part, a.in->devices[t].page); };
            if (!std::all_of(c.part.begin(), c.part.end(), holds)) return GC_BAD_GUARD;
        }
    }
    return 0;
}

} // namespace gc
