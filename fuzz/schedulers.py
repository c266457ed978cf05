"""C: the books of allocators behind schedulers, of a subject that does exactly what docs/choices.md says.

What was seen is judged by the rules of spec/scheduler.py, and what the scheduler asked of its allocator
by those of P, G and R (pairs.py): a larger scheduler is a remake, or a free and a new one, and then what
was asked. A tree's own scheduler, which splits graphs as it likes, has its books in scheduled.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..model import oracle, planner
from ..model.domain import Ints
from ..model.pair import BORROWER, OWNER, ROLES, RoleOp
from ..model.records import (
    VALIDATED,
    Cap,
    Kind,
    Observation,
    Op,
    OpFlag,
    PoolKind,
    Status,
    Strategy,
    Trace,
    Trouble,
    has,
)
from ..model.scheduler import NONE, Out, SchedOp, follow
from ..model.session import Allocator, Pair, pad
from ..native.worker import StepSeen
from ..spec import scheduler
from ..spec.scheduler import Seen
from . import alloc, deaths, pairs
from .by_size import right_for_any_size
from .fresh import Fresh
from .ledger import Ledger
from .wrong_bytes import wrong_bytes

Found = Iterator[tuple[str, str]]
ROOM = (Kind.RESERVE, Kind.ALLOC)
#: where one fault breaks several clauses, the one that says most of it comes first
FIRST = ("C3", "C2", "C1", "C4", "C5", "R14")
LAST = Observation(Status.DONE)


@dataclass
class Behind:
    """One allocator behind a scheduler, as it was last seen, and what follows from its operations."""

    seen: Observation = LAST
    meant: int = NONE  # number of the bound graph
    sent: int = NONE  # number of the last graph that was launched
    turned_down: bool = False  # its last compute had nothing bound, and was refused
    doomed: bool = False  # was made to compute on memory that is gone (R12's counter-test)


class Books:
    """Follows the schedulers of one session. `known`: by allocator number."""

    def __init__(self, trace: Trace, caps: Cap, fresh: Fresh) -> None:
        self.trace, self.caps, self.fresh = trace, caps, fresh
        self.known: dict[int, Behind] = {}
        self.history = alloc.History()
        self.numbers = {graph: i for i, graph in reversed(list(enumerate(trace.graphs)))}
        self.judged: list[tuple[str, str]] = []
        self.at = 0
        self.capacities: list[Op] = []  # changed before there was a scheduler
        self._ledger: Ledger | None = None

    @property
    def ledger(self) -> Ledger:
        """The reference session, of as many chunks as any plan has."""
        if self._ledger is None:
            setup = self.trace.setup
            rows: list[tuple[int, ...]] = [(0,)]
            for graph in self.trace.graphs:
                for config, slots in enumerate(setup.configs):
                    fresh = self.fresh.plan(setup, config, graph)
                    plan = planner.plan(setup.types, slots, graph)
                    rows += [*(fresh.need or fresh.beyond or ()), *(plan.need if plan else ())]
            self._ledger = Ledger(setup, self.trace.graphs, self.caps, self.fresh, max(map(len, rows)))
            for op in self.capacities:
                self._ledger.session.step(op)
        return self._ledger

    # -- the layer ---------------------------------------------------------------------

    def drives(self, op: Op) -> bool:
        if op.kind == Kind.NEW:
            return has(op.flags, OpFlag.BY_SCHED)
        return op.kind <= Kind.RESET and op.kind != Kind.CAPACITY and op.alloc in self.known

    def takes(self, op: Op, seen: StepSeen) -> bool:
        return self.drives(op) and (op.kind != Kind.NEW or seen.obs.status == Status.DONE)

    def tally(self, op: Op, seen: StepSeen) -> Counter[str]:
        """How often the step exercised each clause. What it breaks is kept for `step`."""
        n: Counter[str] = Counter()
        if seen.obs.status == Status.MISUSE and self.dooms(op):  # it died of it, as it must
            return Counter(("R12",))
        self.judged = list(self.judge(op, seen, n))
        return n

    def step(self, op: Op, seen: StepSeen) -> Found:
        self.at += 1
        yield from self.judged

    def watch(self, op: Op, seen: StepSeen) -> Found:
        """Capacities; and what others do to streams and to bytes in use."""
        self.at += 1
        if op.kind == Kind.CAPACITY and seen.obs.status == Status.DONE:
            self.capacities.append(op)
            if self._ledger is not None:
                self._ledger.session.step(op)
        if self._ledger is None:
            return
        if op.kind == Kind.LAUNCH and op.alloc in self.known and seen.obs.status == Status.DONE:
            self.known[op.alloc].sent = NONE  # another graph than the bound one
        self.ledger.beside(seen.obs)
        self.look(op, seen)
        yield from ()

    def look(self, op: Op, seen: StepSeen) -> None:
        """What was last seen of each scheduler."""
        for n, look in seen.looks.items():
            if n in self.known and look.status == Status.DONE:
                self.known[n].seen = look
        mine = self.known.get(op.alloc)
        if mine is not None and (self.takes(op, seen) or Kind.CAPTURE_BEGIN <= op.kind <= Kind.DROP):
            mine.seen = seen.obs

    # -- deaths --------------------------------------------------------------------------

    def blame(self, op: Op) -> str:
        """The clause that a death during `op` breaks; '' where memory that is gone was to be touched."""
        b = self.known.get(op.alloc, Behind())
        if any(x.doomed for x in self.known.values()) or self.dooms(op):
            return ""
        if op.kind in ROOM or (op.kind == Kind.COMPUTE and b.meant == NONE):
            if self.larger(op, b):
                return "C3"
            if op.kind == Kind.COMPUTE and (op.fail_types or op.fail_nth or self.ledger.limited()):
                return "C2"
            return deaths.blame(replace(op, kind=Kind.ALLOC) if op.kind == Kind.COMPUTE else op,
                                self.ledger, self.history)  # fmt: skip
        return deaths.blame(op, self.ledger, self.history)

    def dooms(self, op: Op) -> bool:
        """A compute without the generation check, on memory that is gone."""
        return (
            op.kind == Kind.COMPUTE
            and has(op.flags, OpFlag.UNCHECKED)
            and op.alloc in self.known
            and self.known[op.alloc].meant != NONE
            and self.ledger.stale(op.alloc)
        )

    # -- one step ------------------------------------------------------------------------

    def judge(self, op: Op, seen: StepSeen, n: Counter[str]) -> Found:
        """(clause, message) of what the step breaks, the most telling first; counts in `n` what it exercised."""
        obs = seen.obs
        if op.kind == Kind.NEW:
            self.known[op.alloc] = Behind(obs)
        b = self.known[op.alloc]
        if obs.status == Status.MISUSE and (op.kind != Kind.COMPUTE or obs.capturing):
            self.look(op, seen)
            return
        a = self.ledger.allocs.get(op.alloc)
        pair = a.pair if a is not None else None
        before = self.view(pair)
        if self.dooms(op):
            b.doomed = True
        ask = self.asked(op, b, a)
        larger = self.larger(op, b) and obs.status != Status.MISUSE
        stale = bool(self.ledger.stale(op.alloc))
        wants = op.kind in ROOM or (op.kind == Kind.COMPUTE and b.meant == NONE)
        near = wants and 0 < b.seen.nodes <= ask.tensors
        renewed = any(x.kind == Kind.NEW for x in self.anew(op, b))
        below = list(self.below(op, seen, b, n))
        ran, wrong = self.content(op, obs, b, stale)
        first = list(self.counted(op, seen, renewed))
        self.look(op, seen)
        now = self.ledger.allocs.get(op.alloc)
        out = Out(
            int(obs.status),
            obs.allocations,
            larger=larger,
            ran=ran,
            hurt=bool(obs.trouble & Trouble.FREED_BUSY),
            role=now.role if now is not None else ask.role,
        )
        self.follow(op, ask, out, b)
        after = self.view(now.pair if now is not None else pair)
        if op.kind in (Kind.NEW, Kind.BORROW):  # who attaches was not there before
            before, ask = after, ask._replace(role=out.role)
        above = list(self.rules(before, ask, after, out, n))
        doomed = any(x.doomed for x in self.known.values())
        trouble = [] if doomed else list(self.trouble(obs, stale, wrong))
        if op.kind == Kind.FREE and obs.status == Status.DONE:
            del self.known[op.alloc]
        elif not obs.in_flight and op.kind in (Kind.COMPUTE, Kind.SYNC):
            b.doomed = False
        reserving = op.kind in (*ROOM, Kind.COMPUTE, Kind.FREE, Kind.REMAKE, Kind.SYNC, Kind.RESET)
        found = [*first, *((*above, *below) if reserving else (*below, *above)), *trouble]
        sizes = near and found and found[0][0] in ("R6", "R7", "R8")
        if sizes and right_for_any_size(self.trace, self.at, self.fresh, self.ledger.chunks):
            yield "C3", "with schedulers for any number of tensors the same is right"
        yield from found

    def counted(self, op: Op, seen: StepSeen, renewed: bool) -> Found:
        """S4, and what a generation says (S2), of schedulers whose allocators share by reference count.
        `renewed`: whose operation it is has a new allocator, whose generation starts anew."""
        if self.pairs or seen.obs.status == Status.MISUSE:
            return
        missing = self.ledger.session.missing(op.value) if op.kind == Kind.BORROW else 0
        if missing and seen.obs.status == Status.DONE:
            yield "S4", "refused where it was not validated"
        if op.kind == Kind.BORROW and seen.obs.reason != missing:
            yield "S4", "says what is missing, and nothing else"
        if op.kind in (Kind.NEW, Kind.BORROW, Kind.FREE):
            return
        for number, now in {**seen.looks, op.alloc: seen.obs}.items():
            if number not in self.known or (renewed and number == op.alloc):
                continue
            old = self.known[number].seen
            restarts = number == op.alloc and self.larger(op, self.known[number])  # without buffers (C3)
            moved = any(any(x) and (x != y or restarts) for x, y in zip(old.asked, now.asked, strict=False))
            if moved and now.status != Status.MISUSE and now.generation == old.generation:
                yield "S2", "its generation says that its buffers are others"

    def rules(self, before: Seen, ask: SchedOp, after: Seen, out: Out, n: Counter[str]) -> Found:
        """C over what was seen."""
        devices = self.ledger.session.model.devices
        found = scheduler.rules(scheduler.Step(Ints, devices, before, ask, after, out))
        for clause, parts in found.items():
            n[clause] += any(r.counts and r.when for r in parts.values())
        for clause in FIRST:
            for part, r in found[clause].items():
                if r.when and not r.then:
                    yield clause, part

    def larger(self, op: Op, b: Behind) -> bool:
        """C3: the operation needs a larger scheduler."""
        wants = op.kind in ROOM or (op.kind == Kind.COMPUTE and b.meant == NONE)
        return wants and 0 < b.seen.nodes < len(self.trace.graphs[op.graph].tensors)

    # -- what was seen -------------------------------------------------------------------

    def view(self, pair: Pair | None) -> Seen:
        """The schedulers of a pair as they were last seen."""
        session, types = self.ledger.session, len(self.trace.setup.types)
        roles = {a.role: n for n, a in self.ledger.allocs.items() if a.pair is pair and n in self.known}
        b = [self.known[roles[r]] if r in roles else Behind() for r in ROLES]
        uses = [session.uses(self.ledger.allocs[roles[r]]) if r in roles else (False,) * types for r in ROLES]
        asked = [x.seen.asked or ((),) * types for x in b]
        state = pair.state if pair is not None else None
        return Seen(
            active=tuple(r in roles for r in ROLES),
            owner=bool(state and state.owner),
            behind=bool(getattr(state, "behind", False)),
            uses=tuple(uses),
            holds=tuple(pad(x, self.ledger.chunks) for x in asked),
            used=session.used,
            cap=session.capacity,
            gran=session.granularity,
            busy=tuple(bool(x.seen.in_flight) for x in b),
            nodes=tuple(x.seen.nodes for x in b),
            gen=tuple(x.seen.generation for x in b),
            shrink_gen=tuple(x.seen.shrink_generation for x in b),
            said_gen=tuple(x.seen.sched_generation for x in b),
            said_shrink_gen=tuple(x.seen.sched_shrink_generation for x in b),
            meant=tuple(x.meant for x in b),
            sent=tuple(x.sent for x in b),
            turned_down=tuple(x.turned_down for x in b),
        )

    def asked(self, op: Op, b: Behind, a: Allocator | None) -> SchedOp:
        """The operation as the rules see it."""
        session = self.ledger.session
        on = RoleOp(op.kind, need=session.model.no_need)
        graph, tensors = NONE, 0
        if a is not None and op.kind in (*ROOM, Kind.COMPUTE):
            g = self.trace.graphs[op.graph]
            plan = session.plan(a.config, g)
            need = pad(plan.need, self.ledger.chunks) if plan else session.model.no_need
            graph, tensors = self.numbers[g], len(g.tensors)
            on = on._replace(need=need, plannable=plan is not None)
        inject = tuple(bool(op.fail_types >> d & 1) for d in range(len(session.used)))
        return SchedOp(
            int(op.kind),
            a.role if a is not None else OWNER,
            graph,
            tensors,
            has(op.flags, OpFlag.ASYNC),
            self.trace.setup.pool == PoolKind.NO_POOL,
            on._replace(inject=inject, fail_nth=op.fail_nth),
        )

    def follow(self, op: Op, ask: SchedOp, out: Out, b: Behind) -> None:
        """What is bound and what was sent, by the operation and its status alone."""
        known = ((b.meant,) * 2, (b.sent,) * 2, (b.turned_down,) * 2)  # whichever role it has
        b.meant, b.sent, b.turned_down = (x[out.role] for x in follow(Ints, *known, ask, out))

    def content(self, op: Op, obs: Observation, b: Behind, stale: bool) -> tuple[int, str]:
        """The graph that was computed, or whose work was waited for, going by its digest; and what is wrong
        with a digest that is no graph's."""
        shows = (op.kind == Kind.SYNC and b.seen.in_flight) or op.kind == Kind.COMPUTE
        refused = obs.status == Status.REFUSED and not obs.digest
        if not shows or refused or obs.status in (Status.STALE, Status.MISUSE):
            return NONE, ""
        graph = b.sent if op.kind == Kind.SYNC else b.meant
        if op.kind == Kind.COMPUTE and graph == NONE:
            graph = self.numbers[self.trace.graphs[op.graph]]
        if graph == NONE or has(op.flags, OpFlag.ASYNC) or obs.trouble or b.doomed:
            return graph, ""
        want = oracle.digest(self.trace.graphs[graph])
        if want is None or want == obs.digest:
            return graph, ""
        if op.kind == Kind.COMPUTE and not obs.digest and not stale:
            return NONE, ""  # nothing was (C2)
        for other, number in self.numbers.items():
            if oracle.digest(other) == obs.digest:
                return number, ""
        return graph, f"the outputs' digest is {obs.digest:#x}, it must be {want:#x}"

    def trouble(self, obs: Observation, stale: bool, wrong: str) -> Found:
        if obs.trouble & Trouble.FREED_BUSY:
            yield "C1", "a buffer was freed while work in flight used it"
        yield from wrong_bytes(obs, stale)
        if wrong:
            yield "P5", wrong

    # -- what the scheduler asked of its allocator --------------------------------------------

    def below(self, op: Op, seen: StepSeen, b: Behind, n: Counter[str]) -> Found:
        """P, G and R of what the operation was to the allocator; the books of R follow it."""
        if seen.obs.status == Status.MISUSE or op.kind in (Kind.SYNC, Kind.RESET):
            return
        for first in self.anew(op, b):
            self.ledger.assume(first) if self.pairs else self.ledger.session.step(first)
        asks = op
        if op.kind == Kind.COMPUTE and b.meant == NONE:
            asks = replace(op, kind=Kind.ALLOC, flags=OpFlag(0))
        elif op.kind == Kind.COMPUTE and seen.obs.status == Status.REFUSED:  # the pools refused
            return
        flags = OpFlag.BY_SCHED if asks.kind in (*ROOM, Kind.NEW) else asks.flags
        asks = replace(asks, flags=flags)
        if not self.pairs:
            self.ledger.session.step(asks)
            return
        if op.kind == Kind.COMPUTE and self.trace.setup.pool != PoolKind.NO_POOL:
            self.ledger.assume(asks)
            self.ledger.beside(seen.obs)  # its allocations and the pools' are not told apart
            return
        _, step = self.ledger.step(asks, seen.obs, seen.looks)
        n.update(alloc.exercised(asks, seen, self.ledger, self.history))
        self.history.note(asks, seen.obs, self.ledger)
        if step is not None:
            yield from pairs.broken(asks, seen, step, self.ledger, self.history, n)

    @property
    def pairs(self) -> bool:
        """R is what the session shares by."""
        return self.trace.setup.strategy == Strategy.PAIR

    def anew(self, op: Op, b: Behind) -> Iterator[Op]:
        """C3: the operations that make a larger scheduler."""
        a = self.ledger.allocs.get(op.alloc)
        if a is None or not self.larger(op, b):
            return
        if a.role == OWNER and a.pair.state.owner:
            if self.pairs:  # else it stays what it is, without buffers
                yield Op(Kind.REMAKE, op.alloc)
            return
        owner = next((m for m, x in self.ledger.allocs.items() if x.pair is a.pair and x.role == OWNER), None)
        borrows = a.role == BORROWER and owner is not None
        yield Op(Kind.FREE, op.alloc)
        yield Op(Kind.NEW, op.alloc, a.config, flags=OpFlag.BY_SCHED)
        if borrows and owner is not None:
            yield Op(Kind.BORROW, op.alloc, owner, value=VALIDATED)
