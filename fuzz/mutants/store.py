"""What is known of each mutant, in one SQLite file: an outcome goes in whole, or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ..campaign.findings import encode
from ..database import Database, Form
from ..verdict import Verdict
from .errors import MutantsError
from .trial import Outcome

NAME = "mutants.sqlite"
SCHEMA = """
create table facts(name text primary key, value);
create table mutants(key text primary key, state text not null, digest text, same_as text, checked_s real,
 operations integer, traces integer, verdict text, trace blob)
"""
FORM = Form(NAME, 0x67616C6D, 1, SCHEMA, "mutants", "gallocheck", "--out", MutantsError)  # 'galm'


@dataclass(frozen=True, slots=True)
class Row:
    """A mutant's outcome as it is kept."""

    key: str
    state: str
    digest: str
    like: str
    checked_s: float
    operations: int
    traces: int
    verdict: Verdict | None


class Store(Database):
    """The mutants in `folder`, which is made where it is not there; nobody else may use it meanwhile.

    Raises MutantsError, here and in every method: in use, not writable, no file of ours, of other sources.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, FORM)

    def put(self, outcome: Outcome) -> None:
        """Keeps an outcome, in place of an earlier one."""
        o = outcome
        verdict = msgspec.json.encode(o.verdict).decode() if o.verdict else None
        with self.said():
            self.db.execute(
                "insert or replace into mutants values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (o.key, o.state, o.digest, o.like, o.checked_s, o.operations, o.traces, verdict,
                 encode(o.trace) if o.trace else None),
            )  # fmt: skip

    def forget(self, keys: Iterable[str]) -> None:
        """Nothing is known of these any more."""
        with self.said():
            self.db.executemany("delete from mutants where key = ?", [(k,) for k in keys])

    def rows(self) -> dict[str, Row]:
        """All outcomes, by key."""
        with self.said():
            found = self.db.execute(
                "select key, state, digest, same_as, checked_s, operations, traces, verdict from mutants"
            ).fetchall()
        return {key: Row(key, *rest) for key, *rest in ((*r[:7], _verdict(r[7])) for r in found)}


def _verdict(text: str | None) -> Verdict | None:
    return msgspec.json.decode(text, type=Verdict) if text else None
