"""Pairs of tensors whose lives, and bytes, meet: found without looking at all, for large graphs."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterator, Mapping, Sequence
from heapq import heappop, heappush

from ..model.records import Place, Tensor
from .lifetimes import Life

MOST = 200_000  #: pairs of a plan; where more meet, the rest would say nothing new


def pairs_alive(alive: Collection[Life]) -> int:
    """How many pairs of lives overlap: all, but those of which one ends before the other starts."""
    starts = sorted(life.start for life in alive)
    n = len(starts)
    return n * (n - 1) // 2 - sum(n - bisect_right(starts, life.end) for life in alive)


def meetings(
    places: Sequence[Place], tensors: Sequence[Tensor], roots: Mapping[int, Life]
) -> Iterator[tuple[int, int]]:
    """Every (earlier, later) of roots that share bytes while both are alive, in order of their starts and numbers;
    MOST or a few more."""
    order = sorted(roots, key=lambda i: (roots[i].start, i))
    rank = {i: k for k, i in enumerate(order)}
    rows: dict[tuple[int, int], _Row] = {}
    found: list[tuple[int, int]] = []
    for k, b in enumerate(order):
        if len(found) >= MOST:
            break
        place = places[b]
        row = rows.setdefault((place.type, place.chunk), _Row())
        row.forget(roots[b].start)
        size = tensors[b].alloc_size
        found += [(rank[a], k) for a in row.across(place.offset, size)]
        row.add(b, place.offset, size, roots[b].end)
    for a, k in sorted(found):
        yield order[a], order[k]


class _Row:
    """What is alive in a chunk. Tensors are kept by the power of two of their size: those of one such class that lie
    across given bytes begin at most twice its power before them."""

    def __init__(self) -> None:
        self.classes: dict[int, list[tuple[int, int, int]]] = {}  # (offset, bytes, tensor), in order
        self.ends: list[tuple[int, int, tuple[int, int, int]]] = []  # (last step, class, what)

    def add(self, tensor: int, offset: int, size: int, end: int) -> None:
        power, what = size.bit_length(), (offset, size, tensor)
        insort(self.classes.setdefault(power, []), what)
        heappush(self.ends, (end, power, what))

    def forget(self, step: int) -> None:
        """What has ended before the step."""
        while self.ends and self.ends[0][0] < step:
            _, power, what = heappop(self.ends)
            alive = self.classes[power]
            del alive[bisect_left(alive, what)]

    def across(self, offset: int, size: int) -> Iterator[int]:
        """The living that share bytes with [offset, offset + size)."""
        for power, alive in self.classes.items():
            first = bisect_left(alive, (offset - (1 << power), 0, 0))
            for begin, length, tensor in alive[first : bisect_left(alive, (offset + size, 0, 0))]:
                if begin + length > offset:
                    yield tensor
