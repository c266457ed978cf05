"""R is proven, and the proof can fail: no part is empty, and every wrong variant is refuted with a trace."""

from __future__ import annotations

import time
from io import StringIO

import pytest
from gallocheck.model.resizable import Model
from gallocheck.spec import induction
from gallocheck.spec.bounded import Search, lines, reach, replay
from gallocheck.spec.clauses import CLAUSES, UnknownClause, clause, select
from gallocheck.spec.induction import empty_parts
from gallocheck.spec.machine import INVARIANT
from gallocheck.spec.pair import CHUNK_CLAIM, FALSE_CLAIM, MACHINE, Remembered, remembered
from gallocheck.spec.prover import PROVED, REFUTED, UNKNOWN, NotProved, Row, provable, prove_machine
from gallocheck.spec.resizable import CHECKED
from gallocheck.spec.table import print_table
from gallocheck.spec.variants import VARIANTS, KeepOnGrow, Leak, StrangeTypes, Variant
from rich.console import Console


def test_all_of_r_is_proved_within_the_limit() -> None:
    """Unbounded sizes, one to three types and chunks; 16 s of a quiet core, 40 s where others share it."""
    began = time.process_time()
    rows = prove_machine(MACHINE)
    expected = {(c, k) for c in (INVARIANT, *CHECKED) for k in MACHINE.configs}
    assert {(r.clause, r.config) for r in rows} == expected and len(MACHINE.configs) == 9
    assert [r for r in rows if r.verdict != PROVED] == []
    assert {c.id for c in CLAUSES if c.letter == "R"} <= set(CHECKED)
    assert time.process_time() - began < 40


def test_no_part_of_a_clause_is_empty() -> None:
    """Every part has a step, from a state with the invariants, of which it says something."""
    assert empty_parts(MACHINE, (2, 1)) == []


@pytest.fixture(scope="module")
def claim() -> Search:
    return reach(FALSE_CLAIM, Remembered, (1, 2), CHUNK_CLAIM)


def test_the_claim_that_no_chunk_shrinks_is_false(claim: Search) -> None:
    """R5: two reserves are enough, one chunk grows and the other becomes smaller; no clause is broken."""
    assert claim.trace is not None and len(claim.trace.ops) <= 5
    moments = replay(FALSE_CLAIM, Remembered, claim.trace)
    assert [m.broken for m in moments] == [[]] * (len(moments) - 1) + [[(CHUNK_CLAIM, "")]]
    assert [m.broken for m in replay(MACHINE, Remembered, claim.trace)] == [[]] * len(moments)
    assert f"breaks {CHUNK_CLAIM}" in lines(FALSE_CLAIM, Remembered, claim.trace)[-1]


#: types and chunks of the variants that a single chunk of a single type hides
NEEDS: dict[type[Model], tuple[int, int]] = {StrangeTypes: (2, 1), KeepOnGrow: (1, 2), Leak: (1, 2)}


@pytest.fixture(scope="module", params=VARIANTS, ids=lambda c: c.__name__)
def refuted(request: pytest.FixtureRequest) -> tuple[type[Variant], list[Row]]:
    cls: type[Variant] = request.param
    return cls, prove_machine(MACHINE, [cls.breaks], [NEEDS.get(cls, (1, 1))], remembered(cls))


def test_every_variant_is_refuted_with_a_trace(refuted: tuple[type[Variant], list[Row]]) -> None:
    """By the clause it is named for; over ints the trace breaks it too, and nothing in the right model."""
    cls, rows = refuted
    row = next(r for r in rows if r.clause == cls.breaks)
    assert row.verdict == REFUTED and row.part
    assert row.reached.startswith("reached from the start")
    assert row.trace is not None
    broken = [[c for c, _ in m.broken] for m in replay(MACHINE, remembered(cls), row.trace)]
    assert cls.breaks in broken[-1]
    assert not any(cls.breaks in step for step in broken[:-1])
    assert [m.broken for m in replay(MACHINE, Remembered, row.trace)] == [[]] * len(row.trace.ops)


def test_every_clause_of_r_has_a_variant() -> None:
    assert {v.breaks for v in VARIANTS} == set(CHECKED)


def test_a_refutation_reads_as_words() -> None:
    cls = next(v for v in VARIANTS if v.__name__ == "LastWins")
    rows = prove_machine(MACHINE, ["R3"], [(1, 1)], remembered(cls))
    text = StringIO()
    print_table(rows, Console(file=text, width=200))
    shown = text.getvalue()
    for words in (
        "R3",
        "maximum of requirements",
        "refuted",
        "reserves [",
        "reached from the start in 4",
        "breaks R3",
    ):
        assert words in shown


def test_what_rests_on_a_refuted_invariant_is_unknown() -> None:
    cls = next(v for v in VARIANTS if v.__name__ == "QuietFailure")
    found = prove_machine(MACHINE, ["R12", "R7"], [(1, 1)], remembered(cls), search=False)
    rows = {r.clause: r for r in found}
    assert rows[INVARIANT].verdict == REFUTED
    assert rows["R12"].verdict == UNKNOWN


def test_a_solver_that_gives_up_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(induction, "TIMEOUT", 0.001)
    rows = prove_machine(MACHINE, ["R10"], [(3, 3)], search=False)
    assert {r.verdict for r in rows} == {UNKNOWN}


@pytest.mark.parametrize("names", [None, [], ["R"], ["r"], ["R5", "G1"], ["G"]])
def test_which_clauses_are_proved(names: list[str] | None) -> None:
    found = provable(names)
    assert found and {c[0] for c in found} >= {n[0].upper() for n in names or ["R"]}
    if names == ["G"]:
        assert found == ("G1", "G2")


@pytest.mark.parametrize(
    ("name", "error", "says"),
    [
        ("R99", UnknownClause, "There is no clause 'R99'; R has R1 to R14"),
        ("X", UnknownClause, "the letters are P G R"),
        ("", UnknownClause, "There is no clause ''"),
        ("P1", NotProved, "Clause P1 is not among those that are proved"),
    ],
)
def test_a_clause_that_cannot_be_proved_is_one_sentence(name: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error) as failure:
        provable([name])
    assert says in str(failure.value) and str(failure.value).endswith(".")


def test_clauses_are_found_by_id_and_letter() -> None:
    assert clause("r5").title and clause(" R5 ") is clause("R5")
    assert [c.id for c in select(["T", "g2", "M"])] == ["G2", "M1", "M2", "M3", "T1"]
    assert len({c.id for c in CLAUSES}) == len(CLAUSES) == 65
    assert all(c.statement.endswith((".", ")")) and c.layer for c in CLAUSES)
