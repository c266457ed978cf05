"""The books of contexts on runs of the bundled subject, and on made-up ones: each wrong observation is blamed rightly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from gallocheck.fuzz import options
from gallocheck.fuzz.checker import Checker, Report
from gallocheck.fuzz.judge import Judge
from gallocheck.model.records import Kind, Memory, Observation, Op, OpFlag, Option, Status, Trace, Trouble
from gallocheck.native.worker import Run

from .traces import BOTH, REPLACED, START, attach, bundled, decode, open_, setup, trace


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with bundled() as judge:
        yield judge


def told(judge: Judge, t: Trace, at: int, look: int | None = None, **changes: object) -> str:
    """The clause that is blamed when step `at` of a good run (or a look after it) shows something else."""
    run = judge.run(t)
    assert run.death is None and len(run.steps) == len(t.ops)
    seen = run.steps[at]
    steps = list(run.steps)
    if look is None:
        steps[at] = replace_obs(seen, replace(seen.obs, **changes))  # type: ignore[arg-type]
    else:
        looks = dict(seen.looks) | {look: replace(seen.looks[look], **changes)}  # type: ignore[arg-type]
        steps[at] = type(seen)(seen.obs, looks, seen.places)
    report = check(judge, t, replace_steps(run, steps))
    return report.failed.clause if report.failed is not None else "nothing"


def replace_obs(seen: object, obs: Observation) -> object:
    return type(seen)(obs, seen.looks, seen.places)  # type: ignore[attr-defined, call-arg]


def replace_steps(run: Run, steps: list) -> Run:  # type: ignore[type-arg]
    return Run(steps, run.leaked, run.death, run.opened, run.graphs)


def check(judge: Judge, t: Trace, run: Run) -> Report:
    return Checker(t, judge.caps, judge.fresh).check(run)


SMALL = [decode(0, 1, 1)] * 64
SHRINKS = trace(open_(0), decode(0, 128, 64), *SMALL)


@pytest.mark.parametrize(
    "t",
    [
        SHRINKS,
        trace(*REPLACED, decode(1, 1, 1)),
        trace(*START, decode(0, 128, 64, OpFlag.ASYNC), decode(1, 1, 1)),
        trace(open_(0), open_(1), decode(1, 128, 64), attach(1), decode(1, 1, 1), attach()),
        *(trace(open_(0), decode(0, 64, 33), made=setup(memory=m)) for m in Memory),
    ],
)
def test_good_runs_are_clean(judge: Judge, t: Trace) -> None:
    assert judge.judge(t).failed is None


def test_a_reservation_below_the_batch(judge: Judge) -> None:
    t = trace(open_(0), decode(0, 100, 1))
    assert told(judge, t, 1, tokens=(2, 128)) == "W1"


def test_a_step_that_is_none(judge: Judge) -> None:
    t = trace(open_(0), decode(0, 1, 9))
    assert told(judge, t, 1, cells=(24, 8)) == "W1"


def test_cells_that_grow_late(judge: Judge) -> None:
    t = trace(open_(0), decode(0, 1, 9))
    assert told(judge, t, 1, cells=(8, 8)) == "W2"


def test_a_shrink_one_call_early(judge: Judge) -> None:
    t = replace(SHRINKS, ops=SHRINKS.ops[:-1])
    assert told(judge, t, len(t.ops) - 1, tokens=(2, 128), cells=(8, 64), fewer=(0, 0)) == "W2"


def test_a_shrink_that_does_not_come(judge: Judge) -> None:
    assert told(judge, SHRINKS, 65, tokens=(128, 128), cells=(64, 64), fewer=(64, 0)) == "W2"


def test_lane_1_that_follows_a_small_batch(judge: Judge) -> None:
    t = trace(open_(0), decode(0, 63, 1))
    assert told(judge, t, 1, tokens=(128, 128)) == "W3"


def test_a_batch_on_other_lanes(judge: Judge) -> None:
    t = trace(open_(0), decode(0, 64, 1))
    one = judge.run(trace(open_(1), decode(1, 64, 1))).steps[1].obs.digest
    assert told(judge, t, 1, digest=one) == "W3"


def test_waits(judge: Judge) -> None:
    t = trace(*START, decode(0, 128, 8, OpFlag.ASYNC), decode(1, 1, 1), decode(1, 1, 1))
    assert told(judge, t, 4, waits=0) == "W4"
    assert told(judge, t, 5, waits=1) == "W4"
    assert told(judge, t, 4, status=Status.MISUSE) == "W4"


def test_work_left_in_flight_by_a_sync(judge: Judge) -> None:
    t = trace(open_(0), decode(0, 128, 8, OpFlag.ASYNC), Op(Kind.CTX_SYNC, 0))
    assert told(judge, t, 2, look=1, in_flight=1) == "W4"


def test_buffers_replaced_under_work(judge: Judge) -> None:
    t = trace(*START, decode(0, 128, 8, OpFlag.ASYNC), decode(1, 128, 64))
    assert told(judge, t, 4, trouble=Trouble.FREED_BUSY) == "W4"


def test_no_reservation_after_the_other_replaced_the_buffers(judge: Judge) -> None:
    t = trace(*REPLACED, decode(1, 1, 1))
    assert told(judge, t, 5, reserves=0) == "W5"
    assert told(judge, t, 5, status=Status.STALE) == "W5"


def test_attach_answers(judge: Judge) -> None:
    t = trace(open_(0), open_(1), decode(1, 128, 64), attach(1), decode(1, 1, 1))
    assert told(judge, t, 3, status=Status.REFUSED) == "W6"
    digest = judge.run(trace(open_(1), decode(1, 1, 1))).steps[1].obs.digest
    assert told(judge, t, 4, status=Status.DONE, digest=digest) == "W6"
    no = trace(open_(0), open_(1), decode(1, 128, 64), attach(), made=setup(draft=Option.LIVE_CONTEXT))
    assert told(judge, no, 3, tokens=(2, 0)) == "W6"
    assert told(judge, no, 3, status=Status.DONE) == "W8"


def test_memory_of_a_reservation(judge: Judge) -> None:
    t = trace(open_(0), decode(0, 1, 33), made=setup(memory=Memory.HYBRID_INDEXER))
    asked = judge.run(t).steps[1].looks[0].asked
    assert told(judge, t, 1, look=0, asked=((asked[0][0] - 1,),)) == "W7"
    assert told(judge, t, 0, look=0, asked=((asked[0][0],),)) == "W7"


def test_other_memory_keeps_all(judge: Judge) -> None:
    t = trace(open_(0), decode(0, 1, 1), made=setup(memory=Memory.OTHER_MEMORY))
    assert told(judge, t, 1, cells=(8, 64)) == "W7"


def test_without_options_everything_is_reserved_once(judge: Judge) -> None:
    t = trace(open_(0), decode(0, 1, 1), made=setup(Option(0)))
    assert told(judge, t, 1, reserves=1) == "W5"  # it breaks W8 too, but so would any options
    assert told(judge, t, 0, tokens=(2, 2)) == "W8"


def test_another_digest(judge: Judge) -> None:
    assert told(judge, trace(open_(0), decode(0, 1, 1)), 1, digest=1) == "W8"


def test_digests_are_compared_with_other_options(judge: Judge) -> None:
    """A run whose digest is what nobody else's is."""
    t = trace(*START, decode(0, 1, 1), decode(1, 2, 9))
    run = judge.run(t)
    good, tally = options.compare(t, run, judge.run, judge.caps, len(t.ops))
    assert good == [] and tally["W8"] > 0
    steps = list(run.steps)
    steps[3] = replace_obs(steps[3], replace(steps[3].obs, digest=5))  # type: ignore[call-overload]
    bad, _ = options.compare(t, replace_steps(run, steps), judge.run, judge.caps, len(t.ops))
    assert {v.clause for v in bad} == {"W8"} and bad[0].step == 3


