"""Expected failures: what a subject is known to break, with the reason; kept as data, one file a subject.

An entry names the clause, the signatures (regular expressions) under which the finding shows, and a
replay file that shows it.
A check reports such a finding as known. When its replay no longer shows it, the check fails: the list
must follow the subject.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import msgspec

KNOWN = Path(__file__).parent / "known"  #: lists that come with gallocheck, by subject
PINNED = Path("pinned")  #: on the command line: the list of the pinned release


class ExpectedError(Exception):
    """A list of expected failures cannot be used; one sentence; exit code 2."""

    exit_code = 2


class Expected(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One known finding. `replay` is a path relative to the list's own folder."""

    id: str
    clause: str
    title: str
    signatures: Annotated[list[str], msgspec.Meta(min_length=1)]
    replay: str


class _File(msgspec.Struct, forbid_unknown_fields=True):
    subject: str  # of Subject.name
    matches: list[str]  # texts that a subject's description may contain for the list to apply
    findings: list[Expected]


class ExpectedList:
    """The expected failures that apply to one subject. `otherwise`: what all others are taken for."""

    def __init__(self, findings: list[Expected], folder: Path, otherwise: Expected | None = None) -> None:
        self.findings, self.folder, self.otherwise = findings, folder, otherwise

    def find(self, signature: str) -> Expected | None:
        """The first entry of which a pattern matches the whole signature."""
        found = (e for e in self.findings if any(re.fullmatch(s, signature) for s in e.signatures))
        return next(found, self.otherwise)

    def replay_path(self, entry: Expected) -> Path:
        return self.folder / entry.replay


#: with a baseline, whatever fails there too is expected; the hunt runs both and tells them apart
AS_BASELINE = Expected("baseline", "", "fails in the baseline too", [".*"], "")


def load(path: Path) -> _File:
    """Reads one list. Raises ExpectedError."""
    try:
        known = msgspec.json.decode(path.read_bytes(), type=_File)
        for entry in known.findings:
            for pattern in entry.signatures:
                re.compile(pattern)
        return known
    except OSError as error:
        raise ExpectedError(
            f"{path} cannot be read ({error.strerror}); name a list of expected failures."
        ) from None
    except (msgspec.MsgspecError, re.error) as error:
        raise ExpectedError(f"{path} is no list of expected failures: {error}.") from None


def for_subject(name: str, describe: str, given: Path | None, own_tree: bool) -> ExpectedList:
    """The list `given`, else the one that comes with gallocheck for this subject and version.

    `given` may be 'pinned': the pinned release's list, for a tree that is like it. `own_tree`: a tree
    of the user's own; nothing is expected of it but what its own list says.
    """
    if given == PINNED:
        given = next(iter(sorted(KNOWN.glob(f"{name}-[0-9]*.json"))), None)
        if given is None:
            raise ExpectedError(
                f"There is no pinned list for the subject {name!r}; name a file with --expected."
            )
    if given is not None:
        return ExpectedList(load(given).findings, given.parent)
    if own_tree:
        return ExpectedList([], KNOWN)
    for path in sorted(KNOWN.glob("*.json")):
        known = load(path)
        if known.subject == name and any(m in describe for m in known.matches):
            return ExpectedList(known.findings, path.parent)
    return ExpectedList([], KNOWN)
