"""The store: each result once, whole or not at all; one user at a time; every wrong file one sentence."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from gallocheck.fuzz.campaign import corpus, findings, store
from gallocheck.fuzz.campaign.errors import CampaignError
from gallocheck.fuzz.campaign.features import BEHAVIOURS, EDGES, feature
from gallocheck.fuzz.campaign.store import NAME, Store
from gallocheck.fuzz.campaign.work import BatchResult, Failure, Kept, Shrunk
from gallocheck.fuzz.canary import path_of
from gallocheck.fuzz.catalogue import DEFECTS
from gallocheck.fuzz.found import shape
from gallocheck.fuzz.replay import load
from gallocheck.fuzz.verdict import Verdict
from gallocheck.model.records import Trace

#: of different shapes
TRACES = list({shape(t): t for t in (load(path_of(d)).trace for d in DEFECTS[:20])}.values())
WRONG = Verdict("broken", "R6", "12 bytes", 1, "RESERVE", "a", "b")


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "c") as kept:
        yield kept


def result(number: int, *verdicts: Verdict, traces: list[Trace] | None = None) -> BatchResult:
    found = [Failure(i, v, (traces or TRACES)[i]) for i, v in enumerate(verdicts)]
    return BatchResult(number, 10, 3, 1, Counter(R6=2), Counter(v.signature for v in verdicts), found)


def dump(kept: Store) -> list[str]:
    return list(kept.db.iterdump())


def test_a_batch_counts_once(kept: Store) -> None:
    assert kept.add_batch(result(0, WRONG), 1.5)
    before = dump(kept)
    assert not kept.add_batch(result(0, WRONG, WRONG), 9.0)
    assert dump(kept) == before
    assert kept.counts["operations"] == 10 and kept.tally == {"R6": 2} and kept.counts["spent_ms"] == 1500


def test_a_batch_is_in_whole_or_not_at_all(kept: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    before = dump(kept)
    monkeypatch.setattr(corpus, "admit", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        kept.add_batch(result(0, WRONG), 1.0)
    assert dump(kept) == before


def test_missing_batches_come_first(kept: Store) -> None:
    for number in (0, 1, 3, 6):
        kept.add_batch(result(number), 0)
    assert list(islice(kept.missing(), 5)) == [2, 4, 5, 7, 8]
    assert kept.rows("select number from batches order by 1") == [(3,), (6,)], "no row a batch for ever"
    kept.add_batch(result(2), 0)
    assert kept.counts["below"] == 4 and not kept.add_batch(result(3), 0)
    kept.skip_batch(4, 0)
    assert list(islice(kept.missing(), 2)) == [5, 7] and kept.counts["skipped"] == 1


def test_findings_are_told_apart_by_clause_and_shape(kept: Store) -> None:
    """Two signatures that shrink to the same are one finding; one that shrinks to two things is two."""
    other = replace(WRONG, op="ALLOC")
    kept.add_batch(result(0, WRONG, other, WRONG), 0)
    kept.add_batch(result(1, *[WRONG] * 4, traces=TRACES[2:]), 0)
    waiting = kept.to_shrink(10)
    assert [s.verdict.op for s in waiting] == ["RESERVE", "ALLOC", "RESERVE", "RESERVE"], (
        "three of a signature"
    )
    assert [s.id for s in kept.to_shrink(9, only_first=True)] == [waiting[0].id, waiting[1].id]
    assert len(kept.findings()) == 2, "what waits to be made small is shown once a signature"
    for sample, small in zip(waiting, (TRACES[0], TRACES[0], TRACES[0], TRACES[1]), strict=True):
        assert kept.add_small(Shrunk(sample.id, sample.verdict, small, True))
    found = kept.findings()
    assert [(f.id, f.met, f.confirmed) for f in found] == [(waiting[0].id, 6, True), (waiting[3].id, 6, True)]
    assert [f.trace for f in found] == [TRACES[0], TRACES[1]]
    before = dump(kept)
    assert not kept.add_small(Shrunk(waiting[0].id, WRONG, TRACES[2], False)) and dump(kept) == before
    assert kept.by_clause() == {"R6": 2} and kept.waiting() == 0 and kept.is_new()


def test_the_same_shape_of_another_clause_is_another_finding(kept: Store) -> None:
    kept.add_batch(result(0, WRONG, replace(WRONG, clause="R7")), 0)
    for sample in kept.to_shrink(9):
        kept.add_small(Shrunk(sample.id, sample.verdict, TRACES[0], True))
    assert [f.verdict.clause for f in kept.findings()] == ["R6", "R7"]


def test_expected_failures_are_counted_and_no_more(kept: Store) -> None:
    kept.add_batch(result(0, WRONG, WRONG), 0, known=lambda signature: "F1" if "R6" in signature else "")
    assert kept.expected() == {"F1": 2} and kept.findings() == [] and not kept.is_new()


def test_many_signatures_are_bounded(kept: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "MOST_SAMPLES", 2)
    kept.add_batch(result(0, *(replace(WRONG, op=name) for name in "abcd")), 0)
    assert len(kept.to_shrink(9)) == 2
    assert kept.count("select sum(n) from signatures") == 4


# -- the corpus --------------------------------------------------------------------------


def keep(trace: Trace, *numbers: int) -> Kept:
    return Kept(trace, frozenset(feature(BEHAVIOURS, str(n)) for n in numbers))


def test_a_trace_is_kept_for_what_is_news(kept: Store) -> None:
    first, second = result(0), result(1)
    first.kept = [keep(TRACES[0], 1, 2), keep(TRACES[1], 2)]
    second.kept = [keep(TRACES[2], 1, 3), Kept(TRACES[3], frozenset([feature(EDGES, "x")]))]
    kept.add_batch(first, 0)
    kept.add_batch(second, 0)
    assert corpus.size(kept.db) == 3 and corpus.by_family(kept.db) == {"behaviours": 3, "edges": 1}
    assert corpus.known(kept.db) == {feature(BEHAVIOURS, n) for n in "123"} | {feature(EDGES, "x")}
    picked = {findings.decode(raw) for raw in corpus.pick(kept.db, random.Random(2), 9)}
    assert picked == {TRACES[0], TRACES[2], TRACES[3]}


def test_the_corpus_is_capped(kept: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the fewest features belong to goes; its features are still no news."""
    monkeypatch.setattr(corpus, "MOST", 4)
    monkeypatch.setattr(corpus.cull, "__defaults__", (2,))
    batch = result(0)
    batch.kept = [keep(TRACES[i], *range(10 * i, 10 * i + i + 1)) for i in range(5)]
    kept.add_batch(batch, 0)
    left = {findings.decode(raw) for (raw,) in kept.rows("select trace from corpus")}
    assert left == {TRACES[3], TRACES[4]} and corpus.known_size(kept.db) == 15


