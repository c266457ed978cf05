"""What a campaign knows, in one SQLite file: a job's result goes in whole, in one transaction, or not at all.

    with Store(folder) as store:
        store.begin(facts)
        store.add_batch(result, spent_s)

The parent of a campaign is its only writer; a lock on the folder keeps others out. Batches are keyed by
number, so a result that comes twice counts once. What is in the file after `kill -9` of anything is what
had been committed; the rest is run again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from ..database import Database, Form
from . import corpus, findings
from .errors import CampaignError
from .findings import Sample
from .work import BatchResult, Shrunk

NAME = "campaign.sqlite"
APPLICATION, VERSION = 0x67616C6C, 1  # 'gall': what the file says that it is
MOST_POINTS = 1000  #: of the campaign's course

SCHEMA = """
create table facts(name text primary key, value);
create table counts(name text primary key, n integer not null);
create table tally(clause text primary key, n integer not null);
create table batches(number integer primary key);
create table points(at_s real primary key, operations integer, corpus integer, features integer, findings integer)
"""


class Point(NamedTuple):
    """The campaign after `at_s` seconds."""

    at_s: float
    operations: int
    corpus: int
    features: int
    findings: int


FORM = Form(
    NAME,
    APPLICATION,
    VERSION,
    ";".join((SCHEMA, corpus.SCHEMA, findings.SCHEMA)),
    "a campaign",
    "campaign",
    "--corpus",
    CampaignError,
)


class Store(Database):
    """The campaign in `folder`, which is made where it is not there; nobody else may use it meanwhile.

    Raises CampaignError, here and in every method: in use, not writable, no campaign's file, damaged.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, FORM)

    def rows(self, query: str, *values: object) -> list[tuple]:
        with self.said():
            return self.db.execute(query, values).fetchall()

    def count(self, query: str, *values: object) -> int:
        return int(self.rows(query, *values)[0][0])

    # -- facts and counts --------------------------------------------------------

    def remember(self, facts: dict[str, object]) -> None:
        """Facts of the latest run, which another run may have otherwise: how it was asked for, and where it ran."""
        with self.transaction():
            self.db.executemany("insert or replace into facts values (?, ?)", list(facts.items()))

    @property
    def counts(self) -> dict[str, int]:
        """operations, traces, misuse, batches, spent_ms, skipped, canaries (1 when they were found), and
        below (no batch below it is missing)."""
        return dict(self.rows("select name, n from counts"))

    def add(self, name: str, n: int) -> None:
        self.db.execute(
            "insert into counts values (?, ?) on conflict do update set n = n + excluded.n", (name, n)
        )

    def note(self, name: str, n: int) -> None:
        """As `add`, at once."""
        with self.transaction():
            self.add(name, n)

    def spend(self, spent_s: float) -> None:
        """The campaign has taken so many seconds, all its runs together."""
        self.db.execute("insert or replace into counts values ('spent_ms', ?)", (round(1000 * spent_s),))

    @property
    def tally(self) -> dict[str, int]:
        """How often each clause was exercised."""
        return dict(self.rows("select clause, n from tally"))

    # -- batches -------------------------------------------------------------------

    def missing(self) -> Iterator[int]:
        """Numbers of batches that are not in yet, ascending, without end."""
        below = self.counts.get("below", 0)
        done = {n for (n,) in self.rows("select number from batches")}
        while True:
            if below not in done:
                yield below
            done.discard(below)
            below += 1

    def add_batch(
        self, result: BatchResult, spent_s: float, known: Callable[[str], str] = lambda _: ""
    ) -> bool:
        """A batch's result; False, and nothing is changed, where it is in already.

        `known`: the name of the expected failure that a signature is of, '' where it is new.
        """
        with self.transaction():
            if not self.tick(result.number):
                return False
            counts = {
                "operations": result.operations,
                "traces": result.traces,
                "misuse": result.misuse,
                "batches": 1,
            }
            for name, n in counts.items():
                self.add(name, n)
            self.spend(spent_s)
            self.db.executemany(
                "insert into tally values (?, ?) on conflict do update set n = n + excluded.n",
                list(result.tally.items()),
            )
            findings.add(self.db, result, known)
            corpus.admit(
                self.db, [(findings.encode(k.trace), len(k.trace.ops), k.features) for k in result.kept]
            )
        return True

    def skip_batch(self, number: int, spent_s: float) -> None:
        """A batch that kills whoever runs it."""
        with self.transaction():
            if self.tick(number):
                self.add("skipped", 1)
                self.spend(spent_s)

    def tick(self, number: int) -> bool:
        """Notes that the batch is in; False where it was. Only what is above the first missing one has a row."""
        below = self.counts.get("below", 0)
        if number < below or self.rows("select 1 from batches where number = ?", number):
            return False
        self.db.execute("insert into batches values (?)", (number,))
        first = below
        while self.rows("select 1 from batches where number = ?", below):
            below += 1
        self.db.execute("delete from batches where number < ?", (below,))
        self.add("below", below - first)
        return True

    # -- findings --------------------------------------------------------------------

    def to_shrink(self, most: int, only_first: bool = False) -> list[Sample]:
        """Samples that are not made small yet, the first of each signature before the others."""
        first = "and nth = 0" if only_first else ""
        with self.said():
            return findings.samples(self.db, f"shape is null {first} order by nth, id limit ?", most)

    def findings(self) -> list[Sample]:
        """The first sample of each finding, by clause."""
        with self.said():
            by_clause = "json_extract(cast(verdict as text), '$.clause'), id"
            return findings.samples(self.db, f"{findings.FINDING} order by {by_clause}")

    def by_clause(self) -> dict[str, int]:
        """How many findings there are, by clause ('' where none decides)."""
        rows = self.rows(
            f"select json_extract(cast(verdict as text), '$.clause') as clause, count(*) from samples"
            f" where {findings.FINDING} group by clause order by clause"
        )
        return dict(rows)

    def waiting(self) -> int:
        """How many failing traces are to be made small."""
        return self.count("select count(*) from samples where shape is null")

    def is_new(self) -> bool:
        """Whether anything was found that is not expected."""
        return bool(self.rows("select 1 from samples limit 1"))

    def expected(self) -> dict[str, int]:
        """Expected failures that were met, and how often."""
        return dict(self.rows("select known, sum(n) from signatures where known != '' group by known"))

    def add_small(self, small: Shrunk) -> bool:
        """A sample made small; False, and nothing is changed, where it is that already."""
        with self.transaction():
            return findings.make_small(self.db, small)

    # -- its course ---------------------------------------------------------------------

    def point(self, spent_s: float) -> Point:
        """Notes where the campaign is; every other point goes where there are many."""
        counts = self.counts
        sizes = corpus.size(self.db), corpus.known_size(self.db)
        found = findings.count(self.db, findings.FINDING)
        here = Point(spent_s, counts.get("operations", 0), *sizes, found)
        with self.transaction():
            self.db.execute("insert or replace into points values (?, ?, ?, ?, ?)", here)
            self.spend(spent_s)
            if self.count("select count(*) from points") > MOST_POINTS:
                self.db.execute(
                    "delete from points where at_s in (select at_s from (select at_s, row_number() over"
                    " (order by at_s) as n from points) where n % 2 = 0)"
                )
        return here

    def points(self) -> list[Point]:
        return [Point(*row) for row in self.rows("select * from points order by at_s")]
