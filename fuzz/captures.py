"""Q: the books of captured graphs, kept from what a subject showed of them.

`Books` watches every operation: trims, reservations and replays are all about captured graphs.
`Aside` takes the operations that are nobody else's business: those of captures, and what a capture
refuses or records in other layers' place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..model import oracle, planner
from ..model.capture import NOBODY, CaptureOp, Out
from ..model.domain import Ints
from ..model.records import (
    MAX_ALLOCS,
    Cap,
    Graph,
    Kind,
    Observation,
    Op,
    OpFlag,
    PoolKind,
    Status,
    Trace,
    has,
)
from ..model.stack.pools import rooms, scratch_size
from ..native.worker import StepSeen
from ..spec.capture import Past, Seen, Step, rules
from .fresh import Fresh

CAPTURE_OPS = (Kind.CAPTURE_BEGIN, Kind.CAPTURE_END, Kind.LAUNCH, Kind.DROP)
ALL = range(MAX_ALLOCS)
PIECE = 3  #: allocations that a VMM pool tries so as to grow: create, map and set-access
ORDER = ("Q3", "Q2", "Q1")  #: what says most of a fault is told first


@dataclass
class _One:
    """One allocator."""

    devices: frozenset[int] = frozenset()
    config: int = 0
    mate: int = NOBODY
    gen: int = 0
    busy: bool = False
    bound: Graph | None = None
    sched: bool = False
    nodes: int = 0  # of its scheduler
    then: int = 0  # generation at its capture
    recorded: Graph | None = None  # the last graph of its record
    trimmed: bool = False  # pools of its devices gave memory back since
    taking: list[Graph | None] = field(default_factory=list)
    scratch: dict[int, int] = field(default_factory=dict)  # of its record, by device: where it begins, bytes
    taken: dict[int, int] = field(default_factory=dict)  # the same of what is being captured


class Books:
    """Takes nothing, judges every step by Q."""

    def __init__(self, trace: Trace, caps: Cap, fresh: Fresh) -> None:
        self.trace, self.setup = trace, trace.setup
        self.known = {n: _One() for n in ALL}
        self.at, self.captured, self.pooled = NOBODY, 0, (0,) * len(trace.setup.types)
        self.out: Counter[tuple[int, int]] = Counter()  # bytes handed out, by device and stream
        self.vmm, self.room = trace.setup.pool == PoolKind.VMM_POOL, rooms(trace.setup)
        self.broken: list[tuple[str, str]] = []

    def takes(self, op: Op, seen: StepSeen) -> bool:
        return False

    def step(self, op: Op, seen: StepSeen) -> Iterator[tuple[str, str]]:
        yield from ()

    def drives(self, op: Op) -> bool:
        return op.kind in CAPTURE_OPS

    def blame(self, op: Op) -> str:
        """A replay that dies touches memory that is gone: after a trim it should not have been possible."""
        one = self.known[op.alloc]
        if one.trimmed and self.captured >> op.alloc & 1:
            return "Q2"
        unchecked = op.kind == Kind.LAUNCH and has(op.flags, OpFlag.UNCHECKED)
        return "" if unchecked and one.gen != one.then else "Q1"

    def tally(self, op: Op, seen: StepSeen) -> Counter[str]:
        """How often the step exercised each clause. What it breaks is kept for `watch`."""
        count: Counter[str] = Counter()
        self.broken = []
        found = rules(self.judged(op, seen))
        for clause, parts in found.items():
            count[clause] += any(r.when and r.counts for r in parts.values())
            self.broken += [(clause, name) for name, r in parts.items() if r.when and not r.then]
        self.broken += self.content(op, seen.obs)
        return count

    def watch(self, op: Op, seen: StepSeen) -> Iterator[tuple[str, str]]:
        yield from sorted(self.broken, key=lambda found: ORDER.index(found[0]))
        self.note(op, seen)

    # -- judging -------------------------------------------------------------------------

    def judged(self, op: Op, seen: StepSeen) -> Step:
        obs, one = seen.obs, self.known.get(op.alloc, _One())
        before = self.view(self.at, self.captured, {})
        after = self.view(who(obs), obs.captured, self.shown(op, seen))
        reach = tuple(False for _ in ALL)
        if op.kind == Kind.TRIM:
            devices = set(self.setup.types[op.other].devices(op.other))
            reach = tuple(bool(devices & self.known[n].devices) for n in ALL)
        unchecked, lent = has(op.flags, OpFlag.UNCHECKED), self.lent(op.alloc, one)
        ask = CaptureOp(int(op.kind), op.alloc, unchecked, scratch=not self.short(op, obs, one), lent=lent,
                        reach=reach, evicts=reach)  # fmt: skip
        replaced = op.kind in (Kind.RESERVE, Kind.ALLOC) and after.gen[op.alloc] != one.gen
        back = any(b < a for a, b in zip(self.pooled, obs.pooled or self.pooled, strict=True))
        mine = self.shown(op, seen).get(op.alloc)
        larger = mine is not None and one.sched and mine.nodes > one.nodes and op.kind != Kind.NEW
        left = op.kind in (Kind.FREE, Kind.REMAKE) and obs.status == Status.DONE
        out = Out(int(obs.status), replaced=replaced, trimmed=back or obs.released > 0, anew=larger or left)
        past = Past(
            tuple(x.then for x in self.known.values()),
            tuple(True for _ in ALL),
            tuple(x.trimmed for x in self.known.values()),
            tuple(tuple(self.known[m].mate == n for n in ALL) for m in ALL),
        )
        # whether a legacy pool still has a block, and whether one is lent, is the pools' business
        return Step(Ints, past, before, ask, after, out, self.setup.pool != PoolKind.LEGACY_POOL)

    def begins(self, n: int, one: _One) -> dict[int, int]:
        """By device: where the scratch of what is bound begins in the pool of the allocator's stream, bytes."""
        if one.bound is None or self.setup.pool == PoolKind.NO_POOL:
            return {}
        plan = planner.plan(self.setup.types, self.setup.configs[one.config], one.bound)
        placed = {p.type for p in plan.places if p.type >= 0} if plan is not None else set()
        return {d: self.out[d, n] for t in placed for d in self.setup.types[t].devices(t)}

    def lent(self, n: int, one: _One) -> bool:
        """Pool memory that its captured graph uses is handed out: a VMM pool's blocks lie one behind the other."""
        return self.vmm and any(self.out[d, n] > at for d, at in one.scratch.items())

    def short(self, op: Op, obs: Observation, one: _One) -> bool:
        """A computation cannot have its scratch: it is beyond a range, or an allocation failed."""
        if op.kind != Kind.COMPUTE or op.alloc != self.at or one.bound is None:
            return False
        if 0 < op.fail_nth <= obs.allocations:
            return True
        grown = sum(b > a for a, b in zip(self.pooled, obs.pooled or self.pooled, strict=True))
        size, begins = scratch_size(one.bound), self.begins(op.alloc, one)
        beyond = any(at + size > self.room[d] for d, at in begins.items())
        return self.vmm and (beyond or obs.allocations > PIECE * grown)

    def view(self, at: int, captured: int, shown: dict[int, Observation]) -> Seen:
        gen = {n: x.gen for n, x in self.known.items()} | {n: o.generation for n, o in shown.items()}
        busy = {n: x.busy for n, x in self.known.items()} | {n: bool(o.in_flight) for n, o in shown.items()}
        return Seen(
            at, tuple(bool(captured >> n & 1) for n in ALL), tuple(gen.values()), tuple(busy.values())
        )

    def shown(self, op: Op, seen: StepSeen) -> dict[int, Observation]:
        """What was seen of each allocator."""
        found = {n: o for n, o in seen.looks.items() if o.status == Status.DONE}
        mine = op.kind in CAPTURE_OPS or (op.kind <= Kind.RESET and op.kind not in (Kind.CAPACITY, Kind.FREE))
        if mine and seen.obs.status != Status.MISUSE:
            found[op.alloc] = seen.obs
        return found

    def content(self, op: Op, obs: Observation) -> list[tuple[str, str]]:
        """A replay computes what was captured."""
        if op.kind not in CAPTURE_OPS or (has(op.flags, OpFlag.UNCHECKED) and self.known[op.alloc].gen
                                          != self.known[op.alloc].then):  # fmt: skip
            return []
        if obs.trouble:
            return [("Q1", "a replay found wrong bytes")]
        graph = self.known[op.alloc].recorded
        shows = op.kind == Kind.LAUNCH and obs.status == Status.DONE and not obs.in_flight
        later = has(op.flags, OpFlag.ASYNC) and self.known[op.alloc].sched
        want = oracle.digest(graph) if shows and not later and graph is not None else None
        return [("Q1", "a replay computes something else")] if want not in (None, obs.digest) else []

    # -- following -----------------------------------------------------------------------

    def note(self, op: Op, seen: StepSeen) -> None:
        obs, done = seen.obs, seen.obs.status == Status.DONE
        one = self.known.get(op.alloc, _One())
        if op.kind == Kind.CAPTURE_END and done:
            one.then, one.trimmed = one.gen, False
            one.recorded = one.taking[-1] if one.taking else None
            one.scratch = one.taken
        for n, look in self.shown(op, seen).items():
            x = self.known[n]
            x.gen, x.busy, x.nodes = look.generation, bool(look.in_flight), look.nodes
        if op.kind in (Kind.POOL_ALLOC, Kind.POOL_FREE) and obs.status != Status.MISUSE:
            self.out[op.other, op.alloc] = obs.out
        if op.kind == Kind.TRIM and done:
            devices = set(self.setup.types[op.other].devices(op.other))
            for x in self.known.values():
                x.trimmed |= bool(devices & x.devices)
        self.graphs(op, obs, one)
        self.attached(op, obs)
        self.at, self.captured, self.pooled = who(obs), obs.captured, obs.pooled or self.pooled

    def graphs(self, op: Op, obs: Observation, one: _One) -> None:
        """What is bound, and what was recorded."""
        done = obs.status == Status.DONE
        graph = self.trace.graphs[op.graph] if op.graph < len(self.trace.graphs) else None
        if op.kind == Kind.ALLOC and done:
            one.bound = graph
        elif op.kind == Kind.COMPUTE and done:
            one.bound = one.bound or graph
            if self.at == op.alloc:
                one.taking.append(one.bound)
                one.taken |= self.begins(op.alloc, one)
        elif op.kind == Kind.CAPTURE_BEGIN and done:
            one.taking, one.taken = [], {}
        if obs.status == Status.MISUSE or (self.at != NOBODY and not done):
            return
        forgets = one.sched and (op.kind == Kind.RESERVE or not done)
        stale = obs.status == Status.STALE and op.kind != Kind.LAUNCH  # that drops what was captured alone
        if forgets or stale or op.kind in (Kind.RESET, Kind.REMAKE):
            one.bound = None

    def attached(self, op: Op, obs: Observation) -> None:
        """Who is there, and who shares buffers with whom."""
        if obs.status != Status.DONE:
            return
        if op.kind == Kind.NEW:
            types = self.setup.types
            uses = frozenset(d for t in self.setup.configs[op.other] for d in types[t].devices(t))
            sched = has(op.flags, OpFlag.BY_SCHED)
            self.known[op.alloc] = _One(uses, op.other, gen=obs.generation, sched=sched, nodes=obs.nodes)
        elif op.kind == Kind.BORROW:
            self.known[op.alloc].mate, self.known[op.other].mate = op.other, op.alloc
        elif op.kind == Kind.FREE:
            for x in self.known.values():
                x.mate = NOBODY if x.mate == op.alloc else x.mate
            self.known[op.alloc] = _One()


