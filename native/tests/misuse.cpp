#include "misuse.h"

#include "misuse_parts.h"

namespace gc::test {

void (*thread_entry)() = nullptr;

const std::vector<misuse> & misuses() {
    static const std::vector<misuse> all = [] {
        std::vector<misuse> both = misused::of_memory();
        for (const misuse & m : misused::of_streams()) {
            both.push_back(m);
        }
        return both;
    }();
    return all;
}

} // namespace gc::test
