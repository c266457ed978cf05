#include "meta.h"

#include "defects.h"

namespace gc {

void alias::see(int t, const entry & e) {
    for (int c = 0; c < GC_MAX_CHUNKS; c++) {
        for (int j = 0; j < MAX_PARTS; j++) {
            base[t][c][j] = e.chunk[c].part[j].base;
        }
    }
}

// M1: device by device; where one cannot give its part, those before it give back what they gave.
bool make_buffer(const device & d, uint64_t asked, meta_buffer & b) {
    for (int j = 0; j < d.parts(); j++) {
        if (make_part(d, d.on(j), asked, b.part[j])) continue;
        if (GC_PLANTED(MISSING_PART_COUNTS) && j > 0) continue;
        if (GC_PLANTED(EARLIER_PARTS_STAY)) b = {};
        free_buffer(d, b);
        return false;
    }
    return true;
}

void free_buffer(const device & d, meta_buffer & b) {
    for (int j = 0, n = d.parts(); j < n; j++) {
        free_part(d, b.part[j]);
    }
}

} // namespace gc
