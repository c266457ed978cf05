"""V is proven for all sizes, and the proof can fail: every wrong variant is refuted with a trace."""

from __future__ import annotations

import time

import pytest
from gallocheck.spec.bounded import replay
from gallocheck.spec.induction import empty_parts
from gallocheck.spec.pool import CLAUSES, LEGACY, MACHINE, VMM
from gallocheck.spec.prover import PROVED, REFUTED, Row, prove_machine
from gallocheck.spec.variants_pool import VARIANTS, Variant

ON = {VMM: (VMM, 0, 2, 1, 4096), LEGACY: (LEGACY, 2, 1, 1, 4096)}  #: the smallest pools that show a variant


def test_v_is_proved_within_the_limit() -> None:
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
    rows = prove_machine(MACHINE, [cls.breaks], [ON[LEGACY if cls.legacy else VMM]], cls)
    return cls, next(r for r in rows if r.clause == cls.breaks)


def test_every_variant_is_refuted_with_a_trace(refuted: tuple[type[Variant], Row]) -> None:
    """By the clause that it is named for; the right model keeps every clause on the same trace."""
    cls, row = refuted
    assert row.verdict == REFUTED and row.part
    assert row.trace is not None and row.reached.startswith("reached from the start")
    assert cls.breaks in {c for c, _ in replay(MACHINE, cls, row.trace)[-1].broken}
    assert [m.broken for m in replay(MACHINE, MACHINE.model, row.trace)] == [[]] * len(row.trace.ops)


def test_every_clause_has_two_variants() -> None:
    names = [v.breaks for v in VARIANTS]
    assert {c: names.count(c) >= 2 for c in CLAUSES} == dict.fromkeys(CLAUSES, True)
