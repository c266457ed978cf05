"""The proof of R: invariants of the model, and one step from any state that keeps them.

Sizes, counters and capacities are unbounded integers; rounding up is any function
that makes no size smaller and leaves nothing nothing. Wrap-round of sizes is
therefore not covered (the planner's checks and P13 are about that).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import z3

from ..model.domain import Tree, Value
from ..model.pair import BORROWER, OWNER, ROLES, Out, RoleOp, State
from ..model.records import Kind
from ..model.resizable import Model
from ..model.terms import Terms, equal, fresh, leaves, value
from .history import Past, Seen, follow, past, seen
from .resizable import Rules, holds, rules
from .step import Step

TIMEOUT = 10.0  #: seconds for one question to the solver
KINDS = (Kind.NEW, Kind.FREE, Kind.OWN, Kind.BORROW, Kind.RESERVE, Kind.MEASURE, Kind.ALLOC, Kind.COMPUTE,
         Kind.SHRINK, Kind.CAPACITY, Kind.REMAKE)  # fmt: skip
LINKED = (
    "uses",
    "common",
    "active",
    "owner",
    "behind",
    "req",
    "planned",
    "ever",
    "asking",
    "bound",
    "bound_gen",
)
INVARIANT = "invariants"  #: stands in the place of a clause for the proof's own lemmas


@dataclass(frozen=True)
class Case:
    """One step of the model, from any state with the invariants, by one kind of operation of one role."""

    model: Model
    kind: Kind
    role: int
    s: State
    g: Past
    op: RoleOp
    t: State
    out: Out
    h: Past
    before: tuple[Seen, Seen]
    given: tuple[Any, ...]
    rules: dict[str, Rules]
    goals: dict[str, dict[str, Value]]


def shape(model: Model) -> tuple[State, RoleOp]:
    """A state and an operation of plain values, for their shape."""
    zeros = (0,) * len(model.types)
    op = RoleOp(0, uses=model.no_type, need=model.no_need, inject=model.no_type)
    return model.init(zeros), op


def invariants(model: Model, s: State, g: Past) -> dict[str, Value]:
    """What holds in every state that can be reached; by name."""
    d, types = model.d, model.types
    out = {}
    sizes = [x for tree in (s.asked, s.old, s.req) for x in leaves(tree)]
    out["sizes are not negative"] = d.all(*(x >= 0 for x in sizes), *(x >= 1 for x in s.gran))

    def held(chunks: Tree, t: int) -> Value:
        return sum(model.real(s, t, chunks))

    out["the device counts the pair's bytes"] = d.all(
        *(s.used[t] >= held(s.asked[t], t) + held(s.old[t], t) for t in types)
    )
    both = d.all(*s.active)
    out["who is attached, and how"] = d.all(
        _if(d, s.owner, s.active[OWNER]), _if(d, both, s.owner), _if(d, s.behind, both),
        *(_if(d, s.uses[r][t], s.active[r]) for r in ROLES for t in types),
        *(_if(d, both, s.common[t] == d.all(s.uses[OWNER][t], s.uses[BORROWER][t])) for t in types),
    )  # fmt: skip
    out["no buffer that nobody uses"] = d.all(
        *(_if(d, x > 0, d.any(*(model.part(s, r, t) for r in ROLES))) for t in types for x in s.asked[t]),
        *(_if(d, x > 0, d.all(s.behind, s.uses[BORROWER][t])) for t in types for x in s.old[t]),
    )  # fmt: skip
    out["a pending request is as the past says"] = d.all(
        _if(d, g.sure, s.pending), _if(d, s.pending, g.open), _if(d, g.open, d.any(*s.active)),
        *(_if(d, d.all(s.pending, g.done[r]), s.seen[r]) for r in ROLES),
        *(_if(d, d.all(s.pending, s.seen[r]), g.tried[r]) for r in ROLES),
        *(_if(d, s.seen[r], s.pending) for r in ROLES),
    )  # fmt: skip
    out["a bound graph's generation tells"] = d.all(
        *(_if(d, s.bound[r], s.bound_gen[r] <= s.gen[r]) for r in ROLES),
        *(_if(d, d.all(s.bound[r], s.stale[r]), s.bound_gen[r] < s.gen[r]) for r in ROLES),
    )
    out["the past agrees"] = d.all(*(e for f in LINKED for e in equal(getattr(g, f), getattr(s, f))))
    return out


def _if(d: Any, a: Value, b: Value) -> Value:
    return d.any(d.inv(a), b)


def lawful(model: Model, s: State, op: RoleOp) -> list[Value]:
    """What a caller must keep to: sizes are sizes, and a plan's graph has the plan's requirement."""
    d = model.d
    law = [x >= 0 for x in leaves(op.need)]
    law += [op.fail_nth >= 0, op.value >= 0, op.other >= 0, op.other < len(ROLES)]
    for r in ROLES:
        fits = d.all(*equal(op.need, s.req[r]))
        law.append(_if(d, d.all(op.kind == int(Kind.ALLOC), op.role == r, op.match, s.planned[r]), fits))
    return law


def cases(cls: type[Model], types: int, chunks: int) -> Iterator[Case]:
    """Every kind of operation, by either role."""
    for kind in KINDS:
        for role in (OWNER,) if kind in (Kind.NEW, Kind.BORROW, Kind.CAPACITY) else ROLES:
            yield case(cls, types, chunks, kind, role)


def case(cls: type[Model], types: int, chunks: int, kind: Kind, role: int) -> Case:
    d = Terms()
    model = cls(d, types, chunks)
    state, operation = shape(model)
    s = fresh(state, "s")
    op = fresh(operation, "op")._replace(kind=int(kind), role=role)
    free = {f: fresh(getattr(past(types, chunks), f), f"g.{f}") for f in ("open", "sure", "tried", "done")}
    g = past(types, chunks)._replace(**{f: getattr(s, f) for f in LINKED}, **free)
    t, out = model.step(s, op)
    a, b = seen(model, s), seen(model, t)
    h = follow(d, g, a, op, out, b)
    given = [*invariants(model, s, g).values(), *lawful(model, s, op)]
    found = rules(Step(d, a, op, b, out, g, h))
    goals = {c: {name: holds(d, r) for name, r in parts.items()} for c, parts in found.items()}
    goals[INVARIANT] = invariants(model, t, h)
    given += d.axioms()
    return Case(model, kind, role, s, g, op, t, out, h, (a, b), tuple(given), found, goals)


def base(cls: type[Model], types: int, chunks: int) -> tuple[bool, float]:
    """The start state has the invariants."""
    began = time.perf_counter()
    d = Terms()
    model = cls(d, types, chunks)
    cap, gran = (fresh((0,) * types, name) for name in ("cap", "gran"))
    goal = d.all(*invariants(model, model.init(cap, gran), past(types, chunks)).values())
    solver = z3.Solver()
    solver.add(*(x >= 1 for x in gran), *d.axioms(), z3.Not(goal))
    return solver.check() == z3.unsat, time.perf_counter() - began


@dataclass(frozen=True)
class Answer:
    """What the solver says of one clause in one case: seconds, and for a refutation the step found."""

    verdict: str
    seconds: float
    part: str = ""
    step: tuple[State, RoleOp, State, Out] | None = None


def ask(c: Case, clauses: tuple[str, ...]) -> Iterator[tuple[str, Answer]]:
    """Each clause's parts, all together, against the case; parts that fold to true cost nothing."""
    solver = z3.Solver()
    solver.set("timeout", int(TIMEOUT * 1000))
    solver.set("arith.solver", 2)  # the older simplex: about 1.6 times as fast on these
    solver.add(*c.given)
    for clause in clauses:
        parts = {name: goal for name, goal in c.goals[clause].items() if goal is not True}
        if parts:
            yield clause, _ask(solver, c, parts)


