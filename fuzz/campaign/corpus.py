"""The corpus of a campaign: traces that showed something new, in the campaign's SQLite file.

Every feature belongs to the trace that showed it first. When there are too many traces, those that
the fewest features belong to go, long ones first; that their features are no news is still known.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Collection, Sequence

from .features import EDGE_BITS, EDGES, FAMILIES, family_of

MOST = 4000  #: traces that are kept
AFTER = 3000  #: so many are left when there were more
MOST_FEATURES = 1 << 20  #: more are not noted; everything is known then

SCHEMA = """
create table corpus(id integer primary key, trace blob, operations integer);
create table features(feature integer primary key, trace integer);
create index features_of on features(trace)
"""


def size(db: sqlite3.Connection) -> int:
    return int(db.execute("select count(*) from corpus").fetchone()[0])


def known(db: sqlite3.Connection) -> set[int]:
    """Every feature that was ever shown."""
    return {row[0] for row in db.execute("select feature from features")}


def known_size(db: sqlite3.Connection) -> int:
    return int(db.execute("select count(*) from features").fetchone()[0])


def by_family(db: sqlite3.Connection) -> dict[str, int]:
    """How many features of each family are known. An edge counts once, however often it was taken."""
    counts = dict.fromkeys(FAMILIES, 0)
    edges = f"select count(distinct feature >> {EDGE_BITS}) from features where feature >> 32 = {EDGES}"
    for high, n in db.execute("select feature >> 32, count(*) from features group by 1"):
        counts[family_of(high << 32)] += n if high != EDGES else db.execute(edges).fetchone()[0]
    return {family: n for family, n in counts.items() if n}


def admit(db: sqlite3.Connection, traces: Sequence[tuple[bytes, int, Collection[int]]]) -> None:
    """Keeps those of the (trace, its operations, its features) that show something new."""
    for raw, operations, features in traces:
        marks = list(features)
        new = [
            f for f in marks if not db.execute("select 1 from features where feature = ?", (f,)).fetchone()
        ]
        if not new or known_size(db) + len(new) > MOST_FEATURES:
            continue
        at = db.execute("insert into corpus values (null, ?, ?)", (raw, operations)).lastrowid
        db.executemany("insert into features values (?, ?)", [(f, at) for f in new])
    if size(db) > MOST:
        cull(db)


def cull(db: sqlite3.Connection, left: int = AFTER) -> None:
    """Drops the traces that matter least until `left` are left."""
    db.execute(
        "delete from corpus where id in (select c.id from corpus c left join features f on f.trace = c.id"
        " group by c.id order by count(f.feature), c.operations desc, c.id limit max(0, ?))",
        (size(db) - left,),
    )


def pick(db: sqlite3.Connection, rng: random.Random, most: int) -> list[bytes]:
    """Up to `most` different traces, at random: those more often that showed much for their length."""
    rows = db.execute(
        "select c.id, c.operations, count(f.feature) from corpus c left join features f on f.trace = c.id"
        " group by c.id order by c.id"
    ).fetchall()
    # the largest of u^(1/w), u from [0, 1), are a sample without replacement, each drawn as often as it weighs
    keyed = sorted((rng.random() ** (max(1, length) / (1 + shown)), i) for i, length, shown in rows)
    chosen = [i for _, i in keyed[::-1][:most]]
    return [db.execute("select trace from corpus where id = ?", (i,)).fetchone()[0] for i in chosen]
