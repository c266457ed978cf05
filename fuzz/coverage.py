"""What a run reached, as features (campaign/features.py): edges of the subject's code, branches of the model.

with Reached() as reached:
    judge.judge(trace)
    reached.take(judge)
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from ..spec.branches import Covered
from .campaign.features import BRANCHES, EDGE_BITS, EDGES
from .judge import Judge

_BASE = EDGES << 32


def _buckets() -> NDArray[np.uint8]:
    """[count of 8 bits]: 1, 2, 3, 4-7, 8-15, 16-31, 32-127, 128 and more are 0 to 7."""
    ends = np.array([1, 2, 3, 4, 8, 16, 32, 128])
    return (np.searchsorted(ends, np.arange(256), side="right") - 1).astype(np.uint8)


_BUCKET = _buckets()


def edge_features(counters: NDArray[np.uint8]) -> list[int]:
    """The features of counters, an array (edges,): each edge that was taken, with about how often."""
    at = np.flatnonzero(counters)
    return ((at << EDGE_BITS) + _BUCKET[counters[at]] + _BASE).tolist()


def branch_features(taken: Collection[int]) -> list[int]:
    """The features of arms that branches.Covered took."""
    return [BRANCHES << 32 | n for n in taken]


class Reached:
    """Counts, while it is open, what runs reach. One at a time. A context manager."""

    def __init__(self) -> None:
        self.branches = Covered()

    def take(self, judge: Judge) -> list[int]:
        """The features of all that ran since this was last called."""
        return edge_features(judge.worker.take_edges()) + branch_features(self.branches.take())

    def __enter__(self) -> Reached:
        self.branches.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.branches.__exit__()
