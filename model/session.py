"""A whole session, predicted: allocators, plans, pairs and bound graphs.

`Session.step` gives the observation that a subject shows which behaves exactly
as docs/choices.md says. Rules live in resizable.py and planner.py; this file
only keeps track of which allocator is which role of which pair.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from . import oracle, planner
from .counted import Apart, Counted
from .domain import Ints
from .pair import BORROWER, OWNER, Out, RoleOp, State, candidate
from .records import (
    MAX_ALLOCS,
    MAX_CHUNKS,
    MAX_SLOTS,
    VALIDATED,
    Graph,
    Kind,
    Observation,
    Op,
    OpFlag,
    Place,
    Setup,
    Shared,
    Status,
    Strategy,
)
from .resizable import Model

MISUSE = Observation(Status.MISUSE)

Planning = Callable[
    [int, Graph], planner.Plan | None
]  #: (config, graph) -> its plan, None: cannot be planned


class Played(NamedTuple):
    """One step of a pair's model: what the clauses of R are stated over."""

    pair: Pair
    before: State
    op: RoleOp
    after: State
    out: Out


@dataclass(eq=False)
class Pair:
    """The state of one pair; a plain allocator is a pair of one. Books are kept by the pair itself."""

    state: State


@dataclass
class Allocator:
    """One allocator of the session: its config, its role, its plan and its bound graph."""

    config: int
    pair: Pair
    role: int = OWNER
    plan: Graph | None = None
    bound: Graph | None = None
    places: tuple[Place, ...] = ()
    sched: bool = False  # driven through a scheduler


@dataclass
class Attempts:
    """Device allocations of the running operation: which are made to fail, and how many were tried."""

    fail_types: int = 0  # bit d: every one on device d fails
    fail_nth: int = 0  # this one fails; 0: none
    tried: int = 0

    @property
    def nth(self) -> int:
        """Which one from here on fails; 0: none."""
        return max(0, self.fail_nth - self.tried)

    def injected(self, devices: int) -> tuple[bool, ...]:
        """[device]: every allocation on it fails."""
        return tuple(bool(self.fail_types >> d & 1) for d in range(devices))


