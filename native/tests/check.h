// check.h: the little that the native tests need.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "gallocheck.h"

namespace gc::test {

void check(bool ok, const char * what, const char * file, int line);
bool dies(void (*f)()); // f, run in a child process, does not return

struct registration {
    registration(const char * name, void (*f)());
};

// Builds the tensors of a graph; every function returns the tensor's index.
struct tensors {
    std::vector<gc_tensor> all;

    int leaf(uint64_t size, uint32_t flags = 0, int slot = 0) { return add(size, {}, flags | GC_LEAF, slot); }
    int input(uint64_t size, int slot = 0) { return leaf(size, GC_INPUT, slot); }
    int node(uint64_t size, std::initializer_list<int> src, uint32_t flags = 0, int slot = 0) {
        return add(size, src, flags, slot);
    }
    int view(uint64_t size, int of, uint64_t offset, uint32_t flags = 0) {
        const int i = add(size, {of}, flags, all[of].slot);
        all[i].view_src = of;
        all[i].view_offs = offset;
        return i;
    }

  private:
    int add(uint64_t size, std::initializer_list<int> src, uint32_t flags, int slot) {
        gc_tensor t = {size, 0, 0, -1, {-1, -1, -1, -1}, flags, slot, 0};
        int n = 0;
        for (const int s : src) {
            t.src[n++] = s;
        }
        all.push_back(t);
        return int(all.size()) - 1;
    }
};

} // namespace gc::test

#define CHECK(x) ::gc::test::check(bool(x), #x, __FILE__, __LINE__)
#define TEST(name)                                                     \
    static void name();                                                \
    static const ::gc::test::registration registered_##name(#name, name); \
    static void name()
