"""A check's record while it runs: samples of its course, and everything as it is now."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

from ..fuzz.applies import declared
from ..fuzz.expected import AS_BASELINE, PINNED, Expected
from ..fuzz.hunt import Finding, Result
from ..model.records import Cap
from ..spec.clauses import Clause
from .machine import machine
from .record import ClauseRow, FindingRow, Record, RecordError, Sample, SubjectIs, write

SAMPLE_S, WRITE_S = 0.5, 10.0  #: seconds between samples, and between two times that the file is written
MOST_SAMPLES = 600  #: every other one goes where there are more


def now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def subject_is(
    named: str, source: Path | None, defect: int, name: str, describe: str, caps: Cap
) -> SubjectIs:
    """What is checked, as a record says it; a source that is named from here is named from everywhere."""
    where = str(source.absolute()) if source is not None and source.exists() else str(source or "")
    path = str(Path(named).absolute()) if Path(named).is_file() else named
    return SubjectIs(path, where, defect, name, describe, declared(caps).split())


def beside(expected: Path | None, baseline: Path | None) -> list[str]:
    """The options that say which failures are expected, as they are named from everywhere."""
    given = [("--expected", expected), ("--baseline", baseline)]
    return [x for option, path in given if path for x in (option, named(path))]


def named(path: Path) -> str:
    return str(path) if path == PINNED else str(path.absolute())


class Course:
    """Follows a hunt and keeps check.json in `folder`. Raises RecordError where it cannot be written."""

    def __init__(
        self,
        folder: Path,
        rows: list[Clause],
        subject: SubjectIs,
        seed: int,
        gallocheck: str,
        command: list[str],
        beside: list[str] | None = None,
    ) -> None:
        self.folder, self.rows, self.period = folder, rows, SAMPLE_S
        self.record = Record(
            gallocheck=gallocheck,
            command=command,
            subject=subject,
            machine=machine(),
            seed=seed,
            began=now(),
            beside=beside or [],
        )
        self.written = -WRITE_S  # the first sample is written at once
        write(self.record, folder)

    def note(self, result: Result) -> None:
        """Where the hunt is."""
        samples = self.record.samples
        if samples and result.seconds - samples[-1].at_s < self.period:
            return
        self.sample(result)
        if len(samples) > MOST_SAMPLES:
            del samples[1::2]
            self.period *= 2
        if result.seconds - self.written >= WRITE_S:
            self.written = result.seconds
            self.fill(result)
            with suppress(RecordError):  # a full disk does not end the check; in the end it is said
                write(self.record, self.folder)

    def sample(self, result: Result) -> None:
        new = sum(not f.known for f in result.findings)
        met = sum(1 for row in self.rows if result.tally[row.id])
        self.record.samples.append(
            Sample(round(result.seconds, 3), result.operations, new, met, result.lockstep)
        )

    def fill(self, result: Result) -> None:
        """Everything as it is now."""
        r, found = self.record, result.by_clause()
        r.seconds, r.stopped = round(result.seconds, 3), result.stopped
        r.traces, r.operations = result.traces, result.operations
        r.lockstep, r.misuse = result.lockstep, result.misuse
        r.clauses = [clause_row(row.id, result.tally[row.id], found.get(row.id, [])) for row in self.rows]
        r.findings = [finding_row(f) for f in result.findings if not f.known]
        known = {f.known.id: f.known for f in result.findings if f.known}
        r.findings += [known_row(entry, result.findings) for entry in known.values()]

    def end(self, result: Result, gone: list[str]) -> Path:
        """The check is over. The file's path."""
        self.sample(result)
        self.fill(result)
        self.record.ended, self.record.gone = now(), gone
        return write(self.record, self.folder)


def clause_row(id_: str, times: int, found: list[Finding]) -> ClauseRow:
    new = [f for f in found if not f.known]
    known = sorted({f.known.id for f in found if f.known})
    row = ClauseRow(id_, times, "holds" if times else "idle", len(new), known)
    if new or known:
        row.verdict = "broken" if new else "expected"
    return row


def known_row(known: Expected, found: list[Finding]) -> FindingRow:
    """An expected failure: all that were met of it are one."""
    mine = [f for f in found if f.known == known]
    row = finding_row(mine[0])
    row.met = sum(f.count for f in mine)
    return row


def finding_row(f: Finding) -> FindingRow:
    v = f.verdict
    known = f"{f.known.id}: {f.known.title}" if f.known else ""
    file = f.path.name if f.path is not None else ""
    return FindingRow(v.clause, v.sort, v.step, v.op, v.message, v.expected, v.seen, file, f.count,
                      f.confirmed, known, likeness(f.like))  # fmt: skip


def likeness(like: Expected | None) -> str:
    """Of a new finding that looks like one that is expected: what tells it apart."""
    if like is None:
        return ""
    if like == AS_BASELINE:
        return "new: the baseline does not fail here"
    return f"new: it looks like {like.id} ({like.title}), but the pinned release does not fail here"
