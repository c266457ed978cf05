"""Failures to draw: kept traces of planted defects, run on the planted subject or by the model alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gallocheck.fuzz.canary import path_of
from gallocheck.fuzz.catalogue import DEFECTS
from gallocheck.fuzz.judge import Judge
from gallocheck.fuzz.replay import Replay, load
from gallocheck.native.library import library_path
from gallocheck.report.machine import machine
from gallocheck.report.record import ClauseRow, FindingRow, Record, Sample, SubjectIs
from gallocheck.report.runs import Finding, Job
from gallocheck.report.story import Story, tell
from gallocheck.spec.clauses import CLAUSES

BY_NUMBER = {d.number: d for d in DEFECTS}


def file_of(defect: int) -> Path:
    """The kept replay file of a planted defect."""
    return path_of(BY_NUMBER[defect])


def kept(defect: int) -> Replay:
    return load(file_of(defect))


@contextmanager
def planted() -> Iterator[Judge]:
    """The planted subject; `judge.plant(n)` switches a defect on."""
    with Judge(str(library_path("planted")), timeout=2.0) as judge:
        yield judge


SHOWN = (1, 51, 74, 203, 301, 513, 704)  #: a defect of most letters; the last one's trace is long
HOSTILE = "holds <script>alert('x')</script> & \"wrong\" bytes \x1b[31m"


def job_of(folder: Path, shown: tuple[int, ...] = SHOWN) -> Job:
    """A check that has found these defects, one that has no replay file, and one that is expected."""
    found = [Finding(row_of(kept(n), file_of(n).name, n), kept(n), file_of(n)) for n in shown]
    lost = FindingRow("P1", "broken", 3, "COMPUTE", HOSTILE, HOSTILE, "", "", 12, confirmed=False)
    known = FindingRow("G4", "broken", 0, "", "fails as expected", "", "", "", 3, known="F01: it is known")
    found += [Finding(lost, None, None, "its replay file is gone"), Finding(known, None, None)]
    clauses = [ClauseRow(c.id, 10 * n, "holds" if n else "idle") for n, c in enumerate(CLAUSES)]
    for row in clauses:
        row.verdict = "broken" if any(f.row.clause == row.id for f in found) else row.verdict
    record = Record(
        gallocheck="0.0", command=["gallocheck", "check", "--defect", "51"], machine=machine(), seed=7,
        subject=SubjectIs("bundled", "", 51, "planted", "gallocheck's own allocator", ["plan", "resizable"]),
        began="2026-01-01T00:00:00+00:00", ended="2026-01-01T00:01:00+00:00", seconds=60.0, traces=900,
        operations=40_000, lockstep=1_000_000, canaries=40, clauses=clauses, findings=[f.row for f in found],
        samples=[Sample(0.5 * n, 300 * n, n // 30, min(n, 40), 9000 * n) for n in range(120)],
    )  # fmt: skip
    return Job("check", record, tuple(found), folder)


def row_of(saved: Replay, file: str, n: int) -> FindingRow:
    return FindingRow(saved.clause, saved.verdict, saved.step, "", saved.message, "", "", file, met=n)


def told(job: Job, judge: Judge, shown: tuple[int, ...] = SHOWN) -> dict[int, Story]:
    """The story of each defect, of a subject that has it."""
    stories = {}
    for n, defect in enumerate(shown):
        judge.plant(defect)
        saved = job.findings[n].saved
        assert saved is not None
        stories[n] = tell(saved, judge)
    return stories
