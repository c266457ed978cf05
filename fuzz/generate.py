"""Generation of traces. Every rule is written once, against Draw; see draw.py for where choices come from.

    draw_trace(RandomDraw(seed), "pair")              for campaigns
    traces("pair")  (strategies.py)                   for Hypothesis

What kind of operation comes next is weighted, and the weights are drawn anew for
each trace (swarm testing), so that each trace does much of a few things. Orders
are legal mostly: a tiny state knows who is alive, attached and bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from ..model.records import (
    MAX_ALLOCS,
    UNLIMITED,
    Cap,
    Graph,
    Kind,
    Op,
    OpFlag,
    Setup,
    Trace,
)
from .draw import Draw, RandomDraw, weighted
from .graphs import draw_graph, draw_huge_graph, grown, moved, mutate_lifetimes
from .legal import GRAPH_KINDS, SMALL_DEVICE, legal, why_illegal
from .setups import Frame, device_bytes, draw_frame, near_need, with_capacities
from .variations import counted, pooled

__all__ = ["PROFILES", "Profile", "RandomDraw", "draw_trace", "legal", "mutate_lifetimes", "why_illegal"]

Profile = Literal["plan", "gallocr", "pair", "sched", "huge"]
PROFILES: tuple[Profile, ...] = get_args(Profile)
#: a subject of this kind of ours can do it all
ALL_CAPS = Cap.PLAN | Cap.RESIZABLE | Cap.SCHED | Cap.REMAKE
_NO_FLAG = OpFlag(0)
_OF_POOLS = (Kind.POOL_ALLOC, Kind.POOL_FREE, Kind.TRIM)


def draw_trace(draw: Draw, profile: Profile, caps: Cap = ALL_CAPS, length: int = 20) -> Trace:
    """A legal trace of about `length` operations, of those that a subject of capabilities `caps` has.

    plan     one plain allocator, a fresh graph: measured, reserved, allocated, computed, and again
    gallocr  one or two plain allocators with a long history over several graphs (G)
    pair     owner and borrower (R); as gallocr where `caps` has no RESIZABLE
    sched    allocators driven through the scheduler (C); as gallocr where `caps` has no SCHED
    huge     sizes near 2^63 and 2^64 on small devices (P13)
    """
    if profile == "plan":
        return _plan_trace(draw)
    if profile == "huge":
        return _huge_trace(draw)
    sched = profile == "sched" and bool(caps & Cap.SCHED)
    pair = bool(caps & (Cap.RESIZABLE | Cap.GROUP)) and (profile == "pair" or (sched and draw.boolean(0.65)))
    trace = draw_history(draw, draw_frame(draw, pair), caps, pair=pair, sched=sched, length=length)
    if sched and pair and caps & Cap.COUNTED and draw.boolean(0.3):
        trace = counted(draw, trace)
    return pooled(draw, trace) if sched and caps & Cap.POOL and draw.boolean(0.25) else trace


def draw_history(
    draw: Draw,
    frame: Frame,
    caps: Cap,
    *,
    pair: bool,
    sched: bool = False,
    more: tuple[tuple[Kind, int], ...] = (),
    length: int = 20,
) -> Trace:
    """A long history of allocators on these types; `more`: kinds that come more often, with their weights."""
    graphs = draw_graphs(draw, frame)
    setup = with_capacities(draw, frame, graphs, 0.5 if pair else 0.35)
    needs = device_bytes(frame, graphs) if any(t.capacity != UNLIMITED for t in setup.types) else []
    weights = _Weights.drawn(draw, pair, sched, caps)
    weights = replace(weights, kinds=weights.kinds + more)
    return _History(draw, setup, graphs, needs, weights).trace(length)


def draw_graphs(draw: Draw, frame: Frame) -> tuple[Graph, ...]:
    """1 to 4 graphs: fresh ones, larger and smaller ones, and others of equal tensor count (G4)."""
    n_slots = max(map(len, frame.configs))
    graphs: list[Graph] = []
    for k in range(draw.integer(1, 4)):
        if k and draw.boolean(0.3):
            graphs.append(mutate_lifetimes(draw, draw.choice(graphs)))
        elif k and draw.boolean(0.25):  # every type must grow at once, or may shrink
            graphs.append(grown(draw.choice(graphs)))
        elif k and n_slots > 1 and draw.boolean(0.2):  # a plan for it is none for the other
            graphs.append(moved(draw.choice(graphs)))
        else:
            scale = max(1, int(frame.scale * draw.choice((1, 1, 1, 0.25, 4))))
            graphs.append(draw_graph(draw, frame.types, scale, n_slots))
    return tuple(graphs)


def _plan_trace(draw: Draw) -> Trace:
    frame = draw_frame(draw, pair=False)
    graph = draw_graph(draw, frame.types, frame.scale, len(frame.configs[0]), most=draw.choice((6, 12, 24)))
    ops = [Op(Kind.NEW), Op(Kind.MEASURE), Op(Kind.RESERVE), Op(Kind.ALLOC), Op(Kind.COMPUTE)]
    for kind in (Kind.MEASURE, Kind.RESERVE, Kind.ALLOC, Kind.COMPUTE):  # again: the same plan (P9, G1)
        if draw.boolean(0.5):
            ops.append(Op(kind))
    if draw.boolean(0.5):
        ops.append(Op(Kind.FREE))
    return Trace(with_capacities(draw, frame, (graph,), 0.15), (graph,), tuple(ops))


def _huge_trace(draw: Draw) -> Trace:
    """Small devices; a graph that cannot fit anywhere, and one that can before and after it."""
    frame = draw_frame(draw, pair=False)
    graphs = (draw_graph(draw, frame.types, min(frame.scale, 1024), 2), draw_huge_graph(draw))
    capacity = draw.choice((1 << 16, 1 << 20, 64 << 20, SMALL_DEVICE))
    setup = Setup(tuple(replace(t, capacity=capacity) for t in frame.types), frame.configs)
    ops = [Op(Kind.NEW)]
    for _ in range(draw.integer(2, 10)):
        kind = draw.choice((Kind.MEASURE, Kind.RESERVE, Kind.ALLOC))
        graph = draw.integer(0, 1)
        ops.append(Op(kind, graph=graph))
        if kind == Kind.ALLOC and graph == 0:
            ops.append(Op(Kind.COMPUTE))
    return Trace(setup, graphs, tuple(ops))


@dataclass(frozen=True, slots=True)
class _Weights:
    """One trace's own mix."""

    kinds: tuple[tuple[Kind, int], ...]
    caps: Cap
    pair: bool
    sched: bool
    p_fail: float
    p_illegal: float
    p_follow: float

    @classmethod
    def drawn(cls, draw: Draw, pair: bool, sched: bool, caps: Cap) -> _Weights:
        base = {Kind.RESERVE: 6, Kind.ALLOC: 4, Kind.COMPUTE: 2, Kind.MEASURE: 2, Kind.FREE: 1, Kind.NEW: 2}
        base[Kind.CAPACITY] = 1
        if pair:
            base |= {Kind.OWN: 4, Kind.BORROW: 6, Kind.SHRINK: 2, Kind.FREE: 2}
            if caps & Cap.REMAKE:
                base[Kind.REMAKE] = 1
        if sched:
            base |= {Kind.SYNC: 2, Kind.RESET: 1, Kind.COMPUTE: 4}
        kinds = tuple((kind, w * draw.choice((0, 1, 1, 2, 4))) for kind, w in base.items())
        kinds += ((Kind.RESERVE, 1), (Kind.ALLOC, 1))
        p_fail = draw.choice((0, 0.1, 0.2, 0.4))
        return cls(kinds, caps, pair, sched, p_fail, draw.choice((0, 0, 0.03)), draw.choice((0.3, 0.6, 0.9)))


