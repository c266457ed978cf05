"""A subject may crash: however it ends, the verdict says how, and names the operation."""

from __future__ import annotations

import pytest
from gallocheck.fuzz.canary import path_of
from gallocheck.fuzz.catalogue import DEFECTS
from gallocheck.fuzz.judge import Judge
from gallocheck.fuzz.replay import load
from gallocheck.native.library import library_path

ENDS = {
    38: ("aborted", "RESERVE"),
    74: ("touched memory that is not mapped", "COMPUTE"),
    82: ("did not return", "RESERVE"),
    83: ("touched memory that is not mapped", "RESERVE"),  # a full stack
    84: ("took more and more memory", "RESERVE"),
    43: ("bytes stay in use", "close"),
}


@pytest.mark.parametrize("number", ENDS)
def test_every_way_to_end_is_a_finding_that_names_the_operation(number: int) -> None:
    defect = next(d for d in DEFECTS if d.number == number)
    with Judge(str(library_path("planted")), number, timeout=2.0) as judge:
        verdict = judge.judge(load(path_of(defect)).trace, anew=True).failed
    assert verdict is not None and verdict.clause == defect.clause
    said, operation = ENDS[number]
    assert said in verdict.message
    assert verdict.op == operation
