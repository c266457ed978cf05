"""A bound graph of a dump as spec/placement.py judges one: the model's records, and the hook's numbers made dense."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ...model.planner import OUTSIDE
from ...model.records import BufferType, Flag, Graph, Place, Tensor
from ...spec.placement import Seen
from . import lines

Key = tuple[object, ...]  #: of graphs that must be planned the same

#: operations that ggml lets write over what they read, for trees that do not say so themselves
IN_PLACE = frozenset(
    ("FILL", "SCALE", "DIAG_MASK_ZERO", "DIAG_MASK_INF", "ADD", "ADD_ID", "ADD1", "SUB", "MUL", "DIV", "SQR",
     "SQRT", "LOG", "UNARY", "ROPE", "ROPE_BACK", "SILU_BACK", "RMS_NORM", "RMS_NORM_BACK", "SOFT_MAX",
     "SOFT_MAX_BACK")
)  # fmt: skip


class Unclear(Exception):
    """A graph that cannot be judged, and why, as a sentence's end."""


@dataclass(frozen=True, slots=True)
class Bound(Tensor):
    """A tensor of a real graph: its layout is what the program says, not a bit."""

    real: str = ""

    @property
    def layout(self) -> tuple[int, bool]:  # compared only with others of its kind
        return (self.size, self.real)  # type: ignore[return-value]


def key_of(graph: lines.Graph, given: Sequence[int], slots: Sequence[int]) -> Key:
    """Graphs with the same first part of the key must be planned the same. Then `given`, what has a place; the slots;
    the names."""
    rows = tuple(
        (t.op, t.leaf, t.bytes, t.layout, *t.src, t.input, t.output, t.view, t.offset) for t in graph.tensors
    )
    return (rows, tuple(graph.leafs)), tuple(given), tuple(slots), tuple(t.name for t in graph.tensors)


def roots_of(graph: lines.Graph) -> list[tuple[int, int]]:
    """(root, offset in it) of every tensor; itself where it is no view. Raises Unclear where views go round."""
    out: list[tuple[int, int] | None] = [
        None if t.view is not None else (i, 0) for i, t in enumerate(graph.tensors)
    ]
    for first in range(len(out)):
        way: list[int] = []
        i = first
        while (known := out[i]) is None:
            if len(way) > len(out):
                raise Unclear(f"tensor {first} is a view of itself")
            way.append(i)
            i = graph.tensors[i].view or 0
        root, offset = known
        for k in reversed(way):
            offset += graph.tensors[k].offset
            out[k] = root, offset
    return [x for x in out if x is not None]


def records(graph: lines.Graph, spots: Sequence[lines.Spot], given: set[int], slot: Sequence[int]) -> Graph:
    """The graph as the model has it. `given`: tensors that had a place before; `slot`: that of each tensor.

    Raises Unclear where its order is none of execution.
    """
    roots = roots_of(graph)
    read = {s for t in graph.tensors for s in t.src}
    read |= {root for root, _ in roots}
    out = []
    for i, t in enumerate(graph.tensors):
        root, offset = roots[i]
        src = tuple(t.src) + ((root,) if root != i and root not in t.src and not t.leaf else ())
        if any(s >= i for s in src) or root > i:
            raise Unclear(f"{describe(graph, i)} reads what comes after it")
        flags = Flag(0)
        flags |= Flag.LEAF if t.leaf else Flag(0)
        flags |= Flag.INPUT if t.input and root == i else Flag(0)
        flags |= Flag.OUTPUT if t.output else Flag(0)
        nobodys = t.leaf and i not in read and not t.output and spots[i][0] == lines.NONE
        flags |= Flag.PREALLOC if (i in given or nobodys) and root == i else Flag(0)
        may = t.inplace if t.inplace is not None else t.op in IN_PLACE
        flags |= Flag.INPLACE if may and not t.leaf and root == i else Flag(0)
        pad = max(0, spots[i][2] - t.bytes) if root == i and t.bytes else 0
        view = root if root != i else -1
        out.append(Bound(t.bytes, src, flags, slot[i], pad, view, offset if view >= 0 else 0, real=t.layout))
    return Graph(tuple(out))


@dataclass(frozen=True, slots=True)
class Chunks:
    """An allocator's memory: `types` in order of its slots without duplicates, and per type its buffers (hook's numbers)."""

    types: tuple[int, ...]
    buffers: tuple[tuple[int, ...], ...]

    def place(self, spot: lines.Spot) -> Place:
        """Where a spot is; OUTSIDE where no buffer of the allocator's is there."""
        for t, buffers in enumerate(self.buffers):
            if spot[0] in buffers:
                return Place(t, buffers.index(spot[0]), spot[1])
        return OUTSIDE

    def slot(self, spot: lines.Spot) -> int:
        return max(0, self.place(spot).type)


def places(
    graph: lines.Graph, spots: Sequence[lines.Spot], before: dict[int, tuple[int, int]], chunks: Chunks
) -> list[Place]:
    """In graph order. What had a place and still has it is where the allocator does not look."""
    out = []
    for i, (root, _) in enumerate(roots_of(graph)):
        stayed = root in before and before[root] == spots[root][:2]
        out.append(OUTSIDE if stayed else chunks.place(spots[i]))
    return out


def seen(
    graph: Graph,
    where: Sequence[Place],
    chunks: Chunks,
    kinds: Sequence[lines.Type],
    sizes: Sequence[Sequence[tuple[int, int]]],
    measured: Sequence[int] | None,
) -> Seen:
    """What the judge sees. `sizes[type]`: (bytes asked for, bytes there are) of each chunk."""
    types = tuple(BufferType(k.alignment, max(1, k.max_size)) for k in kinds)
    asked = tuple(tuple(a for a, _ in row) for row in sizes)
    real = tuple(tuple(r for _, r in row) for row in sizes)
    return Seen(types, tuple(range(len(types))), graph, tuple(where), asked, real, measured)


def describe(graph: lines.Graph, i: int) -> str:
    """ "tensor 5 'sum 2' (ADD)"."""
    t = graph.tensors[i]
    return f"tensor {i} {t.name!r}" + ("" if t.leaf else f" ({t.op})")


def same(a: Key, b: Key) -> bool:
    """The same graph, where one is known without what had a place, or without slots."""
    return a[0] == b[0]


def some(graph: lines.Graph, tensors: Sequence[int]) -> str:
    """The first few by name; '' for none."""
    shown = ", ".join(describe(graph, i) for i in tensors[:3])
    return shown + (f" and {len(tensors) - 3} more" if len(tensors) > 3 else "")


def empty(graph: lines.Graph) -> bool:
    """Whether it has tensors of no bytes, or no tensor (P13)."""
    return any(not t.bytes for t in graph.tensors) or not graph.tensors


def named(message: str, graph: lines.Graph) -> str:
    """The judge's sentence with the tensors' names."""

    def name(match: re.Match[str]) -> str:
        i = int(match.group(2))
        return f"{match.group(1)} {i} {graph.tensors[i].name!r}" if i < len(graph.tensors) else match.group(0)

    return re.sub(r"\b(tensor|view) (\d+)", name, message)
