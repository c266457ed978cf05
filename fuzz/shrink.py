"""Makes a failing trace small: fewer operations, tensors and types, and simple numbers.

Deterministic and greedy: candidates are tried in a fixed order, the first that
still fails is kept, until none does. Illegal candidates are never tried.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

from ..model.records import Trace
from .legal import legal
from .simpler import (
    Pass,
    lower_tensors,
    lower_together,
    plainer_operations,
    plainer_tensors,
    without_graphs,
    without_operations,
    without_pairs,
    without_tensors,
)
from .simpler_setup import lower_operations, lower_values, plainer_layers, smaller_setup

PASSES: tuple[Pass, ...] = (
    without_operations,
    without_pairs,
    plainer_layers,
    without_graphs,
    lower_operations,
    without_tensors,
    smaller_setup,
    plainer_operations,
    plainer_tensors,
    lower_together,
    lower_values,
    lower_tensors,
)


def shrink(
    trace: Trace,
    still_fails: Callable[[Trace], bool],
    budget_s: float = 10.0,
    most_tries: int = 20_000,
) -> Trace:
    """The smallest trace found for which `still_fails` holds; `trace` itself if none is smaller.

    `still_fails` is called only on legal traces, once for each. It stops after
    `budget_s` seconds or `most_tries` calls, and gives the best so far.
    """
    hunt = _Hunt(trace, still_fails, time.monotonic() + budget_s, most_tries)
    before = None
    while before != hunt.best and not hunt.over():
        before = hunt.best
        for edits in PASSES:
            hunt.exhaust(edits)
    return hunt.best


class _Hunt:
    """The best trace so far and what was tried."""

    def __init__(
        self, trace: Trace, still_fails: Callable[[Trace], bool], deadline: float, most_tries: int
    ) -> None:
        self.best, self.still_fails = trace, still_fails
        self.deadline, self.left = deadline, most_tries
        self.tried: set[Trace] = {trace}

    def over(self) -> bool:
        return self.left <= 0 or time.monotonic() >= self.deadline

    def exhaust(self, edits: Pass) -> None:
        """Applies a pass's edits, each to the best so far, until none of them helps."""
        again = True
        while again and not self.over():
            again, hunt, kept = False, edits(self.best), None
            with contextlib.suppress(StopIteration):
                while not self.over():
                    kept = self.keep(hunt.send(kept)(self.best))
                    again |= kept

    def keep(self, trial: Trace | None) -> bool:
        """Whether the trial still fails; then it is the best."""
        if trial is None or trial in self.tried or not legal(trial):
            return False
        self.tried.add(trial)
        self.left -= 1
        if not self.still_fails(trial):
            return False
        self.best = trial
        return True
