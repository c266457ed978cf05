"""The lanes' model is the reference, and a batch sees what single traces see."""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Iterator

import numpy as np
import pytest
from gallocheck.fuzz.batch import compare, engine
from gallocheck.fuzz.batch.draw import Batch, draw_batch
from gallocheck.fuzz.batch.table import NO_LIMIT, hash_of_places, signed
from gallocheck.fuzz.judge import Judge
from gallocheck.model.records import UNLIMITED, Kind, Observation, Status, Trace
from gallocheck.model.stack import Stack
from gallocheck.native.flight import Flight
from gallocheck.native.header import load
from gallocheck.native.lane_job import Block, run_here
from gallocheck.native.library import library_path
from gallocheck.native.worker import Worker

PLANTED = str(library_path("planted"))
LANES, STEPS = 48, 40


def everything(batch: Batch, lane: int) -> Trace:
    """The lane's trace, with a LOOK where it sat out."""
    short = compare.trace(batch, lane)
    ops = tuple(compare.operation(raw) for raw in batch.ops[lane])
    return Trace(short.setup, short.graphs, ops)


def named(obs: Observation, field: tuple[str, int, int]) -> int:
    """The field of a reference observation as the lanes' int64."""
    name, row, column = field
    value = getattr(obs, name)
    if name == "asked":
        return value[row][column] if row < len(value) and column < len(value[row]) else 0
    if isinstance(value, tuple):
        return signed(value[row]) if row < len(value) else 0
    return signed(int(value))


@pytest.mark.parametrize("seed", range(8))
def test_every_lane_does_what_the_reference_does(seed: int) -> None:
    batch = draw_batch(f"reference {seed}", LANES, STEPS)
    whole = compare.model(batch)
    stacks = []
    for lane in range(LANES):
        trace = everything(batch, lane)
        stacks.append((Stack(trace.setup, list(trace.graphs)), trace))
    for i, order in enumerate(batch.orders):
        want = compare.flat(whole.step(order))
        for lane, (stack, trace) in enumerate(stacks):
            obs = stack.step(trace.ops[i])
            assert want["status", 0, 0][lane] == obs.status, (i, lane, order.kind)
            if obs.status == Status.MISUSE:
                continue
            for field, values in want.items():
                if field[0] == "places":
                    done = trace.ops[i].kind == Kind.ALLOC and obs.status == Status.DONE
                    expected = hash_of_places(stack.session.allocs[order.alloc].places) if done else 0
                else:
                    expected = named(obs, field)
                assert np.broadcast_to(values, LANES)[lane] == expected, (i, lane, order.kind, field)


def test_batches_reach_everything_that_they_are_for() -> None:
    seen: set[tuple[Kind, int]] = set()
    for seed in range(30):
        batch = draw_batch(f"reach {seed}", 48, 48)
        whole = compare.model(batch)
        for order in batch.orders:
            seen |= {(order.kind, int(s)) for s in np.unique(whole.step(order)["status"])}
    refusable = {Kind.OWN, Kind.BORROW, Kind.RESERVE, Kind.ALLOC}
    assert {kind for kind, status in seen if status == Status.REFUSED} >= refusable
    assert {kind for kind, status in seen if status == Status.DONE} >= refusable | {
        Kind.NEW, Kind.FREE, Kind.MEASURE, Kind.COMPUTE, Kind.SHRINK, Kind.CAPACITY, Kind.REMAKE}  # fmt: skip
    assert (Kind.COMPUTE, Status.STALE) in seen


def test_the_same_seed_is_the_same_batch() -> None:
    a, b = draw_batch("same", 16, 20), draw_batch("same", 16, 20)
    assert a.graphs == b.graphs and np.array_equal(a.ops, b.ops) and np.array_equal(a.capacity, b.capacity)
    assert not np.array_equal(a.ops, draw_batch("other", 16, 20).ops)


def test_the_bundled_subject_differs_nowhere() -> None:
    library = load(library_path("bundled"))
    for seed in range(4):
        batch = draw_batch(f"clean {seed}", 256, 48)
        seen, left = run_here(library, Block(compare.job(batch)))
        assert list(compare.differences(batch, seen, left)) == []


def test_a_worker_sees_what_a_call_sees() -> None:
    batch = draw_batch("both", 64, 32)
    here, left = run_here(load(library_path("bundled")), Block(compare.job(batch)))
    for driver in ("", "light"):
        with Worker(library_path("bundled"), driver=driver) as worker:
            there, gone, deaths = worker.run_job(Block(compare.job(batch)))
            assert not deaths and np.array_equal(here, there) and np.array_equal(left, gone)


class Disturbed(Worker):
    """Its processes are killed from outside: the children soon after they start, so many times."""

    kills = 0

    def _launch(self, flight: Flight) -> None:
        super()._launch(flight)
        assert self._child is not None
        if self.kills:
            self.kills -= 1
            while flight.idle(self._memory):
                time.sleep(0.0002)
            os.kill(self._child.process, signal.SIGKILL)


@pytest.mark.parametrize("defect", [0, 26])
def test_a_lane_subject_killed_from_outside_is_no_finding(defect: int) -> None:
    """It runs the lanes again; what it does die of counts as ever."""
    block = Block(compare.job(draw_batch("killed", 400, 48)))
    with Disturbed(PLANTED, defect, driver="light") as worker:
        seen, left, deaths = worker.run_job(block)
        expected = seen.copy(), left.copy()
        assert bool(deaths) == bool(defect)
        for kills in (1, 2):
            worker.kills = kills
            seen, left, again = worker.run_job(block)
            assert worker.kills == 0
            assert [d[:2] for d in again] == [d[:2] for d in deaths]
            whole = np.arange(400) < (deaths[-1].lane if deaths else 400)
            whole[[d.lane for d in deaths]] = False
            assert np.array_equal(seen[..., whole], expected[0][..., whole])
            assert np.array_equal(left[whole], expected[1][whole])


def suspects(defect: int, batches: int = 20) -> Iterator[engine.Suspect]:
    with engine.Lanes(PLANTED, defect, timeout=1.0) as lanes:
        for checked in itertools.islice(engine.batches(lanes, 1, 256), batches):
            yield from checked.suspects


FOUND = {11: "P5", 24: "P10", 33: "P14", 53: "R3", 56: "R5", 63: "R7", 74: "R12", 80: "R14"}


@pytest.mark.parametrize(("defect", "clause"), FOUND.items())
def test_a_planted_defect_shows_in_lanes_and_the_judge_names_its_clause(defect: int, clause: str) -> None:
    with Judge(PLANTED, defect, timeout=1.0) as judge:
        verdicts = (judge.judge(s.trace).failed for s in suspects(defect))
        assert any(v is not None and v.clause == clause for v in verdicts)


@pytest.mark.parametrize(("defect", "how"), [(26, ("COMPUTE", "death")), (38, ("RESERVE", "death"))])
def test_a_subject_that_dies_in_some_lanes_is_suspected_there(defect: int, how: engine.How) -> None:
    assert any(s.how == how for s in suspects(defect, 20))


def test_what_stays_in_use_after_close_is_suspected() -> None:
    assert ("close", "bytes in use after close") in {s.how for s in suspects(43, 4)}


def test_a_capacity_without_limit_is_none_in_the_trace() -> None:
    batch = draw_batch("limits", 32, 20)
    for lane in range(32):
        for device, kind in enumerate(compare.trace(batch, lane).setup.types):
            limited = batch.capacity[lane, device] < NO_LIMIT
            assert kind.capacity == (batch.capacity[lane, device] if limited else UNLIMITED)
