"""The same trace under three strategies: what holds, what is false after somebody left, and what the judge sees."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from gallocheck.fuzz import differential
from gallocheck.fuzz.checker import Checker, Report
from gallocheck.fuzz.counted import Books
from gallocheck.fuzz.fresh import Fresh
from gallocheck.model.records import (
    VALIDATED,
    BufferType,
    Kind,
    Op,
    Setup,
    Status,
    Strategy,
    Trace,
    Trouble,
)
from gallocheck.native.worker import LocalRunner, Run

from tests.shorthand import bundled, given, graph, out

GRAPHS = tuple(graph(out(n)) for n in (16, 64, 96))
SMALL, LARGE, LARGER = range(3)
PAIR = (Op(Kind.NEW), Op(Kind.OWN), Op(Kind.NEW, 1), Op(Kind.BORROW, 1, 0, value=VALIDATED))


def trace(*ops: Op, capacity: int = 1 << 20, strategy: Strategy = Strategy.COUNTED) -> Trace:
    return Trace(Setup((BufferType(capacity=capacity),), ((0,),), strategy), GRAPHS, (*PAIR, *ops))


def reserve(alloc: int, number: int) -> Op:
    return Op(Kind.RESERVE, alloc, graph=number)


def bind(alloc: int, number: int) -> tuple[Op, Op, Op]:
    return reserve(alloc, number), Op(Kind.ALLOC, alloc, graph=number), Op(Kind.COMPUTE, alloc)


@pytest.fixture(scope="module")
def runner() -> LocalRunner:
    return bundled()


def runs(runner: LocalRunner, t: Trace) -> dict[Strategy, Run]:
    return {s: runner.run(replace(t, setup=replace(t.setup, strategy=s))) for s in Strategy}


def compared(
    t: Trace, found: dict[Strategy, Run], left_at: int | None = None
) -> tuple[list[str], Counter[str]]:
    """The clauses broken, and what was exercised."""
    walk = differential.Comparison(t, found, left_at)
    return [v.clause for v in walk.verdicts(len(t.ops) + 1)], walk.tally


def statuses(run: Run) -> list[Status]:
    return [step.obs.status for step in run.steps[len(PAIR) :]]


def judged(runner: LocalRunner, t: Trace) -> tuple[Report, Books]:
    checker = Checker(t, runner.capabilities, Fresh(runner.run))
    report = checker.check(runner.run(t))
    return report, next(x for x in checker.layers if isinstance(x, Books))


def test_s1_s7_sharing_starts_where_buffers_apart_do_not(runner: LocalRunner) -> None:
    t = trace(*bind(0, LARGE), *bind(1, SMALL), capacity=70)
    found = runs(runner, t)
    assert set(statuses(found[Strategy.COUNTED])) == {Status.DONE}
    assert Status.REFUSED in statuses(found[Strategy.APART])
    broken, tally = compared(t, found)
    assert broken == [] and tally["S7"] >= 1 and tally["S6"] == 1


def test_s6_outputs_are_the_same(runner: LocalRunner) -> None:
    t = trace(*bind(0, LARGE), *bind(1, SMALL), *bind(1, LARGER), Op(Kind.COMPUTE))
    broken, tally = compared(t, runs(runner, t))
    assert broken == [] and tally["S6"] == 4 and tally["S1"] >= 1


def test_s5_is_false_where_somebody_left(runner: LocalRunner) -> None:
    """The borrower keeps more than it needs: apart the owner's larger buffers fit, shared they do not."""
    t = trace(reserve(0, LARGE), reserve(1, SMALL), reserve(0, LARGER), capacity=96 + 16)
    found = runs(runner, t)
    assert statuses(found[Strategy.APART]) == [Status.DONE] * 3
    assert statuses(found[Strategy.COUNTED]) == [Status.DONE, Status.DONE, Status.REFUSED]
    report, books = judged(runner, t)
    assert report.failed is None and books.left_at == len(t.ops) - 1
    assert compared(t, found, books.left_at)[0] == []
    assert compared(t, found)[0] == ["S5"]  # what a judge would say that did not know of it


