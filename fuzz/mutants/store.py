"""What is known of each mutant, in one SQLite file: an outcome goes in whole, or not at all."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ..campaign.findings import encode
from ..folder_lock import locked
from ..verdict import Verdict
from .errors import MutantsError
from .trial import Outcome

NAME = "mutants.sqlite"
APPLICATION, VERSION = 0x67616C6D, 1
SCHEMA = (
    "create table facts(name text primary key, value)",
    "create table mutants(key text primary key, state text not null, digest text, same_as text, checked_s real,"
    " operations integer, traces integer, verdict text, trace blob)",
)


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


class Store:
    """The mutants in `folder`, which is made where it is not there; nobody else may use it meanwhile.

    Raises MutantsError, here and in every method: in use, not writable, no file of ours, of other sources.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / NAME
        self.lock = locked(folder, MutantsError, "mutants", "gallocheck", "--out")
        try:
            with self._said():
                self.db = sqlite3.connect(self.path, isolation_level=None)
                self._check()
                self.db.execute("pragma journal_mode = wal")
                self.db.execute("pragma synchronous = normal")
        except BaseException:
            os.close(self.lock)
            raise

    @contextmanager
    def _said(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise MutantsError(
                f"{self.path} cannot be used ({error}): name another folder with --out."
            ) from None

    def _check(self) -> None:
        """The file is new, or one of ours."""
        (application,) = self.db.execute("pragma application_id").fetchone()
        (version,) = self.db.execute("pragma user_version").fetchone()
        if not application and not self.db.execute("select 1 from sqlite_master").fetchone():
            self.db.execute("begin immediate")
            for statement in SCHEMA:
                self.db.execute(statement)
            self.db.execute(f"pragma application_id = {APPLICATION}")
            self.db.execute(f"pragma user_version = {VERSION}")
            self.db.execute("commit")
        elif (application, version) != (APPLICATION, VERSION):
            raise MutantsError(
                f"{self.path} is not of this version of gallocheck: name another folder with --out."
            )

    def begin(self, facts: dict[str, object]) -> None:
        """Says what is mutated, or makes sure that it still is that. Raises MutantsError."""
        with self._said():
            there = dict(self.db.execute("select name, value from facts"))
            for name, value in facts.items():
                if name in there and there[name] != value:
                    raise MutantsError(
                        f"{self.folder} holds mutants with another {name} ({there[name]}, now {value}):"
                        " name another folder with --out."
                    )
            self.db.executemany("insert or ignore into facts values (?, ?)", list(facts.items()))

    def fact(self, name: str) -> object:
        with self._said():
            row = self.db.execute("select value from facts where name = ?", (name,)).fetchone()
        return row[0] if row else None

    def put(self, outcome: Outcome) -> None:
        """Keeps an outcome, in place of an earlier one."""
        o = outcome
        verdict = msgspec.json.encode(o.verdict).decode() if o.verdict else None
        with self._said():
            self.db.execute(
                "insert or replace into mutants values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (o.key, o.state, o.digest, o.like, o.checked_s, o.operations, o.traces, verdict,
                 encode(o.trace) if o.trace else None),
            )  # fmt: skip

    def forget(self, keys: Iterable[str]) -> None:
        """Nothing is known of these any more."""
        with self._said():
            self.db.executemany("delete from mutants where key = ?", [(k,) for k in keys])

    def rows(self) -> dict[str, Row]:
        """All outcomes, by key."""
        with self._said():
            found = self.db.execute(
                "select key, state, digest, same_as, checked_s, operations, traces, verdict from mutants"
            ).fetchall()
        return {key: Row(key, *rest) for key, *rest in ((*r[:7], _verdict(r[7])) for r in found)}

    def close(self) -> None:
        self.db.close()
        os.close(self.lock)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _verdict(text: str | None) -> Verdict | None:
    return msgspec.json.decode(text, type=Verdict) if text else None
