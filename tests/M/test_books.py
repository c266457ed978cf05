"""M2 and M3 are told apart, from each other and from all else, by what the subject does without the other role."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from gallocheck.fuzz.breakdown import Breakdown
from gallocheck.fuzz.checker import Checker
from gallocheck.fuzz.fresh import Fresh
from gallocheck.fuzz.meta import Books
from gallocheck.model.records import BufferType, Kind, Observation, Op, OpFlag, Setup, Status, Trace, Trouble
from gallocheck.native.worker import LocalRunner, StepSeen

from tests.shorthand import bundled, given, graph, out

TYPES = (BufferType(), BufferType(), BufferType(meta=0b11))
GRAPHS = (graph(given(64), out(64, 0)), graph(given(16), out(16, 0)))
PAIR = (
    Op(Kind.NEW),
    Op(Kind.OWN),
    Op(Kind.NEW, 1),
    Op(Kind.BORROW, 1, 0),
    Op(Kind.RESERVE),
    Op(Kind.RESERVE, 1),
)
BIND = (Op(Kind.ALLOC), Op(Kind.ALLOC, 1))
RIGHT, WRONG = Status.DONE, Trouble.BAD_SOURCE


def trace(*ops: Op, types: tuple[BufferType, ...] = TYPES) -> Trace:
    return Trace(Setup(types, ((len(types) - 1,),)), GRAPHS, ops)


class Answers:
    """Stands for a subject in experiments: notes what it is asked to run, and ends well or not."""

    def __init__(self, *good: bool) -> None:
        self.good, self.asked = list(good), []  # type: ignore[var-annotated]

    def run(self, trace: Trace) -> Any:
        self.asked.append(trace)
        last = Observation(RIGHT, Trouble(0) if self.good.pop(0) else WRONG)
        return SimpleNamespace(steps=[SimpleNamespace(obs=Observation(RIGHT))] * (len(trace.ops) - 1) + [
            SimpleNamespace(obs=last)], death=None)  # fmt: skip


def told(t: Trace, answers: Answers, end: Observation | None, runner: LocalRunner) -> list[str]:
    """The clauses blamed for the last operation, of which `end` is seen; None: the subject died in it."""
    books = Books(t, runner.capabilities, answers)  # type: ignore[arg-type]
    steps = runner.run(t).steps
    for op, seen in zip(t.ops[:-1], steps, strict=False):
        assert list(books.watch(op, seen)) == []
    if end is None:
        return [books.blame(t.ops[-1])] if books.drives(t.ops[-1]) else []
    shown = replace(steps[-1].obs, status=end.status, trouble=end.trouble)
    return [clause for clause, _ in books.watch(t.ops[-1], StepSeen(shown, steps[-1].looks))]


@pytest.fixture(scope="module")
def runner() -> LocalRunner:
    return bundled()


BAD = Observation(RIGHT, WRONG)


@pytest.mark.parametrize(
    "end", [BAD, Observation(Status.MISUSE), None], ids=["wrong bytes", "nothing bound", "a fault"]
)
def test_without_the_other_role_it_works(runner: LocalRunner, end: Observation | None) -> None:
    """M2: what the borrower did since the owner's bind is left out of the experiment, all else is in it."""
    t, answers = trace(*PAIR, *BIND, Op(Kind.COMPUTE)), Answers(True, True)
    assert told(t, answers, end, runner) == ["M2"]
    assert answers.asked[0].ops == (*PAIR, BIND[0], Op(Kind.COMPUTE))


@pytest.mark.parametrize("end", [BAD, None], ids=["wrong bytes", "a fault"])
def test_a_borrower_that_fails_without_the_other_has_an_old_alias(
    runner: LocalRunner, end: Observation | None
) -> None:
    """M3: a plain allocator alone computes the same graph rightly."""
    t = trace(*PAIR, BIND[1], BIND[0], Op(Kind.COMPUTE, 1))
    answers = Answers(False, True)
    assert told(t, answers, end, runner) == ["M3"]
    assert [op.kind for op in answers.asked[1].ops] == [Kind.NEW, Kind.RESERVE, Kind.ALLOC, Kind.COMPUTE]
    assert told(trace(*PAIR, BIND[1], Op(Kind.COMPUTE, 1)), Answers(True), end, runner) == ["M3"]


