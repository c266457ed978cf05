"""Traces on sessions with device pools (V): blocks taken and given back, trims, scratch of computations."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..model.pool import KEPT
from ..model.records import (
    MAX_STREAMS,
    UNLIMITED,
    BufferType,
    Cap,
    Kind,
    Op,
    OpFlag,
    PoolKind,
    Setup,
    Trace,
)
from .draw import Draw, weighted
from .graphs import draw_graph

_GRANULARITIES = ((1, 6), (64, 2), (4096, 4), (65536, 1), (2 << 20, 1))
_LENGTH = 24


def draw_pools(draw: Draw, caps: Cap) -> Trace:
    """One to three devices, at times a meta type over them; pools of either kind; a plain allocator or two."""
    types = _types(draw, caps)
    unit = max(4096, *(t.granularity for t in types if not t.meta))
    room = unit * draw.choice((1, 2, 3, 3, 6, 16)) - draw.choice((0, 0, 1, 4000))
    pool = PoolKind.LEGACY_POOL if draw.boolean(0.35) else PoolKind.VMM_POOL
    pool = PoolKind.NO_POOL if draw.boolean(0.03) else pool  # then there is nothing to take from
    scales = (draw.choice((64, 2000, 5000)) for _ in range(draw.choice((1, 2))))
    graphs = tuple(draw_graph(draw, types, scale, len(types), most=5) for scale in scales)
    history = _History(draw, caps, types, unit, room, pool == PoolKind.LEGACY_POOL, len(graphs))
    setup = Setup(types, (tuple(range(len(types))),), pool=pool, pool_range=room)
    return Trace(setup, graphs, history.ops())


def _types(draw: Draw, caps: Cap) -> tuple[BufferType, ...]:
    """Devices near what their pools come to hold; a meta type over two or more of them last."""
    granularities = [weighted(draw, _GRANULARITIES) for _ in range(draw.integer(1, 3))]
    types = tuple(BufferType(32, granularity=g, capacity=_capacity(draw, g)) for g in granularities)
    if caps & Cap.META and len(types) > 1 and draw.boolean(0.6):
        over = draw.choice((0b11, 0b110, 0b101, 0b111)) & ((1 << len(types)) - 1)
        over = over if over.bit_count() > 1 else 0b11
        types = (*types, BufferType(32, granularity=max(granularities), meta=over))
    return types


def _capacity(draw: Draw, granularity: int) -> int:
    unit = max(4096, granularity)
    return (
        UNLIMITED if draw.boolean(0.6) else unit * draw.choice((1, 2, 3, 5, 8)) + draw.choice((0, 0, 1, -1))
    )


@dataclass
class _History:
    """Draws operations, and keeps count of the blocks that should be out."""

    draw: Draw
    caps: Cap
    types: tuple[BufferType, ...]
    unit: int
    room: int
    legacy: bool
    graphs: int = 1
    out: dict[tuple[int, int], int] = field(default_factory=dict)  # by (device, stream)
    alive: dict[int, bool] = field(default_factory=dict)  # allocator: whether it has a graph bound

    def ops(self) -> tuple[Op, ...]:
        draw = self.draw
        base = {Kind.POOL_ALLOC: 6, Kind.POOL_FREE: 4, Kind.TRIM: 3, Kind.COMPUTE: 2, Kind.CAPACITY: 1}
        mix = [(kind, w * draw.choice((1, 1, 2, 3))) for kind, w in base.items()]
        self.streams = draw.choice((1, 1, 2, MAX_STREAMS))
        self.last = draw.choice((1, MAX_STREAMS - 1))  # allocator that computes
        self.p_fail, self.p_wrong = draw.choice((0, 0.15, 0.4)), draw.choice((0, 0, 0.05, 0.2))
        made: list[Op] = []
        while len(made) < _LENGTH:
            made += self.next(weighted(draw, mix))
        return tuple(made)

    def next(self, kind: Kind) -> list[Op]:
        if kind == Kind.POOL_ALLOC:
            return self.hoard() if self.legacy and self.draw.boolean(0.05) else [self.failing(self.take())]
        if kind == Kind.POOL_FREE:
            return self.give()
        if kind == Kind.TRIM:
            return self.trim()
        if kind == Kind.CAPACITY:
            return self.capacity()
        return self.compute()

    @property
    def devices(self) -> list[int]:
        return [k for k, t in enumerate(self.types) if not t.meta]

    def take(self) -> Op:
        device, stream = self.draw.choice(self.devices), self.draw.integer(0, self.streams - 1)
        self.out[device, stream] = self.out.get((device, stream), 0) + 1
        return Op(Kind.POOL_ALLOC, stream, device, value=self.size())

    def hoard(self) -> list[Op]:
        """More blocks than a legacy pool keeps, taken and given back."""
        device, many = self.draw.choice(self.devices), KEPT + self.draw.integer(1, 2)
        stream = self.draw.integer(0, self.streams - 1)
        taken = [Op(Kind.POOL_ALLOC, stream, device, value=self.unit * (1 + n % 2)) for n in range(many)]
        return [*taken, *[Op(Kind.POOL_FREE, stream, device)] * many]

    def size(self) -> int:
        """Bytes at and around units, the range's end, and small ones."""
        draw = self.draw
        how = draw.integer(0, 7)
        if how <= 2:
            return draw.choice((0, 1, 100, 128, 129, 1000))
        if how <= 5:
            return max(0, self.unit * draw.choice((1, 1, 2, 3)) + draw.choice((0, 0, -1, 1, -128, 128)))
        if how == 6:
            return max(0, self.room + draw.choice((0, 1, -1, -self.unit)))
        small = all(t.meta or t.capacity < UNLIMITED for t in self.types)
        return draw.choice((1 << 40, 2**63 - 1, 2**64 - 1)) if small else self.room

    def give(self) -> list[Op]:
        """The latest block of a pool mostly; one before it at times."""
        draw = self.draw
        pools = [p for p, n in self.out.items() if n]
        if not pools:
            return [Op(Kind.POOL_FREE, 0, 0)] if draw.boolean(self.p_wrong) else []
        device, stream = pool = draw.choice(pools)
        back = draw.integer(0, self.out[pool]) if draw.boolean(0.3) else 0
        self.out[pool] -= back == 0
        times = self.out[pool] if draw.boolean(0.3) else 0  # all of them: the pool is idle then
        self.out[pool] -= times
        return [Op(Kind.POOL_FREE, stream, device, value=back), *[Op(Kind.POOL_FREE, stream, device)] * times]

    def trim(self) -> list[Op]:
        """Of a type; the meta type often. What is out is given back first, at times."""
        draw = self.draw
        ops = []
        if draw.boolean(0.4):
            for device, stream in self.out:
                ops += [Op(Kind.POOL_FREE, stream, device)] * self.out[device, stream]
            self.out.clear()
        last = len(self.types) - 1
        kind = last if self.types[last].meta and draw.boolean(0.6) else draw.integer(0, last)
        return [*ops, Op(Kind.TRIM, other=kind)]

    def compute(self) -> list[Op]:
        """A graph of an allocator, made and bound first where that has not happened yet."""
        draw = self.draw
        alloc = draw.choice((0, self.last, self.last, draw.integer(0, self.last)))  # the edges mostly
        graph, ops = draw.integer(0, self.graphs - 1), []
        if alloc not in self.alive:
            sched = bool(self.caps & Cap.SCHED) and draw.boolean(0.5)
            ops.append(Op(Kind.NEW, alloc, flags=OpFlag.BY_SCHED if sched else OpFlag(0)))
            self.alive[alloc] = sched
        if ops or draw.boolean(0.25):
            ops.append(Op(Kind.RESERVE, alloc, graph=graph))
            if not (self.alive[alloc] and draw.boolean(0.4)):  # else what computes binds it first (C4)
                ops.append(Op(Kind.ALLOC, alloc, graph=graph))
        later = self.alive[alloc] and draw.boolean(0.5)
        flags = OpFlag.ASYNC if later else OpFlag(0)
        ops.append(self.failing(Op(Kind.COMPUTE, alloc, graph=graph, flags=flags)))
        if ops[-1].fail_nth and draw.boolean(0.5):  # what the failure left shows in another one
            ops.append(Op(Kind.COMPUTE, alloc, graph=draw.integer(0, self.graphs - 1)))
        if later and draw.boolean(0.5):
            ops.append(Op(Kind.SYNC, alloc))
        elif later and draw.boolean(0.5):  # V3: while it is in flight
            ops += self.trim()
        return ops

    def failing(self, op: Op) -> Op:
        if not self.draw.boolean(self.p_fail):
            return op
        if self.draw.boolean(0.8):  # a legacy pool makes one call for a block, the other makes three
            calls = (1, 1, 1, 2) if self.legacy else (1, 2, 2, 3, 3)
            op = replace(op, fail_nth=self.draw.choice(calls))
            if self.legacy and op.kind == Kind.POOL_ALLOC and self.draw.boolean(0.5):
                op = replace(op, value=4 * self.unit)  # more than any block that it keeps has
            return op
        return replace(op, fail_types=self.draw.integer(1, (1 << len(self.types)) - 1))

    def capacity(self) -> list[Op]:
        device = self.draw.choice(self.devices)
        bounded = self.types[device].capacity != UNLIMITED
        value = self.unit * self.draw.integer(0, 4) if bounded or self.draw.boolean(0.5) else UNLIMITED
        return [Op(Kind.CAPACITY, other=device, value=value)]
