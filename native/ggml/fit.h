/* fit.h: members that some trees' interface structs have and others have not, or
 * have with another signature. What is given is set where it fits, and dropped where it does not.
 */
#ifndef GC_GGML_FIT_H
#define GC_GGML_FIT_H

#define GC_MEMBER(m)                                                                        \
    template <class S, class V> auto put_##m(S & s, V v, int) -> decltype((void) (s.m = v)) { s.m = v; } \
    template <class S, class V> void put_##m(S &, V, long) {}                               \
    template <class S, class V> void put_##m(S & s, V v) { put_##m(s, v, 0); }

#endif
