"""A campaign's database as the record of a check: what its report is made of. It is only read."""

from __future__ import annotations

import sqlite3
from datetime import datetime, timezone
from pathlib import Path
from typing import TypeVar

import msgspec

from ..fuzz.applies import applies
from ..fuzz.campaign import findings
from ..fuzz.campaign.findings import Sample as Found
from ..fuzz.campaign.store import APPLICATION, VERSION, Point
from ..fuzz.found import replay_of
from ..fuzz.replay import Replay
from ..model.records import Cap
from ..spec.clauses import CLAUSES
from .machine import machine
from .record import ClauseRow, FindingRow, Machine, Record, RecordError, Sample, SubjectIs

T = TypeVar("T")
#: facts of the latest run, beside those that make a campaign the same (cli/fuzz.py)
COMMAND, SUBJECT, MACHINE, REPLAYS = (
    "latest command",
    "latest subject",
    "latest machine",
    "latest replay files",
)


def latest(command: list[str], subject: SubjectIs, replays: Path) -> dict[str, object]:
    """What a campaign is to remember of its latest run (Store.remember)."""
    facts = {COMMAND: command, SUBJECT: subject, MACHINE: machine(), REPLAYS: str(replays.absolute())}
    return {name: msgspec.json.encode(value).decode() for name, value in facts.items()}


def read(path: Path) -> tuple[Record, list[Replay], Path]:
    """(record, a replay for each of the record's findings that has a trace, where replay files are).

    Raises RecordError, one sentence, where the file is no campaign's.
    """
    try:
        # beside a campaign that runs; of one that does not, nothing is written at all
        idle = "" if path.with_name(f"{path.name}-wal").exists() else "&immutable=1"
        db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro{idle}", uri=True)
    except sqlite3.Error as error:
        raise RecordError(f"{path} cannot be opened ({error}): name the folder of a campaign.") from None
    try:
        check(db, path)
        return whole(db, path)
    except (sqlite3.DatabaseError, msgspec.MsgspecError, ValueError) as error:
        raise RecordError(f"{path} cannot be read ({error}): name the folder of a campaign.") from None
    finally:
        db.close()


def check(db: sqlite3.Connection, path: Path) -> None:
    """It is a campaign's, of this version."""
    (application,), (version,) = (
        db.execute(f"pragma {p}").fetchone() for p in ("application_id", "user_version")
    )
    if application != APPLICATION:
        raise RecordError(f"{path} is a database of another program: name the folder of a campaign.")
    if version != VERSION:
        raise RecordError(
            f"{path} was written by another version of gallocheck: use that one for its report."
        )


def whole(db: sqlite3.Connection, path: Path) -> tuple[Record, list[Replay], Path]:
    facts = dict(db.execute("select name, value from facts"))
    counts = dict(db.execute("select name, n from counts"))
    tally = dict(db.execute("select clause, n from tally"))
    points = [Point(*p) for p in db.execute("select * from points order by at_s")]
    found = findings.samples(
        db, f"{findings.FINDING} order by json_extract(cast(verdict as text), '$.clause'), id"
    )
    known = db.execute(
        "select clause, known, sum(n) from signatures where known != '' group by clause, known"
    )
    seed, version = int(facts.get("seed", 0)), str(facts.get("version of gallocheck", ""))
    folder = Path(json(facts, REPLAYS, str, "findings"))
    subject = json(facts, SUBJECT, SubjectIs, of_old(facts))
    rows = [finding_row(f, seed) for f in found] + [known_row(*row) for row in known]
    spent = counts.get("spent_ms", 0) / 1000
    record = Record(
        gallocheck=version,
        command=json(facts, COMMAND, list[str], []),
        subject=subject,
        machine=json(facts, MACHINE, Machine, Machine("unknown", 0, "unknown", "unknown", {})),
        seed=seed,
        began="",
        ended=modified(path),
        seconds=spent,
        canaries=counts.get("canaries", 0),
        traces=counts.get("traces", 0),
        operations=counts.get("operations", 0),
        misuse=counts.get("misuse", 0),
        clauses=clause_rows(subject, tally, rows),
        findings=rows,
        samples=[
            Sample(p.at_s, p.operations, p.findings, features=p.features, corpus=p.corpus) for p in points
        ],
    )
    replays = [replay_of(f.verdict, f.trace, subject.describe, seed, version) for f in found]
    return record, replays, folder


def json(facts: dict, name: str, kind: type[T], otherwise: T) -> T:
    """A fact that is JSON; `otherwise` where the campaign is older than such facts."""
    return msgspec.json.decode(facts[name], type=kind) if name in facts else otherwise


def of_old(facts: dict) -> SubjectIs:
    """The subject of a campaign that does not say how to name it."""
    name, defect = str(facts.get("subject", "bundled")), int(facts.get("planted defect", 0))
    return SubjectIs(
        "bundled" if defect else name, "", defect, name, str(facts.get("version of the subject", "")), []
    )


def modified(path: Path) -> str:
    """When the file was last written, UTC."""
    return datetime.fromtimestamp(path.stat().st_mtime, timezone.utc).isoformat(timespec="seconds")


def clause_rows(subject: SubjectIs, tally: dict[str, int], rows: list[FindingRow]) -> list[ClauseRow]:
    """All clauses that apply to what the subject declares; of an old campaign those that were met."""
    caps = Cap(0)
    for word in subject.declares:
        caps |= Cap[word.upper().replace("-", "_")]
    out = []
    for c in CLAUSES:
        mine = [f for f in rows if f.clause == c.id]
        if not mine and c.id not in tally and not (subject.declares and applies(c.id, caps)):
            continue
        new, known = [f for f in mine if not f.known], sorted({f.known for f in mine if f.known})
        row = ClauseRow(c.id, tally.get(c.id, 0), "holds" if tally.get(c.id) else "idle", len(new), known)
        if mine:
            row.verdict = "broken" if new else "expected"
        out.append(row)
    return out


def finding_row(f: Found, seed: int) -> FindingRow:
    v = f.verdict
    long = "-long" if f.shape is None else ""
    file = f"{v.clause or 'silent'}-{seed}-{f.id}{long}.json"
    return FindingRow(
        v.clause, v.sort, v.step, v.op, v.message, v.expected, v.seen, file, f.met,
        f.confirmed if f.shape is not None else True,
    )  # fmt: skip


def known_row(clause: str, known: str, times: int) -> FindingRow:
    """An expected failure that was met."""
    return FindingRow(clause, "broken", 0, "", "fails as expected", "", "", "", times, True, known)