def test_without_options_contexts_are_plain_schedulers(judge: Judge) -> None:
    t = trace(open_(0), decode(0, 1, 1), decode(0, 70, 64), open_(1), decode(1, 2, 3), made=setup(Option(0)))
    verdicts, tally = options.compare(t, judge.run(t), judge.run, judge.caps, len(t.ops))
    assert verdicts == [] and tally["W8"] >= 5


# -- R12 is load-bearing (W5) -------------------------------------------------------------------


def test_without_the_comparison_freed_memory_is_touched_and_with_it_the_run_is_clean(judge: Judge) -> None:
    unchecked = trace(*REPLACED, decode(1, 1, 1, OpFlag.UNCHECKED))
    run = judge.run(unchecked)
    assert run.death is not None and run.death.kind == "fault" and len(run.steps) == len(unchecked.ops) - 1
    report = judge.judge(unchecked)
    assert report.failed is None and report.tally["R12"] == 1 and report.tally["W5"] >= 1
    checked = trace(*REPLACED, decode(1, 1, 1))
    assert judge.run(checked).death is None
    report = judge.judge(checked)
    assert report.failed is None and report.tally["W5"] >= 1


def test_the_flag_alone_is_no_fault(judge: Judge) -> None:
    t = trace(*START, decode(1, 1, 1), decode(1, 1, 1, OpFlag.UNCHECKED))
    run = judge.run(t)
    assert run.death is None and run.steps[-1].obs.status == Status.DONE and judge.judge(t).failed is None


def test_the_setup_of_these_traces() -> None:
    assert Option(3) == BOTH
