"""What the suite leaves in its folder for `gallocheck report`: the same record as `gallocheck check` does."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

from ..model.records import Cap
from ..report.course import now, subject_is
from ..report.machine import machine
from ..report.record import ClauseRow, Record, Sample, write
from .expected import SILENT
from .setting import Setting
from .shares import Share


def write_record(setting: Setting, done: Share) -> Path:
    """Writes check.json into the folder of the replay files. Raises RecordError."""
    clauses = [row_of(clause, setting, done) for clause in done.clauses if clause != SILENT]
    new = sum(not f.known for f in done.findings)
    met = sum(row.exercised > 0 for row in clauses)
    source = Path(setting.source) if setting.source else None
    record = Record(
        gallocheck=version("gallocheck"),
        command=["pytest", *sys.argv[1:]],
        subject=subject_is(
            setting.named, source, setting.defect, setting.subject, setting.described, Cap(setting.caps)
        ),
        machine=machine(),
        seed=setting.seed,
        began=setting.began,
        ended=now(),
        seconds=round(done.seconds, 3),
        canaries=len(clauses),
        traces=done.traces,
        operations=done.operations,
        lockstep=done.lockstep,
        misuse=done.misuse,
        clauses=clauses,
        findings=[f.row for f in done.findings],
        samples=[Sample(round(done.seconds, 3), done.operations, new, met, done.lockstep)],
    )
    return write(record, Path(setting.out))


def row_of(clause: str, setting: Setting, done: Share) -> ClauseRow:
    """What the project's own list expects is expected here too."""
    found, times = [f for f in done.findings if f.clause == clause], done.tally.get(clause, 0)
    new = [f for f in found if not f.known]
    entry = setting.expects(clause)
    known = sorted({f.known for f in found if f.known} | ({entry.where} if entry and new else set()))
    row = ClauseRow(clause, times, "holds" if times else "idle", len(new), known)
    if found:
        row.verdict = "broken" if new and not entry else "expected"
    return row
