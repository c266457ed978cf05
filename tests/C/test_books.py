"""C1 to C5 on hand-made observations: what a tree's scheduler might show, right and wrong.

No subject runs here. That a real scheduler is judged is shown in tests/ggml.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from gallocheck.fuzz.checker import Checker, Report
from gallocheck.fuzz.fresh import Fresh
from gallocheck.fuzz.scheduled import Books
from gallocheck.model import oracle
from gallocheck.model.records import (
    BufferType,
    Cap,
    Kind,
    Observation,
    Op,
    OpFlag,
    Setup,
    Status,
    Trace,
    Trouble,
)
from gallocheck.native.worker import Death, Run, StepSeen

from tests.shorthand import given, graph, out

CAPS = Cap.PLAN | Cap.SCHED | Cap.RESIZABLE
G = graph(given(64), out(64, 0))
BIG = graph(given(128), out(128, 0))
THREE = graph(given(64), out(64, 0), out(64, 1))
NEW = Op(Kind.NEW, flags=OpFlag.BY_SCHED)
SMALL = Op(Kind.NEW, flags=OpFlag.BY_SCHED, value=2)
OWN = Op(Kind.OWN)  # only who shares buffers has readings on every tree
RESERVE, ALLOC, COMPUTE = Op(Kind.RESERVE), Op(Kind.ALLOC), Op(Kind.COMPUTE)
ASYNC, SYNC, RESET = Op(Kind.COMPUTE, flags=OpFlag.ASYNC), Op(Kind.SYNC), Op(Kind.RESET)
FAILS = Op(Kind.RESERVE, graph=1, fail_types=0b11)  # every allocation on every device
SOME_FAIL = Op(Kind.RESERVE, graph=1, fail_types=0b01)
SETUP = Setup((BufferType(), BufferType()), ((0, 1),))

EMPTY = Observation(Status.DONE, used=(0, 0), asked=((), ()))
HELD = Observation(Status.DONE, generation=1, used=(128, 0), asked=((128,), ()), allocations=1)
STILL = replace(HELD, allocations=0)
COMPUTED = replace(STILL, digest=oracle.digest(G) or 0)
GROWN = replace(HELD, generation=2, used=(256, 0), asked=((256,), ()))
REFUSED = replace(STILL, status=Status.REFUSED)
FLYING = replace(STILL, in_flight=1)


def said(obs: Observation) -> Observation:
    """The scheduler says what its allocator says, unless the example says otherwise."""
    if obs.sched_generation or obs.sched_shrink_generation:
        return obs
    return replace(obs, sched_generation=obs.generation, sched_shrink_generation=obs.shrink_generation)


def fresh(trace: Trace) -> Run:
    """A new scheduler takes 128 bytes of type 0, whatever the graph; without one nothing is reserved."""
    sched = trace.ops[0].flags & OpFlag.BY_SCHED
    return Run([StepSeen(EMPTY, {}), StepSeen(HELD if sched else REFUSED, {}), StepSeen(STILL, {})])


Steps = list[tuple[Op, Observation]]
START: Steps = [(NEW, EMPTY), (OWN, EMPTY), (RESERVE, HELD)]
RUNNING: Steps = [*START, (ALLOC, STILL), (ASYNC, FLYING)]


def books(steps: Steps, caps: Cap = CAPS) -> tuple[list[tuple[int, str]], Counter[str]]:
    """(step, clause) of what is broken, and how often each clause was exercised."""
    trace = Trace(SETUP, (G, BIG, THREE), tuple(op for op, _ in steps))
    kept, tally = Books(trace, caps, Fresh(fresh)), Counter[str]()
    found: list[tuple[int, str]] = []
    for i, (op, obs) in enumerate(steps):
        seen = StepSeen(said(obs), {})
        found += [(i, clause) for clause, _ in kept.step(op, seen)]
        tally += kept.tally(op, seen)
    return found, tally


KEPT: dict[str, Steps] = {
    "alloc and compute": [*START, (ALLOC, STILL), (COMPUTE, COMPUTED)],
    "buffers grow": [*START, (Op(Kind.RESERVE, graph=1), GROWN)],
    "work in flight, then a reserve that waits": [*RUNNING, (Op(Kind.RESERVE, graph=1), GROWN)],
    "work in flight, then a wait": [*RUNNING, (SYNC, COMPUTED), (RESET, STILL), (ALLOC, STILL)],
    "work in flight goes on after a reset": [*RUNNING, (RESET, FLYING), (SYNC, COMPUTED)],
    "computed without alloc": [*START, (COMPUTE, COMPUTED), (COMPUTE, COMPUTED)],
    "computed without alloc, and refused": [*START, (COMPUTE, REFUSED)],
    "made for two tensors, and larger": [(SMALL, replace(EMPTY, nodes=2)),
                                         (Op(Kind.RESERVE, graph=2), replace(HELD, nodes=3))],
    "made for two tensors, which is enough": [(SMALL, replace(EMPTY, nodes=2)), (RESERVE, replace(HELD, nodes=2))],
    "every allocation fails and it says so": [*START, (FAILS, replace(REFUSED, allocations=1, asked=((), ()),
                                                                       generation=2, used=(0, 0)))],
    "nothing had to be allocated": [*START, (FAILS, STILL)],
    "one device fails, it takes another": [*START, (SOME_FAIL, GROWN)],
    "a reset": [*START, (ALLOC, STILL), (RESET, STILL)],
    "measured what it takes": [*START, (Op(Kind.MEASURE), replace(STILL, measured=(128, 0)))],
    "a borrower reads the pair's counters": [(NEW, replace(EMPTY, generation=5)), (Op(Kind.BORROW, 0, 1), EMPTY)],
    "gone, and another": [*START, (Op(Kind.FREE), EMPTY), (NEW, EMPTY), (RESERVE, HELD)],
}  # fmt: skip


@pytest.mark.parametrize("what", KEPT)
def test_what_a_right_scheduler_shows(what: str) -> None:
    assert books(KEPT[what])[0] == []


BROKEN: dict[str, tuple[str, Steps]] = {
    "a reserve frees buffers that work uses": (
        "C1", [*RUNNING, (Op(Kind.RESERVE, graph=1), replace(GROWN, trouble=Trouble.FREED_BUSY))]),
    "an alloc frees buffers that work uses": (
        "C1", [*RUNNING, (Op(Kind.ALLOC, graph=1), replace(GROWN, trouble=Trouble.FREED_BUSY))]),
    "freeing it while it works": ("C1", [*RUNNING, (Op(Kind.FREE), replace(EMPTY, trouble=Trouble.FREED_BUSY))]),
    "a failed reserve is told as done": ("C2", [*START, (FAILS, GROWN)]),
    "a failed alloc is told as done": (
        "C2", [*START, (Op(Kind.ALLOC, graph=1, fail_types=0b11), replace(GROWN, asked=((), ())))]),
    "a wait that does not": ("C1", [*RUNNING, (SYNC, replace(COMPUTED, in_flight=1))]),
    "a refused compute that computes": ("C2", [*START, (COMPUTE, replace(REFUSED, digest=7))]),
    "the scheduler stays too small": (
        "C3", [(SMALL, replace(EMPTY, nodes=2)), (Op(Kind.RESERVE, graph=2), replace(HELD, nodes=2))]),
    "a larger graph is refused": (
        "C3", [(SMALL, replace(EMPTY, nodes=2)), (Op(Kind.ALLOC, graph=2), replace(REFUSED, nodes=3))]),
    "any number is some number now": ("C3", [*START, (ALLOC, replace(STILL, nodes=2))]),
    "computing without alloc is a misuse": ("C4", [*START, (COMPUTE, replace(STILL, status=Status.MISUSE))]),
    "computing without alloc is outdated": ("C4", [*START, (COMPUTE, replace(STILL, status=Status.STALE))]),
    "a reset frees": ("C4", [*RUNNING, (RESET, replace(FLYING, asked=((), ()), generation=2))]),
    "the scheduler says another generation": ("C5", [*START, (ALLOC, replace(STILL, sched_generation=3))]),
    "the generation goes down": ("C5", [*START, (ALLOC, replace(STILL, generation=0))]),
    "the shrink generation goes down": (
        "C5", [(NEW, EMPTY), (OWN, replace(EMPTY, shrink_generation=1)), (RESERVE, HELD)]),
    "buffers are replaced and the generation stays": (
        "C5", [*START, (Op(Kind.RESERVE, graph=1), replace(GROWN, generation=1))]),
    "buffers are lost and the generation stays": (
        "C5", [*START, (FAILS, replace(REFUSED, asked=((), ()), used=(0, 0), allocations=1))]),
    "a source is overwritten": (
        "P1", [*START, (ALLOC, STILL), (COMPUTE, replace(STILL, trouble=Trouble.BAD_SOURCE))]),
    "an output is overwritten": (
        "P5", [*START, (ALLOC, STILL), (COMPUTE, replace(STILL, trouble=Trouble.BAD_OUTPUT))]),
    "an output is another": ("P5", [*START, (ALLOC, STILL), (COMPUTE, replace(COMPUTED, digest=1))]),
    "a weight is overwritten": (
        "P14", [*START, (ALLOC, STILL), (COMPUTE, replace(COMPUTED, trouble=Trouble.BAD_PREALLOC))]),
    "a measure of another size": (
        "P12", [*START, (Op(Kind.MEASURE), replace(STILL, measured=(64, 0)))]),
    "bytes behind a buffer": (
        "P3", [*START, (ALLOC, STILL), (COMPUTE, replace(COMPUTED, trouble=Trouble.BAD_GUARD))]),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_what_a_wrong_scheduler_shows(what: str) -> None:
    clause, steps = BROKEN[what]
    assert books(steps)[0] == [(len(steps) - 1, clause)]


def test_each_clause_is_broken_by_two() -> None:
    counts = Counter(clause for clause, _ in BROKEN.values())
    assert all(counts[c] >= 2 for c in ("C1", "C2", "C3", "C4", "C5"))


def test_readings_count_only_where_there_are_some() -> None:
    steps: Steps = [*START, (Op(Kind.RESERVE, graph=1), replace(GROWN, generation=1))]
    assert books(steps, Cap.PLAN | Cap.SCHED)[0] == []
    assert not books(steps, Cap.PLAN | Cap.SCHED)[1]["C5"] and books(steps)[1]["C5"] == 2


def test_a_misuse_is_no_evidence() -> None:
    misuse = replace(GROWN, status=Status.MISUSE, generation=0, trouble=Trouble.FREED_BUSY)
    assert books([*START, (ALLOC, STILL), (COMPUTE, misuse)])[0] == []


def test_what_was_exercised() -> None:
    _, tally = books([*START, (FAILS, REFUSED), (ALLOC, STILL), (COMPUTE, COMPUTED)])
    assert tally == Counter({"C1": 1, "C2": 1, "C5": 1})


# -- through the checker ---------------------------------------------------------------------


def checked(steps: Steps, death: Death | None = None) -> Report:
    """The checker's report; `death`: the operation after the last step ended the subject."""
    ops = [op for op, _ in steps] + ([death.op] if death and death.op else [])
    trace = Trace(SETUP, (G, BIG, THREE), tuple(ops))
    run = Run([StepSeen(said(obs), {}) for _, obs in steps], None if death else 0, death)
    return Checker(trace, CAPS, Fresh(fresh)).check(run)


def died(op: Op, step: int) -> Death:
    return Death(step, op, "abort", "run", "SIGABRT", 0, "sched.c:7: assertion failed")


@pytest.mark.parametrize("what", BROKEN)
def test_the_checker_blames_it_too(what: str) -> None:
    clause, steps = BROKEN[what]
    failed = checked(steps).failed
    assert failed is not None and (failed.clause, failed.step) == (clause, len(steps) - 1)


@pytest.mark.parametrize(
    ("op", "clause"),
    [(FAILS, "C2"), (ALLOC, "C2"), (COMPUTE, "C2"), (SYNC, "C1"), (RESET, "C4"), (Op(Kind.MEASURE), "P12")],
)
def test_a_death_is_no_status(op: Op, clause: str) -> None:
    failed = checked(START, died(op, len(START))).failed
    assert failed is not None and (failed.clause, failed.step) == (clause, len(START))
    assert "assertion failed" in failed.message, failed
