"""How good a plan is: the least memory that any plan of a graph can do with, by the lives of its tensors.

    lower_bound(types, slots, graph)              the largest live set: no plan needs less
    true_minimum(types, slots, graph, seconds)    what the best plan needs, found by Z3

Both are bytes by type, of one row of memory; a plan that is split over chunks needs at least as much. A tensor is
of its slot's type. What may share bytes is what placement.blame lets: lives that do not meet, and an operation
that writes over what it is the last to read (P8).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import z3

from ..model.planner import round_up
from ..model.records import BufferType, Graph
from .lifetimes import Life, lives


@dataclass(frozen=True, slots=True)
class Piece:
    """A tensor that needs bytes: `size` is rounded up. `over`: (tensor, offset in it) whose place it may take."""

    tensor: int
    size: int
    life: Life
    over: tuple[tuple[int, int], ...] = field(default=())


def pieces(types: Sequence[BufferType], slots: Sequence[int], graph: Graph, kind: int) -> list[Piece]:
    """What must be placed in memory of type `kind`, in order of its beginning."""
    tensors, unit = graph.tensors, types[kind].alignment
    alive = {
        i: life
        for i, life in lives(graph).items()
        if tensors[i].alloc_size and slots[tensors[i].slot % len(slots)] == kind
    }
    out = []
    for i, life in alive.items():
        over = tuple(dict.fromkeys(_reusable(graph, alive, i, unit)))
        out.append(Piece(i, round_up(tensors[i].alloc_size, unit), life, over))
    return sorted(out, key=lambda p: (p.life.start, p.tensor))


def _reusable(graph: Graph, alive: dict[int, Life], i: int, unit: int) -> Iterator[tuple[int, int]]:
    """P8: (root, offset in it) that node i may write over: it is the last to read it, and the layout is the same."""
    node = graph.tensors[i]
    for s in node.src if node.inplace else ():
        t = graph.tensors[s]
        root = t.view_src if t.view else s
        alike = t.layout == node.layout and t.view_offs % unit == 0
        if alike and root in alive and alive[root].end == alive[i].start and not alive[root].pinned:
            yield root, t.view_offs if t.view else 0


def lower_bound(types: Sequence[BufferType], slots: Sequence[int], graph: Graph) -> tuple[int, ...]:
    """The largest live set of each type: bytes that are needed at one step, sizes rounded up.

    A node that may take the place of a parent counts only with what is more than the parent's bytes.
    """
    return tuple(_largest_set(pieces(types, slots, graph, kind)) for kind in range(len(types)))


def _largest_set(all_: list[Piece]) -> int:
    by_tensor = {p.tensor: p for p in all_}
    most = live = 0
    by_start = sorted(all_, key=lambda p: p.life.start)
    by_end = sorted(all_, key=lambda p: p.life.end)
    begun = ended = 0
    for step in sorted({p.life.start for p in all_}):
        while begun < len(by_start) and by_start[begun].life.start <= step:
            live, begun = live + by_start[begun].size, begun + 1
        while ended < len(by_end) and by_end[ended].life.end < step:
            live, ended = live - by_end[ended].size, ended + 1
        starting = by_tensor.get(step)
        spared = (
            [_common(starting, by_tensor[root], offset) for root, offset in starting.over] if starting else []
        )
        most = max(most, live - max(spared, default=0))
    return most


def _common(node: Piece, root: Piece, offset: int) -> int:
    """Bytes that both have where the node is `offset` bytes into the root."""
    return max(0, min(root.size, offset + node.size) - offset)


def true_minimum(
    types: Sequence[BufferType], slots: Sequence[int], graph: Graph, seconds: float
) -> tuple[int, ...] | None:
    """The bytes of each type that the best plan needs; None where `seconds` are not enough to know."""
    until = time.monotonic() + seconds
    out = []
    for kind, least in enumerate(lower_bound(types, slots, graph)):
        best = _minimum(pieces(types, slots, graph, kind), types[kind].alignment, least, until)
        if best is None:
            return None
        out.append(best)
    return tuple(out)


def _minimum(all_: list[Piece], unit: int, least: int, until: float) -> int | None:
    """Halves the span between the bound and a plan that is known; all in units of the alignment."""
    if not all_:
        return 0
    low, high = least // unit, min(_greedy(all_, order) for order in _ORDERS) // unit
    if low == high:
        return high * unit
    solver, at = _placements(all_, unit)
    guess = low  # the bound is mostly met
    while low < high:
        left = until - time.monotonic()
        if left <= 0:
            return None
        solver.set("timeout", max(1, int(1000 * left)))
        solver.push()
        solver.add(*[at[p.tensor] + p.size // unit <= guess for p in all_])
        answer = solver.check()
        if answer == z3.sat:
            model = solver.model()
            high = max(model.eval(at[p.tensor]).as_long() + p.size // unit for p in all_)
        elif answer == z3.unsat:
            low = guess + 1
        else:
            return None
        solver.pop()
        guess = (low + high) // 2
    return high * unit


#: in which order to place what is known beforehand: the largest first, the longest lives, as they begin
_ORDERS: tuple[Callable[[Piece], tuple[int, ...]], ...] = (
    lambda p: (-p.size, p.life.start),
    lambda p: (p.life.start - p.life.end, -p.size),
    lambda p: (p.life.start, -p.size),
)


def _greedy(all_: list[Piece], order: Callable[[Piece], tuple[int, ...]]) -> int:
    """Bytes of a plan that is not bad: each piece at the lowest offset that is free for its life, or in place."""
    at: dict[int, int] = {}
    placed: list[Piece] = []
    for p in sorted(all_, key=order):
        beside = [q for q in placed if p.life.start <= q.life.end and q.life.start <= p.life.end]
        tries = {0} | {at[q.tensor] + q.size for q in beside}
        tries |= {at[root] + offset for root, offset in p.over if root in at}
        tries |= {at[q.tensor] - offset for q in beside for root, offset in q.over if root == p.tensor}
        at[p.tensor] = min(x for x in tries if x >= 0 and all(_may(p, x, q, at[q.tensor]) for q in beside))
        placed.append(p)
    return max(at[p.tensor] + p.size for p in all_)


def _may(p: Piece, x: int, q: Piece, y: int) -> bool:
    """Whether p at x and q at y may be needed at once."""
    apart = x + p.size <= y or y + q.size <= x
    return apart or (q.tensor, x - y) in p.over or (p.tensor, y - x) in q.over


def _placements(all_: list[Piece], unit: int) -> tuple[z3.Solver, dict[int, z3.ArithRef]]:
    """All plans: an offset a tensor, and no two that are needed at once share a unit unless one is in place."""
    solver = z3.SolverFor("QF_IDL")
    at = {p.tensor: z3.Int(f"t{p.tensor}") for p in all_}
    solver.add(*[x >= 0 for x in at.values()])
    for k, a in enumerate(all_):
        for b in all_[k + 1 :]:
            if a.life.start <= b.life.end and b.life.start <= a.life.end:
                x, y = at[a.tensor], at[b.tensor]
                apart = [x + a.size // unit <= y, y + b.size // unit <= x]
                apart += [y == x + offset // unit for root, offset in b.over if root == a.tensor]
                apart += [x == y + offset // unit for root, offset in a.over if root == b.tensor]
                solver.add(z3.Or(*apart))
    return solver, at
