"""The loop, with a pool that answers at once: what it hands out, when it ends, and that it does not grow."""

from __future__ import annotations

import random
import tracemalloc
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from gallocheck.fuzz.campaign import corpus, work
from gallocheck.fuzz.campaign.features import BEHAVIOURS, feature
from gallocheck.fuzz.campaign.run import Campaign, Plan
from gallocheck.fuzz.campaign.state import State
from gallocheck.fuzz.campaign.store import MOST_POINTS, Store
from gallocheck.fuzz.campaign.work import BatchResult, Failure, Job, Kept, ShrinkTask, Shrunk, Task
from gallocheck.fuzz.canary import path_of
from gallocheck.fuzz.catalogue import DEFECTS
from gallocheck.fuzz.hands import Ended
from gallocheck.fuzz.replay import ReplayError, load
from gallocheck.fuzz.verdict import Verdict
from gallocheck.model.records import Cap, Trace

TRACES = [load(path_of(d)).trace for d in DEFECTS[:4]]
WRONG = Verdict("broken", "R6", "bytes", 1, "RESERVE")


class Instant:
    """Does every job in no time. `fails`: the batches in which something fails."""

    def __init__(self, size: int = 2, fails: Sequence[int] = ()) -> None:
        self.size, self.fails = size, fails
        self.jobs: list[Job] = []
        self.tasks: list[Task] = []
        self.most_shrinks = 0

    def begin(self, job: Job) -> None:
        self.jobs.append(job)
        if isinstance(job, Task):
            self.tasks = [*self.tasks[-99:], job]
        assert len(self.jobs) <= self.size

    def ended(self, wait_s: float) -> list[Ended[Job, work.Done]]:
        self.most_shrinks = max(self.most_shrinks, sum(isinstance(j, ShrinkTask) for j in self.jobs))
        found = [Ended(job, self.done(job)) for job in self.jobs]
        self.jobs = []
        return found

    def done(self, job: Job) -> work.Done:
        if isinstance(job, ShrinkTask):
            return Shrunk(job.sample, job.failure.verdict, job.failure.trace, True)
        marks = {feature(BEHAVIOURS, str(job.number % 50))}
        result = BatchResult(job.number, 1000, 30, 0, Counter(R6=1))
        if not marks <= job.known:
            result.kept.append(Kept(TRACES[job.number % 4], frozenset(marks)))
        if job.number in self.fails:
            verdict = replace(WRONG, op=f"op{'abcdef'[job.number % 6]}")
            result.failures.append(Failure(0, verdict, TRACES[job.number % 4]))
            result.failed[verdict.signature] += 1
        return result

    def close(self) -> None:
        pass


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "corpus") as store:
        yield store


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return Plan("lib", 0, "a subject", "0", 7, tmp_path / "out", 1000.0)


def test_nothing_grows_with_the_batches(store: Store, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    """Days of it: neither memory nor, but for counts, the file."""
    monkeypatch.setattr("gallocheck.fuzz.campaign.run.POINT_S", 0.0)
    pool, sizes = Instant(fails=range(100_000)), []

    def look(state: State) -> None:
        sizes.append((tracemalloc.get_traced_memory()[0], (store.path).stat().st_size))

    for batches in (1500, 2000, 3500):
        tracemalloc.start()
        campaign = Campaign(store, pool, replace(plan, batches=batches))
        assert campaign.run()
        look(campaign.state())
        tracemalloc.stop()
    assert store.counts["operations"] == 3_500_000
    assert sizes[2][0] < sizes[1][0] + 100_000, "bytes, after 1500 more batches"
    assert store.count("select count(*) from batches") == 0
    assert store.count("select count(*) from points") <= MOST_POINTS
    assert store.count("select count(*) from samples") == 6 * 3 and corpus.size(store.db) == 50
    at = [p.at_s for p in store.points()]
    assert all(a < b for a, b in pairwise(at))


def test_missing_batches_are_handed_out_first(store: Store, plan: Plan) -> None:
    for number in (0, 1, 4):
        store.add_batch(BatchResult(number), 0)
    pool = Instant()
    assert Campaign(store, pool, replace(plan, batches=8)).run()
    assert [t.number for t in pool.tasks] == [2, 3, 5, 6, 7]


def test_at_most_half_of_the_workers_shrink_while_there_are_batches(store: Store, plan: Plan) -> None:
    pool = Instant(size=4, fails=range(50))
    stopped: list[int] = []

    def stop() -> bool:
        stopped.append(pool.most_shrinks)
        return len(stopped) > 6

    Campaign(store, pool, replace(plan, batches=1000)).run(stop=stop)
    assert pool.most_shrinks == 2
    Campaign(store, pool, replace(plan, batches=1)).run()
    assert store.waiting() == 0


def test_until_failure(store: Store, plan: Plan) -> None:
    pool = Instant(size=1, fails=(3, 9))
    assert Campaign(store, pool, replace(plan, until_failure=True)).run()
    assert [t.number for t in pool.tasks] == [0, 1, 2, 3] and len(store.findings()) == 1
    pool = Instant(size=1)
    assert Campaign(store, pool, replace(plan, until_failure=True)).run()
    assert pool.tasks == [], "it has failed already"


def test_time_counts_over_all_runs(store: Store, plan: Plan) -> None:
    store.spend(999.9)
    store.point(999.9)
    pool = Instant()
    campaign = Campaign(store, pool, plan)
    campaign.run()
    assert 1000 <= campaign.spent < 1010 and pool.tasks
    pool = Instant()
    assert Campaign(store, pool, plan).run() and pool.tasks == []


def test_stopped_batches_come_again(store: Store, plan: Plan) -> None:
    pool = Instant()
    calls: list[int] = []
    campaign = Campaign(store, pool, replace(plan, batches=10))
    campaign.hand_out()
    assert not campaign.run(stop=lambda: bool(calls.append(1) or True))
    assert store.counts.get("batches", 0) == 0
    pool = Instant()
    Campaign(store, pool, replace(plan, batches=10)).run()
    assert [t.number for t in pool.tasks] == list(range(10))


def test_batches_bring_kept_traces_where_somebody_mutates(
    store: Store, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mutate(rng: random.Random, kept: Sequence[Trace], caps: Cap) -> Trace:
        return kept[0]

    monkeypatch.setattr(work, "MUTATE", mutate)
    pool = Instant()
    Campaign(store, pool, replace(plan, batches=20)).run()
    assert pool.tasks[0].corpus == () and set(pool.tasks[-1].corpus) == set(TRACES)
    assert pool.tasks[-1].known > pool.tasks[5].known


def test_a_folder_that_goes_away_loses_nothing(store: Store, plan: Plan) -> None:
    """The replay files' folder becomes a file meanwhile: said at the end, and the findings are there still."""
    plan.out.write_text("a file")
    campaign = Campaign(store, Instant(fails=(1,)), replace(plan, batches=4))
    with pytest.raises(ReplayError, match=r"out cannot be made"):
        campaign.run()
    assert store.counts["batches"] == 4
    plan.out.unlink()
    assert Campaign(store, Instant(), replace(plan, batches=4)).run()
    assert len(list(plan.out.iterdir())) == len(store.findings()) == 1
