"""C is proven, and the proof can fail: no part is empty, and every wrong scheduler is refuted with a trace."""

from __future__ import annotations

import time
from collections import Counter

import pytest
from gallocheck.model.scheduler import Model
from gallocheck.spec.bounded import replay
from gallocheck.spec.induction import empty_parts
from gallocheck.spec.machine import INVARIANT
from gallocheck.spec.prover import PROVED, REFUTED, prove_machine
from gallocheck.spec.scheduler import CLAUSES, MACHINE
from gallocheck.spec.variants_scheduler import VARIANTS, Variant


def test_all_of_c_is_proved_within_the_limit() -> None:
    """Unbounded sizes, one and two types; 3 s of a quiet core."""
    began = time.process_time()
    rows = prove_machine(MACHINE)
    assert {(r.clause, r.config) for r in rows} == {
        (c, k) for c in (INVARIANT, *CLAUSES) for k in MACHINE.configs
    }
    assert [r for r in rows if r.verdict != PROVED] == []
    assert time.process_time() - began < 10


def test_no_part_of_a_clause_is_empty() -> None:
    """Every part has a step, from a state with the invariants, of which it says something."""
    assert empty_parts(MACHINE, (2, 1)) == []


def test_every_clause_has_two_variants() -> None:
    counts = Counter(v.breaks for v in VARIANTS)
    assert all(counts[c] >= 2 for c in CLAUSES) and set(counts) == set(CLAUSES)


#: of each clause the first, and those that only a trace shows
REACHED = tuple(v for v in VARIANTS if v.later or v is next(x for x in VARIANTS if x.breaks == v.breaks))


@pytest.mark.parametrize("cls", [v for v in VARIANTS if v not in REACHED], ids=lambda c: c.__name__)
def test_every_variant_is_refuted(cls: type[Variant]) -> None:
    """By the clause it is named for: there is a step that breaks it."""
    rows = prove_machine(MACHINE, [cls.breaks], [(1, 1)], cls, search=False)
    row = next(r for r in rows if r.clause == cls.breaks)
    assert row.verdict == REFUTED and row.part and row.step


@pytest.mark.parametrize("cls", REACHED, ids=lambda c: c.__name__)
def test_some_of_each_clause_are_reached_from_the_start(cls: type[Variant]) -> None:
    """Over ints the trace that is found breaks the clause too, and nothing in the right model."""
    row = next(r for r in prove_machine(MACHINE, [cls.breaks], [(1, 1)], cls) if r.clause == cls.breaks)
    assert row.verdict == REFUTED and row.part
    assert row.reached.startswith("reached from the start") and row.trace is not None
    broken = [[c for c, _ in m.broken] for m in replay(MACHINE, cls, row.trace)]
    assert cls.breaks in broken[-1] and not any(cls.breaks in step for step in broken[:-1])
    assert [m.broken for m in replay(MACHINE, Model, row.trace)] == [[]] * len(row.trace.ops)
