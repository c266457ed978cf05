"""A subject may crash: however it ends, the verdict says how, and names the operation."""

from __future__ import annotations

import pytest
from gallocheck.fuzz.canary import path_of
from gallocheck.fuzz.catalogue import DEFECTS
from gallocheck.fuzz.checker import Checker
from gallocheck.fuzz.found import smallest
from gallocheck.fuzz.fresh import Fresh
from gallocheck.fuzz.judge import Judge
from gallocheck.fuzz.replay import load
from gallocheck.model.records import BufferType, Cap, Kind, Op, Setup, Trace
from gallocheck.native.library import library_path
from gallocheck.native.packet import Death
from gallocheck.native.worker import Run

from tests.shorthand import bundled

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


@pytest.mark.parametrize(
    "wrong", [Op(Kind.FREE, 1), Op(Kind.SYNC), Op(Kind.DROP), Op(Kind.CTX_CLOSE), Op(Kind.SLOT_STEP)]
)
def test_who_says_that_it_does_what_the_model_does_answers_a_misuse(wrong: Op) -> None:
    """Another subject may die of its caller's misuse; no clause says that it may not."""
    runner = bundled()
    t = Trace(Setup((BufferType(),), ((0,),)), (), (Op(Kind.NEW), wrong))
    steps = runner.run(t).steps
    dead = Run(steps[:1], None, Death(1, wrong, "fault", "run", "SIGSEGV", 0, ""), True, ())
    failed = Checker(t, runner.capabilities, Fresh(runner.run)).check(dead).failed
    assert failed is not None and (failed.clause or "a misuse is answered" in failed.message)
    other = Checker(t, Cap(runner.capabilities & ~Cap.EXACT), Fresh(runner.run)).check(dead).failed
    assert other is None or other.clause
