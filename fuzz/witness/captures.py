"""Walks of captured graphs as traces.

Who shares buffers is a pair on a type of its own; everybody else has a type of its own too, so that a trim
reaches whom it is to reach. Buffers are replaced by a graph that is larger than all before it, and are not by
one that needs none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...model.capture import NOBODY
from ...model.domain import Ints, Tree, Value
from ...model.records import (
    MAX_ALLOCS,
    BufferType,
    Flag,
    Graph,
    Kind,
    Observation,
    Op,
    OpFlag,
    PoolKind,
    Setup,
    Status,
    Tensor,
    Trace,
)
from ...model.stack.pools import KEPT
from ...spec import bounded
from ...spec.asking import implies
from ...spec.machine import Machine
from ...spec.witness import Earlier
from .made import Draft, Made, Unlike, made

#: of these the machine knows only whether they are allowed
_ELSEWHERE = (Kind.OWN, Kind.BORROW, Kind.FREE, Kind.REMAKE)
_OTHER_STREAM = MAX_ALLOCS - 1
_PERMANENT = Flag.LEAF | Flag.PREALLOC


def real(model: Any, s: Tree, op: Any, earlier: Earlier) -> list[Value]:
    """What a subject's operations can bring about. Formulas."""
    d, all_ = model.d, model.allocs
    kind = {k: op.kind == int(k) for k in Kind}
    pairs = [(m, n) for m in all_ for n in all_ if m < n]
    law = [sum(d.ite(s.mates[m][n], 1, 0) for m, n in pairs) <= 1]
    for m, n in pairs:  # a trim reaches both, or neither
        law.append(implies(d, d.all(kind[Kind.TRIM], s.mates[m][n]), op.reach[m] == op.reach[n]))
    me = tuple(op.alloc == n for n in all_)
    fresh = d.any(*(d.all(m, s.bound[n], s.gen[n] == s.bound_gen[n]) for n, m in enumerate(me)))
    ready = d.all(fresh, d.inv(model.waited_for(s, me)))
    law.append(implies(d, d.all(kind[Kind.COMPUTE], d.inv(model.involved(s, me))), ready))
    law.append(implies(d, kind[Kind.COMPUTE], d.any(op.scratch, s.at == op.alloc)))
    law.append(implies(d, kind[Kind.LAUNCH], d.any(d.inv(op.lent), d.any(*map(d.all, me, s.has)))))
    law.append(implies(d, op.fails, op.replaces))
    evicts = d.any(*op.evicts)
    law.append(
        implies(d, kind[Kind.POOL_FREE], implies(d, evicts, sum(d.ite(e, 1, 0) for e in op.evicts) == 1))
    )
    law += [
        implies(d, d.all(kind[Kind.POOL_FREE], e), d.all(h, m, s.at == NOBODY))
        for e, h, m in zip(op.evicts, s.has, s.mapped, strict=True)
    ]
    for gone, out in earlier:  # who is gone is gone, and so is who was its partner
        left = d.all(gone.kind == int(Kind.FREE), out.status == int(Status.DONE))
        law.append(implies(d, left, op.alloc != gone.alloc))
        law += [
            implies(d, d.all(left, gone.alloc == a, s.mates[a][b]), op.alloc != b)
            for a in all_
            for b in all_
            if a != b
        ]
    return law


