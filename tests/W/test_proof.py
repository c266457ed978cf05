"""W is proven, and the proof can fail: no part is empty, and every wrong policy and wrong pair of contexts is refuted."""

from __future__ import annotations

import time
from collections import Counter

import pytest
from gallocheck.model.waiting import Contexts
from gallocheck.model.workspace import Policy
from gallocheck.spec import waiting, workspace
from gallocheck.spec.bounded import replay
from gallocheck.spec.induction import empty_parts
from gallocheck.spec.machine import INVARIANT, Machine
from gallocheck.spec.prover import PROVED, REFUTED, prove_machine
from gallocheck.spec.variants_workspace import DUOS, POLICIES, Duo, watched

MACHINES = [workspace.MACHINE, waiting.MACHINE]


@pytest.mark.parametrize("m", MACHINES, ids=lambda m: m.name)
def test_all_of_w_is_proved_within_the_limit(m: Machine) -> None:
    """For every cache, window, micro-batch, need and interleaving; under a second of a quiet core."""
    began = time.process_time()
    rows = prove_machine(m)
    assert {r.clause for r in rows} == {INVARIANT, *m.clauses}
    assert [r for r in rows if r.verdict != PROVED] == []
    assert time.process_time() - began < 6


def test_both_machines_together_are_all_of_w() -> None:
    assert {c for m in MACHINES for c in m.clauses} == {f"W{k}" for k in range(1, 9)}


@pytest.mark.parametrize("m", MACHINES, ids=lambda m: m.name)
def test_no_part_of_a_clause_is_empty(m: Machine) -> None:
    """Every part has a step, from a state with the invariants, of which it says something."""
    assert empty_parts(m, ()) == []


def test_every_clause_has_two_variants() -> None:
    counts = Counter([clause for _, clause in POLICIES] + [d.breaks for d in DUOS])
    assert set(counts) == {f"W{k}" for k in range(1, 9)} and min(counts.values()) >= 2


@pytest.mark.parametrize(("wrong", "clause"), POLICIES, ids=lambda x: getattr(x, "__name__", x))
def test_every_wrong_policy_is_refuted(wrong: type[Policy], clause: str) -> None:
    """By the clause that it is named for; what needs 64 calls is no shorter from the start."""
    rows = prove_machine(workspace.MACHINE, [clause], model=watched(wrong), search=False)
    row = next(r for r in rows if r.clause == clause)
    assert row.verdict == REFUTED and row.part and wrong.__doc__


@pytest.mark.parametrize("wrong", DUOS, ids=lambda c: c.__name__)
def test_every_wrong_pair_is_refuted_with_a_trace(wrong: type[Duo]) -> None:
    """By the clause that it is named for; over ints the trace breaks it too, and nothing in the right model."""
    rows = prove_machine(waiting.MACHINE, [wrong.breaks], model=wrong)
    row = next(r for r in rows if r.clause == wrong.breaks)
    assert row.verdict == REFUTED and row.part and wrong.__doc__
    assert row.reached.startswith("reached from the start") and row.trace is not None
    broken = [[c for c, _ in m.broken] for m in replay(waiting.MACHINE, wrong, row.trace)]
    assert wrong.breaks in broken[-1] and not any(wrong.breaks in step for step in broken[:-1])
    assert [m.broken for m in replay(waiting.MACHINE, Contexts, row.trace)] == [[]] * len(row.trace.ops)
