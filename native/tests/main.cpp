// Runs every TEST; prints what failed, then how many passed and failed.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "check.h"

namespace gc::test {
namespace {

struct test {
    const char * name;
    void (*f)();
};

std::vector<test> & all() {
    static std::vector<test> tests;
    return tests;
}

int wrong = 0; // checks that failed in the test that runs

} // namespace

registration::registration(const char * name, void (*f)()) {
    all().push_back({name, f});
}

void check(bool ok, const char * what, const char * file, int line) {
    if (!ok) {
        std::printf("%s:%d: not so: %s\n", file, line, what);
        wrong++;
    }
}

bool dies(void (*f)()) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        close(STDERR_FILENO); // a sanitizer's report is what we want, not what we want to read
        f();
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

} // namespace gc::test

int main() {
    using namespace gc::test;
    int passed = 0, failed = 0;
    for (const test & t : all()) {
        wrong = 0;
        t.f();
        if (wrong) std::printf("FAILED %s\n", t.name);
        (wrong ? failed : passed)++;
    }
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed ? 1 : 0;
}
