"""T1 is proven, and the proof can fail."""

from __future__ import annotations

import pytest
from gallocheck.model.server import Model
from gallocheck.spec.bounded import replay
from gallocheck.spec.induction import empty_parts
from gallocheck.spec.prover import PROVED, REFUTED, prove_machine
from gallocheck.spec.server import MACHINE
from gallocheck.spec.variants_workspace import SERVERS


def test_t1_is_proved() -> None:
    assert {r.verdict for r in prove_machine(MACHINE)} == {PROVED}


def test_no_part_is_empty() -> None:
    assert empty_parts(MACHINE, ()) == []


@pytest.mark.parametrize("wrong", SERVERS, ids=lambda c: c.__name__)
def test_every_wrong_server_is_refuted_with_a_trace(wrong: type[Model]) -> None:
    row = next(r for r in prove_machine(MACHINE, ["T1"], model=wrong) if r.clause == "T1")
    assert row.verdict == REFUTED and row.part and wrong.__doc__
    assert row.reached.startswith("reached from the start") and row.trace is not None
    assert {c for c, _ in replay(MACHINE, wrong, row.trace)[-1].broken} == {"T1"}
    assert [m.broken for m in replay(MACHINE, Model, row.trace)] == [[]] * len(row.trace.ops)