def test_s5_is_false_where_somebody_went(runner: LocalRunner) -> None:
    """What the one that went had made stays as large as it was."""
    last = (Op(Kind.NEW, 2), reserve(2, LARGER))
    t = trace(reserve(0, LARGE), reserve(1, SMALL), Op(Kind.FREE), *last, capacity=96 + 16)
    found = runs(runner, t)
    assert statuses(found[Strategy.APART])[-1] == Status.DONE
    assert statuses(found[Strategy.COUNTED])[-1] == Status.REFUSED
    report, books = judged(runner, t)
    assert report.failed is None and books.left_at == len(PAIR) + 2


def changed(run: Run, at: int, **fields: object) -> Run:
    """The run with another observation of one step."""
    steps = list(run.steps)
    steps[at] = replace(steps[at], obs=replace(steps[at].obs, **fields))  # type: ignore[arg-type]
    return replace(run, steps=steps)


@pytest.mark.parametrize(
    ("strategy", "at", "fields", "clause"),
    [
        (Strategy.COUNTED, 6, {"digest": 1}, "S6"),
        (Strategy.COUNTED, 6, {"trouble": Trouble.BAD_SOURCE}, "S6"),
        (Strategy.PAIR, 6, {"digest": 1}, "S6"),
        (Strategy.COUNTED, 7, {"used": (81,)}, "S1"),
        (Strategy.COUNTED, 7, {"status": Status.REFUSED, "allocations": 1}, "S5"),
        (Strategy.PAIR, 7, {"asked": ((81,),)}, "R3"),
    ],
)  # fmt: skip
def test_wrong_observations_are_seen(
    runner: LocalRunner, strategy: Strategy, at: int, fields: dict[str, object], clause: str
) -> None:
    t = trace(*bind(0, LARGE), *bind(1, SMALL))
    found = runs(runner, t)
    assert compared(t, found)[0] == []
    found[strategy] = changed(found[strategy], at, **fields)
    assert clause in compared(t, found)[0]


def test_what_only_sharing_leaves_behind_is_s3(runner: LocalRunner) -> None:
    t = trace(*bind(0, LARGE))
    found = runs(runner, t)
    found[Strategy.COUNTED] = replace(found[Strategy.COUNTED], leaked=64)
    assert compared(t, found)[0] == ["S3"]
    found[Strategy.APART] = replace(found[Strategy.APART], leaked=64)
    assert compared(t, found)[0] == []


def test_a_pair_may_have_more_than_apart_at_one_step_never_than_at_all(runner: LocalRunner) -> None:
    """R5: apart the entry is replaced whole too, and so its other chunk becomes smaller."""
    one, two = graph(given(1000)), graph(given(8), given(57))  # a chunk of 1000 bytes; chunks of 8 and 57
    ops = (*PAIR, reserve(0, 0), reserve(1, 1), reserve(0, 1))
    t = Trace(Setup((BufferType(max_size=64),), ((0,),), Strategy.COUNTED), (one, two), ops)
    found = runs(runner, t)
    pair, apart = (found[s].steps[-1].obs.used for s in (Strategy.PAIR, Strategy.APART))
    assert (pair, apart) == ((1057,), (130,))
    assert compared(t, found)[0] == []


@pytest.mark.parametrize("bits", range(16))
def test_s4_every_combination(runner: LocalRunner, bits: int) -> None:
    for strategy in (Strategy.COUNTED, Strategy.APART):
        t = trace(strategy=strategy)
        t = replace(t, ops=(*PAIR[:3], replace(PAIR[3], value=bits), reserve(0, LARGE), reserve(1, LARGE)))
        report, _ = judged(runner, t)
        assert report.failed is None and report.tally["S4"] == 1
        obs, last = (runner.run(t).steps[i].obs for i in (3, -1))
        shares = bits == VALIDATED and strategy == Strategy.COUNTED
        assert obs.reason == VALIDATED & ~bits
        assert obs.status == (Status.DONE if shares else Status.REFUSED)
        assert last.used == ((64,) if shares else (128,))
