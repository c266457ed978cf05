"""Walks of device pools as traces.

A computation is that of a plain allocator whose number is the stream's. It has an empty tensor on the pool's
device, so that no buffer takes that device's memory, and a tensor as large as its scratch elsewhere: on a
device of its own, the last one, whose pool counts as the one beside.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...model.domain import Ints, Tree, Value
from ...model.records import (
    BufferType,
    Flag,
    Graph,
    Kind,
    Observation,
    Op,
    OpFlag,
    PoolKind,
    Setup,
    Tensor,
    Trace,
)
from ...model.stack.pools import KEPT, SCRATCH
from ...spec import bounded
from ...spec.asking import implies
from ...spec.machine import Machine
from ...spec.witness import Earlier
from .made import Draft, Made, Unlike, made

MOST = 1 << 27  #: bytes of a device
_BLOCKS = (Kind.POOL_ALLOC, Kind.POOL_FREE)


def real(model: Any, s: Tree, op: Any, earlier: Earlier) -> list[Value]:
    """What a subject's operations can ask. Formulas."""
    d = model.d
    kind = {k: op.kind == int(k) for k in Kind}
    law = [op.fresh == len(earlier) + 1, op.before == 0, op.value >= 0, op.value <= MOST]
    law += [op.device >= 0, op.device < len(model.devices), *(x <= MOST for x in s.cap)]
    law += [s.room[0] >= 1, s.room[0] <= MOST]
    law += [s.room[k] == d.roundup(s.room[0], model.units[k]) for k in model.devices]
    law.append(implies(d, kind[Kind.POOL_FREE], _handed_out(d, op, earlier)))
    law.append(implies(d, kind[Kind.POOL_ALLOC], op.size < 2**64))
    law.append(implies(d, kind[Kind.COMPUTE], d.all(op.size >= 1, op.size <= SCRATCH)))
    reached = sum(d.ite(x, 1, 0) for x in op.reach)
    law.append(implies(d, kind[Kind.TRIM], d.any(reached == 1, d.all(op.meta, reached >= 1))))
    if 0 < len(model.places) < KEPT:  # a subject keeps more
        full = (d.all(op.pool == i, p.kept[-1] > 0) for i, p in enumerate(s.pools))
        law.append(d.inv(d.all(d.any(kind[Kind.POOL_FREE], kind[Kind.COMPUTE]), d.any(*full))))
    return law


def _handed_out(d: Any, op: Any, earlier: Earlier) -> Value:
    """The block was handed out, and is not freed yet."""
    found = []
    for n, (come, out) in enumerate(earlier):
        mine = d.all(come.kind == int(Kind.POOL_ALLOC), out.status == 1, come.pool == op.pool)
        mine = d.all(mine, out.address == op.address, out.size == op.size)
        freed = (
            d.all(
                gone.kind == int(Kind.POOL_FREE),
                gone.pool == op.pool,
                gone.address == op.address,
                x.status == 1,
            )
            for gone, x in earlier[n + 1 :]
        )
        found.append(d.all(mine, d.inv(d.any(*freed))))
    return d.any(*found)


