"""The findings of a campaign, in its SQLite file.

A *signature* is how a failure reads, without its numbers; it is counted. Some failing traces of each
signature are *samples*, which are made small. A *finding* is what samples of one clause and one shape
(found.shape) have in common: its first sample.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from ...model.records import Trace
from .. import wire
from ..found import shape
from ..verdict import Verdict
from .work import BatchResult, Failure, Shrunk

SAMPLES = 3  #: of one signature: they may be of different faults
MOST_SAMPLES = 2000  #: of all signatures together

SCHEMA = """
create table signatures(signature text primary key, clause text, known text, n integer not null);
create table samples(id integer primary key, signature text, nth integer, batch integer, place integer,
  verdict blob, trace blob, shape text, same_as integer, confirmed integer)
"""
#: what counts as a finding: what is made small, once a shape; of what is not yet, the first of a signature
FINDING = "same_as is null and (shape is not null or nth = 0)"


class Sample(NamedTuple):
    """A failing trace. `shape`: None until it is made small. `met`: how many traces failed with its
    signature. `confirmed`: made small, it failed in new processes too."""

    id: int
    verdict: Verdict
    trace: Trace
    batch: int
    shape: str | None
    confirmed: bool
    met: int


def encode(trace: Trace) -> bytes:
    return msgspec.json.encode(wire.trace_out(trace))


def decode(raw: bytes) -> Trace:
    return wire.trace_in(msgspec.json.decode(raw, type=wire.TraceFile))


def samples(db: sqlite3.Connection, where: str, *values: object) -> list[Sample]:
    rows = db.execute(
        "select id, verdict, trace, batch, shape, confirmed, (select n from signatures g where"
        f" g.signature = s.signature) from samples s where {where}",
        values,
    )
    return [
        Sample(i, msgspec.json.decode(v, type=Verdict), decode(t), batch, shaped, bool(sure), met or 0)
        for i, v, t, batch, shaped, sure, met in rows
    ]


def count(db: sqlite3.Connection, where: str, *values: object) -> int:
    return int(db.execute(f"select count(*) from samples where {where}", values).fetchone()[0])


def add(db: sqlite3.Connection, result: BatchResult, known: Callable[[str], str]) -> None:
    """The failures of a batch. `known`: the expected failure that a signature is of, '' where it is new."""
    for failure in result.failures:
        _add_one(db, result.number, failure, known(failure.verdict.signature))
    for signature, n in result.failed.items():
        db.execute("update signatures set n = n + ? where signature = ?", (n, signature))


def _add_one(db: sqlite3.Connection, batch: int, failure: Failure, known: str) -> None:
    """Its signature, and the trace itself where it is new and more samples of it are wanted."""
    verdict, signature = failure.verdict, failure.verdict.signature
    row = (signature, verdict.clause or verdict.sort, known)
    db.execute("insert or ignore into signatures values (?, ?, ?, 0)", row)
    nth = count(db, "signature = ?", signature)
    if known or nth >= SAMPLES or count(db, "true") >= MOST_SAMPLES:
        return
    db.execute(
        "insert into samples values (null, ?, ?, ?, ?, ?, ?, null, null, null)",
        (signature, nth, batch, failure.index, msgspec.json.encode(verdict), encode(failure.trace)),
    )


def make_small(db: sqlite3.Connection, small: Shrunk) -> bool:
    """A sample made small; False, and nothing is changed, where it is that already."""
    if not count(db, "id = ? and shape is null", small.sample):
        return False
    name, key = small.verdict.clause or small.verdict.sort, shape(small.trace)
    same = db.execute(
        "select s.id from samples s join signatures g using (signature)"
        " where s.shape = ? and g.clause = ? and s.same_as is null",
        (key, name),
    ).fetchone()
    db.execute(
        "update samples set verdict = ?, trace = ?, shape = ?, confirmed = ?, same_as = ? where id = ?",
        (msgspec.json.encode(small.verdict), encode(small.trace), key, small.confirmed,
         same[0] if same else None, small.sample),
    )  # fmt: skip
    return True
