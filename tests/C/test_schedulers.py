"""The books of schedulers: what the reference shows is right, and each wrong observation is blamed on its clause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from gallocheck.fuzz.checker import Checker, Report
from gallocheck.fuzz.fresh import Fresh
from gallocheck.model import oracle
from gallocheck.model.records import BufferType, Cap, Kind, Op, OpFlag, Setup, Status, Trace, Trouble
from gallocheck.model.stack import Stack
from gallocheck.native.worker import Death, LocalRunner, Run, StepSeen

from tests.C.test_model import LARGE, SMALL, WIDE
from tests.shorthand import bundled

SCHED, ASYNC = OpFlag.BY_SCHED, OpFlag.ASYNC
PAIR = (Op(Kind.NEW, 0, flags=SCHED, value=2), Op(Kind.OWN), Op(Kind.NEW, 1, flags=SCHED), Op(Kind.BORROW, 1))
FLY = (*PAIR, Op(Kind.COMPUTE, 0, flags=ASYNC))


@pytest.fixture(scope="module")
def runner() -> Iterator[LocalRunner]:
    with bundled() as found:
        yield found


def reference(trace: Trace) -> list[StepSeen]:
    """What a subject shows that does exactly what it must."""
    stack, steps = Stack(trace.setup, list(trace.graphs)), []
    for op in trace.ops:
        obs = stack.step(op)
        looks = {n: stack.look(n) for n in stack.sched.known if n != op.alloc}
        steps.append(StepSeen(obs, looks))
    return steps


def judged(
    runner: LocalRunner, ops: tuple[Op, ...], wrong: dict[str, Any] | None = None,
    other: dict[str, Any] | None = None, death: str = "",
) -> Report:  # fmt: skip
    """The checker's report where the last operation shows what is `wrong`, and of its partner `other`; or dies."""
    trace = Trace(Setup((BufferType(capacity=2100),), ((0,),)), (SMALL, LARGE, WIDE), ops)
    steps, dead = reference(trace), None
    last = steps.pop()
    if death:
        dead = Death(len(steps), ops[-1], death, "run", "SIGABRT", 0, "")
    else:
        looks = {n: replace(look, **(other or {})) for n, look in last.looks.items()}
        steps.append(StepSeen(replace(last.obs, **(wrong or {})), looks))
    return Checker(trace, runner.capabilities, Fresh(runner.run)).check(Run(steps, None if dead else 0, dead))


RIGHT: dict[str, tuple[Op, ...]] = {
    "work in flight, then the partner's reserve": (*FLY, Op(Kind.RESERVE, 1, graph=2)),
    "work in flight, a reset and a wait": (*FLY, Op(Kind.RESET), Op(Kind.SYNC)),
    "a larger graph of the owner": (
        *FLY,
        Op(Kind.ALLOC, 1, graph=0),
        Op(Kind.ALLOC, 0, graph=1),
        Op(Kind.COMPUTE),
    ),
    "a larger graph, nothing bound": (*PAIR, Op(Kind.RESERVE, 1, graph=2), Op(Kind.COMPUTE, 0, graph=1)),
    "a failure": (*PAIR, Op(Kind.COMPUTE, 1, graph=2, fail_nth=1), Op(Kind.COMPUTE, 1, graph=0)),
    "a graph that was replaced": (*FLY, Op(Kind.RESERVE, 1, graph=2), Op(Kind.COMPUTE), Op(Kind.COMPUTE)),
    "requests": (*FLY, Op(Kind.SHRINK, 1), Op(Kind.RESERVE, 0), Op(Kind.RESERVE, 1)),
    "who goes": (*FLY, Op(Kind.FREE, 1), Op(Kind.SHRINK), Op(Kind.FREE)),
    "a partner at work": (*FLY, Op(Kind.COMPUTE, 1), Op(Kind.SYNC), Op(Kind.COMPUTE, 1)),
}


@pytest.mark.parametrize("what", RIGHT)
def test_what_a_right_scheduler_shows(runner: LocalRunner, what: str) -> None:
    assert judged(runner, RIGHT[what]).verdicts == []


