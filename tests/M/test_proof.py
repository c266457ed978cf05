"""M1 and R are proven of types over several devices, and the proof can fail."""

from __future__ import annotations

import pytest
from gallocheck.spec.bounded import replay
from gallocheck.spec.induction import empty_parts
from gallocheck.spec.meta import MACHINE
from gallocheck.spec.pair import Remembered, remembered
from gallocheck.spec.prover import PROVED, REFUTED, Row, prove_machine
from gallocheck.spec.variants_meta import VARIANTS, Variant


def test_m1_and_r_are_proved_of_meta_types() -> None:
    rows = prove_machine(MACHINE)
    assert {r.clause for r in rows} >= {"M1", "R3", "R4", "R9", "R13", "R14"}
    assert [r for r in rows if r.verdict != PROVED] == []


def test_no_part_is_empty() -> None:
    """Every part has a step of which it says something, for a meta type beside a simple one."""
    assert empty_parts(MACHINE, (2, 1, 0b01, 0b11)) == []


@pytest.fixture(scope="module", params=VARIANTS, ids=lambda c: c.__name__)
def refuted(request: pytest.FixtureRequest) -> tuple[type[Variant], list[Row]]:
    cls: type[Variant] = request.param
    return cls, prove_machine(MACHINE, ["M1"], [(2, 1, 0b01, 0b11)], remembered(cls))


def test_every_variant_is_refuted_with_a_trace(refuted: tuple[type[Variant], list[Row]]) -> None:
    cls, rows = refuted
    row = next(r for r in rows if r.clause == "M1")
    assert row.verdict == REFUTED and row.part.startswith("type 1: ")
    assert row.trace is not None and row.reached.startswith("reached from the start")
    assert "M1" in {c for c, _ in replay(MACHINE, remembered(cls), row.trace)[-1].broken}
    assert [m.broken for m in replay(MACHINE, Remembered, row.trace)] == [[]] * len(row.trace.ops)
