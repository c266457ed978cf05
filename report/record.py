"""What a check leaves behind: check.json in its folder, as data of a fixed shape and version.

It is written whole or not at all: when the check begins, every few seconds, and when it ends. So a check that was
killed has left how far it came.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from ..fuzz.kept import RECORD
from ..fuzz.verdict import Sort
from ..fuzz.whole_file import write_whole

Count = Annotated[int, msgspec.Meta(ge=0)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]

NAME = RECORD  #: check.json
VERSION = 1
MOST_BYTES = 64 << 20


class RecordError(Exception):
    """A check's record cannot be used or written. One sentence; exit code 2."""

    exit_code = 2


class Machine(msgspec.Struct, forbid_unknown_fields=True):
    """Where it ran. `versions`: of packages, by name. `gpu`: '' where none was used."""

    cpu: str
    cores: int
    system: str
    python: str
    versions: dict[str, str]
    gpu: str = ""


class SubjectIs(msgspec.Struct, forbid_unknown_fields=True):
    """What was checked, and how a command names it: --subject `named` --source `source` --defect `defect`."""

    named: str
    source: str
    defect: int
    name: str
    describe: str
    declares: list[str]


class ClauseRow(msgspec.Struct, forbid_unknown_fields=True):
    """One clause: how often it was exercised. `verdict`: holds, broken, expected (it fails as it is expected to)
    or idle (not exercised). `known`: the expected failures that were met."""

    id: str
    exercised: Count
    verdict: Literal["holds", "broken", "expected", "idle"]
    findings: Count = 0
    known: list[str] = msgspec.field(default_factory=list)


class FindingRow(msgspec.Struct, forbid_unknown_fields=True):
    """One finding. `file`: its replay file in the same folder, '' where there is none. `met`: traces that showed
    it. `confirmed`: it showed again in new processes. `known`: id and title of the expected failure that it is.
    `like`: why it is new though it looks like a known one, as a sentence."""

    clause: str
    sort: Sort
    step: Count
    op: str
    message: str
    expected: str
    seen: str
    file: str
    met: Count = 1
    confirmed: bool = True
    known: str = ""
    like: str = ""


class Sample(msgspec.Struct, forbid_unknown_fields=True):
    """The check after `at_s` seconds. `clauses`: exercised by then. `features`, `corpus`: of campaigns."""

    at_s: Seconds
    operations: Count
    findings: Count
    clauses: Count = 0
    lockstep: Count = 0
    features: Count = 0
    corpus: Count = 0


class Record(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A whole check, or what it was when this was last written (`ended` is '' then)."""

    format: Literal["gallocheck check"] = "gallocheck check"
    version: Annotated[int, msgspec.Meta(ge=1)] = VERSION
    gallocheck: str
    command: list[str]
    subject: SubjectIs
    machine: Machine
    seed: int
    began: str  # UTC, ISO 8601; '' where it is not known: of campaigns, which may have many runs
    ended: str = ""
    seconds: Seconds = 0.0
    stopped: bool = False
    canaries: Count = 0
    traces: Count = 0
    operations: Count = 0
    lockstep: Count = 0
    misuse: Count = 0
    clauses: list[ClauseRow] = msgspec.field(default_factory=list)
    findings: list[FindingRow] = msgspec.field(default_factory=list)
    gone: list[str] = msgspec.field(default_factory=list)  # expected failures that did not show
    beside: list[str] = msgspec.field(default_factory=list)  # options that say what may fail: --baseline TREE
    samples: list[Sample] = msgspec.field(default_factory=list)


class _Peek(msgspec.Struct):
    format: str = ""
    version: int = 0


def write(record: Record, folder: Path) -> Path:
    """Writes check.json into the folder, which is made where it is not there. Raises RecordError."""
    target = folder / NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(target, msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")
    except OSError as error:
        raise RecordError(
            f"{target} cannot be written ({error.strerror}): name another folder with --out."
        ) from None
    return target


def read(path: Path) -> Record:
    """The record in a file. Raises RecordError, one sentence, where it cannot be used."""
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise RecordError(f"{path} cannot be read ({error.strerror}): name the folder of a check.") from None
    if len(raw) > MOST_BYTES:
        raise RecordError(f"{path} is larger than {MOST_BYTES >> 20} MiB: that is no record of a check.")
    try:
        head = msgspec.json.decode(raw, type=_Peek)
        if head.format != "gallocheck check" or head.version < 1:
            raise RecordError(f"{path} is JSON, but no record of a check: name the folder of a check.")
        if head.version > VERSION:
            raise RecordError(
                f"{path} is a record of version {head.version}, this gallocheck reads up to {VERSION}:"
                " install a newer gallocheck."
            )
        return msgspec.json.decode(raw, type=Record)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RecordError(f"{path} is no record of a check ({error}): run the check again.") from None
