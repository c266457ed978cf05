"""Bounded checks: is a broken clause reached from the start state, and by which operations?

Rounding is exact here (a granularity that is a number), so a trace that is found
runs as it stands on the model over ints, and on a real allocator.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import z3

from ..model.domain import Ints, Value
from ..model.pair import BORROWER, OWNER, Out, RoleOp, State
from ..model.records import Kind
from ..model.resizable import Model
from ..model.terms import Terms, equal, fresh, leaves, value
from . import words
from .history import Past, follow, past, seen
from .induction import KINDS, lawful, shape
from .resizable import Verdict, chunk_claim, judge, step_checks
from .step import Step

TIMEOUT = 20.0  #: seconds for one depth
PREFIXES = ((Kind.NEW, Kind.OWN, Kind.BORROW), (Kind.NEW,))
CHUNK_CLAIM = "R5: no chunk ever shrinks without a request"  #: the claim that is false of the design


@dataclass(frozen=True)
class Trace:
    """Operations from the start state; `cap` and `gran` by type, bytes."""

    cap: tuple[int, ...]
    gran: tuple[int, ...]
    ops: tuple[RoleOp, ...]
    chunks: int


@dataclass(frozen=True)
class Moment:
    """One step of a replay over ints: what it says of which clauses, and the past after it."""

    op: RoleOp
    out: Out
    state: State
    verdict: Verdict
    claim: bool


@dataclass(frozen=True)
class Search:
    """What a search found: a trace or None, the depth that was searched, whether every answer was sure."""

    trace: Trace | None
    depth: int
    sure: bool
    seconds: float

    @property
    def says(self) -> str:
        if self.trace is not None:
            return f"reached from the start in {len(self.trace.ops)} operations"
        if not self.sure:
            return "unknown whether it is reached from the start"
        return f"not reached from the start within {self.depth} operations after attaching"


def replay(cls: type[Model], trace: Trace) -> list[Moment]:
    """The trace over ints, judged step by step."""
    model = cls(Ints, len(trace.cap), trace.chunks)
    s, g = model.init(trace.cap, trace.gran), past(len(trace.cap), trace.chunks)
    moments = []
    for op in trace.ops:
        t, out = model.step(s, op)
        a, b = seen(model, s), seen(model, t)
        h = follow(Ints, g, a, op, out, b)
        step = Step(Ints, a, op, b, out, g, h)
        moments.append(Moment(op, out, t, judge(step), chunk_claim(step)))
        s, g = t, h
    return moments


def reach(
    cls: type[Model],
    types: int,
    chunks: int,
    clause: str,
    depth: int = 6,
    budget: float = 60.0,
    gran: tuple[int, ...] | None = None,
) -> Search:
    """The shortest way to break `clause` (or CHUNK_CLAIM): by number of operations after a prefix.

    Stops after `depth` operations, or where `budget` seconds are over.
    """
    began, sure = time.perf_counter(), True
    walks = [Walk(cls, types, chunks, prefix, gran or (1,) * types) for prefix in PREFIXES]
    for k in range(depth + 1):
        for walk in walks:
            trace, known = walk.broken(clause)
            sure = sure and known
            if trace is not None:
                return Search(trace, k, True, time.perf_counter() - began)
            walk.extend()
        if time.perf_counter() - began > budget:
            return Search(None, k, sure, time.perf_counter() - began)
    return Search(None, depth, sure, time.perf_counter() - began)


class Walk:
    """All traces that begin with a prefix of kinds, one operation longer with each `extend`."""

    def __init__(
        self, cls: type[Model], types: int, chunks: int, prefix: tuple[Kind, ...], gran: tuple[int, ...]
    ) -> None:
        self.d = Terms()
        self.model = cls(self.d, types, chunks)
        self.solver = z3.Solver()
        self.solver.set("timeout", int(TIMEOUT * 1000))
        self.gran = gran
        self.cap = fresh((0,) * types, "cap")
        self.solver.add(*(c >= 0 for c in self.cap))
        self.s: State = self.model.init(self.cap, gran)
        self.g: Past = past(types, chunks)
        self.ops: list[RoleOp] = []
        for kind in prefix:
            self.extend(kind)

    def extend(self, kind: Kind | None = None) -> None:
        """One operation more, of a given kind or of any."""
        n = len(self.ops)
        op: RoleOp = fresh(shape(self.model)[1], f"op{n}")
        if kind is None:
            self.solver.add(z3.Or(*(op.kind == int(k) for k in KINDS)))
            self.solver.add(op.role >= OWNER, op.role <= BORROWER)
        else:
            op = op._replace(kind=int(kind), role=BORROWER if kind == Kind.BORROW else OWNER)
        t, out = self.model.step(self.s, op)
        a, b = seen(self.model, self.s), seen(self.model, t)
        h = follow(self.d, self.g, a, op, out, b)
        self.solver.add(*lawful(self.model, self.s, op))
        self.last = Step(self.d, a, op, b, out, self.g, h)
        if kind is None:  # name the state, so that terms do not nest from step to step
            t, h = self._name(t, f"s{n}"), self._name(h, f"g{n}")
        self.s, self.g = t, h
        self.ops.append(op)

    def _name(self, tree: Any, name: str) -> Any:
        """New variables for the parts that are not plain values."""
        if isinstance(tree, tuple):
            fields = getattr(tree, "_fields", range(len(tree)))
            parts = [self._name(x, f"{name}.{f}") for f, x in zip(fields, tree, strict=True)]
            return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
        if not z3.is_expr(tree) or z3.is_const(tree):
            return tree
        new = z3.Bool(name) if z3.is_bool(tree) else z3.Int(name)
        self.solver.add(*equal(new, tree))
        return new

    def goals(self, clause: str) -> list[Value]:
        if clause == CHUNK_CLAIM:
            return [chunk_claim(self.last)]
        return [x for x in step_checks(self.last)[clause].values() if x is not True]

    def broken(self, clause: str) -> tuple[Trace | None, bool]:
        """A trace whose last step breaks the clause, and whether the answer is sure."""
        goals = self.goals(clause)
        if not goals:
            return None, True
        self.solver.push()
        self.solver.add(z3.Not(z3.And(*goals)))
        answer = str(self.solver.check())
        trace = self._small() if answer == "sat" else None
        self.solver.pop()
        return trace, answer != "unknown"

    def _small(self) -> Trace:
        """The trace of the present answer, as plain as can be: wishes that can be met are kept."""
        found, kept = self.solver.model(), 0
        for wish in self._wishes():
            self.solver.push()
            self.solver.add(*wish)
            if str(self.solver.check()) == "sat":
                found, kept = self.solver.model(), kept + 1
            else:
                self.solver.pop()
        self.solver.pop(kept)
        cap, ops = value(found, (self.cap, tuple(self.ops)))
        return Trace(cap, self.gran, ops, len(self.model.chunks))

    def _wishes(self) -> Iterator[list[Value]]:
        """What makes a trace easy to read, the most important first."""
        for limit in (100, 12, 3):
            yield [x <= limit for x in leaves((tuple(self.ops), self.cap)) if z3.is_expr(x) and z3.is_int(x)]
        for op in self.ops:
            yield [op.fail_nth == 0, *map(z3.Not, op.inject)]
            yield [op.plannable, op.clean, *op.uses, z3.Not(op.unchecked)]
            if not z3.is_expr(op.kind):  # of the prefix: a borrower that brings nothing
                yield [*(x == 0 for x in leaves(op.need)), z3.Not(op.match), op.other == OWNER]


def lines(cls: type[Model], trace: Trace) -> list[str]:
    """The trace in words, with what each step breaks."""
    cap, gran = (" ".join(map(str, x)) for x in (trace.cap, trace.gran))
    out = [f"start: devices of {cap} bytes, rounding to {gran}"]
    for n, m in enumerate(replay(cls, trace), 1):
        out.append(f"{n}. {words.operation(m.op)}: {words.result(m.out)}")
        out.append(f"   {words.state(m.state)}")
        out += [f"   breaks {clause}: {part}" for clause, part in m.verdict.broken]
        out += [f"   breaks {CHUNK_CLAIM}"] if not m.claim and not m.verdict.broken else []
    return out
