"""Every scenario by name, in the order of the contract's table of figures."""

from __future__ import annotations

import time
from collections.abc import Callable

from . import one_card, reallocations, two_cards
from .report import Report

SCENARIOS: dict[str, Callable[[], Report]] = {
    **one_card.SCENARIOS,
    **two_cards.SCENARIOS,
    **reallocations.SCENARIOS,
}


class UnknownScenario(ValueError):
    """No scenario has this name, or pictures have no place; one sentence for the user; exit code 2."""

    exit_code = 2


def run_one(name: str) -> Report:
    """Runs one of SCENARIOS. Raises SubjectError where the subject cannot do it."""
    begin = time.monotonic()
    report = SCENARIOS[name]()
    report.seconds = time.monotonic() - begin
    return report
