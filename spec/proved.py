"""What the last proofs on this machine gave, by clause: kept beside other things that can be made again.

A proof is of the code that it was made with: when the model or the rules change, it is forgotten.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cache
from pathlib import Path

from .machine import INVARIANT
from .prover import Row
from .table import verdict

ROOMS = ("model", "spec")


@dataclass(frozen=True)
class Proof:
    """`verdict`: proved, refuted or unknown; `seconds` over all sizes; `day`: when, UTC."""

    verdict: str
    seconds: float
    day: str


@cache
def code() -> str:
    """A digest of the model's and the rules' source."""
    digest = hashlib.sha256()
    here = Path(__file__).parent.parent
    for path in sorted(p for room in ROOMS for p in (here / room).rglob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def remember(rows: Iterable[Row], file: Path) -> None:
    """Adds the result of a proof. Where the file cannot be written nothing is remembered."""
    known, by_clause = _read(file), dict[str, list[Row]]()
    for row in rows:
        by_clause.setdefault(row.clause, []).append(row)
    day = datetime.now(timezone.utc).date().isoformat()
    for clause, mine in by_clause.items():
        if clause != INVARIANT:
            known[clause] = (verdict(mine), sum(r.seconds for r in mine), day)
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary = file.with_suffix(".part")
        temporary.write_text(json.dumps({"code": code(), "proofs": known}))
        temporary.replace(file)


def last(clause: str, file: Path) -> Proof | None:
    """The last proof of a clause by this code; None where there was none here."""
    found = _read(file).get(clause)
    return Proof(*found) if found else None


def _read(file: Path) -> dict[str, tuple[str, float, str]]:
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        kept = json.loads(file.read_text())
        if kept["code"] == code():
            return {c: (str(v), float(s), str(day)) for c, (v, s, day) in kept["proofs"].items()}
    return {}
