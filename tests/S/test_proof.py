"""S is proven, and the proof can fail: no part is empty, and every wrong variant is refuted with a trace."""

from __future__ import annotations

from collections import Counter

import pytest
from gallocheck.spec import beside, counted
from gallocheck.spec.bounded import Search, lines, reach, replay
from gallocheck.spec.counted import Remembered, remembered
from gallocheck.spec.induction import empty_parts
from gallocheck.spec.machine import INVARIANT
from gallocheck.spec.prover import PROVED, REFUTED, prove_machine
from gallocheck.spec.sharing import CLAUSES
from gallocheck.spec.variants_counted import VARIANTS, ChecksForTheSum, OwnOnesFirst, Variant


def test_s_is_proved() -> None:
    """One and two types and chunks, all sizes."""
    rows = prove_machine(counted.MACHINE)
    assert {(r.clause, r.config) for r in rows} == {
        (c, k) for c in (INVARIANT, *CLAUSES) for k in counted.MACHINE.configs
    }
    assert [r for r in rows if r.verdict != PROVED] == []


def test_no_part_is_empty() -> None:
    assert empty_parts(counted.MACHINE, (2, 1)) == []
    assert empty_parts(beside.MACHINE, (2, 1)) == []


def test_every_clause_has_two_variants() -> None:
    n = Counter(v.breaks for v in VARIANTS)
    assert set(n) == set(CLAUSES) and min(n.values()) >= 2


@pytest.mark.parametrize("cls", VARIANTS, ids=lambda c: c.__name__)
def test_every_variant_is_refuted_with_a_trace(cls: type[Variant]) -> None:
    """By the clause it is named for; over ints the trace breaks it too, and nothing in the right model."""
    rows = prove_machine(counted.MACHINE, [cls.breaks], [(1, 1)], remembered(cls))
    row = next(r for r in rows if r.clause == cls.breaks)
    assert row.verdict == REFUTED and row.part
    assert row.trace is not None and row.reached.startswith("reached from the start")
    assert cls.breaks in {c for c, _ in replay(counted.MACHINE, remembered(cls), row.trace)[-1].broken}
    sound = replay(counted.MACHINE, Remembered, row.trace)
    assert [m.broken for m in sound] == [[]] * len(row.trace.ops)


def test_s5_what_works_apart_works_shared_while_nobody_left() -> None:
    """For every history and every size; and no device ever has more in use (S1)."""
    rows = prove_machine(beside.MACHINE)
    assert {r.clause for r in rows} == {INVARIANT, "S1", "S5"}
    assert [r for r in rows if r.verdict != PROVED] == []


@pytest.mark.parametrize("cls", [OwnOnesFirst, ChecksForTheSum], ids=lambda c: c.__name__)
def test_s5_beside_apart_wrong_variants_are_refuted(cls: type[Variant]) -> None:
    rows = prove_machine(beside.MACHINE, ["S5"], [(1, 1)], beside.beside(cls))
    row = next(r for r in rows if r.clause == "S5")
    assert row.verdict == REFUTED and row.reached.startswith("reached from the start")


@pytest.fixture(scope="module")
def claim() -> Search:
    return reach(beside.FALSE_CLAIM, beside.Beside, (1, 1), beside.CLAIM)


def test_s5_unrestricted_is_false(claim: Search) -> None:
    """Two reserves are enough: the one that leaves finds no memory beside what the other still holds."""
    assert claim.trace is not None and len(claim.trace.ops) == 5
    moments = replay(beside.FALSE_CLAIM, beside.Beside, claim.trace)
    assert [m.broken for m in moments] == [[]] * 4 + [[(beside.CLAIM, "")]]
    assert [m.broken for m in replay(beside.MACHINE, beside.Beside, claim.trace)] == [[]] * 5
    assert f"breaks {beside.CLAIM}" in lines(beside.FALSE_CLAIM, beside.Beside, claim.trace)[-1]
