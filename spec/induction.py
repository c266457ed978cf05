"""Proof by induction: the solver is asked whether one step of a machine can break anything.

Sizes, counters and capacities are unbounded integers; rounding up is any function
that makes no size smaller and leaves nothing nothing. Wrap-round of sizes is
therefore not covered (the planner's checks and P13 are about that).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import z3

from ..model.domain import Tree, Value
from ..model.terms import Terms, leaves, value
from .machine import Case, Config, Machine, cases

TIMEOUT = 10.0  #: seconds for one question to the solver
PROVED, REFUTED, UNKNOWN = "proved", "refuted", "unknown"


@dataclass(frozen=True)
class Answer:
    """What the solver says of one clause in one case: seconds, and for a refutation the step found."""

    verdict: str
    seconds: float
    part: str = ""
    step: tuple[Tree, Any, Tree, Any] | None = None


def term(x: Value) -> Any:
    """A truth value as a Z3 term."""
    return z3.BoolVal(x) if isinstance(x, bool) else x


def base(m: Machine, model_class: Callable[..., Any], config: Config) -> tuple[bool, float]:
    """Whether every start state has the invariants, and the seconds that it took to find out."""
    began = time.perf_counter()
    d = Terms()
    model = model_class(d, *config)
    s, given = m.any_start(model)
    goal = d.all(*m.invariants(model, s).values())
    solver = z3.Solver()
    solver.add(*given, *d.axioms(), z3.Not(term(goal)))
    return solver.check() == z3.unsat, time.perf_counter() - began


#: how a question is put to the solver: its share of TIMEOUT, and its parameters. Whether Z3 finds a proof in time may hang
#: on what was asked before in the same process, so what one way leaves open is asked in another. The older
#: simplex comes first: it is about 1.6 times as fast on these.
WAYS: tuple[tuple[float, dict[str, int]], ...] = (
    (0.2, {"arith.solver": 2}),
    (1.0, {}),
    (1.0, {"arith.solver": 2, "random_seed": 7}),
)


def ask(c: Case, clauses: tuple[str, ...]) -> Iterator[tuple[str, Answer]]:
    """Each clause's parts, all together, against the case; parts that fold to true cost nothing."""
    solvers = [_solver(c, *WAYS[0])]
    for clause in clauses:
        parts = {name: goal for name, goal in c.goals.get(clause, {}).items() if goal is not True}
        if parts:
            yield clause, _ask(solvers, c, parts)


def _solver(c: Case, share: float, how: dict[str, int]) -> z3.Solver:
    solver = z3.Solver()
    solver.set("timeout", max(1, int(share * TIMEOUT * 1000)))  # 0 were no limit
    for name, value_ in how.items():
        solver.set(name, value_)
    solver.add(*c.given)
    return solver


def _ask(solvers: list[z3.Solver], c: Case, parts: dict[str, Value]) -> Answer:
    """The first answer that is not unknown; a solver is made when its way is first needed."""
    began = time.perf_counter()
    answer = Answer(UNKNOWN, 0.0)
    for k, way in enumerate(WAYS):
        if k == len(solvers):
            solvers.append(_solver(c, *way))
        answer = _ask_one(solvers[k], c, parts)
        if answer.verdict != UNKNOWN:
            break
    return replace(answer, seconds=time.perf_counter() - began)


def _ask_one(solver: z3.Solver, c: Case, parts: dict[str, Value]) -> Answer:
    solver.push()
    solver.add(z3.Not(z3.And(*map(term, parts.values()))))
    result = solver.check()
    part, step = ("", None) if result != z3.sat else _small(solver, c, parts)
    solver.pop()
    return Answer({"unsat": PROVED, "sat": REFUTED}.get(str(result), UNKNOWN), 0.0, part, step)


def _small(solver: z3.Solver, c: Case, parts: dict[str, Value]) -> tuple[str, tuple[Tree, Any, Tree, Any]]:
    """A counterexample with small numbers where there is one, else any."""
    numbers = [x for x in leaves(c.step[:2]) if z3.is_int(x)]
    found = solver.model()
    for limit in (4, 16):
        solver.push()
        solver.add(*(z3.And(x >= 0, x <= limit) for x in numbers), *c.d.monotone())
        if solver.check() == z3.sat:
            found = solver.model()
            solver.pop()
            break
        solver.pop()
    broken = [n for n, goal in parts.items() if z3.is_false(found.eval(term(goal), model_completion=True))]
    return broken[0], value(found, c.step)


def empty_parts(m: Machine, config: Config) -> list[tuple[str, str]]:
    """(clause, part) of which no lawful step from a state with the invariants says anything, and
    (kind, '') of kinds of which no step is possible at all: a proof of these would say nothing."""
    met: dict[tuple[str, str], bool] = {}
    for c in cases(m, m.model, config):
        solver = z3.Solver()
        solver.add(*c.given)
        met[c.kind, ""] = met.get((c.kind, ""), False) or str(solver.check()) == "sat"
        for clause, parts in c.rules.items():
            for part, rule in parts.items():
                if not met.get((clause, part)):
                    met[clause, part] = str(solver.check(term(rule.when))) == "sat"
    return [key for key, found in met.items() if not found]
