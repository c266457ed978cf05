"""The hunt, in as many shares as there are workers: each with a seed and a part of the time of its own.

A worker takes the shares that nobody has taken, and then waits for those that others hunt. Results meet in a
folder as one file a share. Who dies in a share leaves it free: its lock goes with the process. So every worker
comes to know all that was found, and few workers (of few tests) still hunt for the whole time.
"""

from __future__ import annotations

import fcntl
import math
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib.metadata import version
from pathlib import Path

import msgspec

from ..fuzz import canary
from ..fuzz.baseline import base_of
from ..fuzz.batch.engine import IN_LOCKSTEP, Lanes
from ..fuzz.expected import AS_BASELINE, KNOWN, ExpectedList, for_subject
from ..fuzz.hunt import Finding, Hunt
from ..fuzz.judge import Judge
from ..fuzz.telling import headline, story
from ..report.course import finding_row
from ..report.record import FindingRow
from .expected import SILENT
from .setting import Setting


class Told(msgspec.Struct, frozen=True):
    """One finding: in words, and as the record has it. `known`: why it is expected, '' where it is new.
    `path`: of its replay file. `alike`: equal for findings that are most likely the same."""

    clause: str
    text: str
    known: str
    path: str
    alike: str
    row: FindingRow


class Share(msgspec.Struct):
    """What one share did: how often each clause was exercised, and what was found.

    `mute`: clauses whose canary was not found; then nothing was hunted.
    """

    clauses: list[str] = []
    tally: dict[str, int] = {}
    findings: list[Told] = []
    mute: list[str] = []
    operations: int = 0
    traces: int = 0
    lockstep: int = 0
    misuse: int = 0
    seconds: float = 0.0


def merged(shares: Sequence[Share]) -> Share:
    """All shares as one; of findings that are alike the shortest."""
    out, tally, found = Share(), Counter[str](), dict[tuple[str, str], Told]()
    for share in shares:
        tally.update(share.tally)
        for told in share.findings:
            key = told.alike, told.known
            if key not in found or len(told.text) < len(found[key].text):
                found[key] = told
        out.clauses = share.clauses or out.clauses
        out.mute += share.mute
        out.operations += share.operations
        out.traces += share.traces
        out.lockstep += share.lockstep
        out.misuse += share.misuse
        out.seconds = max(out.seconds, share.seconds)
    out.tally, out.findings = dict(tally), list(found.values())
    return out


def hunt_all(setting: Setting, clauses: Sequence[str], worker: int, workers: int) -> Share:
    """The whole hunt for these clauses; this process, number `worker` of `workers`, does its part.

    Raises SubjectError and TreeError where the subject cannot be used any more.
    """
    folder = Path(setting.folder)
    order = [(worker + k) % workers for k in range(workers)]
    for wait in (False, True):  # the second time, whoever holds a share is waited for
        for number in order:
            with held(folder / f"{number}.lock", wait) as mine:
                if mine and not result_of(folder, number).is_file():
                    keep(result_of(folder, number), hunt(setting, clauses, number, workers))
    return read_all(folder)


def read_all(folder: Path) -> Share:
    """What all shares that are done have found."""
    decode = msgspec.json.Decoder(Share).decode
    return merged([decode(path.read_bytes()) for path in sorted(folder.glob("*.json"))])


def result_of(folder: Path, number: int) -> Path:
    return folder / f"{number}.json"


@contextmanager
def held(path: Path, wait: bool) -> Iterator[bool]:
    """A file's lock; False where another process has it and it is not waited for."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        yield locked(file, wait)
    finally:
        os.close(file)


def locked(file: int, wait: bool) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def keep(path: Path, share: Share) -> None:
    """Writes a result whole or not at all."""
    temporary = path.with_suffix(".part")
    temporary.write_bytes(msgspec.json.encode(share))
    temporary.replace(path)


def hunt(setting: Setting, clauses: Sequence[str], number: int, workers: int) -> Share:
    """One share: its part of the canaries, then the subject, for its part of the time."""
    mute, _ = canary.run([c for c in clauses[number::workers] if c != SILENT])
    if mute:
        return Share(mute=mute)
    base = Path(setting.baseline) if setting.baseline else None
    source = Path(setting.source) if setting.source else None
    lockstep = any(c[0] in IN_LOCKSTEP for c in clauses)
    with (
        Judge(setting.library, setting.defect) as judge,
        base_of(setting.target(), source, None, base, lambda _: None) as beside,
        Lanes(setting.library, setting.defect) if lockstep else nullcontext() as lanes,
    ):
        hunt = Hunt(
            judge,
            setting.seed + number,
            known=known(setting),
            folder=Path(setting.out),
            only=frozenset("" if c == SILENT else c for c in clauses),
            version=version("gallocheck"),
            base=beside,
            lanes=lanes,
        )
        traces = math.ceil(setting.traces / workers) if setting.traces else None
        result = hunt.run(setting.seconds / workers, traces)
    if result.stopped:
        raise KeyboardInterrupt
    return Share(
        list(clauses),
        dict(result.tally),
        [told(f, setting.options) for f in result.findings],
        operations=result.operations,
        traces=result.traces,
        lockstep=result.lockstep,
        misuse=result.misuse,
        seconds=result.seconds,
    )


def known(setting: Setting) -> ExpectedList:
    """What the baseline does too; else what is listed of the pinned release."""
    if setting.baseline:
        return ExpectedList([], KNOWN, AS_BASELINE)
    return for_subject(setting.subject, setting.described, None, bool(setting.source))


def told(finding: Finding, options: str) -> Told:
    name = finding.verdict.clause
    head, how = headline(finding)
    text = "\n".join([f"{head} {how}", *story(finding, options)])
    why = f"{finding.known.id}: {finding.known.title}" if finding.known else ""
    path = str(finding.path or "")
    return Told(name or SILENT, text, why, path, finding.verdict.signature, finding_row(finding))
