// pools.cpp (V): the pools of a session's devices and streams, the blocks that
// are out of them, and what computations take as scratch.
#include <algorithm>
#include <cstring>
#include <vector>

#include "captures.h"
#include "compute.h"
#include "defects.h"
#include "gc_oracle.h"
#include "pool.h"
#include "sched.h"

namespace gc {

// A block that an operation took, with the content that it was filled with.
struct taken {
    block at;
    uint64_t value;
};

struct device_pools {
    std::array<std::unique_ptr<pool>, GC_MAX_STREAMS> stream; // null: of a meta type
    std::array<std::vector<taken>, GC_MAX_STREAMS> blocks;    // the latest last
};

struct pools {
    std::array<device_pools, GC_MAX_TYPES> device;
    std::vector<scratch_block> scratch; // of what is being computed, on `stream`
    int stream = 0;
    uint64_t fills = 0;
};

uint64_t pool_unit(const device & d) {
    return std::max<uint64_t>(d.granularity, 4096);
}

namespace {

constexpr uint64_t edge = 32768; // bytes of content at either end of a larger block

// While it lives, each step of a mapping counts as an allocation (V5).
struct steps_count {
    machine::world * w;
    explicit steps_count(gc_session & s) : w(s.world) { machine::count_steps(w, true); }
    ~steps_count() { machine::count_steps(w, false); }
};

// Calls f(offset, bytes) for the one or two parts of a block that have content.
template <class F> void each_edge(const block & b, F f) {
    if (b.size <= 2 * edge) return f(0, b.size);
    f(0, edge);
    f(b.size - edge, edge);
}

std::vector<uint8_t> content(uint64_t value, uint64_t offset, uint64_t n) {
    std::vector<uint8_t> bytes(n);
    for (uint64_t i = 0; i < n; i += 8) {
        const uint64_t word = gc_mix(value + (offset + i) / 8);
        std::memcpy(bytes.data() + i, &word, std::min<uint64_t>(8, n - i));
    }
    return bytes;
}

// Fills a block; false where it cannot be written.
bool fill_block(const cuda::driver & api, const taken & t) {
    bool ok = true;
    each_edge(t.at, [&](uint64_t offset, uint64_t n) {
        ok &= api.memcpy_htod(t.at.at + offset, content(t.value, offset, n).data(), n) == cuda::success;
    });
    return ok;
}

// Whether a block holds what it was filled with.
bool holds(const cuda::driver & api, const taken & t) {
    bool ok = true;
    each_edge(t.at, [&](uint64_t offset, uint64_t n) {
        std::vector<uint8_t> bytes(n);
        ok &= api.memcpy_dtoh(bytes.data(), t.at.at + offset, n) == cuda::success && bytes == content(t.value, offset, n);
    });
    return ok;
}

// The pool that an operation names; null where there is none.
pool * named(gc_session & s, const gc_op & op) {
    return s.pools ? s.pools->device[op.other].stream[op.alloc].get() : nullptr;
}

// What was given to the stream before may still write where the block is.
void wait_for_stream(gc_session & s, int stream) {
    must(s.devices[0].api->stream_synchronize(stream_of(s, stream)));
}

bool give_back(gc_session & s, pool & p, const block & b, int stream) {
    if (p.full() && !captured_stream(s, stream)) wait_for_stream(s, stream);
    return p.give(b);
}

int32_t alloc_block(gc_session & s, const gc_op & op, gc_obs & o) {
    pool * p = named(s, op);
    if (!p || captured_stream(s, op.alloc)) return GC_MISUSE;
    taken t = {{}, gc_mix(++s.pools->fills)};
    {
        const steps_count counting(s);
        if (!p->take(op.value, t.at)) return GC_REFUSED;
    }
    wait_for_stream(s, op.alloc);
    if (!fill_block(*s.devices[op.other].api, t)) o.trouble |= GC_BAD_POOL;
    auto & blocks = s.pools->device[op.other].blocks[op.alloc];
    const uint64_t nothing = 0;
    if (GC_PLANTED(CLEARS_ANOTHER_BLOCK) && !blocks.empty())
        must(s.devices[op.other].api->memcpy_htod(blocks.back().at.at, &nothing, sizeof nothing));
    blocks.push_back(t);
    o.address = t.at.at;
    return GC_DONE;
}

int32_t free_block(gc_session & s, const gc_op & op, gc_obs & o) {
    pool * p = named(s, op);
    if (!p || captured_stream(s, op.alloc)) return GC_MISUSE;
    auto & blocks = s.pools->device[op.other].blocks[op.alloc];
    if (op.value >= blocks.size()) return GC_MISUSE;
    const auto which = blocks.end() - 1 - int64_t(op.value);
    const bool intact = holds(*s.devices[op.other].api, *which);
    if (!give_back(s, *p, which->at, op.alloc)) return GC_MISUSE;
    if (!intact) o.trouble |= GC_BAD_POOL;
    blocks.erase(which);
    return GC_DONE;
}

// For SCRATCH_IN_BUFFER: where the graph's first tensor on that device is.
[[maybe_unused]] const uint8_t * some_tensor(const bound_graph & b, int device, const uint8_t * otherwise) {
    for (const addresses & at : *b.map) {
        for (int j = 0; j < at.parts; j++) {
            if (at.device[j] == device && at.part[j]) return at.part[j];
        }
    }
    return otherwise;
}

// V4: the devices under a type.
uint32_t devices_of(const gc_session & s, int type) {
    const uint32_t meta = s.setup.types[type].meta;
    if (!meta) return 1u << type;
    if (GC_PLANTED(TRIMS_FIRST_DEVICE)) return meta & -meta;
    if (GC_PLANTED(TRIMS_OWN_INDEX)) return 1u << type;
    return meta;
}

// V3: whatever may use a device's pools runs on the session's streams.
void wait_for_streams(gc_session & s) {
    for (int n = 0; n < GC_MAX_STREAMS; n++) {
        if (GC_PLANTED(TRIMS_DURING_CAPTURE) && captured_stream(s, n)) continue;
        wait_for_stream(s, n);
    }
}

} // namespace

uint64_t trim_pools(gc_session & s, uint32_t types) {
    uint32_t devices = 0;
    for (uint32_t t = 0; t < s.setup.n_types; t++) {
        if (types >> t & 1) devices |= devices_of(s, int(t));
    }
    if (!GC_PLANTED(TRIM_DOES_NOT_WAIT)) wait_for_streams(s);
    uint64_t released = 0;
    for (uint32_t d = 0; d < s.setup.n_types; d++) {
        if (!(devices >> d & 1)) continue;
        for (const auto & p : s.pools->device[d].stream) {
            if (p) released += p->trim();
        }
    }
    drop_captured(s, devices); // Q2
    return released;
}

void pool_open(gc_session & s) {
    if (s.setup.pool == GC_NO_POOL) return;
    s.pools = new pools;
    for (uint32_t t = 0; t < s.setup.n_types; t++) {
        if (s.setup.types[t].meta) continue;
        const device & d = s.devices[t];
        cuda::context context = nullptr;
        must(d.api->primary_ctx_retain(&context, d.ordinal));
        const uint64_t unit = pool_unit(d), range = (s.setup.pool_range + unit - 1) / unit * unit;
        for (auto & p : s.pools->device[t].stream) {
            p = s.setup.pool == GC_VMM_POOL ? new_vmm_pool(d, range) : new_legacy_pool(d, context);
        }
    }
}

void pool_close(gc_session & s) {
    if (!s.pools) return;
    for (device_pools & d : s.pools->device) {
        for (int n = 0; n < GC_MAX_STREAMS; n++) {
            for (auto b = d.blocks[n].rbegin(); b != d.blocks[n].rend(); ++b) {
                d.stream[n]->give(b->at);
            }
        }
    }
    delete s.pools;
}

int32_t pool_step(gc_session & s, const gc_op & op, gc_obs & o) {
    if (op.kind == GC_POOL_ALLOC) return alloc_block(s, op, o);
    if (op.kind == GC_POOL_FREE) return free_block(s, op, o);
    if (!s.pools) return GC_MISUSE;
    if (capture_going_on(s) && !GC_PLANTED(TRIMS_DURING_CAPTURE)) return GC_REFUSED; // Q3
    o.released = trim_pools(s, 1u << op.other);
    return GC_DONE;
}

void pool_observe(gc_session & s, const gc_op & op, gc_obs & o) {
    if (!s.pools) return;
    for (uint32_t t = 0; t < s.setup.n_types; t++) {
        for (const auto & p : s.pools->device[t].stream) {
            if (p) o.pooled[t] += p->mapped();
        }
    }
    if (op.kind != GC_POOL_ALLOC && op.kind != GC_POOL_FREE) return;
    if (const pool * p = named(s, op)) {
        o.base = p->base();
        o.mapped = p->mapped();
        o.out = p->out();
    }
}

bool pool_take(gc_session & s, int n, const graph & g, std::array<const uint8_t *, GC_MAX_TYPES> & scratch) {
    if (!s.pools) return true;
    uint32_t devices = 0;
    for (const gc_place & p : s.allocs[n]->bound.places) {
        if (p.type < 0) continue;
        const uint32_t meta = s.setup.types[p.type].meta;
        devices |= meta ? meta : 1u << p.type;
    }
    const steps_count counting(s);
    s.pools->stream = n;
    for (int d = 0; d < GC_MAX_TYPES; d++) {
        if (!(devices >> d & 1)) continue;
        scratch_block b = {s.pools->device[d].stream[n].get(), {}};
        if (!b.of->take(scratch_size(g), b.at)) {
            pool_give(s);
            if (GC_PLANTED(RECORDS_WITHOUT_SCRATCH)) scratch = {};
            return false;
        }
        s.pools->scratch.push_back(b);
        scratch[d] = reinterpret_cast<const uint8_t *>(b.at.at);
        if (GC_PLANTED(SCRATCH_IN_BUFFER)) scratch[d] = some_tensor(s.allocs[n]->bound, d, scratch[d]);
    }
    return true;
}

std::vector<scratch_block> scratch_taken(const gc_session & s) {
    return s.pools ? s.pools->scratch : std::vector<scratch_block>{};
}

void pool_give(gc_session & s) {
    if (!s.pools) return;
    for (auto & all = s.pools->scratch; !all.empty(); all.pop_back()) {
        give_back(s, *all.back().of, all.back().at, s.pools->stream);
    }
}

} // namespace gc
