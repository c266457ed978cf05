// The fast way to write and check a stream does what gc_oracle.h says.
#include <vector>

#include "check.h"
#include "stream.h"

using namespace gc;
using test::tensors;

namespace {

const uint64_t sizes[] = {0, 1, 7, 8, 9, 63, 300, 2 * GC_EDGE - 1, 2 * GC_EDGE, 2 * GC_EDGE + 1, 300'001};

} // namespace

TEST(streams_are_written_as_the_oracle_says) {
    for (const uint64_t size : sizes) {
        std::vector<uint8_t> a(size + 8, 1), b(size + 8, 1);
        gc_fill(a.data(), size, 77);
        fill(b.data(), size, 77);
        CHECK(a == b);
    }
}

TEST(wrong_bytes_are_found_as_the_oracle_says) {
    for (const uint64_t size : sizes) {
        for (const uint64_t from : {uint64_t(0), uint64_t(1), uint64_t(5), size / 2, size}) {
            if (from > size) continue;
            tensors t;
            const uint32_t v = uint32_t(t.view(size - from, t.leaf(size), from));
            std::vector<uint8_t> memory(size + 8, 1);
            fill(memory.data(), size, 99);
            const auto both = [&](uint64_t value) {
                const uint8_t * p = memory.data() + from;
                const uint64_t x = verify(p, t.all.data(), v, value);
                CHECK(x == gc_verify(p, t.all.data(), v, value));
                return x;
            };
            CHECK(both(99) == size - from);
            CHECK(both(98) == 0 || size - from < 4 || from > GC_EDGE);
            for (uint64_t at = from; at < size; at += 1 + at / 3) {
                memory[at] ^= 1;
                both(99);
                memory[at] ^= 1;
            }
        }
    }
}
