"""A batch is a function of its task; what it gives back can be told apart and made small."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator, Sequence

import pytest
from gallocheck.fuzz.campaign import work
from gallocheck.fuzz.campaign.run import EVERY, FIRST_LANES, LANES, lanes_of
from gallocheck.fuzz.campaign.work import Bench, Failure, ShrinkTask, Task, run
from gallocheck.fuzz.found import shape, turn
from gallocheck.model.records import Cap, Trace
from gallocheck.native.header import SubjectError
from gallocheck.native.library import library_path

PLANTED = str(library_path("planted"))
OPS = 120


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with Bench() as bench:
        yield bench


def batch(number: int, defect: int = 1, **more: object) -> Task:
    return Task(PLANTED, seed=7, number=number, defect=defect, ops=OPS, **more)  # type: ignore[arg-type]


def test_the_same_whatever_ran_before(bench: Bench) -> None:
    """In a process that did other batches, and in one that did none; sent and brought back."""
    task = batch(3)
    bench.run(batch(1))
    bench.run(batch(2, defect=5))
    first = bench.run(task)
    again = run(pickle.loads(pickle.dumps(task)))
    assert first == pickle.loads(pickle.dumps(again))
    assert isinstance(first, work.BatchResult) and first.operations >= OPS and first.traces and first.tally


def test_batches_differ_by_seed_and_number(bench: Bench) -> None:
    traces = {
        work.trace_of(task, i, ("plan", "pair"), Cap(3)) for task in (batch(1), batch(2)) for i in range(5)
    }
    assert len(traces) == 10


def test_every_kind_has_its_turn() -> None:
    """Each once; then rounds in which each comes as often as it weighs, none all at once."""
    weighed = ("plan",) * 6 + ("pair",) * 3 + ("pools",) * 2 + ("server",)
    kinds = [turn("7/1", k, weighed) for k in range(4 + 2 * len(weighed))]
    assert set(kinds[:4]) == set(weighed)
    for begin in (4, 4 + len(weighed)):
        round_ = kinds[begin : begin + len(weighed)]
        assert sorted(round_) == sorted(weighed)
        assert "plan" in round_[:4] and "plan" in round_[-4:] and "pair" in round_[:6]
    assert kinds != [turn("7/2", k, weighed) for k in range(len(kinds))]


def test_lanes_begin_small_and_come_by_turns() -> None:
    run = [lanes_of(n) for n in range(40)]
    assert [n for n, lanes in enumerate(run) if lanes][:3] == [1, 1 + EVERY, 1 + 2 * EVERY]
    some = [lanes for lanes in run if lanes]
    assert some == sorted(some) and some[0] == FIRST_LANES and some[-1] == LANES
    assert {lanes_of(n, 0) for n in range(9)} == {0} and lanes_of(1, 5) == 5


def test_a_batch_may_be_ended_early(bench: Bench) -> None:
    """By who looks at what it found so far; until then it is the same batch."""
    whole = bench.run(batch(4))
    assert isinstance(whole, work.BatchResult) and whole.traces > 2
    seen: list[int] = []

    def over(result: work.BatchResult) -> bool:
        seen.append(result.traces)
        return result.traces == 2

    part = bench.run(batch(4), over)
    assert isinstance(part, work.BatchResult) and part.traces == 2 and seen == [1, 2]
    assert [f for f in whole.failures if f.index < 2] == part.failures


def test_a_batch_keeps_only_what_is_news(bench: Bench) -> None:
    first = bench.run(batch(0, defect=0))
    assert isinstance(first, work.BatchResult) and first.kept and not first.failed
    assert all(k.features for k in first.kept)
    shown = frozenset().union(*(k.features for k in first.kept))
    second = bench.run(batch(0, defect=0, known=shown))
    assert isinstance(second, work.BatchResult) and second.kept == []
    assert second.operations == first.operations and second.tally == first.tally


def test_failures_are_counted_and_sampled(bench: Bench) -> None:
    """Of each signature some traces come back, and they do fail so."""
    result = bench.run(Task(PLANTED, 7, 0, defect=1, ops=600))
    assert isinstance(result, work.BatchResult) and result.failures
    kept = [f.verdict.signature for f in result.failures]
    for signature, n in result.failed.items():
        assert kept.count(signature) == min(n, work.SAMPLES)
    failure = result.failures[0]
    small = bench.run(ShrinkTask(PLANTED, 1, 5, failure, seconds=2.0))
    assert isinstance(small, work.Shrunk) and small.sample == 5 and small.confirmed
    assert len(small.trace.ops) <= len(failure.trace.ops)
    assert small.verdict.signature == failure.verdict.signature
    assert shape(small.trace).startswith(small.trace.ops[0].kind.name.lower())


def test_what_fails_is_not_kept(bench: Bench) -> None:
    result = bench.run(batch(4))
    assert isinstance(result, work.BatchResult)
    assert not {k.trace for k in result.kept} & {f.trace for f in result.failures}


def test_kept_traces_are_mutated_where_somebody_can(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The seam for mutation: about half of the traces are made of the corpus that the task brings."""
    kept = (work.trace_of(batch(8), 0, ("plan",), Cap(3)), work.trace_of(batch(8), 1, ("plan",), Cap(3)))
    made = []

    def mutate(rng: random.Random, corpus: Sequence[Trace], caps: Cap) -> Trace:
        made.append(rng.random())
        return corpus[rng.randrange(len(corpus))]

    monkeypatch.setattr(work, "MUTATE", mutate)
    first = bench.run(batch(9, defect=0, corpus=kept))
    before = list(made)
    assert isinstance(first, work.BatchResult) and 0 < len(made) < first.traces
    assert bench.run(batch(9, defect=0, corpus=kept)) == first and made == 2 * before
    assert bench.run(batch(9, defect=0)) != first and len(made) == 2 * len(before)


def test_a_batch_of_a_subject_that_hangs_ends(bench: Bench) -> None:
    result = bench.run(Task(PLANTED, 7, 0, ops=10**9, limit_s=0.5))
    assert isinstance(result, work.BatchResult) and 0 < result.operations < 10**6


def test_a_library_that_cannot_be_used() -> None:
    with pytest.raises(SubjectError, match=r"gone\.so"):
        run(Task("gone.so", 1, 0))


def test_shapes() -> None:
    """They leave numbers out, and tell operations, tensors and devices."""
    a, b = (work.trace_of(batch(n), 0, ("pair",), Cap(3)) for n in (1, 2))
    assert shape(a) != shape(b) and shape(a) == shape(pickle.loads(pickle.dumps(a)))
    assert Failure(0, None, a) != Failure(0, None, b)  # type: ignore[arg-type]
