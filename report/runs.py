"""What a report is made of: the folder of a check, of a campaign, or one replay file."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..fuzz import kept, replay
from ..fuzz.expected import AS_BASELINE, PINNED, ExpectedError, for_subject
from ..fuzz.replay import Replay, ReplayError
from ..fuzz.subjects import VARIANT, how_to_name
from . import campaign, record
from .machine import machine
from .record import NAME, ClauseRow, FindingRow, Record, RecordError, SubjectIs


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. `saved`: its trace, None where there is none to be had; `lacks` says why. `path`: of its
    replay file."""

    row: FindingRow
    saved: Replay | None
    path: Path | None
    lacks: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """What was run, with its findings: those that are new first."""

    kind: Literal["check", "campaign", "replay"]
    record: Record
    findings: tuple[Finding, ...]
    folder: Path

    @property
    def new(self) -> list[Finding]:
        return [f for f in self.findings if not f.row.known]

    @property
    def options(self) -> str:
        """The options that name the subject to another command."""
        s = self.record.subject
        return how_to_name(s.named, Path(s.source) if s.source else None, s.defect)


def load(path: Path, subject: SubjectIs | None = None) -> Job:
    """What lies at `path`. `subject`: what to run a single replay file on.

    Raises RecordError or ReplayError, one sentence, where it is nothing that a report can be made of.
    """
    if path.is_dir():
        return of_folder(path)
    if not path.exists():
        raise RecordError(f"{path} is not there: name the folder of a check or a campaign, or a replay file.")
    if path.name == NAME:
        return of_check(path)
    if path.name == kept.DATABASE:
        return of_campaign(path)
    return of_replay(path, subject)


def of_folder(folder: Path) -> Job:
    check, database = folder / NAME, folder / kept.DATABASE
    if check.is_file() and database.is_file():
        raise RecordError(f"{folder} holds a check and a campaign: name {check} or {database}.")
    if check.is_file():
        return of_check(check)
    if database.is_file():
        return of_campaign(database)
    raise RecordError(
        f"{folder} holds no check ({NAME}) and no campaign ({kept.DATABASE}): name what `gallocheck check` had as"
        " --out or `gallocheck fuzz` as --corpus, or a replay file."
    )


def of_check(path: Path) -> Job:
    rec = record.read(path)
    known = kept_of(rec.subject)
    found = [of_row(row, path.parent, known) for row in rec.findings]
    return Job("check", rec, in_order(found), path.parent)


def kept_of(subject: SubjectIs) -> dict[str, Path]:
    """The replay files of the expected failures that come with gallocheck for this subject, by their ids."""
    with suppress(ExpectedError):
        listed = for_subject(subject.name, subject.describe, None, own_tree=False)
        if not listed.findings and subject.name in VARIANT:
            listed = for_subject(subject.name, subject.describe, PINNED, own_tree=True)
        return {entry.id: listed.replay_path(entry) for entry in listed.findings}
    return {}


def of_row(row: FindingRow, folder: Path, known: dict[str, Path]) -> Finding:
    """A finding of a check, with its replay file; of an expected one, that of the list."""
    if row.known:
        return of_known(row, known)
    if not row.file:
        return Finding(row, None, None, "no replay file was written for it")
    path = folder / Path(row.file).name
    try:
        return Finding(row, replay.load(path), path)
    except ReplayError as error:
        return Finding(row, None, None, str(error))


def of_known(row: FindingRow, known: dict[str, Path]) -> Finding:
    """An expected failure, as its list has kept it."""
    path = known.get(row.known.split(":", 1)[0])
    if path is None or not path.is_file():
        why = "it is expected, and its list is not one that comes with gallocheck"
        if row.known.startswith(f"{AS_BASELINE.id}:"):
            why = "it fails in the baseline too, so nothing is kept of it"
        return Finding(row, None, None, why)
    return Finding(row, replay.load(path), path)


def of_campaign(path: Path) -> Job:
    rec, replays, folder = campaign.read(path)
    known, found = kept_of(rec.subject), []
    for n, row in enumerate(rec.findings):
        if row.known:
            found.append(of_known(row, known))
            continue
        saved = replays[n] if n < len(replays) else None
        file = folder / row.file if row.file and (folder / row.file).is_file() else None
        found.append(Finding(row, saved, file))
    return Job("campaign", rec, in_order(found), path.parent)


def of_replay(path: Path, subject: SubjectIs | None) -> Job:
    saved = replay.load(path)
    row = FindingRow(saved.clause, saved.verdict, saved.step, "", saved.message, "", "", path.name)
    who = subject or SubjectIs("bundled", "", 0, "bundled", saved.subject, [])
    clauses = [ClauseRow(saved.clause, 0, "broken", 1)] if saved.clause else []
    rec = Record(
        gallocheck=saved.gallocheck, command=[], subject=who, machine=machine(), seed=saved.seed or 0, began="",
        clauses=clauses, findings=[row],
    )  # fmt: skip
    return Job("replay", rec, (Finding(row, saved, path),), path.parent)


def in_order(found: list[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(found, key=lambda f: bool(f.row.known)))