@pytest.mark.parametrize("end", [BAD, None], ids=["wrong bytes", "a fault"])
def test_what_fails_alone_is_no_matter_of_maps(runner: LocalRunner, end: Observation | None) -> None:
    assert told(trace(*PAIR, BIND[1], BIND[0], Op(Kind.COMPUTE, 1)), Answers(False, False), end, runner) == []
    assert (
        told(trace(*PAIR, *BIND, Op(Kind.COMPUTE)), Answers(False), end, runner) == []
    )  # an owner has no alias
    assert told(trace(*PAIR, BIND[0], Op(Kind.COMPUTE)), Answers(), end, runner) == []  # nobody disturbed it


def test_outdated_graphs_are_not_looked_at(runner: LocalRunner) -> None:
    """R12 speaks of them, also where the caller was told not to look."""
    unchecked = Op(Kind.COMPUTE, flags=OpFlag.UNCHECKED)
    larger = trace(
        *PAIR[:4], Op(Kind.RESERVE, graph=1), Op(Kind.ALLOC, graph=1), Op(Kind.RESERVE, 1), unchecked
    )
    books = Books(larger, runner.capabilities, Answers())  # type: ignore[arg-type]
    for op, seen in zip(larger.ops[:-1], runner.run(replace(larger, ops=larger.ops[:-1])).steps, strict=True):
        assert list(books.watch(op, seen)) == []
    assert not books.drives(unchecked)


def test_simple_types_have_no_maps(runner: LocalRunner) -> None:
    t = trace(*PAIR, *BIND, Op(Kind.COMPUTE), types=(BufferType(),))
    assert told(t, Answers(), BAD, runner) == []


def judged_with(runner: LocalRunner, t: Trace, used: tuple[int, ...], status: Status) -> list[str]:
    """The clauses blamed where the last operation showed other bytes in use and another status."""
    run = runner.run(t)
    last = run.steps[-1]
    obs = replace(last.obs, used=used, status=status)
    if status == Status.DONE:
        obs = replace(obs, asked=((), (), (128,)), reported=(128, *obs.reported[1:]), owned=(0, 0, 128))
    run.steps[-1] = StepSeen(obs, last.looks)
    report = Checker(t, runner.capabilities, Fresh(runner.run)).check(run)
    return [v.clause for v in report.verdicts if v.sort == "broken"]


def test_parts_that_stay_and_parts_that_are_missing_are_m1(runner: LocalRunner) -> None:
    half = trace(Op(Kind.NEW), Op(Kind.RESERVE, fail_types=2))
    assert judged_with(runner, half, (0, 0, 0), Status.REFUSED) == []
    assert judged_with(runner, half, (128, 0, 0), Status.REFUSED)[0] == "M1"
    assert judged_with(runner, half, (128, 0, 0), Status.DONE)[0] == "M1"
    whole = trace(Op(Kind.NEW), Op(Kind.RESERVE))
    assert judged_with(runner, whole, (128, 0, 0), Status.DONE)[0] == "M1"
    assert judged_with(runner, whole, (128, 256, 0), Status.DONE)[0] == "M1"


def test_of_each_device_all_that_is_owned_is_what_is_in_use(runner: LocalRunner) -> None:
    """R13, over pairs: a byte that the second allocator does not count is missed on its device."""
    t = trace(Op(Kind.NEW), Op(Kind.RESERVE), Op(Kind.NEW, 1), Op(Kind.RESERVE, 1), Op(Kind.NEW, 1))
    runs = [runner.run(t) for _ in range(2)]
    assert all(Checker(t, runner.capabilities, Fresh(runner.run)).check(run).failed is None for run in runs)
    steps = runs[0].steps
    last = replace(steps[3].looks[0], owned=(0, 0, 64))
    books = Breakdown(t, runner.capabilities)
    assert [list(books.step(op, seen)) for op, seen in zip(t.ops[:3], steps[:3], strict=True)] == [[], [], []]
    assert [c for c, _ in books.step(t.ops[3], StepSeen(steps[3].obs, {0: last}))] == ["R13"]


def test_who_may_not_compute_during_a_capture_has_lost_nothing(runner: LocalRunner) -> None:
    """Q3: whoever shares buffers with the one that is captured is told so, and its map is what it was."""
    t = trace(*PAIR, *BIND, Op(Kind.CAPTURE_BEGIN, 1), Op(Kind.COMPUTE))
    run = runner.run(t)
    assert run.steps[-1].obs.status == Status.MISUSE
    assert Checker(t, runner.capabilities, Fresh(runner.run)).check(run).failed is None