@dataclass
class Builder:
    """Makes the trace. `sched`: the allocators are driven through schedulers."""

    start: Any
    sched: bool
    legacy: bool
    graphs: list[Graph] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    masks: list[int] = field(default_factory=list)
    size: int = 64

    def __post_init__(self) -> None:
        mates = self.start.mates
        self.allocs = range(len(mates))
        partner = {n: next((m for m in self.allocs if mates[n][m]), n) for n in self.allocs}
        #: of each allocator: its type, which is its config too
        self.type = {n: sorted({min(k, partner[k]) for k in self.allocs}).index(min(n, partner[n]))
                     for n in self.allocs}  # fmt: skip
        self.types = max(self.type.values()) + 1
        for n in self.allocs:
            flags = OpFlag.BY_SCHED if self.sched else OpFlag(0)
            self.do(Op(Kind.NEW, n, self.type[n], flags=flags))
        for n in self.allocs:
            if partner[n] >= n:
                self.do(Op(Kind.OWN, n))
        for n in self.allocs:
            if partner[n] < n:
                self.do(Op(Kind.BORROW, n, partner[n]))

    @property
    def all_devices(self) -> int:
        return (1 << self.types) - 1

    def do(self, op: Op) -> int:
        self.ops.append(op)
        return len(self.ops) - 1

    def setup(self) -> Setup:
        """The types, one that nobody uses, and the meta types."""
        types = [BufferType() for _ in range(self.types + 1)]
        types += [BufferType(meta=mask) for mask in self.masks]
        kind = PoolKind.LEGACY_POOL if self.legacy else PoolKind.VMM_POOL
        return Setup(tuple(types), tuple((t,) for t in range(self.types)), pool=kind, pool_range=1 << 24)

    def graph(self, size: int) -> int:
        """A graph that needs so many bytes, and takes scratch."""
        graph = Graph((Tensor(1, flags=_PERMANENT), Tensor(size, (0,), Flag.OUTPUT)))
        if graph not in self.graphs:
            self.graphs.append(graph)
        return self.graphs.index(graph)

    def add(self, s: Any, op: Any, out: Any) -> int:
        """One operation of the walk; the number of what it is in the trace."""
        kind, n = Kind(op.kind), int(op.alloc)
        flags = OpFlag.ASYNC if op.run_async else OpFlag(0)
        if kind in (Kind.RESERVE, Kind.ALLOC):
            return self.fit(kind, n, op)
        if kind == Kind.COMPUTE:
            return self.do(
                Op(
                    kind,
                    n,
                    graph=self.graph(0),
                    flags=flags,
                    fail_types=0 if op.scratch else self.all_devices,
                )
            )
        if kind == Kind.LAUNCH:
            return self.launch(n, op, flags | (OpFlag.UNCHECKED if op.unchecked else OpFlag(0)))
        if kind == Kind.TRIM:
            return self.do(Op(kind, other=self.trimmed([self.type[k] for k in self.allocs if op.reach[k]])))
        if kind == Kind.POOL_FREE:
            return self.evict(s, op)
        if kind == Kind.BORROW:
            return self.do(Op(kind, n, _OTHER_STREAM))
        return self.do(Op(kind, n))

    def fit(self, kind: Kind, n: int, op: Any) -> int:
        size = 0
        if op.replaces:
            self.size = size = 2 * self.size
        return self.do(Op(kind, n, graph=self.graph(size), fail_types=self.all_devices if op.fails else 0))

    def launch(self, n: int, op: Any, flags: OpFlag) -> int:
        """Where its pool memory is to be somebody's, somebody takes some before, and gives it back after."""
        if not op.lent:
            return self.do(Op(Kind.LAUNCH, n, flags=flags))
        self.do(Op(Kind.POOL_ALLOC, n, self.type[n], value=1))
        at = self.do(Op(Kind.LAUNCH, n, flags=flags))
        self.do(Op(Kind.POOL_FREE, n, self.type[n]))
        return at

    def trimmed(self, reached: list[int]) -> int:
        """The type whose trim reaches these types' devices."""
        devices = sorted(set(reached))
        if len(devices) < 2:
            return devices[0] if devices else self.types
        mask = sum(1 << k for k in devices)
        if mask not in self.masks:
            self.masks.append(mask)
        return self.types + 1 + self.masks.index(mask)

    def evict(self, s: Any, op: Any) -> int:
        """The block of a captured graph is taken, the pool is filled with others, and the block is freed for good."""
        who = next((k for k, e in enumerate(op.evicts) if e), None)
        stream, device = (_OTHER_STREAM, self.types) if who is None else (who, self.type[who])
        self.do(Op(Kind.POOL_ALLOC, stream, device, value=1))
        if who is not None:
            for _ in range(KEPT):
                self.do(Op(Kind.POOL_ALLOC, stream, device, value=1))
            for _ in range(KEPT):
                self.do(Op(Kind.POOL_FREE, stream, device))
        return self.do(Op(Kind.POOL_FREE, stream, device))


def same(op: Any, out: Any, seen: Observation) -> bool:
    """The status; what the machine leaves to others is only allowed or not."""
    if op.kind in _ELSEWHERE and out.status != Status.MISUSE:
        return seen.status == Status.DONE or (
            op.kind in (Kind.OWN, Kind.BORROW) and seen.status != Status.MISUSE
        )
    return bool(out.status == seen.status)


def accept(m: Machine, walk: bounded.Trace) -> Made | None:
    """None where the walk cannot be brought about, neither by plain allocators nor by schedulers."""
    evicts = any(op.kind == Kind.POOL_FREE and any(op.evicts) for op in walk.ops)
    for sched in (False, True):
        builder = Builder(walk.start, sched, evicts)
        model, s, at = m.model(Ints, *walk.config), walk.start, list[int]()
        try:
            for op in walk.ops:
                t, out = model.step(s, op)
                at.append(builder.add(s, op, out))
                s = t
            trace = Trace(builder.setup(), tuple(builder.graphs), tuple(builder.ops))
            return made(m, walk, Draft(trace, tuple(at)), same)
        except Unlike:
            continue
    return None
