"""Where a campaign is: what a display shows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class State:
    """`ran_s`, `done_now`: seconds and operations of this run; all else is of the whole campaign.

    `coverage`: features known, by family (features.FAMILIES). `findings`: how many, by clause.
    `waiting`: failing traces that are to be made small. `busy`: jobs under way. `left_batches`: None
    where only time ends it. `skipped`: batches that killed whoever ran them.
    """

    spent_s: float
    ran_s: float
    left_s: float
    operations: int
    done_now: int
    batches: int
    left_batches: int | None
    corpus: int
    coverage: dict[str, int]
    findings: dict[str, int]
    waiting: int
    skipped: int
    busy: int

    @property
    def rate(self) -> float:
        """Operations a second of this run."""
        return self.done_now / max(self.ran_s, 1e-9)