DIGESTS = [oracle.digest(g) or 0 for g in (SMALL, LARGE, WIDE)]
RESERVE, LARGER = Op(Kind.RESERVE, 1, graph=2), Op(Kind.RESERVE, 0, graph=1)
BOUND = (*PAIR, Op(Kind.COMPUTE, 0))
FAILS = (*PAIR, Op(Kind.COMPUTE, 1, graph=2, fail_nth=1))
MINE, THEIRS = "mine", "theirs"
WRONG: dict[str, tuple[str, tuple[Op, ...], str, dict[str, Any]]] = {
    "buffers go under work in flight": ("C1", (*FLY, RESERVE), MINE, {"trouble": Trouble.FREED_BUSY}),
    "the partner's work goes on": ("C1", (*FLY, RESERVE), THEIRS, {"in_flight": 1}),
    "its own work goes on": ("C1", (*FLY, Op(Kind.RESERVE, 0, graph=0)), MINE, {"in_flight": 1}),
    "a partner goes under work in flight": ("C1", (*FLY, Op(Kind.FREE, 1)), THEIRS, {"in_flight": 1}),
    "a remake under work in flight": ("C1", (*FLY, Op(Kind.REMAKE)), MINE, {"trouble": Trouble.FREED_BUSY}),
    "a failed compute computed": ("C2", FAILS, MINE, {"digest": DIGESTS[2]}),
    "a failed compute is in flight": ("C2", FAILS, MINE, {"in_flight": 1}),
    "a failed reserve is done": ("C2", (*PAIR, replace(RESERVE, fail_nth=1)), MINE, {"status": Status.DONE}),
    "the size stays": ("C3", (*FLY, LARGER), MINE, {"nodes": 2}),
    "the size is forgotten": ("C3", (*FLY, LARGER), MINE, {"nodes": 0}),
    "the scheduler is too small": (
        "C3", (PAIR[0], Op(Kind.RESERVE, 0, graph=1)), MINE, {"status": Status.REFUSED}),
    "any number becomes some": ("C3", (*PAIR, Op(Kind.RESERVE, 1)), MINE, {"nodes": 2}),
    "after a reset the old graph runs": (
        "C4", (*BOUND, Op(Kind.RESET), Op(Kind.COMPUTE, 0, graph=2)), MINE, {"digest": DIGESTS[0]}),
    "work in flight was of another graph": (
        "C4", (*PAIR, Op(Kind.COMPUTE, 1, graph=2, flags=ASYNC), Op(Kind.SYNC, 1)), MINE, {"digest": DIGESTS[0]}),
    "computing needs an alloc": ("C4", BOUND, MINE, {"status": Status.MISUSE}),
    "a reset drops work": ("C4", (*FLY, Op(Kind.RESET)), MINE, {"in_flight": 0}),
    "a reset is a change": ("C4", (*FLY, Op(Kind.RESET)), MINE, {"generation": 9, "sched_generation": 9}),
    "an old generation": ("C5", (*PAIR, RESERVE), MINE, {"sched_generation": 0}),
    "the partner's old generation": ("C5", (*PAIR, RESERVE), THEIRS, {"sched_generation": 0}),
    "an old shrink generation": ("C5", (*PAIR, Op(Kind.SHRINK)), MINE, {"sched_shrink_generation": 0}),
    "a new one for a borrower that keeps its buffers": (
        "R14", (*PAIR, RESERVE, LARGER), THEIRS, {"generation": 2, "sched_generation": 2}),
    "bytes that are no graph's": ("P5", BOUND, MINE, {"digest": 1}),
    "an output is overwritten": ("P5", BOUND, MINE, {"trouble": Trouble.BAD_OUTPUT}),
    "a source is overwritten": ("P1", (*FLY, Op(Kind.SYNC)), MINE, {"trouble": Trouble.BAD_SOURCE}),
    "an outdated graph runs": (
        "R12", (*BOUND, RESERVE, Op(Kind.COMPUTE)), MINE, {"status": Status.DONE}),
    "the requirement is not met": ("R3", (*PAIR, RESERVE), MINE, {"asked": ((500, 1500),)}),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_what_a_wrong_scheduler_shows(runner: LocalRunner, what: str) -> None:
    clause, ops, whose, shown = WRONG[what]
    failed = judged(runner, ops, shown if whose == MINE else None, shown if whose == THEIRS else None).failed
    assert failed is not None and (failed.sort, failed.clause) == ("broken", clause), failed
    assert failed.step == len(ops) - 1


def test_each_clause_is_broken_by_two() -> None:
    counts = Counter(clause for clause, *_ in WRONG.values())
    assert all(counts[f"C{n}"] >= 2 for n in (1, 2, 3, 4, 5))


@pytest.mark.parametrize(
    ("ops", "clause"),
    [
        ((*PAIR, LARGER), "C3"),
        ((*PAIR, Op(Kind.COMPUTE, 0, graph=1)), "C3"),
        (FAILS, "C2"),
        ((*PAIR, RESERVE), "G2"),
        ((*FLY, Op(Kind.SYNC)), "C1"),
        ((*FLY, Op(Kind.RESET)), "C4"),
        ((*BOUND, Op(Kind.COMPUTE)), "P3"),
    ],
)
def test_a_death_is_no_status(runner: LocalRunner, ops: tuple[Op, ...], clause: str) -> None:
    failed = judged(runner, ops, death="abort").failed
    assert failed is not None and failed.clause == clause


def test_to_touch_what_is_gone_must_end_in_death(runner: LocalRunner) -> None:
    """R12: the check is load-bearing for schedulers too."""
    ops = (*BOUND, RESERVE, Op(Kind.COMPUTE, flags=OpFlag.UNCHECKED))
    report = judged(runner, ops, death="fault")
    assert report.verdicts == [] and report.tally["R12"]


def test_what_was_exercised(runner: LocalRunner) -> None:
    tally = judged(runner, (*FLY, RESERVE, LARGER, Op(Kind.COMPUTE, 0, graph=1))).tally
    assert all(tally[c] for c in ("C1", "C3", "C4", "C5", "R3", "R7", "R14", "P1"))
    assert runner.capabilities & Cap.SCHED
