"""Walks of two allocators, plain or driven through schedulers, as traces.

A requirement becomes a graph with one tensor for each chunk, which nothing frees; the largest buffer of its
type is so small that two tensors never share a chunk. Whether the plan in force is right for the graph is
a matter of giving the same graph again, or one that differs in a tensor with memory of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from ...model.domain import Ints, Tree, Value
from ...model.pair import BORROWER, OWNER, ROLES, RoleOp
from ...model.records import (
    MAX_ALLOCS,
    SIZE_MAX,
    VALIDATED,
    BufferType,
    Flag,
    Graph,
    Kind,
    Op,
    OpFlag,
    PoolKind,
    Setup,
    Shared,
    Strategy,
    Tensor,
    Trace,
)
from ...model.session import pad
from ...model.stack import Stack
from ...model.terms import equal, leaves
from ...spec import bounded
from ...spec.asking import implies
from ...spec.machine import Machine
from ...spec.witness import Earlier
from .made import Draft, Made, Unlike, made

LARGEST, MOST_TENSORS = 1 << 12, 40  #: bytes of a device or chunk; tensors of a graph
_PLANNED = (Kind.RESERVE, Kind.MEASURE, Kind.ALLOC, Kind.COMPUTE)
_PERMANENT = Flag.LEAF | Flag.PREALLOC
_HUGE = Graph((Tensor(SIZE_MAX - 1, flags=Flag.LEAF), Tensor(SIZE_MAX - 1, (0,), flags=Flag.OUTPUT)))


@dataclass(frozen=True)
class Sort:
    """How a machine of two roles looks: its strategy, and whether schedulers drive the allocators."""

    strategy: Strategy = Strategy.PAIR
    sched: bool = False

    def under(self, model: Any) -> Any:
        """The model of the two allocators."""
        found = getattr(model, "under", None) or getattr(model, "pair", None) or getattr(model, "two", None)
        return found

    def pair(self, s: Any) -> Any:
        """Their state."""
        for name in ("pair", "s", "c"):
            if hasattr(s, name):
                return getattr(s, name)
        return s

    def on(self, op: Any) -> RoleOp:
        """What is asked of an allocator."""
        return op.on._replace(kind=op.kind, role=op.role) if self.sched else op


# -- what can be asked ---------------------------------------------------------------------


def real(sort: Sort, model: Any, s: Tree, op: Any, earlier: Earlier) -> list[Value]:
    """What a subject's operations can ask. Formulas."""
    d, p, on, under = model.d, sort.pair(s), sort.on(op), sort.under(model)
    planned = d.any(*(op.kind == int(k) for k in _PLANNED))
    comes = d.any(*(op.kind == int(k) for k in (Kind.NEW, Kind.BORROW)))
    law = [x <= LARGEST for x in leaves((on.need, p.cap))] + [on.type >= 0, on.type < len(under.types)]
    law += [on.value <= LARGEST, implies(d, comes, d.any(*on.uses))]
    law += [implies(d, y > 0, x > 0) for row in on.need for x, y in pairwise(row)]
    nothing = d.all(*(x == 0 for x in leaves(on.need)))
    law.append(implies(d, d.inv(on.plannable), d.all(nothing, d.inv(on.match))))
    law.append(implies(d, op.kind == int(Kind.BORROW), d.all(nothing, d.inv(on.match))))
    for t in under.types:
        empty = d.all(*(x == 0 for x in on.need[t]))
        law += [
            implies(d, d.all(planned, op.role == r, p.active[r], d.inv(p.uses[r][t])), empty) for r in ROLES
        ]
    if not sort.sched:
        law.append(d.inv(on.by_sched))
    if sort.strategy == Strategy.PAIR:
        law += map(d.inv, on.missing)
    return [*law, *_tensors(d, op, earlier, planned)] if sort.sched else law


def _tensors(d: Any, op: Any, earlier: Earlier, planned: Value) -> list[Value]:
    """A graph has a tensor for each chunk at least, and graphs of one requirement have as many tensors."""
    chunks = sum(d.ite(x > 0, 1, 0) for x in leaves(op.on.need))
    law = [implies(d, planned, op.tensors >= 1 + chunks), op.tensors <= MOST_TENSORS]
    for other, _ in earlier:
        asks = d.any(*(other.kind == int(k) for k in _PLANNED))
        alike = d.all(planned, asks, *equal(other.on.need, op.on.need))
        law.append(implies(d, d.all(alike, op.on.match), other.tensors == op.tensors))
    return law


