// misuse.h: small programs that misuse the driver, and the codes that the CUDA
// documentation gives for them. The same list runs on the emulated driver (a
// test) and on a card's (`make gpu-check`), so that the two can be compared.
#pragma once

#include <vector>

#include "cuda_table.h"

namespace gc::test {

using codes = std::vector<cuda::result>;

struct misuse {
    const char * name;
    codes documented;                    // one for each call that the program looks at
    codes (*run)(const cuda::driver & d); // device 0's context is current; leaves nothing behind
};

// What a program's second thread calls first, where the driver has one entered (the emulated one); else null.
extern void (*thread_entry)();

const std::vector<misuse> & misuses();

} // namespace gc::test
