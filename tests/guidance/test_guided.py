"""Guidance works: the same number of operations reach more where kept traces are mutated."""

from __future__ import annotations

import random
import sqlite3

from gallocheck.fuzz.campaign import corpus, findings
from gallocheck.fuzz.campaign.display import coverage, line
from gallocheck.fuzz.campaign.features import BRANCHES, EDGES
from gallocheck.fuzz.campaign.state import State
from gallocheck.fuzz.campaign.work import Task, run_batch, share
from gallocheck.fuzz.checker import Report
from gallocheck.fuzz.judge import Judge
from gallocheck.fuzz.subjects import bundled
from gallocheck.model.records import Trace
from gallocheck.model.stack import Stack
from gallocheck.spec import branches

OPS, BATCH, PICKED = 3000, 500, 24


class Unjudged(Judge):
    """Subject and model run, the clauses are left out: ten times as fast, and they guide nothing."""

    def judge(self, trace: Trace, anew: bool = False) -> Report:
        run = self.run(trace, anew)
        stack = Stack(trace.setup, list(trace.graphs), chunks=4)
        for op in trace.ops:
            stack.step(op)
        return Report(statuses=[seen.obs.status for seen in run.steps])


def reached(judge: Judge, seed: int, guided: bool) -> dict[str, int]:
    """What a campaign's batches reach that draw traces of one kind: the features known after OPS operations."""
    db = sqlite3.connect(":memory:")
    db.executescript(corpus.SCHEMA)
    for number in range(OPS // BATCH):
        rng = random.Random(f"{seed}/{number}/corpus")
        picked = tuple(map(findings.decode, corpus.pick(db, rng, PICKED))) if guided else ()
        part = 0.5 + share(corpus.size(db)) / 2  # as after some thousand operations of all kinds
        task = Task("", seed, number, ops=BATCH, corpus=picked, mutated=part, known=frozenset(corpus.known(db)),
                    profiles=("plan",))  # fmt: skip
        result = run_batch(task, judge)
        corpus.admit(db, [(findings.encode(k.trace), len(k.trace.ops), k.features) for k in result.kept])
    return corpus.by_family(db)


def test_guided_reaches_more() -> None:
    """Of one kind of trace, that of a plain allocator: with all kinds the generators alone come close to all
    that there is, and guidance shows after 10^5 operations (docs/campaigns.md)."""
    with Unjudged(bundled("bundled", covered=True)) as judge:
        alone, guided = (reached(judge, 1, how) for how in (False, True))
    assert guided["edges"] >= alone["edges"] + 8, (alone, guided)
    assert guided["edges"] + guided["branches"] >= alone["edges"] + alone["branches"] + 8
    assert guided["branches"] >= alone["branches"] > 30


def test_traces_that_showed_much_are_picked_more_often() -> None:
    db = sqlite3.connect(":memory:")
    db.executescript(corpus.SCHEMA)
    corpus.admit(db, [(b"much", 10, range(400)), *((b"%d" % n, 10, [1000 + n]) for n in range(50))])
    picked = [corpus.pick(db, random.Random(k), 5) for k in range(60)]
    assert all(len(set(p)) == 5 for p in picked)
    assert sum(b"much" in p for p in picked) > 50
    assert len(corpus.pick(db, random.Random(1), 100)) == 51


def test_a_campaign_says_how_much_it_reached() -> None:
    """Edges whatever their counts, and branches of the model out of all that there are."""
    db = sqlite3.connect(":memory:")
    db.executescript(corpus.SCHEMA)
    marks = [EDGES << 32 | 8, EDGES << 32 | 9, EDGES << 32 | 16, BRANCHES << 32 | 5, 7]
    corpus.admit(db, [(b"trace", 1, marks)])
    state = State(1, 1, 1, 10, 10, 1, None, 1, corpus.by_family(db), {}, 0, 0, 0)
    assert coverage(state) == f"1 behaviours, 2 edges, 1 of {branches.total()} model branches"
    assert coverage(state) in line(state)
