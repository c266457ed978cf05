"""C: allocators that are driven through a tree's own scheduler (C1 to C5, R14).

The scheduler splits a graph and adds copies of its own, so requirements are its
business; what is judged is statuses, work in flight, readings, content, and what a
caller that makes a larger scheduler or another owner must see. A subject that does
exactly what docs/choices.md says has its books in schedulers.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..model import oracle
from ..model.planner import round_up
from ..model.records import (
    UNLIMITED,
    BufferType,
    Cap,
    Graph,
    Kind,
    Observation,
    Op,
    OpFlag,
    Status,
    Trace,
    Trouble,
    has,
)
from ..native.worker import StepSeen
from . import deaths
from .fresh import Fresh, astray, boundless
from .wrong_bytes import wrong_bytes

Found = Iterator[tuple[str, str]]
SHARING = Cap.RESIZABLE | Cap.GROUP
ROOM = (Kind.RESERVE, Kind.ALLOC)
WRONG = Trouble.BAD_SOURCE | Trouble.BAD_OUTPUT
#: of what is not the scheduler's own: a death in it breaks this clause
BY_KIND = {**deaths.BY_KIND, Kind.MEASURE: "P12"}


@dataclass
class Behind:
    """One allocator behind a scheduler, and what follows from its operations."""

    config: int
    owner: bool = False
    partner: int | None = None
    shares: bool = False  # it became an owner or borrower: only then it has readings on every tree
    late: bool = False  # R14: a borrower whose owner was made anew, and that has not reserved since
    bound: int | None = None  # number of the bound graph
    generation: int = 0  # what it read when it was bound
    at: int = 0  # the operation that bound it
    sent: int | None = None  # number of the graph launched last
    last: Observation = Observation(Status.DONE)


def real(kind: BufferType, chunks: tuple[int, ...]) -> int:
    """What a device gives for chunks asked for, bytes."""
    return sum(round_up(size, kind.granularity) for size in chunks)


class Books:
    """Which allocators are behind a scheduler, and what was asked of them."""

    def __init__(self, trace: Trace, caps: Cap, fresh: Fresh) -> None:
        self.trace, self.caps, self.fresh = trace, caps, fresh
        self.known: dict[int, Behind] = {}
        self.at = 0
        self.used: tuple[int, ...] = ()  # of each device, bytes as last seen

    def drives(self, op: Op) -> bool:
        if op.kind == Kind.NEW:
            return has(op.flags, OpFlag.BY_SCHED)
        return op.kind <= Kind.RESET and op.kind != Kind.CAPACITY and op.alloc in self.known

    def takes(self, op: Op, seen: StepSeen) -> bool:
        return self.drives(op) and (op.kind != Kind.NEW or seen.obs.status == Status.DONE)

    def watch(self, op: Op, seen: StepSeen) -> Found:
        """Nothing that others do is seen of a scheduler."""
        self.at += 1
        self.used = seen.obs.used
        yield from ()

    def step(self, op: Op, seen: StepSeen) -> Found:
        """(clause, message) of what the step breaks."""
        obs = seen.obs
        if op.kind == Kind.NEW and obs.status == Status.DONE:
            self.known[op.alloc] = Behind(op.other, last=obs)
        b = self.known.get(op.alloc)
        if b is None:
            yield from self.watch(op, seen)
            return
        if obs.status != Status.MISUSE:
            yield from self.judge(op, seen, b)
        elif self.unbound(op, b) and not self.partner_works(b):
            yield "C4", "computing without alloc is refused as misuse; it must allocate first"
        self.note(op, seen, b)
        yield from self.watch(op, seen)

    def judge(self, op: Op, seen: StepSeen, b: Behind) -> Found:
        obs = seen.obs
        yield from self.whole(op, obs, b)
        yield from self.growing(op, obs, b)
        yield from self.forgetting(op, obs, b)
        yield from self.memory(op, obs, b)
        yield from self.statuses(op, obs, b)
        yield from self.placed(op, seen, b)
        if op.kind == Kind.MEASURE and obs.status == Status.DONE:
            yield from self.measured(op, obs, b)
        if op.kind not in (Kind.FREE, Kind.OWN, Kind.BORROW):  # who attaches reads the pair's counters
            yield from self.readings(obs, b)
        yield from self.remaking(op, seen, b)

    # -- words -------------------------------------------------------------------------

    def unbound(self, op: Op, b: Behind) -> bool:
        """C4: it is computed without alloc."""
        return op.kind == Kind.COMPUTE and b.bound is None

    def larger(self, op: Op, b: Behind) -> bool:
        """C3: the graph is larger than what the scheduler was made for."""
        wants = op.kind in ROOM or self.unbound(op, b)
        return wants and 0 < b.last.nodes < len(self.trace.graphs[op.graph].tensors)

    def computed(self, op: Op, b: Behind) -> Graph | None:
        """The graph that the operation shows the digest of."""
        number: int | None = None
        if op.kind == Kind.COMPUTE and not has(op.flags, OpFlag.ASYNC):
            number = op.graph if b.bound is None else b.bound
        elif op.kind == Kind.SYNC and b.last.in_flight:
            number = b.sent
        return None if number is None else self.trace.graphs[number]

    def partner_works(self, b: Behind) -> bool:
        return b.partner in self.known and bool(self.known[b.partner].last.in_flight)

    def outdated(self, b: Behind) -> bool:
        return b.bound is not None and b.shares and b.last.generation != b.generation

    # -- rules -------------------------------------------------------------------------

    def growing(self, op: Op, obs: Observation, b: Behind) -> Found:
        """C3."""
        if not self.larger(op, b):
            if b.last.nodes == 0 != obs.nodes and op.kind not in (Kind.NEW, Kind.FREE):
                yield "C3", f"a scheduler for any number of tensors is one for {obs.nodes} now"
            return
        tensors = len(self.trace.graphs[op.graph].tensors)
        if obs.nodes and obs.nodes < tensors:
            yield "C3", f"the scheduler is made for {obs.nodes} tensors, the graph has {tensors}"
        calm = not (op.fail_nth or op.fail_types or self.limited())
        if obs.status == Status.REFUSED and calm and self.need(op, b) is not None:
            yield "C3", "a graph larger than the scheduler was made for is refused"

    def whole(self, op: Op, obs: Observation, b: Behind) -> Found:
        """M1: after a failure the devices' bytes are those of whole buffers."""
        types = self.trace.setup.types
        if obs.status != Status.REFUSED or b.late or self.larger(op, b) or not self.used:
            return
        if not any(types[t].meta for t in self.trace.setup.configs[b.config]):
            return
        for d, (before, now) in enumerate(zip(self.used, obs.used, strict=True)):
            here = [t for t, kind in enumerate(types) if (kind.meta >> d & 1 if kind.meta else t == d)]
            moved = sum(real(types[t], obs.asked[t]) - real(types[t], b.last.asked[t]) for t in here)
            if now - before != moved:
                yield "M1", f"device {d} has {now - before - moved} bytes more in use than whole buffers take"
                return

    def limited(self) -> bool:
        """Whether some device can run out of memory."""
        values = [op.value for op in self.trace.ops if op.kind == Kind.CAPACITY]
        return any(c < UNLIMITED for c in (*values, *(t.capacity for t in self.trace.setup.types)))

    def forgetting(self, op: Op, obs: Observation, b: Behind) -> Found:
        """C4. Whether an alloc that was left out is what is wrong, the same with an alloc tells."""
        wrong = obs.trouble & WRONG
        if op.kind == Kind.RESET and self.changed(obs, b):
            yield "C4", "a reset changes more than what is bound"
        if self.unbound(op, b) and obs.status not in (Status.DONE, Status.REFUSED):
            yield "C4", "computing without alloc must allocate and compute, or say that it could not"
        if self.unbound(op, b) and obs.status == Status.DONE and (wrong or self.another(op, obs, b)):
            alloc = Op(Kind.ALLOC, op.alloc, graph=op.graph)
            run = self.fresh.run(replace(self.trace, ops=(*self.trace.ops[: self.at], alloc, op)))
            last = run.steps[-1].obs if len(run.steps) == self.at + 2 else None
            if last is not None and not last.trouble and not self.another(op, last, b):
                yield "C4", f"graph {op.graph} is computed without alloc, and not allocated first"

    def changed(self, obs: Observation, b: Behind) -> bool:
        now = (obs.asked, obs.generation, obs.shrink_generation, obs.in_flight)
        return now != (b.last.asked, b.last.generation, b.last.shrink_generation, b.last.in_flight)

    def another(self, op: Op, obs: Observation, b: Behind) -> bool:
        """The digest shown is not that of the graph that was computed."""
        graph = self.computed(op, b)
        want = oracle.digest(graph) if graph is not None and obs.status == Status.DONE else None
        return want is not None and not obs.trouble and obs.digest != want

    def memory(self, op: Op, obs: Observation, b: Behind) -> Found:
        if obs.trouble & Trouble.FREED_BUSY:
            yield "C1", "a buffer was freed while work in flight used it"
        waits = op.kind == Kind.SYNC or (op.kind == Kind.COMPUTE and not has(op.flags, OpFlag.ASYNC))
        if waits and obs.in_flight and obs.status == Status.DONE:
            yield "C1", "work is still in flight after it was waited for"
        alone = op.kind == Kind.COMPUTE and not b.last.in_flight
        wrong = obs.trouble & (WRONG | Trouble.BAD_GUARD) or self.another(op, obs, b)
        if alone and wrong and self.by_another_plan(op, b):
            yield "G4", "a graph is computed by a plan that was made for another"
        yield from wrong_bytes(obs)
        if self.another(op, obs, b):
            graph = self.computed(op, b)
            assert graph is not None
            yield "P5", f"the outputs' digest is {obs.digest:#x}, it must be {oracle.digest(graph):#x}"

    def by_another_plan(self, op: Op, b: Behind) -> bool:
        """G4: the same is right where the graph was reserved before it was allocated."""
        graph, at = (op.graph, self.at) if b.bound is None else (b.bound, b.at)
        ops = self.trace.ops
        first = Op(Kind.RESERVE, op.alloc, graph=graph)
        run = self.fresh.run(replace(self.trace, ops=(*ops[:at], first, *ops[at : self.at + 1])))
        last = run.steps[-1].obs if len(run.steps) == self.at + 2 else None
        return (
            last is not None
            and last.status == Status.DONE
            and not last.trouble
            and not self.another(op, last, b)
        )

    def placed(self, op: Op, seen: StepSeen, b: Behind) -> Found:
        """G4: a plan for a graph whose tensors were asked for elsewhere is not right for this one."""
        if op.kind == Kind.ALLOC and seen.obs.status == Status.DONE and seen.places is not None:
            setup, graph = self.trace.setup, self.trace.graphs[op.graph]
            new = self.fresh.plan(setup, b.config, graph, by_sched=True)
            if away := astray(seen.places, setup.configs[b.config], graph, new):
                yield "G4", away

    def statuses(self, op: Op, obs: Observation, b: Behind) -> Found:
        """C2: a reservation that failed for good is told to the caller; a graph of no bytes needs none."""
        everywhere = op.fail_types == (1 << len(self.trace.setup.types)) - 1
        room = op.kind in ROOM or self.unbound(op, b)
        if everywhere and obs.allocations and obs.status == Status.DONE and room and self.needs_bytes(op, b):
            yield "C2", "every allocation failed, but the caller was told that it succeeded"
        ran = obs.digest or (obs.in_flight and not b.last.in_flight)
        if op.kind == Kind.COMPUTE and obs.status == Status.REFUSED and ran:
            yield "C2", "where the reservation failed something was computed"

    def needs_bytes(self, op: Op, b: Behind) -> bool:
        return any(map(sum, self.need(op, b) or ()))

    def need(self, op: Op, b: Behind) -> tuple[tuple[int, ...], ...] | None:
        """What a new scheduler asks for to reserve the graph: bytes by type and chunk."""
        return self.fresh.plan(self.trace.setup, b.config, self.trace.graphs[op.graph], by_sched=True).need

    def measured(self, op: Op, obs: Observation, b: Behind) -> Found:
        """P12: a measure gives what reserving the same graph through a new scheduler gives."""
        need = self.need(op, b)
        slots = self.trace.setup.configs[b.config]
        first = [k for k, t in enumerate(slots) if slots.index(t) == k]
        have = [obs.measured[k] for k in first]
        want = [sum(need[slots[k]]) for k in first] if need is not None else have
        if have != want:
            yield "P12", f"measure gives {have} bytes by slot, reserve gives {want}"

    def readings(self, obs: Observation, b: Behind) -> Found:
        """C5: the scheduler says what its allocator says, and that goes up with every change of its buffers."""
        if not self.caps & SHARING or not b.shares:
            return
        said, last = obs.sched_generation, b.last.sched_generation
        if said < last or obs.sched_shrink_generation < b.last.sched_shrink_generation:
            yield "C5", "a generation that the scheduler reads went down"
        if any(b.last.asked) and obs.asked != b.last.asked and said == last:
            yield "C5", "buffers were replaced, but the generation that the scheduler reads stayed"
        own = (obs.generation, obs.shrink_generation)
        if (said, obs.sched_shrink_generation) != own:
            yield "C5", f"the scheduler reads {(said, obs.sched_shrink_generation)}, its allocator {own}"

    def remaking(self, op: Op, seen: StepSeen, b: Behind) -> Found:
        """R14: what a new owner, of the caller's or because the scheduler had to be larger, means to the borrower."""
        if b.partner is None:
            return
        partner, look = self.known.get(b.partner), seen.looks.get(b.partner)
        if partner is None or look is None:
            return
        remade = op.kind == Kind.REMAKE or self.larger(op, b)
        moved = (look.asked, look.generation) != (partner.last.asked, partner.last.generation)
        if b.owner and (remade or partner.late) and op.kind != Kind.FREE and moved and self.caps & Cap.REMAKE:
            yield "R14", "the borrower's buffers changed before its own next reserve"
        if b.late and op.kind == Kind.RESERVE and seen.obs.status == Status.DONE:
            both = set(self.trace.setup.configs[b.config]) & set(self.trace.setup.configs[partner.config])
            if any(seen.obs.asked[t] != look.asked[t] for t in both):
                yield "R14", "after its own next reserve the borrower does not have the new owner's buffers"

    # -- what happened -----------------------------------------------------------------

    def note(self, op: Op, seen: StepSeen, b: Behind) -> None:
        obs, done = seen.obs, seen.obs.status == Status.DONE
        for number, look in seen.looks.items():
            if number in self.known and look.status == Status.DONE:
                self.known[number].last = look
        if obs.status == Status.MISUSE:
            return
        owns = b.owner and (op.kind == Kind.REMAKE or self.larger(op, b))
        if owns and self.caps & Cap.REMAKE and b.partner in self.known:
            self.known[b.partner].late = True
        if op.kind in ROOM or self.unbound(op, b):
            b.late = False  # it may have reserved
        if op.kind in (*ROOM, Kind.RESET, Kind.REMAKE) or obs.status == Status.STALE:
            b.bound = None
        if done and (op.kind == Kind.ALLOC or self.unbound(op, b)):
            b.bound, b.generation, b.at = op.graph, obs.generation, self.at
        if done and op.kind == Kind.COMPUTE:
            b.sent = b.bound
        b.last = obs
        self.attach(op, b, done)

    def attach(self, op: Op, b: Behind, done: bool) -> None:
        if op.kind in (Kind.OWN, Kind.BORROW) and done:
            b.shares, b.owner = True, op.kind == Kind.OWN
        if op.kind == Kind.BORROW and done:
            b.partner = op.other
            if op.other in self.known:
                self.known[op.other].partner = op.alloc
        if op.kind == Kind.FREE:
            if b.partner in self.known:
                self.known[b.partner].partner, self.known[b.partner].late = None, False
            del self.known[op.alloc]

    def tally(self, op: Op, seen: StepSeen) -> Counter[str]:
        """How often each clause was exercised; asked before `step`."""
        n: Counter[str] = Counter()
        obs, b = seen.obs, self.known.get(op.alloc)
        if op.kind in ROOM:
            n["C1"] += bool(obs.allocations)
            n["C2"] += obs.status == Status.REFUSED
        if b is None:
            return n
        n["C3"] += self.larger(op, b)
        n["C4"] += self.unbound(op, b)
        n["R14"] += b.late and op.kind == Kind.RESERVE and bool(self.caps & Cap.REMAKE)
        if self.caps & SHARING and b.shares:
            n["C5"] += bool(obs.allocations)
        return n

    def blame(self, op: Op) -> str:
        """The clause that a death during `op` breaks; '' where memory that is gone was to be touched."""
        b = self.known.get(op.alloc)
        if b is not None and op.kind == Kind.COMPUTE and has(op.flags, OpFlag.UNCHECKED) and self.outdated(b):
            return ""
        if b is not None and self.larger(op, b) and self.too_small(op):
            return "C3"
        return BY_KIND.get(op.kind, "C2")

    def too_small(self, op: Op) -> bool:
        """C3: it dies with all memory there is, but not where schedulers are made for any number of tensors."""
        ops = [*self.trace.ops[: self.at], op]
        calm = [replace(x, fail_types=0, fail_nth=0) for x in ops if x.kind != Kind.CAPACITY]
        any_number = [replace(x, value=0) if x.kind == Kind.NEW else x for x in calm]
        return self.survives(any_number) and not self.survives(calm)

    def survives(self, ops: list[Op]) -> bool:
        trace = replace(self.trace, setup=boundless(self.trace.setup), ops=tuple(ops))
        return len(self.fresh.run(trace).steps) == len(ops)