# -- the trace -----------------------------------------------------------------------------


def places(devices: Any) -> dict[int, int]:
    """The index of the simple type that stands for each device: its own type, or one that nobody uses."""
    found = {k: k for k, row in enumerate(devices) if row == (k,)}
    for k in range(len(devices)):
        found.setdefault(k, len(devices) + sum(x >= len(devices) for x in found.values()))
    return found


def setup_of(sort: Sort, m: Machine, walk: bounded.Trace) -> Setup:
    """The devices, and a config for each list of types that somebody comes with."""
    under, p = sort.under(m.model(Ints, *walk.config)), sort.pair(walk.start)
    pooled = any(not getattr(op, "scratch", True) for op in walk.ops)
    device = places(under.devices)
    capacity = {device[k]: (1 << 27) if pooled else int(p.cap[k]) for k in under.types}
    types = [BufferType(capacity=capacity[k]) for k in sorted(capacity)]
    for t in under.types:
        row = under.devices[t]
        meta = 0 if row == (t,) else sum(1 << device[k] for k in row)
        kind = BufferType(max_size=_top(sort, walk, t), capacity=capacity.get(t, LARGEST), meta=meta)
        types[t : t + (t in capacity)] = [kind]
    uses = [sort.on(op).uses for op in walk.ops if op.kind in (Kind.NEW, Kind.BORROW)]
    configs = tuple(dict.fromkeys(_slots(u) for u in (*uses, (True,))))
    pool = PoolKind.VMM_POOL if pooled else PoolKind.NO_POOL
    return Setup(tuple(types), configs, sort.strategy, pool, 1 << 20 if pooled else 0)


def _slots(uses: Tree) -> tuple[int, ...]:
    return tuple(t for t, u in enumerate(uses) if u)


def _top(sort: Sort, walk: bounded.Trace, t: int) -> int:
    """The largest buffer of type t: so small that no two chunks are one."""
    rows = [sort.on(op).need[t] for op in walk.ops]
    pairs = [x + y for row in rows for x, y in pairwise(row) if y]
    return max(1, min(pairs) - 1) if pairs else SIZE_MAX


