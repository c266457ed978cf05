// lanes.cpp: runs thousands of short traces on a subject; gc_lanes.h.
//
// One lane after the other, so that a session's memory stays in the cache; what
// is seen of a lane is put beside its neighbours' when the lane is done.
#include "gc_lanes.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "gc_oracle.h"

namespace {

struct functions {
    decltype(&gc_open) open;
    decltype(&gc_close) close;
    decltype(&gc_define) define;
    decltype(&gc_run) run;
    decltype(&gc_places) places;

    explicit functions(const gl_subject & s)
        : open(reinterpret_cast<decltype(open)>(s.open)), close(reinterpret_cast<decltype(close)>(s.close)),
          define(reinterpret_cast<decltype(define)>(s.define)), run(reinterpret_cast<decltype(run)>(s.run)),
          places(reinterpret_cast<decltype(places)>(s.places)) {}
};

template <class T> T * part(gl_job * job, uint64_t offset) {
    return reinterpret_cast<T *>(reinterpret_cast<char *>(job) + offset);
}

int64_t read(const gc_obs & o, const gl_field & f) {
    const char * at = reinterpret_cast<const char *>(&o) + f.offset;
    if (f.size == 8) {
        int64_t x;
        std::memcpy(&x, at, 8);
        return x;
    }
    int32_t x;
    std::memcpy(&x, at, 4);
    return f.sign ? int64_t(x) : int64_t(uint32_t(x));
}

// A lane's session with its graphs; null where the subject refuses one of them.
gc_session * open(const functions & subject, gl_job * job, uint32_t lane) {
    gc_session * s = subject.open(part<gc_setup>(job, job->setups) + lane);
    if (!s) return nullptr;
    const uint32_t * mine = part<uint32_t>(job, job->graphs_of) + uint64_t(lane) * job->graphs;
    const auto * spans = part<uint32_t[2]>(job, job->spans);
    const gc_tensor * tensors = part<gc_tensor>(job, job->tensors);
    for (uint32_t g = 0; g < job->graphs; g++) {
        const auto & [first, n] = spans[mine[g]];
        if (subject.define(s, tensors + first, n) < 0) {
            subject.close(s);
            return nullptr;
        }
    }
    return s;
}

// What was seen of one lane; memory for the placements of its largest graph.
struct views {
    std::vector<gc_obs> seen;
    std::vector<uint64_t> placed;
    std::vector<gc_place> places;
};

uint64_t hash_of_places(const functions & subject, gc_session * s, int32_t alloc, std::vector<gc_place> & room) {
    uint32_t n = subject.places(s, alloc, room.data(), uint32_t(room.size()));
    if (n > room.size()) {
        room.resize(n);
        n = subject.places(s, alloc, room.data(), n);
    }
    uint64_t hash = n;
    for (uint32_t i = 0; i < n; i++) {
        for (const uint64_t x : {uint64_t(int64_t(room[i].type)), uint64_t(int64_t(room[i].chunk)), room[i].offset}) {
            hash = gc_mix(hash ^ x);
        }
    }
    return hash;
}

// Runs the lane's operations, and stops after each GC_ALLOC that is done to see where its tensors are.
void run(const functions & subject, gc_session * s, gl_job * job, const gc_op * ops, views & v) {
    std::fill(v.placed.begin(), v.placed.end(), 0);
    for (uint32_t at = 0, end = 0; at < job->steps; at = end) {
        while (end < job->steps && ops[end++].kind != GC_ALLOC) {}
        job->progress.operation = 0;
        job->progress.base = at;
        subject.run(s, ops + at, v.seen.data() + at, end - at, &job->progress.operation);
        const bool bound = ops[end - 1].kind == GC_ALLOC && v.seen[end - 1].status == GC_DONE;
        if (bound) v.placed[end - 1] = hash_of_places(subject, s, ops[end - 1].alloc, v.places);
    }
}

void keep(gl_job * job, uint32_t lane, const views & v) {
    const gl_field * field = part<gl_field>(job, job->field);
    int64_t * to = part<int64_t>(job, job->seen) + lane;
    for (uint32_t i = 0; i < job->steps; i++) {
        for (uint32_t f = 0; f < job->fields; f++, to += job->lanes) {
            *to = field[f].size ? read(v.seen[i], field[f]) : int64_t(v.placed[i]);
        }
    }
}

} // namespace

extern "C" __attribute__((visibility("default"))) void gl_run(const gl_subject * subject, gl_job * job, uint32_t first) {
    const functions f(*subject);
    views v{std::vector<gc_obs>(job->steps), std::vector<uint64_t>(job->steps), std::vector<gc_place>(64)};
    int64_t * left = part<int64_t>(job, job->left);
    const gc_op * ops = part<gc_op>(job, job->ops);
    for (uint32_t lane = first; lane < job->lanes; lane++) {
        job->progress.base = 0;
        job->progress.operation = 0;
        job->progress.lane = lane;
        gc_session * s = open(f, job, lane);
        if (!s) {
            left[lane] = -1;
            continue;
        }
        run(f, s, job, ops + uint64_t(lane) * job->steps, v);
        keep(job, lane, v);
        job->progress.base = job->steps;
        job->progress.operation = 0;
        left[lane] = int64_t(f.close(s));
    }
    job->progress.lane = GL_FINISHED;
}
