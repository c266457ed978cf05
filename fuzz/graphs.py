"""Generation of graphs: one builder, shaped by weights that are drawn anew for each graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..model.records import MAX_SRC, BufferType, Flag, Graph, Tensor
from .draw import Draw, weighted
from .legal import graph_legal

_NO_FLAG = Flag(0)
#: what the next tensor is -> weight; each shape sets others
_SHAPES: dict[str, dict[str, int]] = {
    "mix": {"leaf": 2, "input": 2, "prealloc": 1, "node": 8, "inplace": 5, "view": 4, "fresh": 1},
    "chain": {"leaf": 1, "node": 10, "inplace": 2},
    "readers": {"leaf": 2, "input": 1, "node": 8, "inplace": 1, "view": 1},
    "diamond": {"input": 1, "node": 8},
    "in place": {"leaf": 1, "prealloc": 1, "node": 2, "inplace": 9, "view": 3},
    "views": {"leaf": 2, "input": 1, "prealloc": 1, "node": 4, "inplace": 5, "view": 8},
    "wide": {"leaf": 8, "input": 3, "fresh": 4, "node": 1},
    "crowd": {"leaf": 6, "input": 2, "node": 4},
}
_REACH = {
    "chain": ("last",),
    "readers": ("first", "any"),
    "diamond": ("recent",),
    "in place": ("last", "recent"),
}


@dataclass(slots=True)
class Sizes:
    """Which tensor sizes are drawn, in bytes: a handful, so that equal ones are frequent.

    `turn`: which comes next; -1: any.
    """

    palette: tuple[int, ...]
    turn: int = -1

    def one(self, draw: Draw) -> int:
        if self.turn < 0:
            return draw.choice(self.palette)
        self.turn += 1
        return self.palette[(self.turn - 1) % len(self.palette)]


def draw_sizes(draw: Draw, types: Sequence[BufferType], scale: int) -> Sizes:
    """A palette around `scale` bytes, the alignments and the largest buffers of `types`."""
    kind = draw.choice(types)
    if draw.boolean(0.03):  # no byte is needed at all
        return Sizes((0,))
    if kind.max_size <= 1 << 16 and draw.boolean(0.15):
        return Sizes(filling(draw, kind))
    palette = [scale]
    for _ in range(draw.integer(1, 4)):
        palette.append(_one_size(draw, kind, scale))
    return Sizes(tuple(palette))


def filling(draw: Draw, kind: BufferType) -> tuple[int, ...]:
    """Sizes that fill a largest buffer to its last byte together: two, three, or both."""
    units = kind.max_size // kind.alignment
    first = draw.integer(0, units // draw.choice((1, 4, 8)))
    second = draw.integer(0, (units - first) // draw.choice((1, 4)))
    rest = units - first - second
    return tuple(kind.alignment * n for n in (first, second, rest, draw.choice((second + rest, units))))


def _one_size(draw: Draw, kind: BufferType, scale: int) -> int:
    how = draw.integer(0, 9)
    if how <= 2:
        return draw.integer(1, 2 * scale)
    if how == 3:  # at an alignment, or one off
        return max(0, kind.alignment * draw.integer(1, 4) + draw.integer(-1, 1))
    if how == 4:  # an equal one, or one off
        return max(0, scale + draw.integer(-1, 1))
    if how == 5 and kind.max_size <= 1 << 16:  # around the largest buffer
        return max(0, kind.max_size + draw.choice((0, -1, 1, -kind.alignment, kind.alignment)))
    if how == 6 and kind.max_size <= 1 << 16:  # parts of it, and more than it alone
        return kind.max_size * draw.choice((1, 2, 4, 6)) // draw.choice((1, 2, 3))
    if how == 7:
        return 0
    if how == 8:
        return scale * draw.choice((2, 3, 4, 8))
    return draw.integer(1, 64)


def draw_graph(
    draw: Draw, types: Sequence[BufferType], scale: int = 64, n_slots: int = 1, most: int = 12
) -> Graph:
    """A legal graph of up to `most` tensors (24 for wide ones, 90 for crowds), sizes around `scale` bytes."""
    shape = weighted(draw, [(s, 6 if s == "mix" else 1 if s == "wide" else 2) for s in _SHAPES])
    if draw.boolean(0.02):
        return Graph(())
    if types[0].max_size <= 1 << 16 and draw.boolean(0.06):
        return draw_full(draw, types[0])
    if shape == "crowd" and n_slots > 1:
        return _Crowd(draw, draw_sizes(draw, types, scale), shape, n_slots).build(draw.integer(60, 90))
    n = draw.integer(16, 24) if shape in ("wide", "crowd") else draw.integer(1, most)
    return _Builder(draw, draw_sizes(draw, types, scale), shape, n_slots).build(n)


def draw_full(draw: Draw, kind: BufferType) -> Graph:
    """A chain that fills a largest buffer to its last byte, and gives it back part by part."""
    builder = _Builder(draw, Sizes(filling(draw, kind), turn=0), "chain", 1)
    builder.kinds, builder.reach, builder.p_pad = [("node", 1)], "last", 0
    return builder.build(draw.integer(4, 7))


def draw_huge_graph(draw: Draw) -> Graph:
    """A graph with sizes near 2^63 and 2^64 (P13). Its trace must have small devices (see legal.py)."""
    tensors: list[Tensor] = []
    for i in range(draw.integer(1, 4)):
        edge = draw.choice((2**62, 2**63, 2**64 - 1, 2**64 - 1))
        # mostly so near that rounding up, or the sum with another one, goes over the edge
        off = draw.choice((0, 0, -1, 1, -31, -127)) if draw.boolean(0.6) else draw.integer(-4096, 4096)
        size = min(2**64 - 1, max(0, edge + off))
        if draw.boolean(0.3):
            size = draw.integer(0, 64)
        pad = min(2**64 - 1 - size, draw.choice((0, 0, 1, 64, 4096))) if size else 0
        flags = draw.choice((Flag.LEAF, Flag.LEAF | Flag.INPUT)) if i == 0 or draw.boolean(0.4) else _NO_FLAG
        src = () if flags else (draw.integer(0, i - 1),)
        if not flags and draw.boolean(0.2):
            flags, pad = Flag.INPLACE, 0
        tensors.append(Tensor(size, src, flags, 0, pad))
    return Graph(tuple(tensors))


class _Builder:
    """Appends tensors one by one; every one is legal when it is appended."""

    def __init__(self, draw: Draw, sizes: Sizes, shape: str, n_slots: int) -> None:
        self.draw, self.sizes = draw, sizes
        self.tensors: list[Tensor] = []
        self.kinds = [(kind, w * draw.choice((0, 1, 1, 2, 3))) for kind, w in _SHAPES[shape].items()]
        self.kinds.append(("node", 1))
        self.reach = draw.choice(_REACH.get(shape, ("last", "recent", "any", "any")))
        self.slots = tuple(range(n_slots)) if draw.boolean(0.6) else (0,)
        if draw.boolean(0.05):
            self.slots += (n_slots + 1,)  # counts modulo the slots
        self.p_output, self.p_pad, self.p_layout = (draw.choice((0, 0.05, 0.1, 0.3)) for _ in range(3))
        self.due: list[int] = []  # views that are to be read soon

    def build(self, n: int) -> Graph:
        self.tensors.append(
            self.leaf(self.draw.choice((Flag.LEAF, Flag.LEAF | Flag.INPUT, Flag.LEAF | Flag.PREALLOC)))
        )
        make: dict[str, Callable[[], Tensor]] = {
            "leaf": lambda: self.leaf(Flag.LEAF),
            "input": lambda: self.leaf(Flag.LEAF | Flag.INPUT),
            "prealloc": lambda: self.leaf(Flag.LEAF | Flag.PREALLOC),
            "node": lambda: self.node(self.sources()),
            "fresh": lambda: self.node(()),
            "inplace": self.in_place,
            "view": self.view,
        }
        for _ in range(n - 1):
            self.tensors.append(make[weighted(self.draw, self.kinds)]())
        if self.draw.boolean(0.7):
            self.last_is_output()
        return Graph(tuple(self.tensors))

    def last_is_output(self) -> None:
        last = self.tensors[-1]
        if not last.prealloc:
            self.tensors[-1] = replace(last, flags=last.flags | Flag.OUTPUT)

    def marks(self, flags: Flag) -> Flag:
        if not flags & Flag.PREALLOC and self.draw.boolean(self.p_output):
            flags |= Flag.OUTPUT
        if self.draw.boolean(self.p_layout):
            flags |= Flag.LAYOUT
        return flags

    def pad(self, size: int) -> int:
        if not size:
            return 0
        return self.draw.choice((1, 8, 32, 64, 256)) if self.draw.boolean(self.p_pad) else 0

    def leaf(self, flags: Flag) -> Tensor:
        size = self.sizes.one(self.draw)
        return Tensor(size, (), self.marks(flags), self.draw.choice(self.slots), self.pad(size))

    def node(self, src: tuple[int, ...]) -> Tensor:
        size = self.sizes.one(self.draw)
        return Tensor(size, src, self.marks(_NO_FLAG), self.draw.choice(self.slots), self.pad(size))

    def source(self) -> int:
        last = len(self.tensors) - 1
        if self.reach == "last" and self.draw.boolean(0.9):
            return last
        if self.reach == "first" and self.draw.boolean(0.8):
            return 0
        if self.reach == "recent":
            return last - self.draw.integer(0, min(2, last))
        return self.draw.integer(0, last)

    def sources(self) -> tuple[int, ...]:
        n = weighted(self.draw, ((1, 5), (2, 4), (3, 1), (MAX_SRC, 1)))
        found = tuple(self.source() for _ in range(n))
        if self.due and self.draw.boolean(0.4):
            found = (*found[:-1], self.due.pop())
        return found

    def in_place(self) -> Tensor:
        """Mostly such that reuse is possible: the layout and slot of its first source, at times a view's last read."""
        src = self.sources()
        unread, shown = self.unread_views()
        if unread and self.draw.boolean(0.3):
            src = (self.draw.choice(unread), *src[1:])
        elif shown and self.draw.boolean(0.7):  # its last read, but for what reads a view of it later
            src = (self.draw.choice(shown), *src[1:])
            self.due += [i for i in unread if self.tensors[i].view_src == src[0] and i not in self.due]
        parent = self.tensors[src[0]]
        if self.draw.boolean(0.8):
            size, slot, flags = parent.size, parent.slot, parent.flags & Flag.LAYOUT
            if self.draw.boolean(0.3):  # reuse, but for the type
                slot = self.draw.choice(self.slots)
        else:
            size, slot, flags = self.sizes.one(self.draw), self.draw.choice(self.slots), _NO_FLAG
        plain = parent.size and not (parent.view or parent.inplace or parent.prealloc)
        if plain and self.draw.boolean(0.3):  # a parent that needs more than is reused
            self.tensors[src[0]] = replace(parent, pad=self.draw.choice((1, 8, 32)))
        output = Flag.OUTPUT if self.draw.boolean(self.p_output) else _NO_FLAG
        return Tensor(size, src, flags | output | Flag.INPLACE, slot)

    def unread_views(self) -> tuple[list[int], list[int]]:
        """Views that nobody reads yet; and what they show, where only views read that."""
        read = {s for t in self.tensors for s in t.src if not t.view}
        unread = [i for i, t in enumerate(self.tensors) if t.view and i not in read]
        return unread, sorted({self.tensors[i].view_src for i in unread} - read)

    def view(self) -> Tensor:
        root = self.source()
        if self.tensors[root].view:
            root = self.tensors[root].view_src
        size, offset = view_of(self.draw, self.tensors[root])
        output = Flag.OUTPUT if self.draw.boolean(max(self.p_output, 0.15)) else _NO_FLAG
        if self.draw.boolean(0.5):  # and is read later, when what it shows may be dead but for it
            self.due.append(len(self.tensors))
        return Tensor(size, (root,), output, self.tensors[root].slot, 0, root, offset)


