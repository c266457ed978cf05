"""`prove`: which clauses hold of the model for every state, operation and size."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import Any

from .bounded import Trace, lines, reach, replay
from .clauses import CLAUSES, NotProved, select
from .induction import PROVED, REFUTED, UNKNOWN, Answer, ask, base
from .machine import INVARIANT, Config, Machine, cases
from .machines import MACHINES

__all__ = ["PROVED", "REFUTED", "UNKNOWN", "NotProved", "Row", "provable", "prove", "prove_machine"]

DEPTH, BUDGET = 6, 60.0  #: operations and seconds for the search from the start state


@dataclass(frozen=True)
class Row:
    """One clause of one machine, for one config (what its numbers count, the machine says).

    `part` names what a refuted clause breaks; `step` is the counterexample to
    induction in words, `reached` says whether a trace from the start does it
    too, and `trace` is that trace.
    """

    clause: str
    title: str
    config: Config
    verdict: str
    seconds: float
    part: str = ""
    step: tuple[str, ...] = ()
    reached: str = ""
    trace: Trace | None = None
    trace_lines: tuple[str, ...] = ()
    machine: str = ""


def all_proved(machines: Sequence[Machine] = MACHINES) -> tuple[str, ...]:
    """Ids of every clause that some machine is proved to keep, in the contract's order."""
    able = {c for m in machines for c in m.clauses}
    return tuple(c.id for c in CLAUSES if c.id in able)


def provable(names: Sequence[str] | None) -> tuple[str, ...]:
    """Ids of the clauses that are to be proved; None or none: all that can be.

    A letter means all of its clauses that can be proved. Raises UnknownClause, NotProved.
    """
    known = all_proved()
    if not names:
        return known
    for name in names:
        if not any(c.id in known for c in select([name])):
            raise NotProved(
                f"Clause {name.strip().upper()} is not among those that are proved ({', '.join(known)}); "
                "the others are checked by running a subject."
            )
    return tuple(c.id for c in select(list(names)) if c.id in known)


def prove(
    clauses: Sequence[str] | None = None,
    machines: Sequence[Machine] = MACHINES,
    processes: int = 1,
    progress: Callable[[Machine, Config], None] = lambda m, c: None,
) -> list[Row]:
    """A row for each clause and each config of the machines that have one of these clauses.

    Before a machine's clauses comes the row of the invariants that their proof rests on; where these are
    not proved, what rests on them is unknown. For a refuted clause a trace from the start state is looked
    for. `processes`: how many work at once. `progress` is called after each config.
    """
    wanted = provable(clauses)
    jobs = [
        (m, k, mine) for m in machines if (mine := [c for c in m.clauses if c in wanted]) for k in m.configs
    ]
    found: dict[tuple[str, Config], list[Row]] = {}
    for m, config, rows in _all(jobs, processes):
        found[m.name, config] = rows
        progress(m, config)
    rows = [row for m, k, _ in jobs for row in found[m.name, k]]
    return [_search(_named(r.machine, machines), None, r, rows) for r in rows]


Job = tuple[Machine, Config, list[str]]


def _all(jobs: list[Job], processes: int) -> Iterator[tuple[Machine, Config, list[Row]]]:
    """Every job's rows, in any order."""
    if processes <= 1 or len(jobs) == 1:
        for m, config, mine in jobs:
            yield m, config, _config_rows(m, m.model, config, mine)
        return
    pool = ProcessPoolExecutor(processes, get_context("spawn"), _ignore_interrupts)
    try:
        # what takes longest first, so that no process has it left at the end
        big = sorted(jobs, key=lambda job: sum(job[1]), reverse=True)
        waiting = {pool.submit(_job, m.name, config, mine): (m, config) for m, config, mine in big}
        for done in as_completed(waiting):
            yield *waiting[done], done.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _ignore_interrupts() -> None:
    """Ctrl-C is for the process that waits for us."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _job(name: str, config: Config, mine: list[str]) -> list[Row]:
    m = _named(name, MACHINES)
    return _config_rows(m, m.model, config, mine)


def _named(name: str, machines: Sequence[Machine]) -> Machine:
    return next(m for m in machines if m.name == name)


def prove_machine(
    m: Machine,
    clauses: Sequence[str] | None = None,
    configs: Sequence[Config] | None = None,
    model: Callable[..., Any] | None = None,
    search: bool = True,
) -> list[Row]:
    """The rows of one machine. `model`: a wrong variant in place of its own.

    `search`: for a refuted clause, look for a trace from the start state.
    """
    rows: list[Row] = []
    for config in configs or m.configs:
        rows += _config_rows(m, model or m.model, config, list(clauses or m.clauses))
    return [_search(m, model, r, rows) for r in rows] if search else rows


def _config_rows(m: Machine, model: Callable[..., Any], config: Config, wanted: list[str]) -> list[Row]:
    started, seconds = base(m, model, config)
    first = Row(
        INVARIANT, "what the proof rests on", config, PROVED if started else REFUTED, seconds,
        part="" if started else "the start state", machine=m.name,
    )  # fmt: skip
    titles = {c.id: c.title for c in CLAUSES}
    found = {INVARIANT: first}
    found |= {c: Row(c, titles.get(c, c), config, PROVED, 0.0, machine=m.name) for c in wanted}
    for case in cases(m, model, config):
        for name, answer in ask(case, (INVARIANT, *wanted)):
            found[name] = _add(m, found[name], answer)
    if found[INVARIANT].verdict != PROVED:
        for c in wanted:
            if found[c].verdict == PROVED:
                found[c] = replace(found[c], verdict=UNKNOWN, part="rests on an invariant that is not proved")
    return list(found.values())


def _add(m: Machine, row: Row, answer: Answer) -> Row:
    """The row with one more answer; the first refutation is kept."""
    row = replace(row, seconds=row.seconds + answer.seconds)
    if row.verdict == REFUTED or answer.verdict == PROVED:
        return row
    step: tuple[str, ...] = ()
    if answer.step is not None:
        s, op, t, out = answer.step
        step = (f"in: {m.words(s)}", f"{m.tell(op)}: {m.words(out)}", f"gives: {m.words(t)}")
    return replace(row, verdict=answer.verdict, part=answer.part, step=step)


def _search(m: Machine, model: Callable[..., Any] | None, row: Row, rows: list[Row]) -> Row:
    """Is a clause that is not proved broken from the start? Asked once, for the first config of that kind.

    A trace from the start refutes a clause, also one that induction left open.
    """
    if row.verdict == PROVED or row.clause == INVARIANT:
        return row
    alike = (r for r in rows if (r.machine, r.clause, r.verdict) == (row.machine, row.clause, row.verdict))
    if next(alike) is not row:
        return row
    cls = model or m.model
    found = reach(m, cls, row.config, row.clause, DEPTH, BUDGET)
    if found.trace is None:
        return replace(row, reached=found.says)
    broken = replay(m, cls, found.trace)[-1].broken
    part = row.part if row.verdict == REFUTED else next(p for c, p in broken if c == row.clause)
    text = tuple(lines(m, cls, found.trace))
    return replace(row, verdict=REFUTED, part=part, reached=found.says, trace=found.trace, trace_lines=text)
