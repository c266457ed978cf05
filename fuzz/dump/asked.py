"""A graph of a dump as a subject can be asked for it: within the limits of gallocheck.h, planned as nearly the same."""

from __future__ import annotations

from dataclasses import replace

from ...model.records import MAX_SRC, Flag, Graph, Tensor
from ..legal import MAX_TENSORS, graph_legal

MOST = 1 << 28  #: bytes of a graph; the sizes of a larger one are divided


def subject_graph(graph: Graph) -> Graph | None:
    """The graph with at most MAX_SRC sources a tensor, views with one, and weights of one byte. None where it has
    too many tensors.

    Sources beyond that are read by a small node right behind, so that they live as long. Which operations may be
    done in place is kept; layouts are told apart only by that.
    """
    total = sum(t.alloc_size for t in graph.tensors if not t.view and not t.prealloc)
    divide = -(-total // MOST) or 1
    out: list[Tensor] = []
    new: list[int] = []  # by the old number
    for i in range(len(graph.tensors)):
        tensor, more = _one(graph, i, new, out, divide)
        new.append(len(out))
        out.append(tensor)
        for k in range(0, len(more), MAX_SRC):
            out.append(Tensor(1, more[k : k + MAX_SRC], slot=tensor.slot))
    made = Graph(tuple(out))
    return made if len(out) <= MAX_TENSORS and graph_legal(made) else None


def _one(
    graph: Graph, i: int, new: list[int], out: list[Tensor], divide: int
) -> tuple[Tensor, tuple[int, ...]]:
    """The tensor, and the sources that it has no room for."""
    t = graph.tensors[i]
    src = tuple(dict.fromkeys(new[s] for s in t.src))
    if t.view:
        root = out[new[t.view_src]]
        at = min(t.view_offs // divide, root.size)
        size = min(-(-t.size // divide), root.size - at)
        view = Tensor(size, (new[t.view_src],), t.flags & Flag.OUTPUT, t.slot, 0, new[t.view_src], at)
        if root.prealloc:
            view = replace(view, flags=Flag(0))
        return view, tuple(s for s in src if s != view.view_src) if not t.leaf else ()
    if t.prealloc:
        return Tensor(1, (), Flag.LEAF | Flag.PREALLOC, t.slot), ()
    given = t.leaf or (t.input and not src)
    flags = t.flags & Flag.OUTPUT
    flags |= Flag.LEAF | (t.flags & Flag.INPUT) if given else Flag(0)
    alike = any(graph.tensors[s].layout == t.layout for s in t.src)
    flags |= Flag.INPLACE if t.inplace and alike and not given else Flag(0)
    size = -(-t.alloc_size // divide)
    return Tensor(size, () if given else src[:MAX_SRC], flags, t.slot), () if given else src[MAX_SRC:]
