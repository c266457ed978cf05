"""Every scenario by name, in the order of the contract's table of figures."""

from __future__ import annotations

import time
from collections.abc import Callable

from . import one_card, reallocations, two_cards
from .report import Report, UnknownScenario

__all__ = ["SCENARIOS", "UnknownScenario", "run_one"]

SCENARIOS: dict[str, Callable[[], Report]] = {
    **one_card.SCENARIOS,
    **two_cards.SCENARIOS,
    **reallocations.SCENARIOS,
}


def run_one(name: str) -> Report:
    """Runs one of SCENARIOS. Raises SubjectError where the subject cannot do it."""
    begin = time.monotonic()
    report = SCENARIOS[name]()
    report.seconds = time.monotonic() - begin
    return report