@dataclass
class Builder:
    """Makes the trace."""

    config: tuple[int, ...]
    start: Any
    model: Any
    graphs: list[Graph] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    metas: list[int] = field(default_factory=list)
    blocks: dict[int, list[tuple[int, int]]] = field(default_factory=dict)  # of each pool: address, bytes

    @property
    def streams(self) -> int:
        return self.config[3]

    def do(self, op: Op) -> int:
        self.ops.append(op)
        return len(self.ops) - 1

    def setup(self) -> Setup:
        """The pools' devices, one for all other memory, and the meta types."""
        units = [u if u > 4096 else 1 for u in self.model.units]
        types = [BufferType(granularity=u, capacity=c) for u, c in zip(units, self.start.cap, strict=True)]
        types.append(BufferType(capacity=MOST))
        types += [BufferType(granularity=max(units), meta=mask) for mask in self.metas]
        configs = tuple((k, len(units)) for k in range(len(units)))
        return Setup(tuple(types), configs, pool=PoolKind(self.config[0]), pool_range=int(self.start.room[0]))

    def fails(self, op: Any, device: int) -> dict[str, Any]:
        return {"fail_types": 1 << device if op.inject else 0, "fail_nth": int(op.fail_nth)}

    def add(self, op: Any, out: Any) -> int:
        """One operation of the walk; the number of what it is in the trace."""
        kind, pool = Kind(op.kind), int(op.pool)
        device, stream = pool // self.streams, pool % self.streams
        if kind == Kind.POOL_ALLOC:
            if out.status == 1:
                self.blocks.setdefault(pool, []).append((out.address, out.size))
            return self.do(Op(kind, stream, device, value=op.size, **self.fails(op, device)))
        if kind == Kind.POOL_FREE:
            return self.free(op, out, pool, stream, device)
        if kind == Kind.CAPACITY:
            return self.do(Op(kind, other=op.device, value=op.value))
        if kind == Kind.TRIM:
            return self.do(Op(kind, other=self.trimmed(op)))
        if kind == Kind.SYNC:
            self.do(Op(Kind.NEW, stream, device, flags=OpFlag.BY_SCHED))
            at = self.do(Op(kind, stream))
            self.do(Op(Kind.FREE, stream))
            return at
        return self.compute(op, stream, device)

    def free(self, op: Any, out: Any, pool: int, stream: int, device: int) -> int:
        mine = self.blocks.get(pool, [])
        if (op.address, op.size) not in mine:
            raise Unlike("no such block")
        at = mine.index((op.address, op.size))
        back = len(mine) - 1 - at
        if out.status == 1:
            del mine[at]
        return self.do(Op(Kind.POOL_FREE, stream, device, value=back))

    def trimmed(self, op: Any) -> int:
        """The type that reaches the devices."""
        reached = [k for k, x in enumerate(op.reach) if x]
        if not op.meta:
            return reached[0]
        mask = sum(1 << k for k in reached)
        if mask not in self.metas:
            self.metas.append(mask)
        return len(op.reach) + 1 + self.metas.index(mask)

    def compute(self, op: Any, stream: int, device: int) -> int:
        elsewhere = len(self.model.devices)
        graph = Graph((Tensor(0, flags=Flag.LEAF), Tensor(int(op.size), (0,), Flag.OUTPUT, 1)))
        if graph not in self.graphs:
            self.graphs.append(graph)
        number = self.graphs.index(graph)
        self.do(Op(Kind.NEW, stream, device))
        self.do(Op(Kind.RESERVE, stream, graph=number))
        self.do(Op(Kind.ALLOC, stream, graph=number))
        fails = self.fails(op, device)
        if op.beside:
            self.do(Op(Kind.TRIM, other=elsewhere))
            fails["fail_types"] |= 1 << elsewhere
        at = self.do(Op(Kind.COMPUTE, stream, graph=number, **fails))
        self.do(Op(Kind.FREE, stream))
        return at


def same(op: Any, out: Any, seen: Observation) -> bool:
    """The status, what was given back, and (of a block) how many allocations were tried."""
    tried = op.kind not in _BLOCKS or out.allocations == seen.allocations
    return bool(out.status == seen.status and out.released == seen.released and tried)


def accept(m: Machine, walk: bounded.Trace) -> Made | None:
    """None where the walk cannot be brought about."""
    model = m.model(Ints, *walk.config)
    builder, s, at = Builder(walk.config, walk.start, model), walk.start, list[int]()
    try:
        for op in walk.ops:
            s, out = model.step(s, op)
            at.append(builder.add(op, out))
        trace = Trace(builder.setup(), tuple(builder.graphs), tuple(builder.ops))
        return made(m, walk, Draft(trace, tuple(at)), same)
    except Unlike as why:
        if DEBUG:
            print(why)
        return None


DEBUG = 0
