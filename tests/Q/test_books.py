"""Q on what a subject might show, right and wrong: the bundled subject's own answers, changed by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from gallocheck.fuzz.captures import Books
from gallocheck.fuzz.checker import Checker
from gallocheck.fuzz.fresh import Fresh
from gallocheck.fuzz.verdict import Verdict
from gallocheck.model.records import (
    BufferType,
    Kind,
    Observation,
    Op,
    OpFlag,
    PoolKind,
    Setup,
    Status,
    Trace,
    Trouble,
)
from gallocheck.native.library import library_path
from gallocheck.native.worker import LocalRunner, Worker

from tests.Q.test_model import BEGIN, BIG, BOUND, CAPTURED, COMPUTE, END, GROW, LAUNCH, SCHED, TRIM, G
from tests.shorthand import bundled

UNIT = 4096
TWO = (*CAPTURED, Op(Kind.NEW, 1), Op(Kind.ALLOC, 1), Op(Kind.CAPTURE_BEGIN, 1), Op(Kind.COMPUTE, 1),
       Op(Kind.CAPTURE_END, 1))  # fmt: skip


def trace(*ops: Op, types: int = 1) -> Trace:
    devices = (BufferType(granularity=64),) * types
    setup = Setup(devices, tuple((t,) for t in range(types)), pool=PoolKind.VMM_POOL, pool_range=4 * UNIT)
    return Trace(setup, (G, BIG), ops)


@pytest.fixture(scope="module")
def runner() -> LocalRunner:
    return bundled()


RIGHT = {
    "capture and replay": (*CAPTURED, LAUNCH, LAUNCH),
    "two of them": (*TWO, LAUNCH, Op(Kind.LAUNCH, 1), TRIM, LAUNCH),
    "outdated": (*CAPTURED, GROW, LAUNCH),
    "memory that is gone": (*CAPTURED, GROW, Op(Kind.LAUNCH, flags=OpFlag.UNCHECKED)),
    "forbidden meanwhile": (*CAPTURED, BEGIN, TRIM, GROW, Op(Kind.ALLOC, graph=1), COMPUTE, END, LAUNCH),
    "schedulers": (*SCHED, Op(Kind.LAUNCH, flags=OpFlag.ASYNC), Op(Kind.SYNC), COMPUTE, TRIM, LAUNCH),
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_kept(name: str) -> None:
    """Also where the subject dies of a replay without the check: that is what must happen (Q1)."""
    t = trace(*RIGHT[name])
    with Worker(str(library_path("bundled"))) as worker:
        report = Checker(t, worker.capabilities, Fresh(worker.run)).check(worker.run(t))
    assert [v for v in report.verdicts if v.sort != "misuse"] == []
    assert report.tally["Q1"]


Change = Callable[[Observation], dict[str, Any]]
WRONG: dict[str, tuple[str, tuple[Op, ...], Change]] = {
    "outdated, and replayed": ("Q1", (*CAPTURED, GROW, LAUNCH), lambda o: {"status": Status.DONE, "captured": 1}),
    "outdated, and not dropped": ("Q1", (*CAPTURED, GROW, LAUNCH), lambda o: {"captured": 1}),
    "current, and dropped": ("Q1", (*CAPTURED, LAUNCH), lambda o: {"status": Status.STALE, "captured": 0}),
    "another graph": ("Q1", (*CAPTURED, LAUNCH), lambda o: {"digest": o.digest + 1}),
    "wrong bytes": ("Q1", (*CAPTURED, LAUNCH), lambda o: {"trouble": Trouble.BAD_SOURCE, "digest": 1}),
    "nothing is captured": ("Q1", (*BOUND, LAUNCH), lambda o: {"status": Status.DONE}),
    "on memory that is lent": ("Q1", (*CAPTURED, Op(Kind.POOL_ALLOC, value=1), LAUNCH), lambda o: {
        "status": Status.DONE}),
    "recorded without scratch": ("Q1", (*BOUND, BEGIN, replace(COMPUTE, fail_nth=2)), lambda o: {
        "status": Status.DONE}),
    "recorded beyond the range": ("Q1", (
        *BOUND, Op(Kind.POOL_ALLOC, value=4 * UNIT), BEGIN, COMPUTE), lambda o: {"status": Status.DONE}),
    "captured, and lost": ("Q1", CAPTURED, lambda o: {"captured": 0}),
    "kept after a trim": ("Q2", (*CAPTURED, TRIM), lambda o: {"captured": 1}),
    "only the first is dropped": ("Q2", (*TWO, TRIM), lambda o: {"captured": 2}),
    "replayed after a trim": ("Q2", (*CAPTURED, TRIM, LAUNCH), lambda o: {"status": Status.DONE}),
    "trimmed in a capture": ("Q3", (*CAPTURED, BEGIN, TRIM), lambda o: {
        "status": Status.DONE, "released": UNIT, "used": (64, ), "pooled": (0,)}),
    "replaced in a capture": ("Q3", (*BOUND, BEGIN, GROW), lambda o: {
        "status": Status.DONE, "generation": 2, "asked": ((1280,),)}),
}  # fmt: skip


def judged(runner: LocalRunner, t: Trace, change: Change) -> Verdict | None:
    run = runner.run(t)
    last = run.steps[-1]
    run.steps[-1] = replace(last, obs=replace(last.obs, **change(last.obs)))
    return Checker(t, runner.capabilities, Fresh(runner.run)).check(run).failed


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_blamed(runner: LocalRunner, name: str) -> None:
    clause, ops, change = WRONG[name]
    failed = judged(runner, trace(*ops), change)
    assert failed is not None and failed.clause == clause, failed


def test_a_trim_of_another_device_drops_nothing(runner: LocalRunner) -> None:
    """Q2."""
    t = trace(*CAPTURED, Op(Kind.TRIM, other=1), types=2)
    failed = judged(runner, t, lambda o: {"captured": 0})
    assert failed is not None and failed.clause == "Q2"


KEEPS_CAPTURED = 611  #: the planted defect: a trim drops no captured graph


def test_a_replay_after_a_trim_faults() -> None:
    """Q2 is load-bearing: a graph that outlived a trim touches pool memory that is not mapped any more."""
    t = trace(*CAPTURED, LAUNCH, TRIM, LAUNCH)
    with Worker(str(library_path("planted")), defect=KEEPS_CAPTURED) as worker:
        run = worker.run(t)
        assert run.death is not None and run.death.kind == "fault" and run.death.step == len(t.ops) - 1
        failed = Checker(t, worker.capabilities, Fresh(worker.run)).check(run).failed
        assert failed is not None and failed.clause == "Q2" and failed.op == "TRIM"
        books = Books(t, worker.capabilities, Fresh(worker.run))
        for op, seen in zip(t.ops, run.steps, strict=False):
            books.tally(op, seen)
            list(books.watch(op, seen))
        assert books.blame(t.ops[-1]) == "Q2"
    with Worker(str(library_path("bundled"))) as worker:
        assert worker.run(t).death is None


def test_without_the_check_a_replay_faults() -> None:
    """Q1 is load-bearing: the generation is all that keeps a replay from buffers that are gone."""
    t = trace(*CAPTURED, GROW, Op(Kind.LAUNCH, flags=OpFlag.UNCHECKED))
    with Worker(str(library_path("bundled"))) as worker:
        run = worker.run(t)
        assert run.death is not None and run.death.kind == "fault"
        assert worker.run(trace(*CAPTURED, GROW, LAUNCH)).death is None
