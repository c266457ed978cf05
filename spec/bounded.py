"""Bounded checks: is a broken clause reached from the start state, and by which operations?

Rounding is exact here (a granularity that is a number), so a trace that is found
runs as it stands on the model over ints, and on a real allocator.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import z3

from ..model.domain import Ints, Tree, Value
from ..model.terms import Terms, equal, fresh, leaves, value
from .induction import term
from .machine import Config, Fields, Machine

TIMEOUT = 20.0  #: seconds for one depth


@dataclass(frozen=True)
class Trace:
    """Operations from a start state, all of plain values."""

    config: Config
    start: Tree
    ops: tuple[Any, ...]


@dataclass(frozen=True)
class Moment:
    """One step of a replay over ints, and which parts of which clauses it breaks."""

    op: Any
    out: Any
    state: Tree
    broken: list[tuple[str, str]]


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
        return f"not reached from the start within {self.depth} operations"


def replay(m: Machine, model_class: Callable[..., Any], trace: Trace) -> list[Moment]:
    """The trace over ints, judged step by step."""
    model = model_class(Ints, *trace.config)
    s, moments = trace.start, []
    for op in trace.ops:
        t, out = model.step(s, op)
        found = m.rules(model, s, op, t, out)
        broken = [(c, n) for c, parts in found.items() for n, r in parts.items() if r.when and not r.then]
        moments.append(Moment(op, out, t, broken))
        s = t
    return moments


def reach(
    m: Machine,
    model_class: Callable[..., Any],
    config: Config,
    clause: str,
    depth: int = 6,
    budget: float = 60.0,
) -> Search:
    """The shortest way to break `clause`: by number of operations after a prefix.

    Stops after `depth` operations, or where `budget` seconds are over.
    """
    began, sure, longest = time.perf_counter(), True, max(map(len, m.prefixes))
    walks = [Walk(m, model_class, config, prefix) for prefix in m.prefixes]
    for k in range(depth + 1):
        for walk in walks:
            trace, known = walk.broken(clause)
            sure = sure and known
            if trace is not None:
                return Search(trace, k, True, time.perf_counter() - began)
            walk.extend()
        if time.perf_counter() - began > budget:
            return Search(None, k + longest, sure, time.perf_counter() - began)
    return Search(None, depth + longest, sure, time.perf_counter() - began)


class Walk:
    """All traces that begin with a prefix of operations, one longer with each `extend`."""

    def __init__(
        self,
        m: Machine,
        model_class: Callable[..., Any],
        config: Config,
        prefix: tuple[tuple[int, Fields], ...],
        domain: Callable[[], Terms] = Terms,
    ) -> None:
        self.m, self.config, self.d = m, config, domain()
        self.model = model_class(self.d, *config)
        self.solver = z3.Solver()
        self.solver.set("timeout", int(TIMEOUT * 1000))
        self.s, given = m.first(self.model)
        self.start = self.s
        self.solver.add(*given)
        self.ops: list[Any] = []
        self.rules: dict[str, Any] = {}
        for kind, fields in prefix:
            self.extend(kind, fields)

    def extend(self, kind: int | None = None, fields: Fields | None = None) -> None:
        """One operation more, of a given kind or of any."""
        n = len(self.ops)
        op = fresh(self.m.operation(self.model), f"op{n}")
        if kind is None:
            self.solver.add(z3.Or(*(op.kind == int(k) for k in self.m.kinds)))
        else:
            op = op._replace(kind=int(kind), **(fields or {}))
        t, out = self.take(op)
        self.solver.add(*self.law(op))
        self.rules = self.m.rules(self.model, self.s, op, t, out)
        self.solver.add(*self.d.axioms())
        # name the state, so that terms do not nest from step to step
        self.s = t if kind is not None else self._name(t, f"s{n}")
        self.ops.append(op)

    def take(self, op: Any) -> Any:
        """The step."""
        return self.model.step(self.s, op)

    def law(self, op: Any) -> list[Value]:
        """What is given of the operation."""
        return self.m.lawful(self.model, self.s, op)

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
        parts = self.rules.get(clause, {}).values()
        held = (self.d.any(self.d.inv(r.when), r.then) for r in parts)
        return [x for x in held if x is not True]

    def broken(self, clause: str) -> tuple[Trace | None, bool]:
        """A trace whose last step breaks the clause, and whether the answer is sure."""
        goals = self.goals(clause)
        if not goals:
            return None, True
        self.solver.push()
        self.solver.add(z3.Not(z3.And(*map(term, goals))))
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
        start, ops = value(found, (self.start, tuple(self.ops)))
        return Trace(self.config, start, ops)

    def _wishes(self) -> Iterator[list[Value]]:
        """What makes a trace easy to read, the most important first."""
        free = [x for x in leaves((tuple(self.ops), self.start)) if z3.is_expr(x)]
        numbers = [x for x in free if z3.is_int(x)]
        for limit in (100, 12, 3):
            yield [x <= limit for x in numbers]
        for op in self.ops:
            yield from self.m.wishes(op)


def lines(m: Machine, model_class: Callable[..., Any], trace: Trace) -> list[str]:
    """The trace in words, with what each step breaks."""
    out = [f"start: {m.words(trace.start)}"]
    for n, moment in enumerate(replay(m, model_class, trace), 1):
        out.append(f"{n}. {m.tell(moment.op)}: {m.words(moment.out)}")
        out.append(f"   {m.words(moment.state)}")
        out += [f"   breaks {clause}: {part}" for clause, part in moment.broken]
    return out
