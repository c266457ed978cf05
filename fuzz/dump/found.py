"""What a dump shows: findings, how often each clause was exercised, and the plans."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from ...spec import placement


@dataclass(slots=True)
class Finding:
    """One broken clause. `line`: where it shows first; `count`: how often it shows."""

    clause: str
    message: str
    line: int
    graph: int = -1
    count: int = 1


@dataclass(frozen=True, slots=True)
class Plan:
    """A bound graph that was judged: for pictures and figures. `names`: of its tensors."""

    line: int
    allocator: int
    number: int
    view: placement.Seen
    names: tuple[str, ...]
    type_names: tuple[str, ...]

    @property
    def peak(self) -> tuple[int, ...]:
        """Bytes that the plan needs, by type: the highest ends of its chunks."""
        return tuple(
            sum(top for _, top in placement.ends(self.view, t).values()) for t in range(len(self.view.types))
        )


@dataclass(slots=True)
class Verdicts:
    """`exercised[clause]`: how often. `plans`: every plan once. `unclear`: what could not be judged, and why."""

    exercised: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)
    unclear: list[str] = field(default_factory=list)
    binds: int = 0
    computes: int = 0
    _known: dict[tuple[str, str], Finding] = field(default_factory=dict)

    def add(self, clause: str, message: str, line: int, graph: int = -1) -> None:
        known = self._known.get((clause, message))
        if known is not None:
            known.count += 1
            return
        self._known[clause, message] = Finding(clause, message, line, graph)
        self.findings.append(self._known[clause, message])