class _Crowd(_Builder):
    """Many given tensors at one place, and nodes at another that read them all: a scheduler copies each."""

    def __init__(self, draw: Draw, sizes: Sizes, shape: str, n_slots: int) -> None:
        super().__init__(draw, sizes, shape, n_slots)
        self.kinds, self.reach, self.far = [*_SHAPES[shape].items()], "any", draw.integer(1, n_slots - 1)
        self.unread: list[int] = []

    def leaf(self, flags: Flag) -> Tensor:
        self.unread.append(len(self.tensors))
        return replace(super().leaf(flags), slot=self.far if self.draw.boolean(0.9) else 0)

    def node(self, src: tuple[int, ...]) -> Tensor:
        return replace(super().node(src), slot=0)

    def source(self) -> int:
        return self.unread.pop() if self.unread and self.draw.boolean(0.9) else super().source()

    def sources(self) -> tuple[int, ...]:
        return tuple(self.source() for _ in range(MAX_SRC))


def view_of(draw: Draw, root: Tensor) -> tuple[int, int]:
    """(size, offset) of a view inside `root`."""
    offset = 0 if draw.boolean(0.4) else draw.integer(0, root.size)
    left = root.size - offset
    return (left if draw.boolean(0.5) else draw.integer(0, left)), offset


