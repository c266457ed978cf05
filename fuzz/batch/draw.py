"""What a batch's lanes do: one setup, a pool of graphs, one schedule of kinds; each lane has its own values.

All lanes make the same kind of operation by the same allocator at a step, so that the model's arrays
take no branch; a lane's graphs, capacities and failures are its own, and lanes sit steps out.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...model import oracle
from ...model.records import Cap, Graph, Kind, Setup
from ...native.lane_job import operations
from ..applies import NEEDS
from ..draw import RandomDraw, weighted
from ..generate import ALL_CAPS
from ..graphs import draw_graph, grown, mutate_lifetimes
from ..setups import Frame, device_bytes, draw_frame
from .session import Order
from .table import NO_LIMIT, most_chunks

LANES, STEPS = 1024, 48
GRAPHS, OF_LANE = 24, 4  #: in the pool, and of each lane's session
MOST_CHUNKS, MOST_SCALE = 3, 1024
ALLOCATORS = 3  #: 0 may own, 1 and 2 borrow

_PLANNED = (Kind.RESERVE, Kind.MEASURE, Kind.ALLOC)
#: kind -> weight; each batch multiplies them anew (swarm testing)
_WEIGHTS = {
    Kind.RESERVE: 8, Kind.ALLOC: 6, Kind.COMPUTE: 2, Kind.MEASURE: 1, Kind.SHRINK: 3, Kind.FREE: 2,
    Kind.NEW: 3, Kind.OWN: 1, Kind.BORROW: 3, Kind.CAPACITY: 1, Kind.REMAKE: 2,
}  # fmt: skip


@dataclass(frozen=True)
class Batch:
    """`which` [lane, number]: index in `graphs`. `capacity` [lane, device], bytes. `ops` [lane, step]."""

    setup: Setup
    graphs: tuple[Graph, ...]
    config_of: tuple[int, ...]  # [allocator]
    chunks: int
    which: NDArray[np.int64]
    capacity: NDArray[np.int64]
    orders: tuple[Order, ...]
    ops: NDArray[np.void]

    def slots(self, alloc: int) -> tuple[int, ...]:
        return self.setup.configs[self.config_of[alloc]]


def draw_batch(seed: int | str, lanes: int = LANES, steps: int = STEPS, caps: Cap = ALL_CAPS) -> Batch:
    """A batch for subjects of capabilities `caps`; the same seed gives the same batch."""
    draw = RandomDraw(random.Random(seed))
    frame = draw_frame(draw, pair=bool(caps & (Cap.RESIZABLE | Cap.GROUP)))
    frame = replace(frame, scale=min(frame.scale, MOST_SCALE))
    return batch_of(draw, frame, *_graphs(draw, frame), lanes, steps, caps)


def batch_of(
    draw: RandomDraw, frame: Frame, graphs: tuple[Graph, ...], chunks: int, lanes: int, steps: int, caps: Cap
) -> Batch:
    """A batch on these types and graphs, whose plans have at most so many chunks a type."""
    rng = np.random.default_rng(draw.integer(0, 1 << 62))
    setup = Setup(frame.types, frame.configs)
    config_of = (0, *(draw.integer(0, len(frame.configs) - 1) for _ in range(ALLOCATORS - 1)))
    which = rng.integers(0, len(graphs), (lanes, OF_LANE))
    needs = device_bytes(frame, graphs)
    values = _Values(rng, lanes, needs, setup, draw.choice((0.0, 0.5, 0.9)), draw.choice((0, 0.1, 0.3)))
    capacity = np.stack([values.capacity(t) for t in range(len(needs))], axis=1)
    orders = _schedule(draw, values, which, config_of, steps, _kinds(caps, bool(np.any(capacity < NO_LIMIT))))
    ops = _operations(orders, config_of, which, values, lanes)
    return Batch(setup, graphs, config_of, chunks, which, capacity, orders, ops)


def _graphs(draw: RandomDraw, frame: Frame) -> tuple[tuple[Graph, ...], int]:
    """Graphs that lanes can follow: few chunks, and outputs small enough for Python to know their digest."""
    setup, found, chunks = Setup(frame.types, frame.configs), dict[Graph, None](), 1
    for _ in range(3 * GRAPHS):
        if found and draw.boolean(0.3):
            graph = draw.choice(
                (mutate_lifetimes(draw, draw.choice(list(found))), grown(draw.choice(list(found))))
            )
        else:
            scale = max(1, int(frame.scale * draw.choice((1, 1, 1, 0.25, 4))))
            graph = draw_graph(
                draw, frame.types, scale, max(map(len, frame.configs)), most=draw.choice((4, 4, 8))
            )
        most = [most_chunks(setup, slots, graph) for slots in frame.configs]
        fits = all(n is None or n <= MOST_CHUNKS for n in most)
        if not fits or oracle.digest(graph) is None or sum(t.size for t in graph.tensors) > 16 * MOST_SCALE:
            continue
        chunks = max([chunks, *(n for n in most if n is not None)])
        found[graph] = None
        if len(found) == GRAPHS:
            break
    return tuple(found) or (Graph(()),), chunks


class _Values:
    """Each lane's values: arrays of shape [lane]."""

    def __init__(
        self,
        rng: np.random.Generator,
        lanes: int,
        needs: list[int],
        setup: Setup,
        p_limited: float,
        p_fail: float,
    ) -> None:
        self.rng, self.lanes, self.needs, self.setup = rng, lanes, needs, setup
        self.p_limited, self.p_fail = p_limited, p_fail
        self.none = np.zeros(lanes, np.int64)

    def some(self, p: float) -> NDArray[np.bool_]:
        return self.rng.random(self.lanes) < p

    def capacity(self, device: int) -> NDArray[np.int64]:
        """At, around, or apart from what the largest graph needs; or without limit."""
        need, unit = self.needs[device], self.setup.types[device].granularity
        near = np.array([need, need, max(0, need - 1), need + 1, need + unit, max(0, need - unit), need // 2,
                         need // 3, need + need // 3, 2 * need], np.int64)  # fmt: skip
        drawn = near[self.rng.integers(0, len(near), self.lanes)]
        return np.where(self.some(self.p_limited), drawn, NO_LIMIT)

    def fail_nth(self) -> NDArray[np.int64]:
        return np.where(self.some(self.p_fail / 2), self.rng.integers(1, 5, self.lanes), 0)

    def fail_types(self) -> NDArray[np.int64]:
        bits = self.rng.integers(1, 1 << len(self.needs), self.lanes)
        return np.where(self.some(self.p_fail / 2), bits, 0)


def _schedule(
    draw: RandomDraw,
    values: _Values,
    which: Any,
    config_of: tuple[int, ...],
    steps: int,
    kinds: dict[Kind, int],
) -> tuple[Order, ...]:
    weights = [(k, w * draw.choice((0, 1, 1, 2, 4))) for k, w in kinds.items()]
    weights += [(Kind.RESERVE, 2), (Kind.ALLOC, 1)]
    lazy = draw.choice((0.0, 0.3, 0.6))
    plan = _Plan(draw, kinds)
    while len(plan.steps) < steps:
        plan.add(weighted(draw, weights))
    return tuple(_order(draw, values, which, kind, alloc, lazy) for kind, alloc in plan.steps[:steps])


class _Plan:
    """Kinds in an order that makes sense mostly. Whether an operation is done is the lane's affair."""

    def __init__(self, draw: RandomDraw, kinds: dict[Kind, int]) -> None:
        self.draw, self.kinds = draw, kinds
        self.steps: list[tuple[Kind, int]] = []
        self.alive: set[int] = set()
        self.bound: set[int] = set()
        for kind, alloc in ((Kind.NEW, 0), (Kind.OWN, 0), (Kind.NEW, 1), (Kind.BORROW, 1)):
            self.take(kind, alloc)

    def take(self, kind: Kind, alloc: int) -> None:
        if kind not in self.kinds:
            return
        self.steps.append((kind, alloc))
        if kind == Kind.NEW:
            self.alive.add(alloc)
        if kind == Kind.ALLOC:
            self.bound.add(alloc)
        if kind == Kind.FREE:
            self.alive.discard(alloc)
            self.bound.discard(alloc)

    def add(self, kind: Kind) -> None:
        """One more of that kind, by one of those that it is for, and at times what follows from it."""
        draw = self.draw
        anyone = set(range(1 if kind == Kind.BORROW else 0, ALLOCATORS))
        fit = anyone if kind == Kind.CAPACITY or draw.boolean(0.04) else self.those(kind)  # at a wrong time
        options = [a for a in (0, 0, 0, 1, 1, 1, 2) if a in fit]
        if not options:
            return
        alloc = draw.choice(options)
        self.take(kind, alloc)
        if kind == Kind.FREE and draw.boolean(0.8):
            self.take(Kind.NEW, alloc)
            if draw.boolean(0.7):
                self.take(*((Kind.OWN, 0) if alloc == 0 else (Kind.BORROW, alloc)))
        if kind == Kind.RESERVE and draw.boolean(0.6):
            self.take(Kind.ALLOC, alloc)
            if draw.boolean(0.4):
                self.take(Kind.COMPUTE, alloc)

    def those(self, kind: Kind) -> set[int]:
        """The allocators that `kind` is for."""
        if kind == Kind.NEW:
            return set(range(ALLOCATORS)) - self.alive
        if kind == Kind.COMPUTE:
            return self.bound
        if kind == Kind.REMAKE:
            return self.alive & {0}
        return self.alive - {0} if kind == Kind.BORROW else self.alive


def _kinds(caps: Cap, limited: bool) -> dict[Kind, int]:
    """Those that the subject has, with their weights; capacities change only where there are some."""
    able = {k: w for k, w in _WEIGHTS.items() if k not in NEEDS or caps & NEEDS[k]}
    return able if limited else {k: w for k, w in able.items() if k != Kind.CAPACITY}


def _order(draw: RandomDraw, values: _Values, which: Any, kind: Kind, alloc: int, lazy: float) -> Order:
    lanes = np.arange(values.lanes)
    planned = kind in _PLANNED
    number = values.rng.integers(0, which.shape[1], values.lanes) if planned else values.none
    fails = planned and kind != Kind.MEASURE
    bits = values.fail_types() if fails else values.none
    device = draw.integer(0, len(values.needs) - 1)
    return Order(
        kind,
        alloc,
        graph=which[lanes, number],
        number=number,
        inject=tuple((bits >> t & 1).astype(bool) for t in range(len(values.needs))),
        fail_nth=values.fail_nth() if fails else values.none,
        device=device,
        value=values.capacity(device) if kind == Kind.CAPACITY else 0,
        does=values.some(0.75) if kind != Kind.CAPACITY and draw.boolean(lazy) else True,
    )


def _operations(
    orders: tuple[Order, ...], config_of: tuple[int, ...], which: Any, values: _Values, lanes: int
) -> NDArray[np.void]:
    ops = operations(lanes, len(orders))
    for i, o in enumerate(orders):
        ops["kind"][:, i] = int(o.kind) if o.does is True else np.where(o.does, int(o.kind), int(Kind.LOOK))
        ops["alloc"][:, i] = o.alloc
        other = config_of[o.alloc] if o.kind == Kind.NEW else o.device if o.kind == Kind.CAPACITY else 0
        ops["other"][:, i] = other
        ops["graph"][:, i] = o.number
        ops["fail_types"][:, i] = sum(bits.astype(np.int64) << t for t, bits in enumerate(o.inject))
        ops["fail_nth"][:, i] = o.fail_nth
        ops["value"][:, i] = o.value
    return ops
