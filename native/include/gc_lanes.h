/* gc_lanes.h: thousands of short traces through one call.
 *
 * A lane is one trace: a setup, some graphs, and as many operations as every
 * other lane has. libgallocheck_lanes runs them on any subject (its functions
 * are handed in), one lane after the other, each in a session of its own, and
 * writes what was observed by step, field and lane, so that a whole step can be
 * compared with the model's at once. All sizes are bytes. The binding reads
 * this file as it stands.
 */
#ifndef GC_LANES_H
#define GC_LANES_H

#include "gallocheck.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The subject's functions, by their addresses. */
typedef struct gl_subject {
    void * open;
    void * close;
    void * define;
    void * run;
    void * places;
} gl_subject;

/* Part of gc_obs: 8 bytes, or 4 (`sign`: extended by its sign). Size 0: a hash over the placements of what a
   GC_ALLOC has bound, 0 after other operations: each placement's type, chunk and offset in turn, by gc_mix. */
typedef struct gl_field {
    uint32_t offset;
    uint16_t size;
    uint16_t sign;
} gl_field;

enum { GL_FINISHED = 0xffffffff };

/* Where the runner is; read by others while it runs. */
typedef struct gl_progress {
    volatile uint64_t lane;      /* GL_FINISHED: all are done */
    volatile uint64_t operation; /* of the lane; `steps`: it is being closed */
    volatile uint64_t base;      /* added to `operation` */
} gl_progress;

typedef struct gl_job {
    uint32_t lanes;
    uint32_t steps;      /* operations of each lane */
    uint32_t fields;
    uint32_t graphs;     /* of each lane */
    uint64_t setups;     /* gc_setup [lane] */
    uint64_t tensors;    /* gc_tensor [], of all graphs that there are */
    uint64_t spans;      /* uint32_t [graph that there is][2]: first tensor, how many */
    uint64_t graphs_of;  /* uint32_t [lane][graphs]: which of these the lane has, by its number in the session */
    uint64_t ops;        /* gc_op [lane][steps] */
    uint64_t field;      /* gl_field [fields] */
    uint64_t seen;       /* int64_t [steps][fields][lanes] */
    uint64_t left;       /* int64_t [lane]: what gc_close returned; -1: gc_open or gc_define refused */
    gl_progress progress;
} gl_job; /* offsets count from the job's own address */

/* Runs the job from lane `first` on. */
void gl_run(const gl_subject * subject, gl_job * job, uint32_t first);

#ifdef __cplusplus
}
#endif
#endif
