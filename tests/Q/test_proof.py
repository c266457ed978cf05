"""Q is proven for all sizes, and the proof can fail: every wrong variant is refuted."""

from __future__ import annotations

import time

import pytest
from gallocheck.spec.bounded import replay
from gallocheck.spec.capture import CLAUSES, MACHINE
from gallocheck.spec.induction import empty_parts
from gallocheck.spec.prover import PROVED, REFUTED, Row, prove_machine
from gallocheck.spec.variants_capture import VARIANTS, DropsFirst, Variant


def test_q_is_proved_within_the_limit() -> None:
    began = time.process_time()
    rows = prove_machine(MACHINE)
    assert {r.clause for r in rows} >= set(CLAUSES)
    assert [r for r in rows if r.verdict != PROVED] == []
    assert time.process_time() - began < 5


@pytest.mark.parametrize("config", MACHINE.configs, ids=str)
def test_no_part_is_empty(config: tuple[int, ...]) -> None:
    assert empty_parts(MACHINE, config) == []


@pytest.fixture(scope="module", params=VARIANTS, ids=lambda c: c.__name__)
def refuted(request: pytest.FixtureRequest) -> tuple[type[Variant], Row]:
    cls: type[Variant] = request.param
    rows = prove_machine(MACHINE, [cls.breaks], [(2,)], cls, search=cls is not DropsFirst)
    return cls, next(r for r in rows if r.clause == cls.breaks)


def test_every_variant_is_refuted_with_a_trace(refuted: tuple[type[Variant], Row]) -> None:
    """By the clause that it is named for. Two captures and a trim are more operations than are searched."""
    cls, row = refuted
    assert row.verdict == REFUTED and row.part
    if cls is DropsFirst:
        return
    assert row.trace is not None and row.reached.startswith("reached from the start")
    assert cls.breaks in {c for c, _ in replay(MACHINE, cls, row.trace)[-1].broken}
    assert [m.broken for m in replay(MACHINE, MACHINE.model, row.trace)] == [[]] * len(row.trace.ops)


def test_every_clause_has_two_variants() -> None:
    names = [v.breaks for v in VARIANTS]
    assert {c: names.count(c) >= 2 for c in CLAUSES} == dict.fromkeys(CLAUSES, True)
