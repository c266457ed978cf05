"""Every planted defect is found by the main job's own hunt, within a minute, and blamed on its clause."""

from __future__ import annotations

import pytest
from gallocheck.fuzz.canary import hunt_for
from gallocheck.fuzz.catalogue import DEFECTS, Defect

SECONDS = 60.0


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda d: f"{d.number}-{d.clause}-{d.name.lower()}")
def test_a_hunt_finds_it(defect: Defect) -> None:
    _, result = hunt_for(defect, 1, SECONDS, shrink_s=0.2)
    mine = [f for f in result.findings if f.verdict.clause == defect.clause]
    blamed = [str(f.verdict) for f in result.findings]
    assert mine, f"{defect.what}: {blamed or 'nothing'} in {result.operations} operations"
    assert result.seconds <= SECONDS + 10