def who(obs: Observation) -> int:
    """The allocator that is being captured."""
    return obs.capturing.bit_length() - 1 if obs.capturing else NOBODY


class Aside:
    """Takes what a capture decides; `Books` has judged it."""

    def __init__(self, trace: Trace, caps: Cap, fresh: Fresh) -> None:
        self.at = NOBODY

    def takes(self, op: Op, seen: StepSeen) -> bool:
        if op.kind in CAPTURE_OPS:
            return True
        if self.at == NOBODY or op.kind > Kind.RESET or op.kind == Kind.CAPACITY:
            return False
        refused = seen.obs.status in (Status.REFUSED, Status.MISUSE) and op.kind != Kind.NEW
        kinds = (Kind.RESERVE, Kind.ALLOC, Kind.COMPUTE)
        if seen.obs.status == Status.REFUSED:
            return op.kind in kinds
        return refused or (op.kind == Kind.COMPUTE and op.alloc == self.at)

    def step(self, op: Op, seen: StepSeen) -> Iterator[tuple[str, str]]:
        self.at = who(seen.obs)
        yield from ()

    def watch(self, op: Op, seen: StepSeen) -> Iterator[tuple[str, str]]:
        yield from self.step(op, seen)

    def tally(self, op: Op, seen: StepSeen) -> Counter[str]:
        return Counter()

    def drives(self, op: Op) -> bool:
        return False

    def blame(self, op: Op) -> str:
        return ""
