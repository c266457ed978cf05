"""The processes that check mutants (fuzz/hands.py). A mutant may not take all memory."""

from __future__ import annotations

import resource

from .. import hands
from .sources import LIMIT_S
from .trial import Bench, Outcome, Trial

MOST_MEMORY = 6 << 30  #: bytes that a process may write to


def limited() -> Bench:
    """In a process of its own: the bench, and what holds for all that the process starts."""
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    most = MOST_MEMORY if hard == resource.RLIM_INFINITY else min(MOST_MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    return Bench()


def limit_of(trial: Trial) -> float:
    """Seconds that a mutant may take: to be checked and compiled."""
    return trial.seconds + 2 * LIMIT_S


class Hands(hands.Hands[Trial, Outcome]):
    """`size` processes, begun as they are needed. A context manager."""

    def __init__(self, size: int) -> None:
        super().__init__(size, limited, limit_of)
