"""M2 and M3: computes on meta types whose tensors are not where the allocator's own map must have them.

The places of a bound graph were judged when it was bound (P), sizes and generations with every step
(R), and the parts of a buffer too (M1: spec/resizable.py). So where a current graph computes wrong
bytes, or its compute touches memory that is not mapped, the map from tensors to addresses is wrong:

M2  The other role bound, computed, reset or was freed since the graph was bound, and the same trace
    without all that others did since then computes it rightly: the other's use of its own map
    went through this one.
M3  It fails without them as well, the role is a borrower, and a plain allocator of the same types, on
    devices without limit, computes the same graph rightly: it is the alias that is wrong, one from
    before the generation changed (which it did since the role attached).

M1 is judged with the parts of a buffer; a death where a part could not be had is M1's as well, if the same
on simple types is survived. Otherwise none of them is to blame, and the clause is what it is of a simple type:
P1, P3 or P5. An outdated graph is R12's: nothing here looks at a compute whose generation is another than at its bind.
Both are experiments on the subject itself, so they do not depend on how it keeps its maps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..model.records import MAX_TYPES, BufferType, Cap, Kind, Op, OpFlag, Setup, Status, Trace, Trouble, has
from ..native.worker import StepSeen
from .fresh import Fresh, boundless

#: what uses, changes or drops the tensor map of who does it
USES_MAP = frozenset(
    {Kind.ALLOC, Kind.COMPUTE, Kind.RESERVE, Kind.RESET, Kind.FREE, Kind.REMAKE, Kind.LAUNCH}
)
MAKES_BUFFERS = (Kind.RESERVE, Kind.ALLOC, Kind.COMPUTE)
WRONG = int(Trouble.BAD_SOURCE | Trouble.BAD_OUTPUT)
MESSAGES = {
    "M2": "what the other role did since allocator {n} bound its graph changed where its tensors are",
    "M3": "borrower {n} computes in buffers as they were before the generation changed",
}


@dataclass
class Holder:
    """One allocator: its partner, its bound graph, and what has happened to its map."""

    config: int
    by_sched: bool = False
    partner: int | None = None
    borrows: bool = False
    reading: int = 0  # its generation, as last seen
    graph: int | None = None  # bound
    at: int = 0  # the operation that bound it
    generation: int = 0  # then
    ever: bool = False  # it has bound a graph
    attached: int = 0  # its generation when it became a borrower: its first alias is of then, or later
    disturbed: bool = False  # its partner used its own map since

    @property
    def current(self) -> bool:
        return self.graph is not None and self.reading == self.generation

    @property
    def older(self) -> bool:
        """It may have an alias from before the generation that its graph was bound under."""
        return self.borrows and self.generation != self.attached


def simple(setup: Setup) -> Setup:
    """With simple types in the place of meta types, of as much memory as the smallest of their devices."""
    least = [
        min((setup.types[d].capacity for d in devices(kind)), default=kind.capacity) for kind in setup.types
    ]
    return replace(
        setup,
        types=tuple(replace(kind, meta=0, capacity=c) for kind, c in zip(setup.types, least, strict=True)),
    )


def devices(kind: BufferType) -> list[int]:
    """The devices of a meta type."""
    return [d for d in range(MAX_TYPES) if kind.meta >> d & 1]


def as_simple(setup: Setup, op: Op) -> Op:
    """The operation where meta types are simple: they fail where one of their devices does, which a full one may."""
    if not op.fail_types and not op.fail_nth:
        return replace(
            op, fail_types=(1 << len(setup.types)) - 1
        )  # types share a device: any of them may be refused
    kinds = enumerate(setup.types)
    hit = [t for t, kind in kinds if any(op.fail_types >> d & 1 for d in devices(kind))]
    return replace(op, fail_types=op.fail_types | sum(1 << t for t in hit))


class Books:
    """Who has bound what, and what the other role did since."""

    def __init__(self, trace: Trace, caps: Cap, fresh: Fresh) -> None:
        self.trace, self.fresh = trace, fresh
        self.known: dict[int, Holder] = {}
        self.at = 0
        self.capturing = False
        self.causes: dict[int, str] = {}  # by operation

    def takes(self, op: Op, seen: StepSeen) -> bool:
        return False

    def step(self, op: Op, seen: StepSeen) -> Iterator[tuple[str, str]]:
        yield from ()

    def subject_of(self, op: Op) -> Holder | None:
        """The allocator whose current graph on meta types the operation computes."""
        h = self.known.get(op.alloc)
        if op.kind != Kind.COMPUTE or has(op.flags, OpFlag.ASYNC) or h is None or not h.current:
            return None
        types = self.trace.setup.types
        return h if any(types[t].meta for t in self.trace.setup.configs[h.config]) else None

    def tally(self, op: Op, seen: StepSeen) -> Counter[str]:
        n: Counter[str] = Counter()
        h = self.subject_of(op)
        if h is not None and seen.obs.status == Status.DONE:
            n["M2"] += h.disturbed
            n["M3"] += h.older
        return n

    def watch(self, op: Op, seen: StepSeen) -> Iterator[tuple[str, str]]:
        h = self.subject_of(op)
        lost = (  # nothing is bound, it says; or who shares buffers with it is being captured (Q3)
            seen.obs.status == Status.MISUSE and h is not None and not h.by_sched and not self.capturing
        )
        if h is not None and (lost or int(seen.obs.trouble) & WRONG):
            clause = self.cause(op, h)
            if clause and (clause == "M2" or not lost):
                yield clause, MESSAGES[clause].format(n=op.alloc)
        self.note(op, seen)
        self.at += 1

    def drives(self, op: Op) -> bool:
        return bool(self.blame(op))

    def blame(self, op: Op) -> str:
        h = self.subject_of(op)
        if h is not None:
            return self.cause(op, h)
        return "M1" if self.torn(op) else "M3" if self.bound_to_old(op) else ""

    def bound_to_old(self, op: Op) -> bool:
        """M3: it died binding a graph again after the generation changed, and does not where the types are simple."""
        h, setup = self.known.get(op.alloc), self.trace.setup
        binds = op.kind == Kind.ALLOC or (op.kind == Kind.COMPUTE and h is not None and h.graph is None)
        if h is None or not binds or not h.ever or h.reading == h.generation:
            return False
        if not any(setup.types[t].meta for t in setup.configs[h.config]):
            return False
        past = self.trace.ops[: self.at]
        once = [x for i, x in enumerate(past) if x.kind != Kind.ALLOC or x.alloc != op.alloc or i == h.at]
        if self.survives(setup, [*once, op]) or not self.right_alone(h, op.graph):
            return False
        return self.survives(boundless(simple(setup)), [*past, op])

    def torn(self, op: Op) -> bool:
        """M1: it died where a part could not be had: not where all can be, nor where the types are simple."""
        h, setup = self.known.get(op.alloc), self.trace.setup
        if h is None or op.kind not in MAKES_BUFFERS or (op.kind == Kind.COMPUTE and h.graph is not None):
            return False
        if not any(setup.types[t].meta for t in setup.configs[h.config]):
            return False
        past = self.trace.ops[: self.at]
        calm = [replace(x, fail_types=0, fail_nth=0) for x in (*past, op) if x.kind != Kind.CAPACITY]
        return self.survives(boundless(setup), calm) and self.survives(
            simple(setup), [*past, as_simple(setup, op)]
        )

    def survives(self, setup: Setup, ops: list[Op]) -> bool:
        return len(self.fresh.run(replace(self.trace, setup=setup, ops=tuple(ops))).steps) == len(ops)

    # -- experiments -----------------------------------------------------------------

    def cause(self, op: Op, h: Holder) -> str:
        """M2, M3 or ''; see above."""
        if self.at not in self.causes:
            self.causes[self.at] = self.found_out(op, h)
        return self.causes[self.at]

    def found_out(self, op: Op, h: Holder) -> str:
        assert h.graph is not None
        trace = self.trace
        if h.disturbed:
            since = [
                x for x in trace.ops[h.at + 1 : self.at] if x.alloc == op.alloc or x.kind == Kind.CAPACITY
            ]
            if self.computes(replace(trace, ops=(*trace.ops[: h.at + 1], *since, op))):
                return "M2"
        if h.older:
            return "M3" if self.right_alone(h, h.graph) else ""
        return ""

    def right_alone(self, h: Holder, graph: int) -> bool:
        """A new allocator of the same types, on devices without limit, computes the graph."""
        setup = replace(boundless(self.trace.setup), configs=(self.trace.setup.configs[h.config],))
        new = Op(Kind.NEW, flags=OpFlag.BY_SCHED if h.by_sched else OpFlag(0))
        ops = (new, *map(Op, (Kind.RESERVE, Kind.ALLOC, Kind.COMPUTE)))
        return self.computes(Trace(setup, (self.trace.graphs[graph],), ops))

    def computes(self, trace: Trace) -> bool:
        """The last operation of the trace is done, and nothing is wrong."""
        steps = self.fresh.run(trace).steps
        last = steps[-1].obs if len(steps) == len(trace.ops) else None
        return last is not None and last.status == Status.DONE and not last.trouble

    # -- what happened ---------------------------------------------------------------

    def note(self, op: Op, seen: StepSeen) -> None:
        done = seen.obs.status == Status.DONE
        if op.kind == Kind.NEW and done:
            self.known[op.alloc] = Holder(op.other, has(op.flags, OpFlag.BY_SCHED))
        for number, look in seen.looks.items():
            if number in self.known and look.status == Status.DONE:
                self.known[number].reading = look.generation
        if op.kind in (Kind.CAPTURE_BEGIN, Kind.CAPTURE_END) and seen.obs.status != Status.MISUSE:
            self.capturing = op.kind == Kind.CAPTURE_BEGIN and done
        h = self.known.get(op.alloc)
        if h is None or seen.obs.status == Status.MISUSE or op.kind == Kind.CAPACITY or op.kind > Kind.RESET:
            return
        if op.kind in USES_MAP:
            self.disturb(op.alloc, h)
        if op.kind == Kind.FREE:
            self.leave(op.alloc, h)
            return
        h.reading = seen.obs.generation
        if h.by_sched and op.kind in (Kind.RESERVE, Kind.ALLOC):
            h.graph = None  # a scheduler forgets it first
        if op.kind == Kind.BORROW and done:
            h.partner, h.borrows, h.attached = op.other, True, h.reading
            self.known[op.other].partner = op.alloc
        elif (op.kind == Kind.ALLOC and done) or (op.kind == Kind.COMPUTE and done and h.graph is None):
            h.graph, h.at, h.generation, h.disturbed, h.ever = op.graph, self.at, h.reading, False, True
        elif (op.kind in (Kind.RESET, Kind.REMAKE) and done) or seen.obs.status == Status.STALE:
            h.graph = None

    def disturb(self, number: int, h: Holder) -> None:
        """The partner's map, and that of every other allocator on the same devices, must not be touched."""
        mine = {t for t in self.trace.setup.configs[h.config] if self.trace.setup.types[t].meta}
        for n, other in self.known.items():
            if n == h.partner or (n != number and mine & set(self.trace.setup.configs[other.config])):
                other.disturbed = True

    def leave(self, number: int, h: Holder) -> None:
        del self.known[number]
        if h.partner in self.known:
            self.known[h.partner].partner = None
