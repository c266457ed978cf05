"""Each planted defect of the ggml subject is found by a hunt, and blamed on its clause.

The overlay's scheduler path keeps C, and R14 and M with it. The pinned tree's own does not keep C1 and C2, so
a planted defect counts as found there only by a signature that the same tree does not show without it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest
from gallocheck.fuzz.hunt import Finding, Hunt
from gallocheck.fuzz.judge import Judge
from gallocheck.native import trees
from gallocheck.native.header import SubjectError

FILE = Path(__file__).parents[2] / "native" / "ggml" / "defects.def"
DEFECTS = [
    (int(n), clause) for n, clause in re.findall(r'^GC_DEFECT\((\d+), "(\w+)"', FILE.read_text(), re.M)
]
#: 109 is in the overlay alone; a failed alloc of the pinned tree mostly faults before 104 can abort; 102, 117 take long
ON_PLAIN = [
    (n, clause)
    for n, clause in DEFECTS
    if clause in ("C1", "C2", "C3", "C4") and n not in (102, 104, 109, 117)
]
#: hunted for many seconds: their kept traces must do (tests/defects/test_canary.py)
LONG = (109, 114, 115, 116)
HUNTED = [(n, clause) for n, clause in DEFECTS if n not in LONG]
SECONDS, BASE_TRACES = 60, 150


class Base(NamedTuple):
    """A subject with planted defects, and what it shows with none switched on."""

    library: Path
    findings: tuple[Finding, ...]

    @property
    def signatures(self) -> set[str]:
        return {f.verdict.signature for f in self.findings}


def hunt(judge: Judge) -> Hunt:
    found = Hunt(judge, seed=1, shrink_s=1.0)
    found.profiles = ["sched"]
    return found


def base(variant: str) -> Base:
    library = trees.build(trees.pinned(), variant)
    with Judge(str(library)) as judge:
        found = hunt(judge).run(SECONDS, traces=BASE_TRACES)
    assert found.traces == BASE_TRACES and found.tally["C1"] and found.tally["C2"]
    return Base(library, tuple(found.findings))


@pytest.fixture(scope="module")
def resizable() -> Base:
    return base("resizable-planted")


@pytest.fixture(scope="module")
def plain() -> Base:
    return base("planted")


def find(subject: Base, defect: int, clause: str) -> None:
    """Hunts until the clause is blamed in a way that the subject without the defect does not show."""

    def blamed(signature: str) -> bool:
        return signature.startswith(f"{clause}|") and signature not in subject.signatures

    with Judge(str(subject.library), defect, timeout=2.0) as judge:
        found = hunt(judge).run(SECONDS, until=lambda r: any(blamed(f.verdict.signature) for f in r.findings))
    mine = [f for f in found.findings if blamed(f.verdict.signature)]
    assert mine, [f.verdict.signature for f in found.findings]
    assert mine[0].confirmed


def test_overlay_is_a_clean_base(resizable: Base) -> None:
    """No finding but that a split may not have 31 inputs (F15), that bytes are lost (F12), and allocs that
    succeed although the reservation they made failed: of graphs that need no memory, which the plan that is
    published all the same is right for (docs/choices.md, Alloc)."""
    for f in resizable.findings:
        if "GGML_SCHED_MAX_SPLIT_INPUTS" in f.verdict.message or f.verdict.clause == "P10":
            continue
        assert f.verdict.signature.startswith("C2|ALLOC|every allocation failed"), f.verdict
        assert not any(t.size for t in f.trace.graphs[f.trace.ops[f.verdict.step].graph].tensors)


def test_each_clause_of_the_scheduler_has_two() -> None:
    clauses = [clause for _, clause in DEFECTS]
    assert all(clauses.count(c) >= 2 for c in ("C1", "C2", "C3", "C4", "C5", "R14"))
    assert all(n > 100 for n, _ in DEFECTS), "numbers up to 100 are the bundled allocator's"


@pytest.mark.parametrize(("defect", "clause"), HUNTED)
def test_found_on_the_overlay(resizable: Base, defect: int, clause: str) -> None:
    find(resizable, defect, clause)


@pytest.mark.parametrize(("defect", "clause"), ON_PLAIN)
def test_found_beside_the_trees_own_defects(plain: Base, defect: int, clause: str) -> None:
    find(plain, defect, clause)


@pytest.mark.parametrize("variant", ["plain", "resizable"])
def test_shipped_subjects_have_none(variant: str) -> None:
    library = trees.build(trees.pinned(), variant)
    with pytest.raises(SubjectError, match="no planted defect"), Judge(str(library), 101):
        pass
