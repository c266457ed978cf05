// The emulated driver answers misuse with the documented codes. `make gpu-check` asks a card the same.
#include <cstdio>

#include "driver_world.h"
#include "misuse.h"

using namespace gc;

namespace {

emulated::world * entered = nullptr;

} // namespace

TEST(misuse_is_answered_as_documented) {
    const emulated::device_setup card = {uint64_t(2) << 20, uint64_t(1) << 40};
    for (const test::misuse & m : test::misuses()) {
        emulated::world * w = emulated::open(&card, 1);
        entered = w;
        test::thread_entry = [] { emulated::enter(entered); };
        emulated::enter(w);
        cuda::context c = nullptr;
        emulated::table().primary_ctx_retain(&c, 0);
        emulated::table().ctx_set_current(c);
        const test::codes got = m.run(emulated::table());
        if (got != m.documented) {
            std::printf("%s:", m.name);
            for (const cuda::result r : got) std::printf(" %d", r);
            std::printf("\n");
        }
        CHECK(got == m.documented);
        CHECK(emulated::used(w, 0) == 0 && emulated::table().ctx_synchronize() == cuda::success); // nothing is left
        emulated::close(w);
    }
}
