"""The file of expected failures that a project keeps in its own repository.

    # clause [sometimes]   # reason
    R12                    # until issue 123 is closed
    P5 sometimes           # shows in about half of the runs
    silent                 # differences that no clause decides

A clause that is listed must fail: once it holds, its test is red until the line is gone. One that is listed
with `sometimes` may hold too, or not be exercised.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from ..fuzz.expected import ExpectedError
from ..spec.clauses import CLAUSES

SILENT = "silent"  #: names the test of differences that no clause decides
KNOWN = {SILENT} | {c.id for c in CLAUSES}
LINE = re.compile(r"(\w+)(\s+sometimes)?\s*(?:#\s*(.*))?")


class Entry(NamedTuple):
    """One line. `where`: 'FILE:LINE'. `always`: the clause may not hold."""

    clause: str
    reason: str
    always: bool
    where: str


def read(path: Path) -> list[Entry]:
    """The entries of a file, in its order. Raises ExpectedError, one sentence."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise ExpectedError(
            f"{path} cannot be read ({why}): name a file of expected failures with --gallocheck-expected."
        ) from None
    entries: dict[str, Entry] = {}
    for number, line in enumerate(map(str.strip, lines), 1):
        if not line or line.startswith("#"):
            continue
        entry = _entry(line, f"{path}:{number}")
        if entry.clause in entries:
            raise ExpectedError(
                f"{entry.where} names {entry.clause} again, after {entries[entry.clause].where}: keep one of them."
            )
        entries[entry.clause] = entry
    return list(entries.values())


def _entry(line: str, where: str) -> Entry:
    found = LINE.fullmatch(line)
    if found is None:
        raise ExpectedError(
            f"{where} is no expected failure ({line!r}): write it as `R6 # reason`, or `R6 sometimes # reason`."
        )
    name, sometimes, reason = found.groups()
    clause = SILENT if name.lower() == SILENT else name.upper()
    if clause not in KNOWN:
        raise ExpectedError(
            f"{where} names {name}, which is no clause: write a clause id of the contract, as R6, or `silent`."
        )
    return Entry(clause, reason or "expected", sometimes is None, where)
