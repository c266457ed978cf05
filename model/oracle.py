"""What every tensor's memory must hold, computed from the graph alone.

The Python twin of native/include/gc_oracle.h: a tensor's content is a stream of
bytes made from a 64-bit value, and its value is a hash of its identity and its
sources' values. A test compares the two byte by byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from .records import MAX_SRC, Graph

MASK = 2**64 - 1
EDGE, PAGE = 65536, 4096  # of larger tensors only the edges and one byte a page are touched


def mix(x: int) -> int:
    """splitmix64's finalizer."""
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def both(first: int, second: int) -> int:
    """Two digests in one, in order; equal ones do not cancel out."""
    return mix((mix(first) + second) & MASK)


def of_lanes(digests: Sequence[int | None]) -> int | None:
    """Of lanes that computed, in order: the digest of one, or both in one; None where one is not known, or none ran."""
    if not digests or None in digests:
        return None
    known = [x for x in digests if x is not None]
    return known[0] if len(known) == 1 else both(*known)


def values(graph: Graph) -> list[int]:
    """The value of each tensor; a view has its root's (it shows a part of its stream)."""
    out: list[int] = []
    for i, t in enumerate(graph.tensors):
        if t.view:
            out.append(out[t.view_src])
            continue
        v = mix(i + 1)
        for j, s in enumerate(t.src[:MAX_SRC]):
            v = mix(v ^ out[s] ^ ((j + 1) << 32) ^ graph.tensors[s].view_offs)
        out.append(v)
    return out


def touched(size: int) -> Iterator[int]:
    """Offsets of a tensor of `size` bytes that are written and verified."""
    if size <= 2 * EDGE:
        yield from range(size)
        return
    yield from range(EDGE)
    # after the first edge: every page start before the last edge, then the last edge
    yield from range((EDGE + PAGE - 1) // PAGE * PAGE, size - EDGE, PAGE)
    yield from range(size - EDGE, size)


def stream(value: int, begin: int, size: int, whole: int) -> Iterator[int]:
    """The touched bytes of `size` bytes at `begin` of value's stream of `whole` bytes."""
    word, block = 0, -1
    for at in touched(whole):
        if at >= begin + size:
            return
        if at >= begin:
            if at >> 3 != block:
                block = at >> 3
                word = mix((value + block) & MASK)
            yield (word >> ((at & 7) * 8)) & 0xFF


DIGESTED = 4096  #: bytes of outputs up to which Python works out the digest itself


@lru_cache(maxsize=256)
def digest(graph: Graph) -> int | None:
    """The digest over all outputs' bytes that a correct compute reports.

    None above DIGESTED bytes: there the subject's own check of every output byte must do.
    """
    if sum(t.size for t in graph.tensors if t.output) > DIGESTED:
        return None
    h, vals = 0, values(graph)
    for t, v in zip(graph.tensors, vals, strict=True):
        if t.output:
            whole = graph.tensors[t.view_src].size if t.view else t.size
            for b in stream(v, t.view_offs, t.size, whole):
                h = ((h ^ b) * 0x100000001B3) & MASK
            h = mix(h ^ t.size)
    return h
