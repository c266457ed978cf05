/* Edge coverage of a subject: one more function that a subject library may export beside those of gallocheck.h.
   A subject that has none is checked all the same; a campaign on it is guided by less. */
#ifndef GC_COVERAGE_H
#define GC_COVERAGE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The subject's counters and how many there are: each counts how often one edge of its code was taken (255: that
   often or more). Whoever asks may set them to 0; called before each trace, so that a trace is a path of its own. */
void gc_coverage(uint8_t ** counters, uint32_t * n);

#ifdef __cplusplus
}
#endif
#endif
