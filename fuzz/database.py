"""A folder's SQLite file that one process at a time may use: of a campaign, of mutants. What is in it after
`kill -9` is what had been committed."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar

from .folder_lock import locked

Self = TypeVar("Self", bound="Database")


class Form(NamedTuple):
    """What such a file is. `name`: of the file; `application`, `version`: what it says that it is; `schema`:
    statements that make it, which has a table facts(name, value). In sentences: it `holds` "a campaign",
    another `user` "campaign" has it, the folder is named with `option`. `error` is raised."""

    name: str
    application: int
    version: int
    schema: str
    holds: str
    user: str
    option: str
    error: type[Exception]


class Database:
    """The file in `folder`, which is made where it is not there. A context manager.

    Raises form.error, here and in every method: in use, not writable, not of this form, damaged.
    """

    def __init__(self, folder: Path, form: Form) -> None:
        self.folder, self.form, self.path = folder, form, folder / form.name
        self.lock = locked(folder, form.error, form.holds, form.user, form.option)
        try:
            with self.said():
                self.db = sqlite3.connect(self.path, isolation_level=None)
                self.check()
                self.db.execute("pragma journal_mode = wal")
                self.db.execute("pragma synchronous = normal")
        except BaseException:
            os.close(self.lock)
            raise

    @contextmanager
    def said(self) -> Iterator[None]:
        """SQLite's troubles as one sentence."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            full = "full" in str(error) or "readonly" in str(error) or "unable to open" in str(error)
            what = "make room or name another folder" if full else "move it away, or name another folder"
            raise self.refused(f"cannot be used ({error})", what) from None

    def refused(self, why: str, what: str = "name another folder") -> Exception:
        return self.form.error(f"{self.path} {why}: {what} with {self.form.option}.")

    def check(self) -> None:
        """The file is new, or whole and one of ours."""
        form = self.form
        (application,), (version,) = (self.db.execute(f"pragma {p}").fetchone()
                                      for p in ("application_id", "user_version"))  # fmt: skip
        if not self.db.execute("select 1 from sqlite_master").fetchone() and not application:
            with self.transaction():
                for statement in form.schema.split(";"):
                    self.db.execute(statement)
                self.db.execute(f"pragma application_id = {form.application}")
                self.db.execute(f"pragma user_version = {form.version}")
            return
        if application != form.application:
            raise self.refused("is a database of another program")
        if version != form.version:
            raise self.refused("was written by another version of gallocheck")
        (health,) = self.db.execute("pragma quick_check(1)").fetchone()
        if health != "ok":
            raise self.refused(
                f"is damaged ({health.splitlines()[-1]})", "move it away, or name another folder"
            )

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of what is done in it or nothing."""
        with self.said():
            self.db.execute("begin immediate")
            try:
                yield
            except BaseException:
                self.db.execute("rollback")
                raise
            self.db.execute("commit")

    @property
    def facts(self) -> dict[str, object]:
        with self.said():
            return dict(self.db.execute("select name, value from facts"))

    def begin(self, facts: dict[str, object]) -> None:
        """Says what it is about, or makes sure that it still is that: the error names the fact that is another."""
        form, there = self.form, self.facts
        for name, value in facts.items():
            if name in there and there[name] != value:
                raise form.error(
                    f"{self.folder} holds {form.holds} with another {name} ({there[name]}, now {value}):"
                    f" name another folder with {form.option}."
                )
        with self.transaction():
            self.db.executemany("insert or ignore into facts values (?, ?)", list(facts.items()))

    def close(self) -> None:
        self.db.close()
        os.close(self.lock)

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
