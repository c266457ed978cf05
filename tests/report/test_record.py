"""check.json, a campaign's database and replay files as what a report is made of; bad input is one sentence."""

from __future__ import annotations

import html
import json
import os
import sqlite3
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from gallocheck.fuzz.applies import applies
from gallocheck.fuzz.campaign.store import Store
from gallocheck.fuzz.campaign.work import BatchResult, Failure, Shrunk
from gallocheck.fuzz.expected import AS_BASELINE, KNOWN, PINNED, Expected
from gallocheck.fuzz.found import shape
from gallocheck.fuzz.hunt import Finding, Result
from gallocheck.fuzz.kept import of_folder
from gallocheck.fuzz.replay import ReplayError, save
from gallocheck.fuzz.verdict import Verdict
from gallocheck.model.records import Cap
from gallocheck.report.campaign import latest
from gallocheck.report.course import MOST_SAMPLES, Course, beside, likeness, subject_is
from gallocheck.report.machine import machine
from gallocheck.report.page import page
from gallocheck.report.record import NAME, Record, RecordError, read, write
from gallocheck.report.runs import load
from gallocheck.spec.clauses import CLAUSES, clause

from .samples import file_of, job_of, kept

CAPS = Cap.PLAN | Cap.RESIZABLE | Cap.EXACT
SUBJECT = subject_is("bundled", None, 51, "planted", "an allocator", CAPS)


def course(folder: Path, beside: list[str] | None = None) -> Course:
    rows = [clause(name) for name in ("P1", "R3", "R6")]
    return Course(folder, rows, SUBJECT, 7, "0.0", ["gallocheck", "check"], beside)


def broken(clause: str, file: Path | None, message: str = "wrong") -> Finding:
    return Finding(Verdict("broken", clause, message, 5, "RESERVE", "a", "b"), kept(51).trace, 3, path=file)


# -- check.json ------------------------------------------------------------------------


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = job_of(tmp_path).record
    assert read(write(record, tmp_path / "new" / "folder")) == record
    assert [p.name for p in (tmp_path / "new" / "folder").iterdir()] == [NAME]


def test_a_check_leaves_its_record_from_the_beginning(tmp_path: Path) -> None:
    """One that is killed has left that it began, and how far it came."""
    follows = course(tmp_path)
    begun = read(tmp_path / NAME)
    assert begun.ended == "" and begun.operations == 0 and begun.subject == SUBJECT
    assert begun.subject.declares == ["plan", "resizable", "exact"] and begun.machine.cores >= 1
    result = Result(operations=40, traces=3, seconds=11.0)
    result.tally["P1"] = 12
    follows.note(result)
    assert read(tmp_path / NAME).operations == 40 and read(tmp_path / NAME).ended == ""


def test_the_end_of_a_check(tmp_path: Path) -> None:
    file = tmp_path / "R3-7-1.json"
    save(kept(51), file)
    follows, result = course(tmp_path), Result(operations=40, traces=3, seconds=1.5)
    result.tally.update({"P1": 12, "R3": 4})
    result.findings.append(broken("R3", file))
    follows.end(result, [])
    job = load(tmp_path)
    assert job.kind == "check" and job.record.ended and len(job.new) == 1
    assert {row.id: (row.exercised, row.verdict) for row in job.record.clauses} == {
        "P1": (12, "holds"), "R3": (4, "broken"), "R6": (0, "idle"),
    }  # fmt: skip
    assert job.findings[0].saved == kept(51) and job.findings[0].path == file
    assert job.options == " --defect 51"
    assert [s.operations for s in job.record.samples] == [40]
    assert list(of_folder(tmp_path)) == [kept(51).trace], "the record is no replay file"


def test_with_a_baseline(tmp_path: Path) -> None:
    """What is new says so, and the same check again has the baseline again."""
    known = Expected("F01", "P1", "it is known", [".*"], "")
    assert likeness(None) == ""
    assert likeness(AS_BASELINE) == "new: the baseline does not fail here"
    assert likeness(known).endswith("F01 (it is known), but the pinned release does not fail here")
    given = beside(None, tmp_path / "a tree")
    follows, result = course(tmp_path, given), Result(operations=40, traces=3, seconds=1.5)
    new, old = broken("R3", None), broken("P1", None)
    new.like, old.known = AS_BASELINE, AS_BASELINE
    result.findings += [new, old]
    follows.end(result, [])
    job = load(tmp_path)
    text = page(job, {})
    assert "new: the baseline does not fail here" in text and "looks like" not in text
    assert (
        f"gallocheck check P1 R3 R6 --defect 51 --baseline '{tmp_path / 'a tree'}' --seed 7"
        in html.unescape(text)
    )
    assert "1 known failure without a story: it fails in the baseline too" in text
    assert beside(PINNED, None) == ["--expected", "pinned"]


