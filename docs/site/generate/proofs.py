"""What the prover says now: verdicts and times by clause, and what each machine's proof assumes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from gallocheck.model.terms import Terms, fresh
from gallocheck.spec.machine import INVARIANT, Machine
from gallocheck.spec.prover import PROVED, Row, provable, prove

from .code import Function
from .ran import Running
from .rules import SPEC

#: by clause, the rows of the prover; None: not proved anew in this build
Rows = Mapping[str, list[Row]] | None


class NotProvedNow(Exception):
    """A clause is refuted or left open: the docs would say something that is not so. One sentence."""


def proved(clauses: list[str] | None = None) -> dict[str, list[Row]]:
    """Proves them (None: all that can be) and gives the rows by clause. Raises NotProvedNow."""
    rows = prove(clauses, processes=min(2, os.cpu_count() or 1))
    open_ = [r for r in rows if r.verdict != PROVED]
    if open_:
        raise NotProvedNow(
            f"{open_[0].clause} of {open_[0].machine} is {open_[0].verdict}: run gallocheck prove."
        )
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.clause, []).append(row)
    missing = set(provable(clauses)) - set(found)
    if missing:
        raise NotProvedNow(f"The prover says nothing of {', '.join(sorted(missing))}.")
    return found


@dataclass(frozen=True)
class Assumed:
    """What a machine's proof rests on: its invariants by name, and the functions that say them and what is lawful."""

    invariants: tuple[str, ...]
    said: tuple[Function, ...]
    lawful: tuple[Function, ...]


def slug(m: Machine) -> str:
    """A machine's name as that of a page."""
    return m.name.replace(" ", "-")


_known: dict[str, Assumed] = {}  #: by machine


def assumed(m: Machine) -> Assumed:
    if m.name not in _known:
        _known[m.name] = _assumed(m)
    return _known[m.name]


def _assumed(m: Machine) -> Assumed:
    model = m.model(Terms(), *m.configs[0])
    state, op = fresh(m.init(model), "s"), fresh(m.operation(model), "op")
    said, lawful = Running(SPEC), Running(SPEC)
    with said:
        names = tuple(m.invariants(model, state))
    with lawful:
        m.lawful(model, state, op)
    found = Assumed(names, tuple(said.functions()), tuple(lawful.functions()))
    if not all((found.invariants, found.said, found.lawful)):
        raise ValueError(f"{m.name}: no invariants, or no code of them or of what is lawful")
    return found


def base(m: Machine, rows: Rows) -> list[Row]:
    """The rows of the machine's invariants."""
    return [r for r in (rows or {}).get(INVARIANT, []) if r.machine == m.name]
