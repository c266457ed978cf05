/* probe.h: what a tree offers is asked of the compiler, never of its version.
 *
 * GC_PROBE(f) defines has_f<A...>, true where f can be called with arguments of
 * those types, and call_f(a...), which may be used only where it can. Lookup of
 * f waits for the arguments, so an f that no header declares is no error. (A
 * function without arguments can't be probed so: see probes/.)
 */
#ifndef GC_GGML_PROBE_H
#define GC_GGML_PROBE_H

#include <type_traits>
#include <utility>

#define GC_PROBE(f)                                                                             \
    struct probe_##f {                                                                          \
        template <class... A>                                                                   \
        static auto test(int) -> decltype((void) f(std::declval<A>()...), std::true_type());    \
        template <class... A> static std::false_type test(...);                                 \
    };                                                                                          \
    template <class... A> constexpr bool has_##f = decltype(probe_##f::test<A...>(0))::value;   \
    template <class... A> auto call_##f(A... a) -> decltype(f(a...)) { return f(a...); }

#endif
