"""Proof by induction of any state machine of the model, for all sizes: what a machine is, and its cases.

A machine is a model class over a domain with a pure `step(s, op) -> (t, out)`, and
what is claimed of one step: `rules`, by clause and part (see step.Rule). What a
rule must know of the past is part of the state (fields documented as history).
The proof: the start state has the `invariants`; from any state that has them, any
`lawful` operation leads to a state that has them, and keeps every rule.

induction.py asks the solver, bounded.py looks for broken clauses from the start state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from ..model.domain import Tree, Value
from ..model.terms import Terms, fresh
from .step import Rule
from .words import describe

Rules = dict[str, Rule]
Fields = Mapping[str, Value]  #: fields of an operation that are fixed
INVARIANT = "invariants"  #: stands in the place of a clause for the proof's own lemmas
Config = tuple[int, ...]


def _one_case(kind: int) -> tuple[Fields, ...]:
    return ({},)


def _as_it_is(s: Tree) -> Tree:
    return s


def _none(op: Any) -> list[list[Value]]:
    return []


@dataclass(frozen=True)
class Machine:
    """`model(d, *config)` makes the model; `kinds` are the values of its operations' `kind`.

    `init(model)`: a start state of plain values; its shape is the shape of every state.
    `operation(model)`: an operation of plain values, for its shape. `words`: a state, operation or
    result for people. What follows may be left out:

    `start(model)`: a start state of which parts stay free, and what is given of them; `init` without it.
    `begin(model)`: the same for the search from the start, where rounding needs plain numbers.
    `splits(kind)`: fields of the operation to go through one by one; a case for each is faster.
    `tidy(s)`: any state with what the invariants say of it put in, so that the solver need not find it.
    `prefixes`: how searches from the start begin, kinds with fixed fields; `wishes(op)`: what makes
    an operation easy to read, the most important first. `sizes`: what a config's numbers count.
    """

    name: str
    model: Callable[..., Any]
    configs: tuple[Config, ...]
    kinds: tuple[IntEnum, ...]
    clauses: tuple[str, ...]
    init: Callable[[Any], Tree]
    operation: Callable[[Any], Any]
    rules: Callable[[Any, Tree, Any, Tree, Any], dict[str, Rules]]  # (model, s, op, t, out)
    invariants: Callable[[Any, Tree], dict[str, Value]]  # (model, s)
    lawful: Callable[[Any, Tree, Any], list[Value]]  # (model, s, op)
    words: Callable[[Tree], str] = describe
    start: Callable[[Any], tuple[Tree, list[Value]]] | None = None
    begin: Callable[[Any], tuple[Tree, list[Value]]] | None = None
    splits: Callable[[int], tuple[Fields, ...]] = _one_case
    tidy: Callable[[Tree], Tree] = _as_it_is
    prefixes: tuple[tuple[tuple[int, Fields], ...], ...] = ((),)
    wishes: Callable[[Any], list[list[Value]]] = _none
    sizes: str = ""

    def any_start(self, model: Any) -> tuple[Tree, list[Value]]:
        """Every start state: free parts, and what is given of them."""
        return self.start(model) if self.start else (self.init(model), [])

    def first(self, model: Any) -> tuple[Tree, list[Value]]:
        """The start states of a search."""
        return self.begin(model) if self.begin else self.any_start(model)

    def tell(self, op: Any) -> str:
        """An operation for people."""
        if self.words is not describe:
            return self.words(op)
        name = next((k.name for k in self.kinds if k == op.kind), str(op.kind)).lower()
        rest = describe(op._replace(kind=0))
        return name + (f" ({rest})" if rest else "")


@dataclass(frozen=True)
class Case:
    """One step, from any state with the invariants, by one kind of operation: what is given, and what must hold."""

    kind: str
    d: Terms
    given: tuple[Value, ...]
    goals: dict[str, dict[str, Value]]
    step: tuple[Tree, Any, Tree, Any]  # state, operation, new state, result
    rules: dict[str, Rules]


def cases(m: Machine, model_class: Callable[..., Any], config: Config) -> Iterator[Case]:
    """The cases of each kind of operation. `model_class`: `m.model` or a wrong variant of it."""
    for kind in m.kinds:
        for fields in m.splits(kind):
            yield case(m, model_class, config, kind, fields)


def case(m: Machine, model_class: Callable[..., Any], config: Config, kind: IntEnum, fields: Fields) -> Case:
    """One kind of operation, of which some fields are fixed."""
    d = Terms()
    model = model_class(d, *config)
    s = m.tidy(fresh(m.init(model), "s"))
    op = fresh(m.operation(model), "op")._replace(kind=int(kind), **fields)
    t, out = model.step(s, op)
    given = [*m.invariants(model, s).values(), *m.lawful(model, s, op)]
    found = m.rules(model, s, op, t, out)
    goals = {c: {n: d.any(d.inv(r.when), r.then) for n, r in parts.items()} for c, parts in found.items()}
    goals[INVARIANT] = m.invariants(model, t)
    return Case(kind.name, d, (*given, *d.axioms()), goals, (s, op, t, out), found)
