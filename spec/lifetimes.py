"""When each tensor of a graph is alive, from the graph alone (contract P1, P5 to P8)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ..model.records import Graph

FOREVER = 2**62  #: the end of an output's life


@dataclass(frozen=True, slots=True)
class Life:
    """A root's life: it must hold its bytes at every step from `start` to `end`, both included.

    Steps are tensor indices; an input's life starts at -1, before every node (P6). `direct` is
    the last step that reads the root itself, not through a view; -1 where none does.
    """

    start: int
    end: int
    direct: int

    @property
    def pinned(self) -> bool:
        """Whether it is an output, or shown by a view that is one (P5)."""
        return self.end == FOREVER


@lru_cache(maxsize=1024)
def lives(graph: Graph) -> dict[int, Life]:
    """The life of every root that needs memory of its own (no view, not preallocated).

    The shortest life that is right for any planner: a node that nobody reads lives while it runs;
    a leaf that is no input, from its first reader on.
    """
    tensors = graph.tensors
    family = [t.view_src if t.view else i for i, t in enumerate(tensors)]
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    direct: dict[int, int] = {}
    for i, t in enumerate(tensors):
        for s in t.src:
            first.setdefault(family[s], i)
            last[family[s]] = i
            if family[s] == s:
                direct[s] = i
    pinned = {root for i, t in enumerate(tensors) if t.output and t.size > 0 for root in (i, t.view_src)}
    out = {}
    for i, t in enumerate(tensors):
        if t.view or t.prealloc:
            continue
        start = -1 if t.input else first.get(i, i) if t.leaf else i
        end = FOREVER if i in pinned else max(start, last.get(i, start))
        out[i] = Life(start, end, direct.get(i, -1))
    return out


@lru_cache(maxsize=1024)
def first_reads(graph: Graph) -> dict[int, int]:
    """The first step that reads each tensor itself; those that nobody reads are left out."""
    first: dict[int, int] = {}
    for i, t in enumerate(graph.tensors):
        for s in t.src:
            first.setdefault(s, i)
    return first