@dataclass
class Session:
    """The executable reference of one session. Raises nothing: misuse is a status.

    `planning` is the reference planner unless the plans of another subject are to be followed.
    `chunks`: how many chunks a type may come to have (fewer are faster).
    `last` is the last model step, None where the last operation was none of a pair.
    """

    setup: Setup
    graphs: list[Graph] = field(default_factory=list)
    planning: Planning | None = None
    last: Played | None = None
    chunks: int = MAX_CHUNKS

    def __post_init__(self) -> None:
        types = self.setup.types
        devices = tuple(kind.devices(t) for t, kind in enumerate(types))
        model = {Strategy.PAIR: Model, Strategy.COUNTED: Counted, Strategy.APART: Apart}[self.setup.strategy]
        self.model: Model = model(Ints, len(types), self.chunks, devices)
        self.used: tuple[int, ...] = (0,) * len(types)
        self.capacity = tuple(t.capacity for t in types)
        self.granularity = tuple(t.granularity for t in types)
        self.allocs: dict[int, Allocator] = {}
        self.attempts = Attempts()

    # -- what is seen ------------------------------------------------------------

    def look(self, number: int) -> Observation:
        """The observation of one allocator, nothing changed."""
        a = self.allocs.get(number)
        if a is None:
            return replace(MISUSE, used=self.used)
        s = a.pair.state
        asked = tuple(self.model.holding(s, a.role, t) for t in range(len(self.used)))
        real = [sum(self.model.real(s, t, chunks)) for t, chunks in enumerate(asked)]
        return Observation(
            Status.DONE,
            generation=s.gen[a.role],
            shrink_generation=s.shrink_gen[a.role],
            used=self.used,
            reported=self.by_slot(a, real),
            measured=(0,) * MAX_SLOTS,
            asked=tuple(map(trim, asked)),
            owned=self.model.owned(s, a.role),
        )

    def by_slot(self, a: Allocator, by_type: list[int]) -> tuple[int, ...]:
        """G3: a type that is listed twice counts once."""
        slots = self.setup.configs[a.config]
        first = [by_type[t] if slots.index(t) == k else 0 for k, t in enumerate(slots)]
        return (*first, *(0,) * (MAX_SLOTS - len(slots)))

    # -- one operation -------------------------------------------------------------

    def step(self, op: Op) -> Observation:
        """What the operation shows; for FREE only `used` is left to see, for CAPACITY too."""
        self.last = None
        self.attempts = Attempts(op.fail_types, op.fail_nth)
        graph = self.graph(op.graph)
        if op.kind == Kind.CAPACITY:
            return self.set_capacity(op)
        if op.kind == Kind.NEW:
            return self.new(op)
        a = self.allocs.get(op.alloc)
        if a is None or op.kind in (Kind.SYNC, Kind.RESET):
            return replace(MISUSE, used=self.used)
        if op.kind == Kind.LOOK:
            return self.look(op.alloc)
        if op.kind in (Kind.RESERVE, Kind.MEASURE, Kind.ALLOC):
            return self.planned(op, a, graph)
        if op.kind == Kind.BORROW:
            return self.borrow(op, a)
        return self.simple(op, a)

    def graph(self, number: int) -> Graph | None:
        """The graph of that number; None where there is none."""
        return self.graphs[number] if 0 <= number < len(self.graphs) else None

    def new(self, op: Op) -> Observation:
        possible = 0 <= op.alloc < MAX_ALLOCS and 0 <= op.other < len(self.setup.configs)
        if not possible or op.alloc in self.allocs:
            return replace(MISUSE, used=self.used)
        pair = Pair(self.model.init(self.capacity, self.granularity, self.used))
        a = Allocator(op.other, pair, sched=bool(op.flags & OpFlag.BY_SCHED))
        self.play(a, RoleOp(Kind.NEW, uses=self.uses(a)))
        self.allocs[op.alloc] = a
        return self.look(op.alloc)

    def uses(self, a: Allocator) -> tuple[bool, ...]:
        return tuple(t in self.setup.configs[a.config] for t in range(len(self.used)))

    def play(self, a: Allocator, op: RoleOp) -> Out:
        """Steps the pair's state with the devices as they are now."""
        state = self.present(a)
        out: Out
        a.pair.state, out = self.model.step(state, op)
        self.last = Played(a.pair, state, op, a.pair.state, out)
        self.used = a.pair.state.used
        self.attempts.tried += int(out.allocations)
        return out

    def present(self, a: Allocator) -> State:
        """The state of the allocator's pair, with the devices as they are now."""
        return a.pair.state._replace(used=self.used, cap=self.capacity)

    def set_capacity(self, op: Op) -> Observation:
        if not 0 <= op.other < len(self.used):
            return replace(MISUSE, used=self.used)
        self.capacity = tuple(op.value if t == op.other else c for t, c in enumerate(self.capacity))
        return Observation(Status.DONE, used=self.used)

    def simple(self, op: Op, a: Allocator) -> Observation:
        """Operations that name no graph and no other allocator."""
        out = self.play(a, RoleOp(op.kind, a.role, unchecked=bool(op.flags & OpFlag.UNCHECKED)))
        status = Status(out.status)
        if op.kind == Kind.FREE:
            del self.allocs[op.alloc]
            return Observation(status, used=self.used)
        if op.kind == Kind.REMAKE and status == Status.DONE:
            a.plan = a.bound = None
        if status == Status.STALE:
            a.bound = None
        seen = replace(self.look(op.alloc), status=status)
        if op.kind == Kind.COMPUTE and status == Status.DONE:
            assert a.bound is not None
            seen = replace(seen, digest=oracle.digest(a.bound) or 0)
        return seen

    def borrow(self, op: Op, a: Allocator) -> Observation:
        """R1, R2, S4: the candidate leaves its own pair of one and joins the owner's."""
        missing = self.missing(op.value)
        other = self.allocs.get(op.other)
        if other is None or other.pair is a.pair:
            return replace(self.look(op.alloc), status=Status.REFUSED, reason=missing)
        if other.sched != a.sched:
            return replace(self.look(op.alloc), status=Status.MISUSE)
        status = Status(self.play(other, self.joining(a, other, missing)).status)
        if status == Status.DONE:
            a.pair, a.role = other.pair, BORROWER
        return replace(self.look(op.alloc), status=status, reason=missing)

    def missing(self, bits: int) -> int:
        """S4: what keeps two apart of whom `bits` (of Shared) are so; a pair asks for none."""
        return VALIDATED & ~bits if self.setup.strategy != Strategy.PAIR else 0

    def joining(self, a: Allocator, other: Allocator, missing: int = 0) -> RoleOp:
        """What a borrow of `a` asks of the other's pair; `missing`: as the method of that name says."""
        mine = a.pair.state
        bits = tuple(bool(missing & bit) for bit in Shared)
        could = self.model.could_own(mine, OWNER)
        ask = candidate(Ints, mine, a.role == OWNER, could, self.uses(a), bits)
        return ask._replace(other=other.role)

    def plan(self, config: int, graph: Graph) -> planner.Plan | None:
        if self.planning is not None:
            return self.planning(config, graph)
        return planner.plan(self.setup.types, self.setup.configs[config], graph)

    def planned(self, op: Op, a: Allocator, graph: Graph | None) -> Observation:
        """Reserve, measure or alloc of a graph."""
        if graph is None:
            return replace(self.look(op.alloc), status=Status.MISUSE)
        plan = self.plan(a.config, graph)
        ask = self.asked(op.kind, a, graph, plan)._replace(by_sched=bool(op.flags & OpFlag.BY_SCHED))
        out = self.play(a, ask)
        status = Status(out.status)
        if out.planned:
            a.plan = graph
        if ask.by_sched:
            a.bound = None
        if op.kind == Kind.ALLOC and status == Status.DONE:
            assert plan is not None
            a.bound, a.places = graph, plan.places
        seen = replace(self.look(op.alloc), status=status, allocations=int(out.allocations))
        if op.kind == Kind.MEASURE and plan:
            seen = replace(seen, measured=self.by_slot(a, [sum(chunks) for chunks in plan.need]))
        return seen

    def asked(self, kind: Kind, a: Allocator, graph: Graph, plan: planner.Plan | None) -> RoleOp:
        """What reserve, measure or alloc of a graph that has this plan asks of the pair."""
        return RoleOp(
            kind,
            a.role,
            need=pad(plan.need, self.chunks) if plan else self.model.no_need,
            plannable=plan is not None,
            match=a.plan == graph,
            inject=self.attempts.injected(len(self.used)),
            fail_nth=self.attempts.nth,
        )


def trim(chunks: tuple[int, ...]) -> tuple[int, ...]:
    """Without trailing zeros."""
    n = len(chunks)
    while n and chunks[n - 1] == 0:
        n -= 1
    return chunks[:n]


def pad(need: tuple[tuple[int, ...], ...], n: int) -> tuple[tuple[int, ...], ...]:
    """Each type's chunks padded with zeros to n."""
    return tuple((*chunks, *(0,) * (n - len(chunks))) for chunks in need)
