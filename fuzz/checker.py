"""Judges a run of a subject, step by step, by the contract.

The subject has run; nothing here calls it but for fresh plans. A trace is judged
up to its first broken clause: what comes after is a consequence. A difference that no clause
decides does not end it: the clause that it breaks may show later. The parts:

pairs.py       P, G and R on one step
ledger.py      the contract's books: who takes part, what is published, what was freed
spec/          the clauses as predicates over the observed transition
alloc.py       the bound graph's places, against its lifetimes and the live buffers
exact.py       every observation against the reference session (subjects with Cap.EXACT)
breakdown.py   R13 over all allocators
deaths.py      which clause an abort, a fault or a hang breaks
layers.py      schedulers, pools, captured graphs, contexts, server: books of their own
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..model import planner
from ..model.records import MAX_CHUNKS, SIZE_MAX, Cap, Kind, Observation, Op, Status, Trace
from ..model.session import trim
from ..model.stack import Stack
from ..native.worker import Run, StepSeen
from ..spec.resizable import Step
from . import alloc, deaths, exact, pairs
from .breakdown import Breakdown
from .fresh import Fresh
from .layers import Layer, layers, watches
from .ledger import Ledger
from .verdict import Verdict


@dataclass
class Report:
    """The judgement of one run: `tally[clause]` counts how often each clause was exercised.

    `statuses`: how each operation that was judged ended.
    """

    verdicts: list[Verdict] = field(default_factory=list)
    tally: Counter[str] = field(default_factory=Counter)
    statuses: list[Status] = field(default_factory=list)

    @property
    def steps(self) -> int:
        """Operations that were judged."""
        return len(self.statuses)

    @property
    def failed(self) -> Verdict | None:
        """The first broken clause, else the first difference that no clause decides."""
        for sort in ("broken", "silent"):
            for verdict in self.verdicts:
                if verdict.sort == sort:
                    return verdict
        return None


def sides(step: Step) -> tuple[str, str]:
    """What the contract makes of the pair's buffers after the step, and what they are: bytes by type and chunk."""
    if not step.reserve:
        want = [step.s.asked[t] for t in step.types]
        words = "the buffers as they were"
    else:
        want = [step.want(t) for t in step.types]
        words = "room for the larger of the published requirements"
    shown = "; ".join(f"type {t} {list(trim(chunks))}" for t, chunks in enumerate(want))
    have = "; ".join(f"type {t} {list(trim(chunks))}" for t, chunks in enumerate(step.t.asked))
    before = "; ".join(f"type {t} {list(trim(chunks))}" for t, chunks in enumerate(step.s.asked))
    readings = f"generations {list(step.s.gen)} then {list(step.t.gen)}"
    return (
        f"{words}: {shown}",
        f"{Status(step.out.status).name.lower()}, {have} (before: {before}); {readings}",
    )


