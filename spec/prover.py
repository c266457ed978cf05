"""`prove`: which clauses hold of the model for every state, operation and size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from ..model.resizable import Model
from . import words
from .bounded import Trace, lines, reach, replay
from .clauses import clause, select
from .induction import INVARIANT, Answer, ask, base, cases
from .resizable import CHECKED

#: types and chunks: every pair of one to three
CONFIGS = tuple((types, chunks) for types in (1, 2, 3) for chunks in (1, 2, 3))
DEPTH, BUDGET = 6, 60.0  #: operations and seconds for the search from the start state

PROVED, REFUTED, UNKNOWN = "proved", "refuted", "unknown"


class NotProved(ValueError):
    """A clause that the prover does not know; the text is one sentence for the user."""


@dataclass(frozen=True)
class Row:
    """One clause for one number of types and chunks.

    `part` names what a refuted clause breaks; `step` is the counterexample to
    induction in words, `reached` says whether a trace from the start does it
    too, and `trace` is that trace.
    """

    clause: str
    title: str
    config: tuple[int, int]
    verdict: str
    seconds: float
    part: str = ""
    step: tuple[str, ...] = ()
    reached: str = ""
    trace: Trace | None = None
    trace_lines: tuple[str, ...] = ()


def provable(names: Sequence[str] | None) -> tuple[str, ...]:
    """Ids of the clauses that are to be proved; None or none: all that can be.

    A letter means all of its clauses that can be proved. Raises UnknownClause, NotProved.
    """
    if not names:
        return CHECKED
    for name in names:
        able = [c.id for c in select([name]) if c.id in CHECKED]
        if not able:
            raise NotProved(
                f"Clause {name.strip().upper()} is not among those that are proved ({', '.join(CHECKED)}); "
                "the others are checked by running a subject."
            )
    return tuple(c.id for c in select(list(names)) if c.id in CHECKED)


def prove(
    clauses: Sequence[str] | None = None,
    configs: Iterable[tuple[int, int]] = CONFIGS,
    cls: type[Model] = Model,
    search: bool = True,
    on_config: Callable[[int, int], None] | None = None,
) -> list[Row]:
    """A row for each clause and each config, after the row of the invariants that the proof rests on.

    Where an invariant is not proved, what rests on it is unknown. `search`: for a refuted clause,
    look for a trace from the start state. `on_config` is called before each config.
    """
    wanted = provable(clauses)
    rows: list[Row] = []
    for types, chunks in configs:
        if on_config is not None:
            on_config(types, chunks)
        rows += _prove_config(cls, types, chunks, wanted)
    return [_search(cls, r, rows) for r in rows] if search else rows


def _prove_config(cls: type[Model], types: int, chunks: int, wanted: tuple[str, ...]) -> list[Row]:
    config = (types, chunks)
    started, seconds = base(cls, types, chunks)
    lemmas = "what the proof rests on"
    found = {INVARIANT: Row(INVARIANT, lemmas, config, PROVED if started else REFUTED, seconds)}
    found |= {c: Row(c, clause(c).title, config, PROVED, 0.0) for c in wanted}
    for case in cases(cls, types, chunks):
        for name, answer in ask(case, (INVARIANT, *wanted)):
            found[name] = _add(found[name], answer)
    if found[INVARIANT].verdict != PROVED:
        for c in wanted:
            if found[c].verdict == PROVED:
                found[c] = replace(found[c], verdict=UNKNOWN, part="rests on an invariant that is not proved")
    return list(found.values())


def _add(row: Row, answer: Answer) -> Row:
    """The row with one more answer; the first refutation is kept."""
    row = replace(row, seconds=row.seconds + answer.seconds)
    if row.verdict == REFUTED or answer.verdict == PROVED:
        return row
    step: tuple[str, ...] = ()
    if answer.step is not None:
        s, op, t, out = answer.step
        step = (
            f"in: {words.state(s)}",
            f"{words.operation(op)}: {words.result(out)}",
            f"gives: {words.state(t)}",
        )
    return replace(row, verdict=answer.verdict, part=answer.part, step=step)


def _search(cls: type[Model], row: Row, rows: list[Row]) -> Row:
    """Is a clause that is not proved broken from the start? Asked once, for the first config of that kind.

    A trace from the start refutes a clause, also one that induction left open.
    """
    first = next(r for r in rows if r.clause == row.clause and r.verdict == row.verdict)
    if row.verdict == PROVED or row.clause == INVARIANT or first is not row:
        return row
    found = reach(cls, *row.config, row.clause, DEPTH, BUDGET)
    if found.trace is None:
        return replace(row, reached=found.says)
    broken = replay(cls, found.trace)[-1].verdict.broken
    part = row.part if row.verdict == REFUTED else next(p for c, p in broken if c == row.clause)
    text = tuple(lines(cls, found.trace))
    return replace(row, verdict=REFUTED, part=part, reached=found.says, trace=found.trace, trace_lines=text)
