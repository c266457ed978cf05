"""Of every clause a shortest trace that exercises it, a shortest that breaks it, and a reason why it is there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from gallocheck.fuzz import canary
from gallocheck.fuzz.catalogue import DEFECTS
from gallocheck.fuzz.judge import Judge
from gallocheck.fuzz.legal import why_illegal
from gallocheck.fuzz.replay import load
from gallocheck.fuzz.shortest import kept, length, shortest_break, shortest_exercise
from gallocheck.fuzz.shortest.find import exercises, shortest
from gallocheck.fuzz.shortest.telling import DEMANDS
from gallocheck.model.records import BufferType, Graph, Kind, Op, Setup, Trace
from gallocheck.native.library import library_path
from gallocheck.spec.clauses import CLAUSES
from gallocheck.spec.why import WHY, why

IDS = [c.id for c in CLAUSES]


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(str(library_path("bundled"))) as judge:
        yield judge


@pytest.mark.parametrize("clause", IDS)
def test_it_exercises_its_clause_and_breaks_none(clause: str, judge: Judge) -> None:
    trace = shortest_exercise(clause)
    assert why_illegal(trace) is None
    assert exercises(judge, trace, clause)
    assert len(trace.ops) <= 16


def test_nothing_else_is_kept() -> None:
    assert set(kept()) == set(IDS) and set(DEMANDS) <= set(IDS)


@pytest.mark.parametrize("clause", IDS)
def test_what_breaks_it_is_the_shortest_that_is_kept(clause: str) -> None:
    """That each canary breaks its clause: tests/defects/test_canary.py."""
    defect, replay = shortest_break(clause)
    assert defect.clause == replay.clause == clause and canary.path_of(defect).is_file()
    others = [load(canary.path_of(d)).trace for d in DEFECTS if d.clause == clause]
    assert length(replay.trace) == min(map(length, others))


def test_a_trace_must_tell_what_its_clause_is_about(judge: Judge) -> None:
    """A reserve without a request exercises R6, but it is no example of it."""
    plain = Trace(Setup((BufferType(),), ((0,),)), (Graph(()),), (Op(Kind.NEW), Op(Kind.RESERVE)))
    assert judge.judge(plain).tally["R6"] and not exercises(judge, plain, "R6")


def test_shorter_ones_are_found(judge: Judge) -> None:
    """Operations that are of no use go."""
    best = shortest_exercise("G5")
    padded = Trace(best.setup, best.graphs, (*best.ops, Op(Kind.NEW, 1), Op(Kind.LOOK, 1)))
    found = shortest(judge, "G5", [padded], 2.0)
    assert found is not None and length(found) <= length(best)


def test_every_clause_has_its_reason() -> None:
    assert set(WHY) == set(IDS)
    for clause in IDS:
        text = why(clause)
        assert text.endswith(".") and 40 < len(text) < 400 and "  " not in text
