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

Otherwise neither is to blame, and the clause is what it is of a simple type: P1, P3 or P5. An outdated
graph is R12's: nothing here looks at a compute whose generation is another than at its bind.
Both are experiments on the subject itself, so they do not depend on how it keeps its maps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..model.records import Cap, Kind, Op, OpFlag, Status, Trace, Trouble, has
from ..native.worker import StepSeen
from .fresh import Fresh, boundless

#: what uses, changes or drops the tensor map of who does it
USES_MAP = frozenset(
    {Kind.ALLOC, Kind.COMPUTE, Kind.RESERVE, Kind.RESET, Kind.FREE, Kind.REMAKE, Kind.LAUNCH}
)
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
    attached: int = 0  # its generation when it became a borrower: its first alias is of then, or later
    disturbed: bool = False  # its partner used its own map since

    @property
    def current(self) -> bool:
        return self.graph is not None and self.reading == self.generation

    @property
    def older(self) -> bool:
        """It may have an alias from before the generation that its graph was bound under."""
        return self.borrows and self.generation != self.attached


class Books:
    """Who has bound what, and what the other role did since."""

    def __init__(self, trace: Trace, caps: Cap, fresh: Fresh) -> None:
        self.trace, self.fresh = trace, fresh
        self.known: dict[int, Holder] = {}
        self.at = 0
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
        lost = (
            seen.obs.status == Status.MISUSE and h is not None and not h.by_sched
        )  # nothing is bound, it says
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
        return self.cause(op, h) if h is not None else ""

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
            setup = replace(boundless(trace.setup), configs=(trace.setup.configs[h.config],))
            kinds = (Kind.NEW, Kind.RESERVE, Kind.ALLOC, Kind.COMPUTE)
            if self.computes(Trace(setup, (trace.graphs[h.graph],), tuple(map(Op, kinds)))):
                return "M3"
        return ""

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
        h = self.known.get(op.alloc)
        if h is None or seen.obs.status == Status.MISUSE or op.kind == Kind.CAPACITY or op.kind > Kind.RESET:
            return
        if op.kind in USES_MAP and h.partner in self.known:
            self.known[h.partner].disturbed = True
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
            h.graph, h.at, h.generation, h.disturbed = op.graph, self.at, h.reading, False
        elif (op.kind in (Kind.RESET, Kind.REMAKE) and done) or seen.obs.status == Status.STALE:
            h.graph = None

    def leave(self, number: int, h: Holder) -> None:
        del self.known[number]
        if h.partner in self.known:
            self.known[h.partner].partner = None