def grown(graph: Graph) -> Graph:
    """The same graph of tensors twice as large."""
    return Graph(tuple(replace(t, size=2 * t.size, view_offs=2 * t.view_offs) for t in graph.tensors))


def moved(graph: Graph) -> Graph:
    """The same graph, every tensor at another place."""
    return Graph(tuple(replace(t, slot=t.slot ^ 1) for t in graph.tensors))


def mutate_lifetimes(draw: Draw, graph: Graph) -> Graph:
    """Another graph of as many tensors of the same sizes; other sources, views, lifetimes, outputs or places (G4).

    Only the empty graph, and one of preallocated leafs alone, have no other.
    """
    n = len(graph.tensors)
    if not n:
        return graph
    out = graph
    wanted = draw.integer(1, 3)
    for _ in range(12):
        i = draw.integer(0, n - 1)
        changed = _mutated(draw, i, out.tensors)
        if changed is not None:
            trial = Graph((*out.tensors[:i], changed, *out.tensors[i + 1 :]))
            if graph_legal(trial):
                out = trial
                wanted -= 1
        if wanted <= 0 and out != graph:
            return out
    return out if out != graph else _other_output(graph)


def _other_output(graph: Graph) -> Graph:
    """The first tensor that may be an output changes in that."""
    for i, t in enumerate(graph.tensors):
        if not t.prealloc:
            changed = replace(t, flags=t.flags ^ Flag.OUTPUT)
            return Graph((*graph.tensors[:i], changed, *graph.tensors[i + 1 :]))
    return graph