def test_a_long_check_keeps_few_samples(tmp_path: Path) -> None:
    follows = course(tmp_path)
    for n in range(5 * MOST_SAMPLES):
        follows.written = 1e9  # the file is not what this is about
        follows.note(Result(operations=n, seconds=0.6 * n))
    samples = follows.record.samples
    assert MOST_SAMPLES / 3 < len(samples) <= MOST_SAMPLES + 1
    steps = [b.at_s - a.at_s for a, b in pairwise(samples)]
    assert max(steps) < 4 * min(steps), "no part of the course is told more closely than another"


def test_a_replay_file_that_is_gone(tmp_path: Path) -> None:
    result = Result()
    result.findings.append(broken("R3", tmp_path / "R3-7-1.json"))
    course(tmp_path).end(result, [])
    (finding,) = load(tmp_path).findings
    assert finding.saved is None and "R3-7-1.json is not there" in finding.lacks


def test_expected_failures_have_the_story_of_their_list(tmp_path: Path) -> None:
    """All that were met of one are one row; its trace is the one that is kept with the list."""
    path = sorted(KNOWN.glob("ggml-[0-9]*.json"))[0]
    listed = json.loads(path.read_text())
    entry = Expected(**listed["findings"][0])
    result = Result()
    for n, message in enumerate(("one", "two")):
        result.findings.append(broken(entry.clause, None, message))
        result.findings[-1].known, result.findings[-1].count = entry, 3 + n
    follows = course(tmp_path)
    follows.record.subject.name, follows.record.subject.describe = listed["subject"], listed["matches"][0]
    follows.end(result, [])
    (finding,) = load(tmp_path).findings
    assert finding.row.met == 7 and finding.row.known == f"{entry.id}: {entry.title}"
    assert finding.saved is not None and finding.saved.clause == entry.clause and not load(tmp_path).new


def test_a_record_cannot_name_files_elsewhere(tmp_path: Path) -> None:
    """What a record says is data: a file name with a path in it stays in the folder."""
    record = job_of(tmp_path).record
    record.findings[0].file = f"../{file_of(1).name}"
    write(record, tmp_path / "in")
    save(kept(1), tmp_path / file_of(1).name)
    assert load(tmp_path / "in").findings[0].saved is None


def test_the_machine_is_this_one() -> None:
    here = machine()
    assert here.cores == len(os.sched_getaffinity(0)) and here.gpu == ""
    assert here.cpu and here.system and here.versions["gallocheck"]


# -- bad input -------------------------------------------------------------------------


def good(folder: Path) -> dict[str, Any]:
    write(job_of(folder).record, folder)
    return dict(json.loads((folder / NAME).read_text()))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no record of a check"),
        ("{", "no record of a check"),
        ("[1]", "no record of a check"),
        ("[" * 100_000, "no record of a check"),
        ('{"format": "gallocheck replay", "version": 2}', "is JSON, but no record of a check"),
        ('{"format": "gallocheck check", "version": 99}', "install a newer gallocheck"),
        ('{"format": "gallocheck check", "version": 1}', "run the check again"),
    ],
)
def test_what_is_no_record(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / NAME).write_text(text)
    with pytest.raises(RecordError, match=says):
        load(tmp_path)


@pytest.mark.parametrize(
    ("name", "value"), [("seed", "seven"), ("findings", [{}]), ("more", 1), ("clauses", [{"id": "R3"}])]
)
def test_another_shape(tmp_path: Path, name: str, value: object) -> None:
    (tmp_path / NAME).write_text(json.dumps({**good(tmp_path), name: value}))
    with pytest.raises(RecordError, match="no record of a check"):
        load(tmp_path)


