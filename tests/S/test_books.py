"""The judge of counted sessions: wrong observations are blamed on the clause that they break."""

from __future__ import annotations

from dataclasses import replace

import pytest
from gallocheck.fuzz.checker import Checker
from gallocheck.fuzz.draw import RandomDraw
from gallocheck.fuzz.draw_counted import draw_counted
from gallocheck.fuzz.fresh import Fresh
from gallocheck.fuzz.legal import why_illegal
from gallocheck.fuzz.profiles import SOURCES
from gallocheck.model.records import VALIDATED, Cap, Kind, Op, Status, Strategy, Trace
from gallocheck.native.worker import Death, LocalRunner, Run

from tests.S.test_differential import LARGE, LARGER, PAIR, SMALL, bind, reserve, trace
from tests.shorthand import bundled

#: a session in which all happens: joint buffers, a fitting reserve, one leaves, both go
STORY = trace(
    *bind(0, LARGE), *bind(1, SMALL), reserve(1, LARGER), Op(Kind.COMPUTE), Op(Kind.FREE, 1), Op(Kind.FREE)
)
FIRST = len(PAIR)  #: the owner's first reserve
FITS, LEAVES, GOES = FIRST + 3, FIRST + 6, FIRST + 8


@pytest.fixture(scope="module")
def runner() -> LocalRunner:
    return bundled()


def blamed(runner: LocalRunner, t: Trace, run: Run) -> str:
    """The clause of the first broken rule."""
    failed = Checker(t, runner.capabilities & ~Cap.EXACT, Fresh(runner.run)).check(run).failed
    return failed.clause if failed else ""


def other(run: Run, at: int, alloc: int | None, fields: dict[str, object]) -> Run:
    """The run with another observation of one step: of who acts (None), or of another allocator."""
    steps = list(run.steps)
    step = steps[at]
    if alloc is None:
        steps[at] = replace(step, obs=replace(step.obs, **fields))  # type: ignore[arg-type]
    else:
        steps[at] = replace(step, looks=step.looks | {alloc: replace(step.looks[alloc], **fields)})  # type: ignore[arg-type]
    return replace(run, steps=steps)


def test_a_sound_session_breaks_nothing(runner: LocalRunner) -> None:
    assert blamed(runner, STORY, runner.run(STORY)) == ""


@pytest.mark.parametrize(
    ("at", "alloc", "fields", "clause"),
    [
        (FIRST, None, {"asked": ((128,),), "used": (128,), "reported": (128, 0, 0, 0, 0, 0)}, "S1"),
        (FIRST, 1, {"asked": ((),)}, "S1"),
        (FITS, None, {"generation": 2}, "S1"),
        (FITS, None, {"allocations": 1}, "S7"),
        (FITS, None, {"status": Status.REFUSED}, "S5"),
        (LEAVES, 0, {"asked": ((96,),)}, "S2"),
        (LEAVES, 0, {"generation": 2}, "S2"),
        (LEAVES, None, {"generation": 1}, "S2"),
        (LEAVES, None, {"used": (96,), "owned": (96,)}, "S3"),
        (LEAVES, None, {"status": Status.REFUSED}, "S5"),
        (GOES, None, {"used": (160,)}, "S3"),
        (GOES, None, {"used": (0,)}, "S3"),
        (3, None, {"status": Status.REFUSED}, "S4"),
        (3, None, {"reason": 2}, "S4"),
        (3, None, {"allocations": 1}, "S7"),
    ],
)  # fmt: skip
def test_a_wrong_observation_is_blamed(
    runner: LocalRunner, at: int, alloc: int | None, fields: dict[str, object], clause: str
) -> None:
    assert blamed(runner, STORY, other(runner.run(STORY), at, alloc, fields)) == clause


def test_accepted_without_validation(runner: LocalRunner) -> None:
    ops = (*STORY.ops[:3], replace(STORY.ops[3], value=VALIDATED - 1))
    t = replace(STORY, ops=ops)
    right = runner.run(t)
    assert blamed(runner, t, right) == ""
    assert blamed(runner, t, other(right, 3, None, {"status": Status.DONE})) == "S4"
    assert blamed(runner, t, other(right, 3, None, {"reason": 0})) == "S4"


@pytest.mark.parametrize(("kind", "clause"), [(Kind.BORROW, "S4"), (Kind.FREE, "S3"), (Kind.COMPUTE, "P3")])
def test_a_death_is_blamed(runner: LocalRunner, kind: Kind, clause: str) -> None:
    """Of a compute more is known where the other strategies ran too (differential.py)."""
    at = max(i for i, op in enumerate(STORY.ops[:-1]) if op.kind == kind)
    run = runner.run(STORY)
    dead = Run(run.steps[:at], None, Death(at, STORY.ops[at], "fault", "run"), True, run.graphs)
    assert blamed(runner, STORY, dead) == clause


def test_drawn_traces_are_legal_and_varied(runner: LocalRunner) -> None:
    assert SOURCES["counted"].needs == Cap.COUNTED
    drawn = [draw_counted(RandomDraw(seed), runner.capabilities) for seed in range(300)]
    assert [why_illegal(t) for t in drawn] == [None] * len(drawn)
    assert {t.setup.strategy for t in drawn} == {Strategy.COUNTED, Strategy.APART}
    bits = {op.value for t in drawn for op in t.ops if op.kind == Kind.BORROW}
    assert {VALIDATED, *(VALIDATED & ~b for b in (1, 2, 4, 8))} <= bits
    for t in drawn[:40]:
        assert blamed(runner, t, runner.run(t)) == ""
