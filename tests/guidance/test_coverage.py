"""Edges of the subject's code and branches of the model: counted, reset, and the same every time."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest
from gallocheck.fuzz.campaign.features import BRANCHES, EDGES, family_of
from gallocheck.fuzz.coverage import Reached, edge_features
from gallocheck.fuzz.found import draw, profiles_for
from gallocheck.fuzz.judge import Judge
from gallocheck.fuzz.subjects import bundled, resolve
from gallocheck.model.domain import Ints
from gallocheck.model.records import BufferType, Flag, Graph, Kind, Op, Setup, Tensor, Trace
from gallocheck.model.stack import Stack
from gallocheck.native.binding import Library
from gallocheck.native.worker import Worker
from gallocheck.spec import branches
from gallocheck.spec.branches import Covered

SHORT = Trace(Setup((BufferType(),), ((0,),)), (), (Op(Kind.NEW), Op(Kind.FREE)))
GRAPH = Graph((Tensor(64, flags=Flag.LEAF | Flag.INPUT), Tensor(64, (0,), flags=Flag.OUTPUT)))
LONG = Trace(SHORT.setup, (GRAPH,), tuple(map(Op, (Kind.NEW, Kind.RESERVE, Kind.ALLOC, Kind.COMPUTE))))


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(bundled("bundled", covered=True)) as worker:
        yield worker


def edges_of(worker: Worker, trace: Trace) -> np.ndarray:
    worker.run(trace)
    return worker.take_edges()


def test_a_run_takes_the_same_edges_each_time(worker: Worker) -> None:
    """Whatever ran before it, also in another process; and the counters begin at 0."""
    worker.take_edges()
    first = edges_of(worker, LONG)
    short = edges_of(worker, SHORT)
    assert np.array_equal(edges_of(worker, LONG), first)
    worker.run(LONG, fresh=True)
    assert np.array_equal(worker.take_edges(), first)
    assert 0 < np.count_nonzero(short) < np.count_nonzero(first)
    assert not worker.take_edges().any(), "nothing ran since"


def test_what_ran_together_is_taken_together(worker: Worker) -> None:
    both = np.maximum(edges_of(worker, LONG), edges_of(worker, SHORT))
    worker.run(SHORT)
    worker.run(LONG)
    assert np.array_equal(worker.take_edges(), both)


def test_a_full_counter_stays_full(worker: Worker) -> None:
    many = Trace(SHORT.setup, (), SHORT.ops * 300)
    assert edges_of(worker, many).max() == 255


def test_a_run_that_died_is_left_out() -> None:
    """Its counters were not copied: what lies there is of the run before."""
    with Worker(bundled("planted", covered=True)) as worker:
        worker.take_edges()
        assert edges_of(worker, LONG).any()
        landed = worker._landed
        worker._landed = lambda flight: landed(flight) or _dead(worker)  # type: ignore[method-assign,assignment]
        worker.run(LONG)
        assert not worker.take_edges().any()


def _dead(worker: Worker) -> object:
    from gallocheck.native.packet import Death

    worker._drop()
    return Death(0, None, "abort", "", "SIGABRT")


def test_a_subject_without_counters_is_checked_all_the_same() -> None:
    with Judge(bundled("bundled")) as judge, Reached() as reached:
        assert judge.worker.edges == 0 and not len(judge.worker.take_edges())
        assert not judge.judge(LONG).verdicts
        assert {family_of(f) for f in reached.take(judge)} == {"branches"}


def test_both_builds_do_the_same() -> None:
    """Counting changes nothing: capabilities, defects, observations."""
    for name in ("bundled", "planted"):
        plain, counting = Library(bundled(name)), Library(bundled(name, covered=True))
        assert plain.path != counting.path
        assert (plain.capabilities, plain.describe) == (counting.capabilities, counting.describe)
        assert bool(counting.lib.gc_plant(1)) == (name == "planted")
        counting.lib.gc_plant(0)
    assert resolve("bundled", None, print, covered=True).library.endswith("_covered.so")


def test_edges_count_roughly() -> None:
    """As AFL does: 1, 2, 3, 4 to 7, 8 to 15, 16 to 31, 32 to 127, more."""
    counters = np.array([0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 127, 128, 255], np.uint8)
    found = edge_features(counters)
    assert [f & 7 for f in found] == [0, 1, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7]
    assert [(f & 0xFFFFFFFF) >> 3 for f in found] == list(range(1, 14))
    assert {f >> 32 for f in found} == {EDGES}


def test_branches_of_the_model() -> None:
    """They are noted while it is open, each arm of each call once; after that Ints is as it was."""
    plain = Ints.__dict__["ite"]
    with Covered() as covered:
        run_model(SHORT)
        few = covered.take()
        run_model(LONG)
        more = covered.take()
        assert few and few < more | few and len(more) > len(few) and not covered.take()
        run_model(LONG)
        assert covered.take() == more
    assert Ints.__dict__["ite"] is plain
    run_model(LONG)
    assert not covered.take()


def run_model(trace: Trace) -> None:
    stack = Stack(trace.setup, list(trace.graphs), chunks=1)
    for op in trace.ops:
        stack.step(op)


def test_every_branch_that_is_taken_is_one_of_those_counted() -> None:
    """So that `a of b` means something; most of them are taken by a few traces of each kind."""
    with Judge(bundled("bundled")) as judge, Covered() as covered:
        rng = random.Random(3)
        taken: set[int] = set()
        for _ in range(40):
            trace = draw(rng, profiles_for(judge.caps), judge.caps)
            run_model(Trace(trace.setup, trace.graphs, trace.ops))
            taken |= covered.take()
        places = {branches.site(covered.codes[code], at) for code, at, _ in covered.known}
    counted = branches.sites()
    assert places - {None} <= set(counted)
    assert 0.4 * branches.total() < len(taken) <= branches.total()
    assert {BRANCHES << 32 | n for n in taken} and all(0 <= n < 1 << 32 for n in taken)


def test_calls_from_elsewhere_are_no_branches() -> None:
    """Calls from outside the model are none of its branches."""
    with Covered() as covered:
        assert Ints.ite(True, 1, 2) == 1 and Ints.choose(False, lambda: 1, lambda: 2) == 2
        assert Ints.switch(3, {3: lambda: "three"}, lambda: "other") == "three"
        assert Ints.switch(4, {3: lambda: "three"}, lambda: "other") == "other"
        assert covered.take() == set()
