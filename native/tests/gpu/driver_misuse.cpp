// driver_misuse: runs the list of misuse.h on a card's driver. A line a case: its name, 0 or 1 for
// whether every code is the documented one, the codes got, a slash, the documented ones. First two
// lines: the card, the driver's version. Exit codes: 0 ran (whatever it got), 3 there is no driver,
// 4 the card answers nothing any more.
#include <cstdio>

#include "libcuda.h"
#include "misuse.h"

using namespace gc;

namespace {

void print(const test::codes & all) {
    for (const cuda::result r : all) {
        std::printf(" %d", r);
    }
}

} // namespace

int main() {
    const libcuda::library * l = libcuda::load();
    if (!l) {
        std::printf("%s\n", libcuda::why_not().c_str());
        return 3;
    }
    std::printf("%s\n%d\n", l->card.c_str(), l->version);
    for (const test::misuse & m : test::misuses()) {
        if (l->table.ctx_set_current(l->context) != cuda::success) return 4;
        const test::codes got = m.run(l->table);
        std::printf("%s %d", m.name, got == m.documented);
        print(got);
        std::printf(" /");
        print(m.documented);
        std::printf("\n");
        std::fflush(stdout);
    }
    return l->table.ctx_synchronize() == cuda::success ? 0 : 4;
}
