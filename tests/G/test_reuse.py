"""Reused against fresh: after any history, an allocator does with a graph what a new one does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from gallocheck.fuzz.fresh import boundless, huge, see
from gallocheck.fuzz.strategies import traces
from gallocheck.model import oracle
from gallocheck.model.planner import plan
from gallocheck.model.records import UNLIMITED, Graph, Kind, Op, Setup, Status, Trace
from gallocheck.native.worker import LocalRunner, StepSeen
from gallocheck.spec.placement import judge_bound
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.shorthand import bundled, graph, judged, node, out, plain
from tests.shorthand import given as written

SOME = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
NEW, RESERVE, ALLOC, COMPUTE = Op(Kind.NEW), Op(Kind.RESERVE), Op(Kind.ALLOC), Op(Kind.COMPUTE)


@pytest.fixture(scope="module")
def runner() -> Iterator[LocalRunner]:
    with bundled() as one:
        yield one


def steps(runner: LocalRunner, trace: Trace) -> list[StepSeen]:
    """What is seen of each operation; the contract holds, and every byte comes back."""
    run = runner.run(trace)
    assert run.leaked == 0, "G5"
    return run.steps


def alive(trace: Trace, seen: list[StepSeen]) -> dict[int, int]:
    """Allocators that live after the trace, and their configs."""
    living: dict[int, int] = {}
    for op, step in zip(trace.ops, seen, strict=True):
        if step.obs.status == Status.DONE and op.kind == Kind.NEW:
            living[op.alloc] = op.other
        elif step.obs.status == Status.DONE and op.kind == Kind.FREE:
            del living[op.alloc]
    return living


def freed(setup: Setup) -> tuple[Op, ...]:
    """Operations after which no device runs out of memory."""
    return tuple(Op(Kind.CAPACITY, other=t, value=UNLIMITED) for t in range(len(setup.types)))


@SOME
@given(trace=st.one_of(traces("gallocr"), traces("pair")), pick=st.integers(0, 9))
def test_what_is_reserved_after_a_history_is_what_a_new_allocator_reserves(
    runner: LocalRunner, trace: Trace, pick: int
) -> None:
    living = alive(trace, steps(runner, trace))
    assume(living and not any(map(huge, trace.graphs)))
    number = sorted(living)[pick % len(living)]
    at = pick % len(trace.graphs)
    g, config = trace.graphs[at], living[number]
    last = tuple(Op(kind, number, graph=at) for kind in (Kind.RESERVE, Kind.ALLOC, Kind.COMPUTE))
    reused = steps(runner, replace(trace, ops=(*trace.ops, *freed(trace.setup), *last)))[-3:]
    alone = Trace(boundless(replace(trace.setup, configs=(trace.setup.configs[config],))), (g,))
    new = steps(runner, replace(alone, ops=(NEW, RESERVE, ALLOC, COMPUTE)))[1:]
    assert [s.obs.status for s in reused] == [s.obs.status for s in new] == [Status.DONE] * 3
    assert reused[1].places == new[1].places
    assert reused[2].obs.digest == new[2].obs.digest and not reused[2].obs.trouble
    places = reused[1].places
    assert places is not None
    assert judge_bound(see(trace.setup, config, g, places, reused[1].obs.asked)) == []


@SOME
@given(trace=traces("gallocr"), pick=st.integers(0, 9))
def test_what_alloc_binds_after_a_history_is_right(runner: LocalRunner, trace: Trace, pick: int) -> None:
    """Without a reserve of its own: refused, or bound to places that are right for this very graph."""
    living = alive(trace, steps(runner, trace))
    assume(living and not any(map(huge, trace.graphs)))
    number = sorted(living)[pick % len(living)]
    at = pick % len(trace.graphs)
    g, config = trace.graphs[at], living[number]
    ops = (Op(Kind.ALLOC, number, graph=at), Op(Kind.COMPUTE, number, graph=at))
    bound, computed = steps(runner, replace(trace, ops=(*trace.ops, *freed(trace.setup), *ops)))[-2:]
    several = len(set(trace.setup.configs[config])) > 1
    assert bound.obs.status == Status.DONE or (several and bound.obs.status == Status.REFUSED)
    if bound.obs.status == Status.DONE:
        assert bound.places is not None
        assert judge_bound(see(trace.setup, config, g, bound.places, bound.obs.asked)) == []
        assert computed.obs.status == Status.DONE and not computed.obs.trouble
        assert oracle.digest(g) in (None, computed.obs.digest)


A, B = graph(written(64), out(64, 0)), graph(written(256), node(256, 0), out(256, 1))


def test_a_reservation_that_fits_changes_nothing(runner: LocalRunner) -> None:
    """G1: the same again, and a smaller one."""
    big, again, small = Op(Kind.RESERVE, graph=1), Op(Kind.RESERVE, graph=1), RESERVE
    trace = plain(NEW, big, Op(Kind.ALLOC, graph=1), again, small, COMPUTE, graphs=(A, B))
    seen = steps(runner, trace)
    for step in seen[3:5]:
        assert step.obs.status == Status.DONE and step.obs.allocations == 0
        assert (step.obs.asked, step.obs.generation, step.obs.used) == (
            seen[1].obs.asked, seen[1].obs.generation, seen[1].obs.used)  # fmt: skip
    assert seen[5].obs.status == Status.DONE and seen[5].obs.digest == oracle.digest(B)
    assert judged(runner, trace).failed is None


def test_a_reservation_that_does_not_fit_replaces_the_buffers_of_that_type_only(runner: LocalRunner) -> None:
    """G1: the other type's buffers stay."""
    one = graph(written(64), out(64, 0, slot=1))
    two = graph(written(64), out(100, 0, slot=1))
    kinds = (plain(graphs=()).setup.types[0],) * 2
    seen = steps(runner, plain(NEW, RESERVE, Op(Kind.RESERVE, graph=1), graphs=(one, two), types=kinds))
    assert [s.obs.asked for s in seen[1:]] == [((64,), (64,)), ((64,), (100,))]
    assert [s.obs.allocations for s in seen[1:]] == [2, 1]
    assert seen[2].obs.generation == seen[1].obs.generation + 1


@SOME
@given(trace=st.one_of(traces("gallocr"), traces("pair")))
def test_freeing_returns_every_byte(runner: LocalRunner, trace: Trace) -> None:
    """G5, whoever goes last."""
    living = alive(trace, steps(runner, trace))
    for order in (sorted(living), sorted(living, reverse=True)):
        gone = tuple(Op(Kind.FREE, number) for number in order)
        seen = steps(runner, replace(trace, ops=(*trace.ops, *gone)))
        if gone:
            assert not any(seen[-1].obs.used)


@SOME
@given(trace=traces("plan"))
def test_the_same_graph_is_planned_alike_by_every_allocator(runner: LocalRunner, trace: Trace) -> None:
    """P9 in one process: a second allocator, and the first one after it."""
    g: Graph = trace.graphs[0]
    ops = tuple(Op(kind, a) for a in (0, 1) for kind in (Kind.NEW, Kind.RESERVE, Kind.ALLOC))
    setup = boundless(trace.setup)
    seen = steps(runner, Trace(setup, (g,), (*ops, RESERVE, ALLOC)))
    made = plan(setup.types, setup.configs[0], g)
    assert made is not None
    assert seen[2].places == seen[5].places == seen[7].places
    assert seen[2].obs.asked == seen[5].obs.asked == seen[7].obs.asked
    for asked, need in zip(seen[2].obs.asked, made.need, strict=True):
        assert (*asked, *(0 for _ in need[len(asked) :])) == need  # trailing zeros are not shown