def test_the_course_is_thinned(kept: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MOST_POINTS", 8)
    for second in range(100):
        kept.point(float(second))
    points = [p.at_s for p in kept.points()]
    assert len(points) <= 8 and points[0] == 0.0 and points[-1] == 99.0 and points == sorted(points)


# -- files ---------------------------------------------------------------------------------


def refused(folder: Path, *words: str) -> None:
    with pytest.raises(CampaignError) as caught:
        Store(folder).close()
    text = str(caught.value)
    assert "\n" not in text and "--corpus" in text and all(word in text for word in words), text


def test_one_user_at_a_time(tmp_path: Path) -> None:
    with Store(tmp_path):
        refused(tmp_path, "in use")
    Store(tmp_path).close()


def test_files_that_are_no_campaigns(tmp_path: Path) -> None:
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / NAME).write_text("a diary" * 1000)
    refused(tmp_path / "text", NAME, "not a database")
    (tmp_path / "other").mkdir()
    with sqlite3.connect(tmp_path / "other" / NAME) as db:
        db.execute("create table songs(name text)")
    db.close()
    refused(tmp_path / "other", NAME, "another program")
    Store(tmp_path / "newer").close()
    with sqlite3.connect(tmp_path / "newer" / NAME) as db:
        db.execute(f"pragma user_version = {store.VERSION + 1}")
    db.close()
    refused(tmp_path / "newer", "another version")
    (tmp_path / "file").write_text("")
    refused(tmp_path / "file", "cannot hold a campaign")


@pytest.mark.parametrize("at", [0.02, 0.3, 0.6])
def test_a_damaged_file(tmp_path: Path, at: float) -> None:
    with Store(tmp_path) as kept:
        for number in range(30):
            kept.add_batch(result(number, *(replace(WRONG, op=f"{number} {i}") for i in range(5))), 0)
    raw = bytearray((tmp_path / NAME).read_bytes())
    place = int(at * len(raw))
    raw[place : place + 6000] = b"\xff" * 6000
    (tmp_path / NAME).write_bytes(raw)
    refused(tmp_path, NAME)


def test_a_truncated_file(tmp_path: Path) -> None:
    with Store(tmp_path) as kept:
        for number in range(30):
            kept.add_batch(result(number, *(replace(WRONG, op=f"{number} {i}") for i in range(5))), 0)
    raw = (tmp_path / NAME).read_bytes()
    (tmp_path / NAME).write_bytes(raw[: len(raw) // 2])
    refused(tmp_path, NAME)


def test_another_campaign(kept: Store) -> None:
    kept.begin({"subject": "bundled", "seed": 3})
    kept.begin({"subject": "bundled", "seed": 3})
    with pytest.raises(CampaignError, match=r"another seed \(3, now 4\)"):
        kept.begin({"subject": "bundled", "seed": 4})
    assert kept.facts == {"subject": "bundled", "seed": 3}