@dataclass
class Builder:
    """Makes the trace while the reference runs beside it."""

    sort: Sort
    setup: Setup
    chunks: int
    device: dict[int, int]  # its type, as `places` says
    graphs: list[Graph] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    number: dict[int, int] = field(default_factory=dict)  # of each role's allocator

    def __post_init__(self) -> None:
        self.stack = Stack(self.setup, [])

    def do(self, op: Op) -> int:
        """One operation more; its number."""
        self.stack.session.graphs = self.graphs
        self.stack.step(op)
        self.ops.append(op)
        return len(self.ops) - 1

    def unused(self) -> int:
        taken = self.stack.session.allocs
        free = [n for n in range(MAX_ALLOCS) if n not in taken]
        if not free:
            raise Unlike("too many allocators")
        return free[0]

    def graph(self, graph: Graph) -> int:
        if graph not in self.graphs:
            self.graphs.append(graph)
        return self.graphs.index(graph)

    def wanted(self, n: int, on: RoleOp, tensors: int) -> int:
        """The graph that is asked for by allocator n."""
        a = self.stack.session.allocs.get(n)
        if not on.plannable:
            return self.graph(_HUGE)
        if a is None:
            return self.graph(self.made((0,), on.need, 1, 0))
        slots = self.setup.configs[a.config]
        if on.match and a.plan is not None:
            plan = self.stack.session.plan(a.config, a.plan)
            if plan is not None and pad(plan.need, self.chunks)[: len(on.need)] == on.need:
                return self.graph(a.plan)
            if on.kind == Kind.ALLOC:
                raise Unlike("the plan's graph needs something else")
        for variant in range(1, 64):
            graph = self.made(slots, on.need, variant, tensors)
            if graph != a.plan:
                break
        return self.graph(graph)

    def made(self, slots: tuple[int, ...], need: Tree, variant: int, tensors: int) -> Graph:
        """`variant`: bytes of the tensor that has memory of its own."""
        found = [Tensor(variant, flags=_PERMANENT)]
        for t, chunks in enumerate(need):
            for size in chunks:
                if size and t in slots:
                    found.append(Tensor(size, (0,), Flag.OUTPUT, slots.index(t)))
        found += [Tensor(1, flags=_PERMANENT)] * (tensors - len(found))
        return Graph(tuple(found))

    # -- operations --------------------------------------------------------------------

    def add(self, op: Any, out: Any, s: Any) -> int:
        """One operation of the walk; the number of what it is in the trace."""
        kind, on = Kind(op.kind), self.sort.on(op)
        if kind == Kind.NEW:
            return self.new(op, on, s)
        if kind == Kind.BORROW:
            return self.borrow(op, on, out)
        if kind == Kind.CAPACITY:
            return self.do(Op(kind, other=self.device[int(on.type)], value=on.value))
        n = self.number.get(int(op.role), self.unused())
        graph, fails = 0, {}
        if kind in _PLANNED:
            graph = self.wanted(n, on, int(getattr(op, "tensors", 0)))
        if kind in (Kind.RESERVE, Kind.ALLOC, Kind.COMPUTE):
            bits = sum(1 << self.device[k] for k, x in enumerate(on.inject) if x)
            fails = {"fail_types": bits, "fail_nth": int(on.fail_nth)}
        flags = OpFlag(0)
        if kind == Kind.COMPUTE:
            flags |= OpFlag.UNCHECKED if on.unchecked else OpFlag(0)
            flags |= OpFlag.ASYNC if getattr(op, "run_async", False) else OpFlag(0)
            if not getattr(op, "scratch", True):
                for t in self.device.values():
                    self.do(Op(Kind.TRIM, other=t))
                fails["fail_nth"] = fails["fail_nth"] or int(out.allocations) + 1
        at = self.do(Op(kind, n, graph=graph, flags=flags, **fails))
        if kind == Kind.FREE:
            self.number.pop(int(op.role), None)
        if self.sort.sched and int(out.role) != int(op.role) and int(op.role) in self.number:
            self.number = {int(out.role): self.number.pop(int(op.role))}
        return at

    def new(self, op: Any, on: RoleOp, s: Any) -> int:
        """By a number that is taken where the two are there already."""
        active = self.sort.pair(s).active
        taken = next((self.number[r] for r in ROLES if active[r]), None)
        n = self.unused() if taken is None else taken
        if taken is None:
            self.number = {OWNER: n}
        return self.do(self.coming(n, op, on))

    def coming(self, n: int, op: Any, on: RoleOp) -> Op:
        config = self.setup.configs.index(_slots(on.uses))
        new = Op(Kind.NEW, n, config)
        return replace(new, flags=OpFlag.BY_SCHED, value=int(op.tensors)) if self.sort.sched else new

    def borrow(self, op: Any, on: RoleOp, out: Any) -> int:
        """The candidate comes, is made unfit where it is to be, and goes where it is refused."""
        n = self.unused()
        self.do(self.coming(n, op, on))
        if not on.clean:
            self.do(Op(Kind.OWN, n))
        other = self.number.get(int(on.other))
        if other is None:
            other = next(k for k in range(MAX_ALLOCS) if k not in self.stack.session.allocs)
        lacking = sum(bit for bit, x in zip(Shared, on.missing, strict=True) if x)
        value = VALIDATED & ~lacking if self.sort.strategy != Strategy.PAIR else 0
        at = self.do(Op(Kind.BORROW, n, other, value=value))
        if out.status == 1:
            self.number[BORROWER] = n
        else:
            self.do(Op(Kind.FREE, n))
        return at


def draft(sort: Sort, m: Machine, walk: bounded.Trace) -> Draft:
    """The trace. Raises Unlike."""
    model, s, at = m.model(Ints, *walk.config), walk.start, list[int]()
    builder = Builder(sort, setup_of(sort, m, walk), walk.config[1], places(sort.under(model).devices))
    for op in walk.ops:
        t, out = model.step(s, op)
        at.append(builder.add(op, out, s))
        s = t
    return Draft(Trace(builder.setup, tuple(builder.graphs), tuple(builder.ops)), tuple(at))


def accept(sort: Sort, m: Machine, walk: bounded.Trace) -> Made | None:
    """None where the walk cannot be brought about."""
    try:
        return made(m, walk, draft(sort, m, walk))
    except Unlike:
        return None
