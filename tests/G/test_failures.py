"""G2: what a failed reservation leaves behind. Either role may fail, and either may come next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from gallocheck.fuzz.fresh import huge
from gallocheck.fuzz.strategies import traces
from gallocheck.model import oracle
from gallocheck.model.records import UNLIMITED, BufferType, Kind, Op, Setup, Status, Trace
from gallocheck.native.worker import LocalRunner, Run
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.shorthand import bundled, graph, judged, out
from tests.shorthand import given as written

SOME = settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
SMALL, LARGE = graph(written(64), out(64, 0)), graph(written(8000), out(8000, 0, slot=1))
ROOM = 4096  #: bytes of each device: the large graph does not fit
TWO = (BufferType(capacity=ROOM), BufferType(capacity=ROOM))
LARGER = tuple(Op(Kind.CAPACITY, other=t, value=1 << 20) for t in (0, 1))
DONE, REFUSED = Status.DONE, Status.REFUSED


@pytest.fixture(scope="module")
def runner() -> Iterator[LocalRunner]:
    with bundled() as one:
        yield one


def run(runner: LocalRunner, trace: Trace) -> Run:
    seen, report = runner.run(trace), judged(runner, trace)
    assert report.failed is None, report.failed
    return seen


def statuses(seen: Run) -> list[Status]:
    return [s.obs.status for s in seen.steps]


@pytest.mark.parametrize("slots", [(0,), (0, 1)])
def test_an_alloc_after_a_failure_is_refused_or_reserves_anew(
    runner: LocalRunner, slots: tuple[int, ...]
) -> None:
    setup = Setup(TWO, (slots,))
    fail, alloc, compute = Op(Kind.RESERVE, graph=1), Op(Kind.ALLOC), Op(Kind.COMPUTE)
    seen = run(runner, Trace(setup, (SMALL, LARGE), (Op(Kind.NEW), fail, alloc, compute)))
    if len(slots) == 1:  # one type: it may make a new reservation
        assert statuses(seen) == [DONE, REFUSED, DONE, DONE]
        assert seen.steps[2].obs.allocations and seen.steps[3].obs.digest == oracle.digest(SMALL)
    else:
        assert statuses(seen) == [DONE, REFUSED, REFUSED, Status.MISUSE]


@pytest.mark.parametrize("again", [Kind.RESERVE, Kind.ALLOC])
def test_a_retry_succeeds_when_memory_has_come_back(runner: LocalRunner, again: Kind) -> None:
    large = Op(Kind.RESERVE, graph=1)
    ops = (Op(Kind.NEW), large, large, *LARGER, Op(again, graph=1), Op(Kind.ALLOC, graph=1), Op(Kind.COMPUTE))
    seen = run(runner, Trace(Setup(TWO, ((0,),)), (SMALL, LARGE), ops))
    assert statuses(seen)[1:3] == [REFUSED, REFUSED] and statuses(seen)[3:] == [DONE] * 5


def test_a_bound_graph_is_not_left_on_memory_that_is_gone(runner: LocalRunner) -> None:
    """The failed reservation freed the old buffers first (R4): the bound graph is outdated."""
    ops = (
        Op(Kind.NEW),
        Op(Kind.ALLOC),
        Op(Kind.RESERVE, graph=1),
        Op(Kind.COMPUTE),
        Op(Kind.ALLOC),
        Op(Kind.COMPUTE),
    )
    seen = run(runner, Trace(Setup(TWO, ((0,),)), (SMALL, LARGE), ops))
    assert statuses(seen)[1:] == [DONE, REFUSED, Status.STALE, DONE, DONE]
    assert seen.steps[2].obs.used == (0, 0) and not any(seen.steps[2].obs.reported)


PAIR = (Op(Kind.NEW), Op(Kind.OWN), Op(Kind.NEW, 1), Op(Kind.BORROW, 1, 0))


@pytest.mark.parametrize("failing", [0, 1])
@pytest.mark.parametrize("next_", [0, 1])
def test_either_role_after_the_other_failed(runner: LocalRunner, failing: int, next_: int) -> None:
    """Nothing aborts, nothing binds to memory that is gone, and with memory back both work (R10)."""
    ops = (
        *PAIR, Op(Kind.RESERVE, 0), Op(Kind.ALLOC, 0), Op(Kind.RESERVE, 1), Op(Kind.ALLOC, 1),
        Op(Kind.RESERVE, failing, graph=1),
        Op(Kind.ALLOC, next_, graph=0), Op(Kind.COMPUTE, next_), Op(Kind.RESERVE, 1 - failing),
        *LARGER, Op(Kind.RESERVE, next_, graph=0), Op(Kind.ALLOC, next_, graph=0), Op(Kind.COMPUTE, next_),
        Op(Kind.RESERVE, 1 - next_), Op(Kind.ALLOC, 1 - next_), Op(Kind.COMPUTE, 1 - next_),
    )  # fmt: skip
    seen = run(runner, Trace(Setup(TWO, ((0, 1),)), (SMALL, LARGE), ops))
    assert statuses(seen)[8] == REFUSED and statuses(seen)[11] == REFUSED  # the requirement stays
    assert statuses(seen)[14:] == [DONE] * 6
    assert seen.steps[-1].obs.digest == oracle.digest(SMALL)


@SOME
@given(trace=st.one_of(traces("gallocr"), traces("pair")), pick=st.integers(0, 9), nth=st.integers(0, 4))
def test_failures_anywhere_then_a_retry(runner: LocalRunner, trace: Trace, pick: int, nth: int) -> None:
    """After any history: a reserve with failures, an alloc, and a retry that must succeed."""
    assume(not any(map(huge, trace.graphs)))
    seen = runner.run(trace)
    number = next((a for a in sorted(range(3), key=lambda a: (a + pick) % 3) if lives(trace, seen, a)), None)
    assume(number is not None and trace.graphs)
    every = (1 << len(trace.setup.types)) - 1
    free = tuple(Op(Kind.CAPACITY, other=t, value=UNLIMITED) for t in range(len(trace.setup.types)))
    at = pick % len(trace.graphs)
    failing = Op(Kind.RESERVE, number, graph=at, fail_types=0 if nth else every, fail_nth=nth)  # type: ignore[arg-type]
    kinds = (Kind.ALLOC, Kind.COMPUTE, Kind.RESERVE, Kind.ALLOC, Kind.COMPUTE)
    tail = tuple(Op(kind, failing.alloc, graph=at) for kind in kinds)
    long = replace(trace, ops=(*trace.ops, *free, failing, *tail))
    after = run(runner, long)
    assert after.leaked == 0
    assert statuses(after)[-3:] == [DONE] * 3
    assert not after.steps[-1].obs.trouble


def lives(trace: Trace, seen: Run, number: int) -> bool:
    state = False
    for op, step in zip(trace.ops, seen.steps, strict=True):
        if op.alloc == number and step.obs.status == DONE and op.kind in (Kind.NEW, Kind.FREE):
            state = op.kind == Kind.NEW
    return state