class Checker:
    """Judges one run of `trace` on a subject of capabilities `caps`."""

    def __init__(self, trace: Trace, caps: Cap, fresh: Fresh) -> None:
        self.trace, self.caps, self.fresh = trace, caps, fresh
        self.parted = False
        self.open(MAX_CHUNKS)
        self.history = alloc.History()
        self.layers, self.watches = layers(trace, caps, fresh), watches(trace, caps, fresh)
        self.breakdown = Breakdown(trace, caps)
        self.report = Report()
        self.at = 0

    def check(self, run: Run) -> Report:
        """Judges every step, then the death or the leak at the end."""
        self.open(self.most_chunks(run))
        hidden = not self.caps & Cap.EMPTY_CHUNKS and self.has_empty()
        self.ledger.blind = hidden and self.ledger.chunks > 1
        for at, (op, seen) in enumerate(zip(self.trace.ops, run.steps, strict=False)):
            self.at = at
            self.report.statuses.append(seen.obs.status)
            self.report.verdicts += self.step(op, seen)
            if any(v.sort == "broken" for v in self.report.verdicts):
                return self.report
        self.report.verdicts += self.end(run)
        return self.report

    def open(self, chunks: int) -> None:
        """Opens the books for sessions of at most so many chunks a type."""
        trace, exact_too = self.trace, self.caps & Cap.EXACT
        self.ledger = Ledger(trace.setup, trace.graphs, self.caps, self.fresh, chunks)
        self.reference = Stack(trace.setup, list(trace.graphs), chunks=chunks) if exact_too else None

    def has_empty(self) -> bool:
        """Whether some graph may have a chunk of no bytes, which a foreign subject does not show."""
        return any(not t.size and not t.view for graph in self.trace.graphs for t in graph.tensors)

    def most_chunks(self, run: Run) -> int:
        """The most chunks that any plan or observation of this run has: the books need no more."""
        trace = self.trace
        rows = [chunks for seen in run.steps for o in (seen.obs, *seen.looks.values()) for chunks in o.asked]
        for graph in {op.graph for op in trace.ops if op.kind in (Kind.RESERVE, Kind.ALLOC, Kind.COMPUTE)}:
            for config, slots in enumerate(trace.setup.configs):
                if 0 <= graph < len(trace.graphs):
                    fresh = self.fresh.plan(trace.setup, config, trace.graphs[graph])
                    rows += fresh.need or fresh.beyond or ()
                    exact_plan = planner.plan(trace.setup.types, slots, trace.graphs[graph])
                    rows += exact_plan.need if exact_plan else ()
        limited = any(kind.max_size < SIZE_MAX for kind in trace.setup.types)
        rows += [(0,) * MAX_CHUNKS] if limited and trace.setup.contexts else []
        return max(map(len, rows), default=0) or 1

    # -- one step ----------------------------------------------------------------

    def step(self, op: Op, seen: StepSeen) -> Iterator[Verdict]:
        layer = next((x for x in self.layers if x.takes(op, seen)), None)
        for watch in self.watches:
            self.report.tally += watch.tally(op, seen)
        if layer is not None:
            self.report.tally += layer.tally(op, seen)
            self.ledger.beside(seen.obs)
        found = False
        for clause, message in self.layered(layer, op, seen):
            found = True
            yield self.verdict("broken", clause, message, op)
        if layer is None:
            for verdict in self.plain(op, seen):
                found |= verdict.sort == "broken"
                yield verdict
        for clause, message in () if found else self.breakdown.step(op, seen):
            found = True
            yield self.verdict("broken", clause, message, op)
        yield from self.exactly(op, seen, found)

    def layered(self, layer: Layer | None, op: Op, seen: StepSeen) -> Iterator[tuple[str, str]]:
        """What the operation breaks of those that watch all, of its own layer, then of the others."""
        for watch in self.watches:
            yield from watch.watch(op, seen)
        if layer is not None:
            yield from layer.step(op, seen)
        for other in self.layers:
            if other is not layer:
                yield from other.watch(op, seen)

    def plain(self, op: Op, seen: StepSeen) -> Iterator[Verdict]:
        """An operation of a plain allocator or a pair."""
        expected, step = self.ledger.step(op, seen.obs, seen.looks)
        if seen.obs.status == Status.MISUSE and expected == Status.MISUSE:
            yield self.verdict("misuse", "", deaths.misused(op), op)
        self.report.tally += alloc.exercised(op, seen, self.ledger, self.history)
        self.history.note(op, seen.obs, self.ledger)
        for clause, message in self.clauses(op, seen, step):
            want, have = sides(step) if step is not None and clause[0] in "RG" else ("", "")
            yield Verdict("broken", clause, message, self.at, op.kind.name, want, have)
        if self.reference is None and expected == Status.MISUSE != seen.obs.status:
            yield self.verdict("silent", "", "the caller's misuse was not noticed", op)

    def exactly(self, op: Op, seen: StepSeen, found: bool) -> Iterator[Verdict]:
        """A difference from the reference that no clause explains."""
        if self.reference is None or self.parted:
            return
        for name, want, have in exact.differences(self.reference, op, seen):
            self.parted = True  # the reference goes another way from here on
            if not found and op.kind == Kind.LAUNCH and (name, want) == ("status", Status.STALE.name):
                # generations are judged already: memory that the graph uses is not mapped any more
                yield Verdict("broken", "Q1", "a graph is replayed whose pool memory is gone", self.at,
                              op.kind.name, want, have)  # fmt: skip
            elif not found:
                yield Verdict("silent", "", f"{name} differs", self.at, op.kind.name, want, have)

    def clauses(self, op: Op, seen: StepSeen, step: Step | None) -> Iterator[tuple[str, str]]:
        """(clause, message) of everything that this step breaks, the most telling first."""
        yield from alloc.trouble(op, seen, self.ledger, step)
        if step is None:
            return
        yield from pairs.broken(op, seen, step, self.ledger, self.history, self.report.tally)

    def verdict(self, sort: str, clause: str, message: str, op: Op) -> Verdict:
        return Verdict(sort, clause, message, self.at, op.kind.name)  # type: ignore[arg-type]

    # -- the end -------------------------------------------------------------------

    def end(self, run: Run) -> Iterator[Verdict]:
        """A death is a finding that names the operation; so is a byte that close does not give back."""
        self.at = len(run.steps)
        if run.death is None:
            if run.leaked:
                what = f"{run.leaked} bytes stay in use, or reserved, or so many captured graphs, after all was freed"
                yield Verdict("broken", "G5", what, self.at, "close")
            return
        how = deaths.describe(run.death)
        if run.death.op is None or self.at >= len(self.trace.ops):
            clause = "G2" if any(p.failed for p in self.history.past.values()) else "G5"
            yield Verdict("broken", clause, f"freeing everything {how}", self.at, run.death.phase)
            return
        op = self.trace.ops[self.at]
        layer = next((x for x in (*self.watches, *self.layers) if x.drives(op)), None)
        clause = layer.blame(op) if layer else deaths.blame(op, self.ledger, self.history)
        if layer is None and deaths.expected(op, self.ledger):
            self.report.tally["R12"] += 1
        elif layer is not None and not clause:
            self.report.tally += layer.tally(op, StepSeen(Observation(Status.MISUSE), {}))
            yield from self.unanswered(op, how)
        elif layer is not None:
            yield self.verdict("broken", clause, how, op)
        elif self.misuse(op):
            yield self.verdict("misuse", "", f"{deaths.misused(op)}; the subject {how}", op)
            yield from self.unanswered(op, how)
        else:
            yield self.verdict("broken", clause, how, op)

    def unanswered(self, op: Op, how: str) -> Iterator[Verdict]:
        """A misuse may end a subject; but not one that says that it does what the model does."""
        if self.reference is not None and not self.parted and self.reference.step(op).status == Status.MISUSE:
            yield self.verdict("silent", "", f"a misuse is answered; but the subject {how}", op)

    def misuse(self, op: Op) -> bool:
        """Whether the reference would have called the operation a misuse."""
        return self.ledger.session.step(op).status == Status.MISUSE