def _ask(solver: z3.Solver, c: Case, parts: dict[str, Value]) -> Answer:
    began = time.perf_counter()
    solver.push()
    solver.add(z3.Not(z3.And(*parts.values())))
    result = solver.check()
    part, step = ("", None) if result != z3.sat else _small(solver, c, parts)
    solver.pop()
    verdict = {"unsat": "proved", "sat": "refuted"}.get(str(result), "unknown")
    return Answer(verdict, time.perf_counter() - began, part, step)


def _small(
    solver: z3.Solver, c: Case, parts: dict[str, Value]
) -> tuple[str, tuple[State, RoleOp, State, Out]]:
    """A counterexample with small numbers where there is one, else any."""
    numbers = [x for x in leaves((c.s, c.op)) if z3.is_int(x)]
    solver.check()
    found = solver.model()
    for limit in (4, 16):
        solver.push()
        solver.add(*(z3.And(x >= 0, x <= limit) for x in numbers), *c.model.d.monotone())
        if solver.check() == z3.sat:
            found = solver.model()
            solver.pop()
            break
        solver.pop()
    part = next(name for name, goal in parts.items() if z3.is_false(found.eval(z3.BoolVal(goal) if isinstance(
        goal, bool) else goal, model_completion=True)))  # fmt: skip
    s, op, t, out = value(found, (c.s, c.op, c.t, c.out))
    return part, (s, op, t, out)