def test_what_is_no_run_at_all(tmp_path: Path) -> None:
    for path, says in ((tmp_path, "holds no check"), (tmp_path / "none", "is not there")):
        with pytest.raises(RecordError, match=says):
            load(path)
    (tmp_path / "some.json").write_text("{}")
    with pytest.raises(ReplayError, match="no gallocheck replay file"):
        load(tmp_path / "some.json")


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordError, match="cannot be written"):
        write(job_of(tmp_path).record, tmp_path / "file")


# -- campaigns ---------------------------------------------------------------------------


def campaign(folder: Path, remembered: bool = True) -> None:
    """A campaign with one finding, made small, and one that waits."""
    facts: dict[str, object] = {"subject": "planted", "version of the subject": "an allocator", "planted defect": 51,
                                "version of gallocheck": "0.0", "seed": 9}  # fmt: skip
    verdict, trace = broken("R3", None).verdict, kept(51).trace
    with Store(folder) as store:
        store.begin(facts)
        if remembered:
            store.remember(latest(["gallocheck", "fuzz"], SUBJECT, folder / "findings"))
        failures = [Failure(0, verdict, trace), Failure(1, broken("P1", None, "else").verdict, kept(1).trace)]
        result = BatchResult(
            0, 50, 3, 1, {"R3": 5, "P2": 8}, {f.verdict.signature: 1 for f in failures}, failures, []
        )
        store.add_batch(result, 2.0)
        first = next(s for s in store.findings() if s.verdict.clause == "R3")
        store.add_small(Shrunk(first.id, verdict, trace, True))
        for n in range(4):
            store.point(float(n))
    assert shape(trace)


@pytest.mark.parametrize("remembered", [True, False])
def test_a_campaign_as_a_report(tmp_path: Path, remembered: bool) -> None:
    campaign(tmp_path, remembered)
    job = load(tmp_path)
    assert job.kind == "campaign" and job.record.seed == 9 and job.record.operations == 50
    assert [(f.row.clause, f.saved is not None) for f in job.findings] == [("P1", True), ("R3", True)]
    rows = {row.id: (row.exercised, row.verdict) for row in job.record.clauses}
    assert rows["R3"] == (5, "broken") and rows["P2"] == (8, "holds") and rows["P1"] == (0, "broken")
    met = [c.id for c in CLAUSES if (applies(c.id, CAPS) if remembered else c.id in ("P1", "P2", "R3"))]
    assert list(rows) == met
    assert job.options == " --defect 51" and len(job.record.samples) == 4
    assert (job.record.command == ["gallocheck", "fuzz"]) is remembered


def test_a_campaign_that_runs_can_be_reported(tmp_path: Path) -> None:
    """The report only reads: it needs no lock."""
    campaign(tmp_path)
    with Store(tmp_path):
        assert load(tmp_path).kind == "campaign"


def test_what_is_no_campaign(tmp_path: Path) -> None:
    file = tmp_path / "campaign.sqlite"
    file.write_bytes(b"no database at all, by far" * 100)
    with pytest.raises(RecordError, match="cannot be read"):
        load(tmp_path)
    file.unlink()
    sqlite3.connect(file).execute("create table other(x)").connection.close()
    with pytest.raises(RecordError, match="of another program"):
        load(tmp_path)


def test_a_check_and_a_campaign_in_one_folder(tmp_path: Path) -> None:
    campaign(tmp_path)
    write(job_of(tmp_path).record, tmp_path)
    with pytest.raises(RecordError, match="holds a check and a campaign"):
        load(tmp_path)
    assert load(tmp_path / NAME).kind == "check" and load(tmp_path / "campaign.sqlite").kind == "campaign"


def test_one_replay_file(tmp_path: Path) -> None:
    job = load(file_of(51))
    assert job.kind == "replay" and job.findings[0].saved == kept(51) and isinstance(job.record, Record)


@pytest.mark.parametrize(("name", "value"), [("operations", -1), ("seconds", -0.5), ("traces", -3)])
def test_negative_counts_are_refused(tmp_path: Path, name: str, value: float) -> None:
    course(tmp_path).end(Result(), [])
    raw = json.loads((tmp_path / NAME).read_text())
    (tmp_path / NAME).write_text(json.dumps({**raw, name: value}))
    with pytest.raises(RecordError, match=f">= 0.*{name}"):
        read(tmp_path / NAME)
