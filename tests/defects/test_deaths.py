"""A subject may crash: however it ends, the verdict says how, and names the operation."""

from __future__ import annotations

import pytest
from gallocheck.fuzz.canary import path_of
from gallocheck.fuzz.catalogue import DEFECTS
from gallocheck.fuzz.found import smallest
from gallocheck.fuzz.judge import Judge
from gallocheck.fuzz.replay import load
from gallocheck.model.records import Trace
from gallocheck.native.library import library_path
from gallocheck.native.worker import Run

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


def test_smaller_traces_that_hang_are_not_waited_for_as_long_until_the_last() -> None:
    defect = next(d for d in DEFECTS if d.number == 82)
    waits: list[tuple[bool, float]] = []
    with Judge(str(library_path("planted")), defect.number, timeout=2.0) as judge:
        run = judge.run

        def watched(trace: Trace, anew: bool = False) -> Run:
            waits.append((anew, judge.worker.timeout))
            return run(trace, anew)

        trace = load(path_of(defect)).trace
        failed = judge.judge(trace).failed
        assert failed is not None
        judge.run = watched  # type: ignore[method-assign]
        small = smallest(judge, trace, failed, 2.0)
    assert small.confirmed and len(small.trace.ops) <= len(trace.ops)
    assert max(wait for anew, wait in waits[1:] if not anew) < 2.0
    assert {wait for anew, wait in waits if anew} == {2.0}
