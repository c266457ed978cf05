"""The catalogue of real faults: `faults.json`, read by schema."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Annotated

import msgspec

from ...native.trees import Release
from ...spec.clauses import CLAUSES

FILE = Path(__file__).with_name("faults.json")


class UnknownFault(ValueError):
    """A fault that the catalogue does not have; one sentence; exit code 2."""


class CatalogueError(Exception):
    """The catalogue says what cannot be; one sentence; exit code 3."""

    exit_code = 3


class Mend(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fault taken out of the bad release: in a source `file` of it, what `find` matches becomes `put`."""

    file: str
    find: str
    put: str


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One real fault. Releases are named as 'package version'.

    `since`: the first release known bad; `bad`: the last one, which is checked; `good`: the first known good.
    `clauses`: what it breaks, the one that it is about first. `mends`: how it alone is taken out of the bad
    release, so that it can be told from others there.
    """

    id: Annotated[str, msgspec.Meta(pattern="^[a-z0-9-]+$")]
    sentence: str
    reference: str
    since: str
    bad: str
    good: str
    clauses: Annotated[list[str], msgspec.Meta(min_length=1)]
    mends: list[Mend] = []


class _File(msgspec.Struct, forbid_unknown_fields=True):
    releases: dict[str, Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]]
    faults: list[Fault]


class Catalogue:
    """All faults, in the order of the file."""

    def __init__(self, file: _File) -> None:
        self.hashes, self.faults = file.releases, file.faults
        self.by_id = {f.id: f for f in file.faults}
        for problem in self.problems():
            raise CatalogueError(f"{FILE.name}: {problem}")

    def release(self, name: str) -> Release:
        project, version = name.split()
        return Release(project, version, self.hashes[name])

    def select(self, names: Sequence[str]) -> list[Fault]:
        """The faults of these ids, all if none. Raises UnknownFault."""
        for name in names:
            if name not in self.by_id:
                near = get_close_matches(name, self.by_id, 1)
                hint = f"did you mean {near[0]}?" if near else "`gallocheck history --list` lists them."
                raise UnknownFault(f"There is no fault {name!r} in the catalogue; {hint}")
        return [f for f in self.faults if not names or f.id in names]

    def beside(self, fault: Fault) -> list[Mend]:
        """What takes the other faults out of its bad release, as far as that is known."""
        return [
            m for other in self.faults if other.bad == fault.bad and other is not fault for m in other.mends
        ]

    def problems(self) -> list[str]:
        """What does not fit together, one phrase each."""
        found, known = [], {c.id for c in CLAUSES}
        if len(self.by_id) != len(self.faults):
            found.append("two faults have the same id.")
        for fault in self.faults:
            found += [f"{fault.id} names the release {r!r}, which is not listed."
                      for r in (fault.since, fault.bad, fault.good) if r not in self.hashes]  # fmt: skip
            found += [f"{fault.id} names the clause {c!r}, which does not exist."
                      for c in fault.clauses if c not in known]  # fmt: skip
            for mend in fault.mends:
                re.compile(mend.find)
        return found


@lru_cache(maxsize=1)
def catalogue() -> Catalogue:
    """The one that comes with gallocheck. Raises CatalogueError."""
    try:
        return Catalogue(msgspec.json.decode(FILE.read_bytes(), type=_File))
    except (OSError, msgspec.MsgspecError, re.error) as error:
        raise CatalogueError(f"{FILE.name} cannot be used: {error}.") from None
