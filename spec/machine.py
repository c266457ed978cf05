"""Proof by induction of any state machine of the model, for all sizes.

A machine is a model class over a domain with a pure `step(s, op) -> (t, out)`, and
what is claimed of one step: `rules`, by clause and part (see step.Rule). What a
rule must know of the past is part of the state (fields documented as history).
The proof: the start state has the `invariants`; from any state that has them, any
`lawful` operation leads to a state that has them, and keeps every rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from ..model.domain import Tree, Value
from ..model.terms import Terms, fresh
from .step import Rule

Rules = dict[str, Rule]
INVARIANT = "invariants"  #: stands in the place of a clause for the proof's own lemmas
Config = tuple[int, ...]


@dataclass(frozen=True)
class Machine:
    """`model(d, *config)` makes the model; `kinds` are the values of its operations' `kind`.

    `init(model)`: a start state of plain values (its shape is the shape of every state) and the terms that
    stay free in it are made by `start(model)`, with what is given of them. `operation(model)`: an operation
    of plain values, for its shape. `words`: a state, operation or result for people.
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
    words: Callable[[Tree], str] = str


@dataclass(frozen=True)
class Case:
    """One step, from any state with the invariants, by one kind of operation: what is given, and what must hold."""

    kind: str
    d: Terms
    given: tuple[Value, ...]
    goals: dict[str, dict[str, Value]]
    step: tuple[Tree, Any, Tree, Any]  # state, operation, new state, result


def cases(m: Machine, model_class: Callable[..., Any], config: Config) -> Iterator[Case]:
    """A case for each kind of operation. `model_class`: `m.model` or a wrong variant of it."""
    for kind in m.kinds:
        d = Terms()
        model = model_class(d, *config)
        s = fresh(m.init(model), "s")
        op = fresh(m.operation(model), "op")._replace(kind=int(kind))
        t, out = model.step(s, op)
        given = [*m.invariants(model, s).values(), *m.lawful(model, s, op)]
        found = m.rules(model, s, op, t, out)
        goals = {c: {n: d.any(d.inv(r.when), r.then) for n, r in parts.items()} for c, parts in found.items()}
        goals[INVARIANT] = m.invariants(model, t)
        yield Case(kind.name, d, (*given, *d.axioms()), goals, (s, op, t, out))
