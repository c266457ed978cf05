"""What came of all mutants: the score, the times, the survivors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .catalogue import Known, Mutant
from .store import Row
from .trial import KILLED, SAME, SURVIVED, UNCOMPILED


def percentile(values: Sequence[float], share: float) -> float:
    """The least value that so large a share of them does not exceed; 0 of none."""
    ordered = sorted(values)
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)] if ordered else 0.0


@dataclass
class Tally:
    """Mutants by what came of them. `listed`: survivors that are known to make no difference."""

    made: int = 0
    uncompiled: int = 0
    same: int = 0
    killed: int = 0
    survived: int = 0
    listed: int = 0
    times: list[float] = field(default_factory=list)

    @property
    def score(self) -> float | None:
        """Killed of those that are not shown to make no difference; None of none."""
        counted = self.killed + self.survived
        return self.killed / counted if counted else None


@dataclass
class Report:
    """`files` and `operators`: a Tally each; `clauses`: times to kill, '' where no clause decides;
    `survivors` that the list does not know, `listed` ones with the reason, `stale`: listed, but killed."""

    whole: Tally = field(default_factory=Tally)
    files: dict[str, Tally] = field(default_factory=dict)
    operators: dict[str, Tally] = field(default_factory=dict)
    clauses: dict[str, list[float]] = field(default_factory=dict)
    survivors: list[Mutant] = field(default_factory=list)
    listed: list[tuple[Mutant, str]] = field(default_factory=list)
    stale: list[Mutant] = field(default_factory=list)
    open: int = 0


def report(mutants: Iterable[Mutant], rows: dict[str, Row], known: Known) -> Report:
    """`mutants` in the order in which they are to be told."""
    found = Report()
    for m in mutants:
        row = rows.get(m.key)
        if row is None:
            found.open += 1
            continue
        why = known.why(m)
        tallies = (
            found.whole,
            found.files.setdefault(m.source.name, Tally()),
            found.operators.setdefault(m.mutation.operator, Tally()),
        )
        for tally in tallies:
            _add(tally, row, bool(why))
        if row.state == KILLED and row.verdict is not None:
            found.clauses.setdefault(row.verdict.clause, []).append(row.checked_s)
            if why:
                found.stale.append(m)
        elif row.state == SURVIVED and why:
            found.listed.append((m, why))
        elif row.state == SURVIVED:
            found.survivors.append(m)
    return found


def _add(tally: Tally, row: Row, listed: bool) -> None:
    tally.made += 1
    tally.uncompiled += row.state == UNCOMPILED
    tally.same += row.state == SAME
    tally.listed += row.state == SURVIVED and listed
    tally.survived += row.state == SURVIVED and not listed
    if row.state == KILLED:
        tally.killed += 1
        tally.times.append(row.checked_s)


def reasons(listed: Iterable[tuple[Mutant, str]]) -> Counter[str]:
    """How many listed survivors each reason has."""
    return Counter(why for _, why in listed)