@dataclass(slots=True)
class _Alive:
    """What generation knows of one allocator; only hints, the subject decides."""

    config: int
    role: Kind | None = None  # OWN or BORROW
    used: bool = False
    bound: int | None = None
    mate: int | None = None  # whom it shares buffers with
    flying: bool = False  # has work in flight


class _History:
    """Draws operations one by one and keeps track of what they should have done."""

    def __init__(
        self, draw: Draw, setup: Setup, graphs: tuple[Graph, ...], needs: Sequence[int], weights: _Weights
    ) -> None:
        self.draw, self.setup, self.graphs, self.needs, self.weights = draw, setup, graphs, needs, weights
        self.alive: dict[int, _Alive] = {}
        self.ops: list[Op] = []
        self.soon: list[Op] = []  # operations that are meant to follow
        self.room = MAX_ALLOCS if weights.pair else 2

    def trace(self, length: int) -> Trace:
        self.begin()
        while len(self.ops) < length:
            self.add(self.soon.pop(0) if self.soon else self.next())
        return Trace(self.setup, self.graphs, tuple(self.ops))

    def begin(self) -> None:
        """Mostly what one would write first: an owner and its borrower, or a plain allocator."""
        self.add(self.new(0, 0))
        if self.weights.pair and self.draw.boolean(0.85):
            self.add(Op(Kind.OWN))
            if self.draw.boolean(0.8):
                self.add(self.new(1, len(self.setup.configs) - 1))
                if self.draw.boolean(0.1):  # too late then (R1)
                    self.add(Op(Kind.RESERVE, 1, graph=self.draw.integer(0, len(self.graphs) - 1)))
                self.add(Op(Kind.BORROW, 1, 0))

    def next(self) -> Op:
        if self.draw.boolean(self.weights.p_illegal):
            return self.anything()
        fitting = [(kind, w) for kind, w in self.weights.kinds if w and self.fits(kind)]
        if not fitting:
            return self.new(min(set(range(MAX_ALLOCS)) - set(self.alive)), 0)
        return self.make(weighted(self.draw, fitting))

    def fits(self, kind: Kind) -> bool:
        if kind == Kind.NEW:
            return len(self.alive) < self.room
        if kind == Kind.CAPACITY:
            return bool(self.needs)
        return bool(self.those(kind))

    def those(self, kind: Kind) -> list[int]:
        """The allocators that `kind` is for."""
        every = self.alive.items()
        if kind in (Kind.OWN, Kind.BORROW):
            new = [a for a, s in every if s.role is None and not s.used]
            wrong = self.draw.boolean(0.1)  # attached already, or after it has buffers
            return list(self.alive) if wrong else new if kind == Kind.OWN or len(self.alive) > 1 else []
        if kind == Kind.REMAKE:
            return [a for a, s in every if s.role == Kind.OWN]
        if kind == Kind.SHRINK:
            return [a for a, s in every if s.role is not None]
        if kind == Kind.FREE and not self.draw.boolean(0.2):  # who has buffers may leave some behind
            return [a for a, s in every if s.used]
        if kind == Kind.COMPUTE:
            return [a for a, s in every if s.bound is not None or self.weights.sched]
        return list(self.alive)

    def make(self, kind: Kind) -> Op:
        if kind == Kind.NEW:
            free = [a for a in range(MAX_ALLOCS) if a not in self.alive]
            return self.new(self.draw.choice(free), self.draw.integer(0, len(self.setup.configs) - 1))
        if kind == Kind.CAPACITY:
            return self.capacity()
        alloc = self.draw.choice(self.those(kind) or list(self.alive))
        if kind == Kind.BORROW:
            return Op(kind, alloc, self.partner(alloc))
        graph = self.draw.integer(0, len(self.graphs) - 1) if kind in GRAPH_KINDS else 0
        if kind == Kind.COMPUTE:
            bound = self.alive[alloc].bound
            compute = Op(kind, alloc, graph=graph if bound is None else bound, flags=self.how(alloc))
            return self.after_waiting(self.failing(compute) if bound is None else compute)
        return self.failing(Op(kind, alloc, graph=graph))

    def new(self, alloc: int, config: int) -> Op:
        if not self.weights.sched or self.draw.boolean(0.05):
            return Op(Kind.NEW, alloc, config)
        value = 0  # tensors that it is made for; C3: some graphs have more
        if self.draw.boolean(0.6):
            value = max(1, len(self.draw.choice(self.graphs).tensors) - self.draw.choice((0, 0, 1, 3)))
        return Op(Kind.NEW, alloc, config, flags=OpFlag.BY_SCHED, value=value)

    def how(self, alloc: int) -> OpFlag:
        """Flags of a compute. Without the generation check memory that is gone is touched (R12 is load-bearing)."""
        sched, exact = self.weights.sched, bool(self.weights.caps & Cap.EXACT)
        if sched and self.draw.boolean(0.5):
            return OpFlag.ASYNC
        if (exact or not sched) and self.draw.boolean(0.03):
            return OpFlag.UNCHECKED
        return _NO_FLAG

    def after_waiting(self, compute: Op) -> Op:
        """Who computes waits first for its partner (W4): the wait, mostly, and then the compute."""
        mate = self.alive[compute.alloc].mate
        if mate not in self.alive or not self.alive[mate].flying or self.draw.boolean(0.1):
            return compute
        self.soon.insert(0, compute)
        return Op(Kind.SYNC, mate)

    def partner(self, alloc: int) -> int:
        """An owner mostly; anyone at times."""
        owners = [a for a, s in self.alive.items() if s.role == Kind.OWN and a != alloc]
        if owners and self.draw.boolean(0.9):
            return self.draw.choice(owners)
        return self.draw.integer(0, MAX_ALLOCS - 1)

    def behind_the_mate(self, failed: Op) -> list[Op]:
        """What could not be reserved is tried again while the other's work is in flight: it must wait (C1)."""
        mate = self.alive[failed.alloc].mate
        if mate not in self.alive or self.draw.boolean(0.5):
            return []
        return [Op(Kind.COMPUTE, mate, graph=failed.graph, flags=OpFlag.ASYNC),
                Op(Kind.ALLOC, failed.alloc, graph=failed.graph)]  # fmt: skip

    def failing(self, op: Op) -> Op:
        """The operation with a failure injected, at times."""
        kinds = (Kind.RESERVE, Kind.ALLOC, Kind.REMAKE, *((Kind.COMPUTE,) if self.weights.sched else ()))
        if op.kind not in kinds or not self.draw.boolean(self.weights.p_fail):
            return op
        if self.draw.boolean(0.5):
            return replace(op, fail_nth=self.draw.choice((1, 1, 2, 3, 4)))
        return replace(op, fail_types=self.draw.integer(1, (1 << len(self.setup.types)) - 1))

    def capacity(self) -> Op:
        device = self.draw.integer(0, len(self.needs) - 1)
        value = near_need(self.draw, self.needs[device], self.setup.types[device].granularity)
        if self.draw.boolean(0.4):  # and it comes back
            back = self.draw.choice((self.setup.types[device].capacity, UNLIMITED))
            if self.alive and self.draw.boolean(0.7):
                self.soon.append(self.make(Kind.RESERVE))
            self.soon.append(Op(Kind.CAPACITY, other=device, value=back))
        return Op(Kind.CAPACITY, other=device, value=value)

    def anything(self) -> Op:
        """Any legal operation record, most of them at a wrong time."""
        kinds = [kind for kind, _ in self.weights.kinds]
        kinds += _OF_POOLS if self.weights.caps & Cap.POOL else ()  # there may be none
        kind = self.draw.choice(kinds)
        alloc = self.draw.integer(0, MAX_ALLOCS - 1)
        if kind == Kind.NEW:
            return self.new(alloc, 0)
        if kind in _OF_POOLS:
            return Op(kind, alloc, value=0 if kind == Kind.TRIM else self.draw.integer(0, 1))
        if kind == Kind.CAPACITY:
            return Op(kind, other=0, value=self.setup.types[0].capacity)
        return Op(kind, alloc, self.draw.integer(0, MAX_ALLOCS - 1) if kind == Kind.BORROW else 0)

    def add(self, op: Op) -> None:
        self.ops.append(op)
        self.note(op)
        self.follow(op)

    def note(self, op: Op) -> None:
        """What the operation should have done."""
        if op.kind == Kind.NEW:
            self.alive.setdefault(op.alloc, _Alive(op.other))
        elif op.kind == Kind.FREE:
            self.alive.pop(op.alloc, None)
        elif (state := self.alive.get(op.alloc)) is None:
            return
        elif op.kind in (Kind.OWN, Kind.BORROW):
            if state.role is None and not state.used:
                state.role = op.kind
                if op.kind == Kind.BORROW and op.other in self.alive:
                    state.mate, self.alive[op.other].mate = op.other, op.alloc
        elif op.kind in (Kind.RESERVE, Kind.ALLOC):
            slots = self.setup.configs[state.config] if state.config < len(self.setup.configs) else ()
            state.used |= op.kind == Kind.RESERVE or len(set(slots)) == 1  # else it is refused
            if op.kind == Kind.ALLOC and not (op.fail_nth or op.fail_types):
                state.bound = op.graph
            elif self.weights.sched:
                state.bound = None
                state.flying = False
        elif op.kind in (Kind.COMPUTE, Kind.SYNC):
            state.flying = bool(op.flags & OpFlag.ASYNC)
        elif op.kind in (Kind.RESET, Kind.REMAKE):
            state.bound = None

    def follow(self, op: Op) -> None:
        """After a reserve comes an alloc, mostly, at times with a measure between; after that a compute."""
        if self.soon or not self.graphs or op.alloc not in self.alive:
            return
        if op.kind == Kind.RESERVE and (op.fail_nth or op.fail_types) and self.weights.sched:
            self.soon += self.behind_the_mate(op)
            return
        if op.kind == Kind.RESERVE and self.draw.boolean(self.weights.p_follow):
            if self.draw.boolean(0.15):
                self.soon.append(Op(Kind.MEASURE, op.alloc, graph=self.draw.integer(0, len(self.graphs) - 1)))
            self.soon.append(self.failing(Op(Kind.ALLOC, op.alloc, graph=op.graph)))
        elif op.kind == Kind.ALLOC and self.draw.boolean(self.weights.p_follow):
            compute = Op(Kind.COMPUTE, op.alloc, graph=op.graph, flags=self.how(op.alloc))
            self.soon.insert(0, self.after_waiting(compute))
        elif op.kind == Kind.COMPUTE and op.flags & OpFlag.ASYNC and self.draw.boolean(0.4):
            self.soon += self.under_way(op.alloc)
        elif op.kind == Kind.RESET and self.draw.boolean(
            0.6
        ):  # nothing is bound: what is computed shows (C4)
            graph = self.draw.integer(0, len(self.graphs) - 1)
            self.soon.append(Op(Kind.COMPUTE, op.alloc, graph=graph, flags=self.how(op.alloc)))

    def under_way(self, alloc: int) -> list[Op]:
        """What must wait for work in flight, by who has it or by its partner (C1); then the work is waited for."""
        draw, mate = self.draw, self.alive[alloc].mate
        who = draw.choice((alloc, mate, mate)) if mate in self.alive else alloc
        assert who is not None
        owns = self.alive[who].role == Kind.OWN and bool(self.weights.caps & Cap.REMAKE)
        how = weighted(draw, ((Kind.RESERVE, 4), (Kind.ALLOC, 1), (Kind.SHRINK, 2), (Kind.FREE, 1),
                              (Kind.REMAKE, 3 * owns), (Kind.RESET, 1)))  # fmt: skip
        ops = [Op(how, who, graph=self.largest() if how in GRAPH_KINDS else 0)]
        if how == Kind.SHRINK:  # buffers are replaced by smaller ones as soon as both have reserved
            smaller = draw.integer(0, len(self.graphs) - 1)
            ops += [Op(Kind.RESERVE, n, graph=smaller) for n in dict.fromkeys((alloc, who))]
        return [*ops, Op(Kind.SYNC, alloc)] if draw.boolean(0.5) else ops

    def largest(self) -> int:
        """The graph that needs most, in all."""
        return max(range(len(self.graphs)), key=lambda g: sum(t.alloc_size for t in self.graphs[g].tensors))