def _mutated(draw: Draw, i: int, tensors: tuple[Tensor, ...]) -> Tensor | None:
    """Tensor i with one change, not always a legal one; None where the change does not apply."""
    t = tensors[i]
    how = draw.integer(0, 7)
    if how == 0:
        return replace(t, flags=t.flags ^ Flag.OUTPUT)
    if how == 7:  # at another place; views go where their root is
        return replace(t, slot=t.slot ^ 1)
    if how == 1 and t.leaf:
        return replace(t, flags=t.flags ^ Flag.INPUT)
    if how == 2 and not t.leaf:
        return replace(t, flags=t.flags ^ Flag.INPLACE, pad=0) if not t.pad else None
    if i == 0 or t.leaf:
        return None
    root = draw.integer(0, i - 1)
    if how == 3:  # becomes a view, or a view of another
        offset = draw.integer(0, max(0, tensors[root].size - t.size))
        return replace(t, src=(root,), view_src=root, view_offs=offset, flags=t.flags & Flag.OUTPUT)
    if t.view:  # becomes a node
        return replace(t, view_src=-1, view_offs=0)
    if how == 4 and len(t.src) < MAX_SRC:
        return replace(t, src=(*t.src, root))
    if how == 5 and t.src:
        return replace(t, src=t.src[1:])
    if t.src:
        k = draw.integer(0, len(t.src) - 1)
        return replace(t, src=(*t.src[:k], root, *t.src[k + 1 :]))
    return None
