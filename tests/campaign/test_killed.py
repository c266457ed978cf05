"""kill -9 of any process at any moment: the same campaign goes on, nothing is lost and nothing counts twice."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from pathlib import Path

import pytest
from gallocheck.fuzz.campaign import corpus
from gallocheck.fuzz.campaign.findings import decode
from gallocheck.fuzz.campaign.local import Local
from gallocheck.fuzz.campaign.run import Campaign
from gallocheck.fuzz.campaign.store import Store
from gallocheck.fuzz.campaign.work import Bench, Task
from gallocheck.fuzz.found import shape
from gallocheck.fuzz.judge import Judge
from gallocheck.fuzz.replay import load
from gallocheck.native.header import SubjectError

from tests.cli.test_stopping import gone

from .processes import LIBRARY, Work, below, come, end

DEFECT = 1
KILLS = 20
LANES = 32  #: of every third batch


def known_of(store: Store) -> dict[str, object]:
    """Everything in a store that follows from the batches alone, whoever did them and in which order."""
    counts = {n: store.counts[n] for n in ("operations", "traces", "misuse", "batches", "below")}
    signatures = sorted(store.rows("select signature, clause, known, n from signatures"))
    return {
        "counts": counts,
        "tally": store.tally,
        "signatures": signatures,
        "features": corpus.known(store.db),
        "clauses": set(store.by_clause()),
    }


def accounts(work: Work) -> dict[str, object]:
    """What is known in the end, after a look at the findings: each once, small, saved, and it does fail."""
    with Store(work.at / "corpus") as store, Judge(LIBRARY, work.defect) as judge:
        campaign = Campaign(store, Local(1), work.plan)
        findings = store.findings()
        assert store.waiting() == 0 and findings
        keys = [(f.verdict.clause or f.verdict.sort, shape(f.trace)) for f in findings]
        assert len(set(keys)) == len(keys)
        assert sorted(p.name for p in work.plan.out.iterdir()) == sorted(
            campaign.path(f).name for f in findings
        )
        for finding in findings:
            saved = load(campaign.path(finding))
            assert saved.trace == finding.trace and saved.clause == finding.verdict.clause
            failed = judge.judge(saved.trace, anew=True).failed
            assert failed is not None and failed.signature == finding.verdict.signature
        for (raw,) in store.rows("select trace from corpus"):
            decode(raw)
        return known_of(store)


def test_a_campaign_killed_20_times_accounts_for_every_finding(tmp_path: Path) -> None:
    """Its parent is killed each time, while it starts or after some batches; every other time one of the
    processes below it is killed before."""
    rng = random.Random(20)
    killed, calm = (Work(tmp_path / how, 45, DEFECT, ops=50, lanes=LANES) for how in ("killed", "calm"))
    left: set[int] = set()
    for kill in range(KILLS):
        before, more = come(killed.at), rng.choice((0, 0, 1, 2, 3))
        process = replace(killed, jobs=rng.choice((1, 1, 2))).start()
        until = time.monotonic() + 30
        while come(killed.at) < before + more and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 0.3))
        if kill % 2 and below(process):
            end({rng.choice(sorted(below(process)))})
            time.sleep(rng.uniform(0.0, 0.1))
        left |= below(process)
        assert process.is_alive(), "it had come to its end: give it more batches"
        process.kill()
        process.join()
    assert gone(left), "they die with the campaign"
    assert 0 < come(killed.at) < killed.batches
    killed.run()
    calm.run()
    assert accounts(killed) == accounts(calm)


def test_a_killed_worker_is_replaced_and_its_batch_is_done_again() -> None:
    task = Task(LIBRARY, 3, 4, DEFECT, ops=400)
    with Bench() as bench:
        want = bench.run(task)
    with Local(1) as pool:
        pool.begin(task)
        for wait_s in (0.8, 0.2):  # once at work, once while it starts
            time.sleep(wait_s)
            (hand,) = pool.hands
            end({hand.process.pid})
            assert list(pool.ended(5.0)) == [] and pool.hands[0].process.pid != hand.process.pid
        (ended,) = pool.ended(60.0)
        assert ended.job == task and ended.done == want
        workers = {h.process.pid for h in pool.hands}
    assert gone(workers)


def test_a_batch_that_kills_every_worker_is_left_out(tmp_path: Path) -> None:
    """The campaign goes on without it, and says so."""
    work = Work(tmp_path, 3, 0, jobs=1)
    with Store(tmp_path / "corpus") as store, Local(1) as pool:
        campaign = Campaign(store, pool, work.plan)
        campaign.came = True
        campaign.hand_out()
        while not (ended := pool.ended(0.05)):
            end({h.process.pid for h in pool.hands})
        campaign.take(ended[0])
        assert ended[0].done is None and "killed" in ended[0].why
        assert campaign.run()
        assert campaign.state().skipped == 1 and campaign.state().batches == 2


def test_where_no_job_can_be_done_the_campaign_says_why(tmp_path: Path) -> None:
    work = Work(tmp_path, 3, 9999, jobs=1)
    with (
        Store(tmp_path / "corpus") as store,
        Local(1) as pool,
        pytest.raises(SubjectError, match=r"No worker can do any job.*9999"),
    ):
        Campaign(store, pool, work.plan).run()


def test_a_worker_that_hangs_is_taken_for_dead() -> None:
    task = Task(LIBRARY, 3, 4, 0, ops=100)
    with Local(1) as pool:
        pool.begin(task)
        pool.hands[0].until = 0.0
        before = pool.hands[0].process.pid
        assert list(pool.ended(0.0)) == [] and pool.hands[0].process.pid != before
        (ended,) = pool.ended(60.0)
        assert ended.done is not None


def test_replay_files_that_are_gone_are_written_again(tmp_path: Path) -> None:
    work = Work(tmp_path, 2, DEFECT, ops=400)
    work.run()
    files = {p.name: p.read_bytes() for p in work.plan.out.iterdir()}
    assert files
    name = min(files)
    (work.plan.out / name).unlink()
    (work.plan.out / f".{name}.half").write_text("{")
    work.run()
    assert {p.name: p.read_bytes() for p in work.plan.out.iterdir()} == files
