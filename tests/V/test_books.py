"""V on what a subject might show, right and wrong: the bundled subject's own answers, changed by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from gallocheck.fuzz.checker import Checker, Report
from gallocheck.fuzz.fresh import Fresh
from gallocheck.fuzz.pools import Books
from gallocheck.model.records import (
    BufferType,
    Kind,
    Observation,
    Op,
    PoolKind,
    Setup,
    Status,
    Trace,
    Trouble,
)
from gallocheck.native.worker import Death, LocalRunner, Run

from tests.shorthand import bundled, given, graph, out

UNIT = 4096
DEVICES = (
    BufferType(granularity=UNIT),
    BufferType(granularity=UNIT),
    BufferType(granularity=UNIT, meta=0b11),
)
G = graph(given(64), out(64, 0))


def take(size: int, device: int = 0, **how: Any) -> Op:
    return Op(Kind.POOL_ALLOC, other=device, value=size, **how)


def give(device: int = 0, back: int = 0) -> Op:
    return Op(Kind.POOL_FREE, other=device, value=back)


def trim(kind: int = 0) -> Op:
    return Op(Kind.TRIM, other=kind)


def trace(*ops: Op, pool: PoolKind = PoolKind.VMM_POOL) -> Trace:
    return Trace(Setup(DEVICES, ((0,),), pool=pool, pool_range=10 * UNIT), (G,), ops)


@pytest.fixture(scope="module")
def runner() -> LocalRunner:
    return bundled()


def judged(runner: LocalRunner, t: Trace, change: Callable[[Observation], dict[str, Any]] | None) -> Report:
    """The judgement of a run whose last observation was changed."""
    run = runner.run(t)
    if change is not None:
        last = run.steps[-1]
        run.steps[-1] = replace(last, obs=replace(last.obs, **change(last.obs)))
    return Checker(t, runner.capabilities, Fresh(runner.run)).check(run)


RIGHT = {
    "blocks and trims": (take(1), take(5000), give(), give(), trim(), take(1)),
    "failures": (take(1, fail_nth=1), take(1, fail_nth=2), take(1, fail_nth=3), take(1), take(99 * UNIT)),
    "both devices": (take(1), take(1, 1), give(), give(1), trim(2), take(1, 1)),
    "wrong order": (take(1), take(1), give(back=1), give(back=5), give()),
    "scratch": (Op(Kind.NEW), Op(Kind.ALLOC), Op(Kind.COMPUTE, fail_nth=2), Op(Kind.COMPUTE), trim()),
}


@pytest.mark.parametrize("pool", [PoolKind.VMM_POOL, PoolKind.LEGACY_POOL], ids=lambda p: p.name)
@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_kept(runner: LocalRunner, name: str, pool: PoolKind) -> None:
    report = judged(runner, trace(*RIGHT[name], pool=pool), None)
    assert [v for v in report.verdicts if v.sort != "misuse"] == []
    assert {"V2", "V5"} <= {c for c, n in report.tally.items() if n} or name == "scratch"


Change = Callable[[Observation], dict[str, Any]]
LEGACY = PoolKind.LEGACY_POOL
WRONG: dict[str, tuple[str, tuple[Op, ...], Change]] = {
    "another range after a trim": ("V1", (take(1), give(), trim(), take(1)), lambda o: {
        "base": o.base + (1 << 30), "address": o.address + (1 << 30)}),
    "no range": ("V1", (take(1),), lambda o: {"base": 0}),
    "a block somewhere else": ("V2", (take(1), take(1)), lambda o: {"address": o.base}),
    "half a unit": ("V2", (take(1),), lambda o: {"mapped": UNIT // 2, "pooled": (UNIT // 2, 0, 0)}),
    "more than is missing": ("V2", (take(1),), lambda o: {"mapped": 2 * UNIT, "pooled": (2 * UNIT, 0, 0)}),
    "handed out, but not mapped": ("V2", (take(2 * UNIT),), lambda o: {"mapped": UNIT}),
    "any order": ("V2", (take(1), take(1), give(back=1)), lambda o: {"status": Status.DONE, "out": 128}),
    "the latest is refused": ("V2", (take(1), give()), lambda o: {"status": Status.MISUSE}),
    "wrong content": ("V2", (take(1), give()), lambda o: {"trouble": Trouble.BAD_POOL}),
    "in use, and trimmed": ("V3", (take(1), trim()), lambda o: {
        "released": UNIT, "pooled": (0, 0, 0), "used": (0, 0, 0)}),
    "idle, and kept": ("V3", (take(1), give(), trim()), lambda o: {
        "released": 0, "pooled": (UNIT, 0, 0), "used": (UNIT, 0, 0)}),
    "a wrong sum": ("V3", (take(1), give(), trim()), lambda o: {"released": 7}),
    "the device gets nothing back": ("V3", (take(1), give(), trim()), lambda o: {"used": (UNIT, 0, 0)}),
    "work still uses it": ("V3", (take(1), give(), trim()), lambda o: {"trouble": Trouble.FREED_BUSY}),
    "one device of two": ("V4", (take(1), take(1, 1), give(), give(1), trim(2)), lambda o: {
        "released": UNIT, "pooled": (0, UNIT, 0), "used": (0, UNIT, 0)}),
    "another device too": ("V4", (take(1), take(1, 1), give(), give(1), trim(0)), lambda o: {
        "released": 2 * UNIT, "pooled": (0, 0, 0), "used": (0, 0, 0)}),
    "a leak": ("V5", (take(1, fail_nth=2),), lambda o: {"used": (UNIT, 0, 0)}),
    "counted, though it failed": ("V5", (take(1, fail_nth=3),), lambda o: {
        "mapped": UNIT, "pooled": (UNIT, 0, 0)}),
    "a failure that nobody is told of": ("V5", (take(1, fail_nth=1),), lambda o: {
        "status": Status.DONE, "out": 128, "mapped": UNIT, "address": o.base, "pooled": (UNIT, 0, 0)}),
    "a failure without a reason": ("V5", (take(1), take(1)), lambda o: {"status": Status.REFUSED, "out": 128}),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_blamed(runner: LocalRunner, name: str) -> None:
    clause, ops, change = WRONG[name]
    failed = judged(runner, trace(*ops), change).failed
    assert failed is not None and failed.clause == clause, failed


LEGACY_WRONG: dict[str, tuple[str, tuple[Op, ...], Change]] = {
    "a new block, though one is kept": ("V2", (take(1), give(), take(1)), lambda o: {
        "allocations": 1, "mapped": 2 * UNIT, "address": 1 << 40, "pooled": (2 * UNIT, 0, 0)}),
    "not the smallest": ("V2", (take(3 * UNIT), take(1), give(), give(), take(1)), lambda o: {
        "out": 3 * UNIT, "address": o.address - 3 * UNIT}),
    "a freed block is gone": ("V2", (take(1), give()), lambda o: {"mapped": 0, "pooled": (0, 0, 0)}),
    "idle, and kept": ("V3", (take(1), give(), trim()), lambda o: {
        "released": 0, "pooled": (UNIT, 0, 0), "used": (UNIT, 0, 0)}),
    "failed, and emptied": ("V5", (take(1), take(2 * UNIT), give(), take(4 * UNIT, fail_nth=1)), lambda o: {
        "mapped": UNIT, "pooled": (UNIT, 0, 0), "used": (UNIT, 0, 0)}),
}  # fmt: skip


@pytest.mark.parametrize("name", LEGACY_WRONG)
def test_what_is_wrong_of_a_legacy_pool_is_blamed(runner: LocalRunner, name: str) -> None:
    clause, ops, change = LEGACY_WRONG[name]
    failed = judged(runner, trace(*ops, pool=LEGACY), change).failed
    assert failed is not None and failed.clause == clause, failed


def test_what_nobody_owns_is_told(runner: LocalRunner) -> None:
    """R13: what is in use of a device is the pools' and the allocators', to the byte."""
    setup = (Op(Kind.NEW), Op(Kind.RESERVE), take(1))
    assert judged(runner, trace(*setup, give()), None).failed is None
    failed = judged(runner, trace(*setup, give()), lambda o: {"used": (o.used[0] + UNIT, 0, 0)}).failed
    assert failed is not None and failed.clause == "R13"


def test_who_dies_in_a_pool_touched_what_is_not_there(runner: LocalRunner) -> None:
    """V2 where a block is taken or given, V3 where memory is given back."""
    for op, clause in ((take(1), "V2"), (trim(), "V3")):
        t = trace(take(1), op)
        steps = runner.run(t).steps[:1]
        death = Death(1, op, "fault", "run", "SIGSEGV", 0, "")
        failed = Checker(t, runner.capabilities, Fresh(runner.run)).check(Run(steps, death=death)).failed
        assert failed is not None and failed.clause == clause


def test_after_a_computation_a_legacy_pool_s_blocks_are_not_known(runner: LocalRunner) -> None:
    """Its scratch was one of them, and is the last one now: nothing is judged by their order."""
    t = trace(take(1), give(), Op(Kind.NEW), Op(Kind.ALLOC), Op(Kind.COMPUTE), take(1), pool=LEGACY)
    books = Books(t, runner.capabilities, Fresh(runner.run))
    for op, seen in zip(t.ops[:-1], runner.run(t).steps, strict=False):
        if books.takes(op, seen):
            books.tally(op, seen)
            assert list(books.step(op, seen)) == []
        else:
            assert list(books.watch(op, seen)) == []
    assert books.known[0].unsure and not books.known[1].unsure  # stream 0 ran


def test_a_kept_block_that_comes_back_smaller_is_blamed(runner: LocalRunner) -> None:
    """V2, also after a computation: which blocks are kept is not known then, but what this one had is."""
    t = trace(take(UNIT + 1), give(), Op(Kind.NEW), Op(Kind.ALLOC), Op(Kind.COMPUTE), take(1), pool=LEGACY)
    assert judged(runner, t, None).failed is None
    failed = judged(runner, t, lambda o: {"out": o.out - UNIT}).failed
    assert failed is not None and (failed.clause, failed.sort) == ("V2", "broken"), failed
