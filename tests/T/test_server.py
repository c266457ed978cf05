"""The server by hand: the reference, the bundled subject beside it, and the books on what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from gallocheck.fuzz.checker import Checker
from gallocheck.fuzz.judge import Judge
from gallocheck.model.records import Kind, Observation, Op, OpFlag, PoolKind, Status, Trace
from gallocheck.model.stack import Stack
from gallocheck.native.worker import Run

from tests.W.traces import START, bundled, decode, setup, trace

MADE = setup(pool=PoolKind.VMM_POOL)


def enter(slot: int) -> Op:
    return Op(Kind.SLOT_ENTER, slot)


def step(slot: int, tokens: int = 1) -> Op:
    return Op(Kind.SLOT_STEP, slot, value=tokens)


def leave(slot: int) -> Op:
    return Op(Kind.SLOT_LEAVE, slot)


def server(*ops: Op) -> Trace:
    return trace(*START, *ops, made=MADE)


def play(t: Trace) -> list[Observation]:
    stack = Stack(t.setup, list(t.graphs), chunks=1)
    return [stack.step(op) for op in t.ops][len(START) :]


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with bundled() as judge:
        yield judge


TWO = server(
    enter(0), enter(2), step(0, 100), step(2), leave(0), step(2), leave(2), enter(1), step(1), leave(1)
)


def test_pools_are_trimmed_when_the_last_slot_is_free() -> None:
    seen = play(TWO)
    assert [o.status for o in seen] == [Status.DONE] * len(seen)
    assert [o.busy for o in seen] == [1, 5, 5, 5, 4, 4, 0, 2, 2, 0]
    assert seen[4].released == 0 and seen[4].pooled[0] > 0
    assert seen[6].released > 0 and seen[6].pooled[0] == 0
    assert seen[9].released > 0


def test_slots_are_entered_and_left_once() -> None:
    seen = play(server(step(0), leave(0), enter(0), enter(0), leave(0), leave(0)))
    misuse, done = Status.MISUSE, Status.DONE
    assert [o.status for o in seen] == [misuse, misuse, done, misuse, done, misuse]
    assert play(trace(enter(0), made=MADE)) == [] and Stack(MADE, []).step(enter(0)).status == misuse


def test_while_a_slot_is_busy_nothing_is_trimmed_or_closed() -> None:
    seen = play(server(enter(0), step(0), Op(Kind.CTX_TRIM, 0), Op(Kind.CTX_CLOSE, 0), Op(Kind.CTX_CLOSE, 1)))
    assert [o.status for o in seen[2:]] == [Status.REFUSED, Status.MISUSE, Status.DONE]


def test_cells_add_up_over_slots_and_stop_at_the_cache() -> None:
    seen = play(server(enter(0), enter(1), step(0, 8), step(1, 9), step(1, 100)))
    assert [o.cells[0] for o in seen[2:]] == [8, 32, 64]
    assert play(server(enter(0), step(0, 129)))[1].status == Status.MISUSE


@pytest.mark.parametrize("kind", list(PoolKind))
def test_the_bundled_subject_is_the_same(judge: Judge, kind: PoolKind) -> None:
    t = replace(TWO, setup=setup(pool=kind))
    report = judge.judge(t)
    assert report.failed is None and report.tally["T1"] > 0


def told(judge: Judge, t: Trace, at: int, **changes: object) -> set[str]:
    """The clauses that are blamed when the step shows something else."""
    run = judge.run(t)
    steps = list(run.steps)
    seen = steps[at + len(START)]
    steps[at + len(START)] = type(seen)(replace(seen.obs, **changes), seen.looks)  # type: ignore[arg-type]
    report = Checker(t, judge.caps, judge.fresh).check(
        Run(steps, run.leaked, run.death, run.opened, run.graphs)
    )
    return {v.clause for v in report.verdicts if v.sort == "broken"}


def test_what_breaks_t1_is_told(judge: Judge) -> None:
    held = play(TWO)[5].pooled
    assert told(judge, TWO, 4, released=4096) == {"T1"}  # while slot 2 is busy
    assert told(judge, TWO, 6, released=0, pooled=held) == {"T1"}  # never
    assert told(judge, TWO, 4, busy=0) == {"T1"}  # a slot is lost
    trimmed = server(enter(0), step(0), Op(Kind.CTX_TRIM, 0))
    assert told(judge, trimmed, 2, status=Status.DONE, released=4096) == {"T1"}


def test_what_is_in_flight_ends_with_the_last_slot(judge: Judge) -> None:
    t = server(enter(0), decode(1, 1, 1, OpFlag.ASYNC), leave(0))
    assert judge.judge(t).failed is None
    run = judge.run(t)
    last = run.steps[-1]
    looks = {**last.looks, 2: replace(last.looks[2], in_flight=1)}
    steps = [*run.steps[:-1], type(last)(last.obs, looks, last.places)]
    report = Checker(t, judge.caps, judge.fresh).check(
        Run(steps, run.leaked, run.death, run.opened, run.graphs)
    )
    assert report.failed is not None and report.failed.clause == "T1"


def test_steps_for_other_cells_than_the_slots_have_break_w1(judge: Judge) -> None:
    t = server(enter(0), enter(1), step(0, 8), step(1, 9))
    assert told(judge, t, 3, cells=(16, 8)) == {"W1"}  # as if there were slot 1 only
    assert "W1" in told(judge, t, 3, cells=(64, 8))
