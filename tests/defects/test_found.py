"""Planted defects are found by the main job's own hunt, within a minute, and blamed on their clause.

Here the first of every clause, so that the tests take minutes; `gallocheck defects --find` hunts for all. That
every one of them shows, and is blamed, by its kept trace: test_canary.py.
"""

from __future__ import annotations

from collections import defaultdict

import pytest
from gallocheck.fuzz.canary import hunt_for
from gallocheck.fuzz.catalogue import DEFECTS, Defect

SECONDS = 60.0
OF_A_CLAUSE = 1


def some() -> list[Defect]:
    """The first of every clause, in the order of the catalogue."""
    by_clause: dict[str, list[Defect]] = defaultdict(list)
    for defect in DEFECTS:
        by_clause[defect.clause].append(defect)
    return [d for of_clause in by_clause.values() for d in of_clause[:OF_A_CLAUSE]]


@pytest.mark.parametrize("defect", some(), ids=lambda d: f"{d.number}-{d.clause}-{d.name.lower()}")
def test_a_hunt_finds_it(defect: Defect) -> None:
    _, result = hunt_for(defect, 1, SECONDS, shrink_s=0.2)
    mine = [f for f in result.findings if f.verdict.clause == defect.clause]
    blamed = [str(f.verdict) for f in result.findings]
    assert mine, f"{defect.what}: {blamed or 'nothing'} in {result.operations} operations"
    assert result.seconds <= SECONDS + 10
