"""Judges a run of a subject, step by step, by the contract.

The subject has run; nothing here calls it but for fresh plans. A trace is judged
up to its first broken clause: what comes after is a consequence. The parts:

ledger.py      the contract's books: who takes part, what is published, what was freed
spec/          the clauses as predicates over the observed transition
alloc.py       the bound graph's places, against its lifetimes and the live buffers
exact.py       every observation against the reference session (subjects with Cap.EXACT)
deaths.py      which clause an abort, a fault or a hang breaks
scheduled.py   allocators behind a scheduler (C1, C2, C5)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..model.records import Cap, Kind, Op, OpFlag, Status, Trace, Trouble
from ..model.session import Session
from ..native.worker import Run, StepSeen
from ..spec import placement
from ..spec.resizable import exercised, step_checks
from . import alloc, deaths, exact, scheduled
from .fresh import Fresh
from .ledger import Ledger
from .verdict import Verdict


@dataclass
class Report:
    """The judgement of one run: `tally[clause]` counts how often each clause was exercised."""

    verdicts: list[Verdict] = field(default_factory=list)
    tally: Counter[str] = field(default_factory=Counter)
    steps: int = 0

    @property
    def broken(self) -> Verdict | None:
        """The first broken clause, else the first difference that no clause decides."""
        for sort in ("broken", "silent"):
            for verdict in self.verdicts:
                if verdict.sort == sort:
                    return verdict
        return None


class Checker:
    """Judges one run of `trace` on a subject of capabilities `caps`."""

    def __init__(self, trace: Trace, caps: Cap, fresh: Fresh) -> None:
        self.trace, self.caps, self.fresh = trace, caps, fresh
        self.ledger = Ledger(trace.setup, trace.graphs, caps, fresh)
        self.reference = Session(trace.setup, list(trace.graphs)) if caps & Cap.EXACT else None
        self.history = alloc.History()
        self.books = scheduled.Books(trace, caps)
        self.report = Report()
        self.at = 0

    def check(self, run: Run) -> Report:
        """Judges every step, then the death or the leak at the end."""
        for self.at, (op, seen) in enumerate(zip(self.trace.ops, run.steps, strict=False)):
            self.report.steps += 1
            self.report.verdicts += self.step(op, seen)
            if self.report.broken:
                return self.report
        self.at = len(run.steps)
        self.report.verdicts += self.end(run)
        return self.report

    # -- one step ----------------------------------------------------------------

    def step(self, op: Op, seen: StepSeen) -> Iterator[Verdict]:
        if op.flags & OpFlag.BY_SCHED or self.books.has(op.alloc):
            for clause, message in self.books.step(op, seen):
                yield self.broken(clause, message, op)
            self.report.tally += self.books.tally(op, seen)
            return
        owner = self.ledger.allocs.get(op.alloc)
        bound_before = owner.bound if owner else None
        expected, played = self.ledger.step(op, seen.obs, seen.looks)
        if seen.obs.status == Status.MISUSE and expected == Status.MISUSE:
            yield self.verdict("misuse", "", misused(op), op)
        found = False
        for clause, message in self.clauses(op, seen, expected, played, bound_before):
            found = True
            yield self.broken(clause, message, op)
        if self.reference and not found:
            for name, want, have in exact.differences(self.reference, op, seen):
                yield Verdict("silent", "", f"{name} differs", self.at, op.kind.name, want, have)

    def clauses(self, op: Op, seen: StepSeen, expected: Status, played: object, bound: object) -> Iterator[tuple[str, str]]:
        """(clause, message) of everything that this step breaks, the most telling first."""
        self.history.note(op, seen.obs, self.ledger)
        yield from alloc.trouble(op, seen, self.ledger, self.history, played)
        yield from alloc.plan_rules(op, seen, self.ledger, self.history, self.fresh, expected)
        self.report.tally += alloc.exercised(op, seen, self.ledger, self.history)
        if played is not None:
            yield from self.pair_rules(played)

    def pair_rules(self, played: "Played") -> Iterator[tuple[str, str]]:
        raise NotImplementedError
