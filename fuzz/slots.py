"""What a server's steps ask of its contexts (T, W1): cells in use by slot, and which context refused a step.

A step of a slot is a batch of the target over the cells of all slots and its own tokens, then one token of the
draft. Cells follow from operations and statuses: they go up by the tokens that the target decoded.
"""

from __future__ import annotations

from itertools import combinations

from ..model import oracle
from ..model.domain import Ints
from ..model.records import MAX_SERVER_SLOTS, Observation, Op, Status
from ..model.workspace import NOTHING, halves
from ..spec import workspace
from .context_book import Book

NOBODY, BY_TARGET, BY_DRAFT, UNKNOWN = range(4)


class Slots:
    """Cells in use by slot; `lost`: they are not known (until all slots are free)."""

    def __init__(self) -> None:
        self.cells = [0] * MAX_SERVER_SLOTS
        self.ever = 0  # all tokens that any slot was given
        self.lost = False

    def used(self, op: Op) -> int:
        """Cells that the step is computed over."""
        return sum(self.cells) + op.value

    def stepped(self, op: Op, by: int) -> None:
        """`by`: who refused the step."""
        self.ever += op.value
        self.lost |= by == UNKNOWN
        self.cells[op.alloc] += op.value if by in (NOBODY, BY_DRAFT) else 0

    def free(self, slot: int) -> None:
        self.cells[slot] = 0

    def miscounted(self, op: Op) -> set[int]:
        """Counts of cells that a wrong count of the slots' cells would give."""
        found = {sum(some) for n in range(len(self.cells) + 1) for some in combinations(self.cells, n)}
        found |= {x + op.value for x in found}
        return (found | {self.ever, self.ever + op.value}) - {self.used(op)}


def refuser(op: Op, obs: Observation, target: Book, draft: Book | None, pools: bool) -> int:
    """Who refused the step. A lane whose reservation failed has none; then nothing more is done."""
    if obs.status == Status.DONE:
        return NOBODY
    ran = workspace.runs(Ints, target.frame, op.value)
    if any(r and reserved == NOTHING for r, reserved in zip(ran, target.reserved, strict=True)):
        return BY_TARGET
    if draft is None or not draft.open:
        return BY_TARGET  # pools had no room for its work
    return UNKNOWN if pools else BY_DRAFT


def digest(op: Op, used: int, target: Book, draft: Book | None) -> int:
    """Of a step that was done, over so many cells; 0 where that is not worked out here."""
    cells = min(used, target.made.cells)
    wide = workspace.runs(Ints, target.frame, op.value)[1]
    shares = halves(op.value) if wide else (op.value,)
    first = oracle.of_lanes([oracle.digest(target.graph(t, cells)) for t in shares])
    if draft is None or not draft.open:
        return first or 0
    second = oracle.digest(draft.graph(1, min(used, draft.made.cells)))
    return oracle.both(first, second) if first and second else 0
