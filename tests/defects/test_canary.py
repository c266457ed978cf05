"""The kept trace of each planted defect: it shows its clause, always, and only on the planted build."""

from __future__ import annotations

from pathlib import Path

import pytest
from gallocheck.cli import check
from gallocheck.fuzz import canary
from gallocheck.fuzz.canary import path_of
from gallocheck.fuzz.catalogue import DEFECTS, SCHED_DEFECTS, Defect
from gallocheck.fuzz.judge import Judge
from gallocheck.fuzz.replay import load
from gallocheck.native.library import library_path
from gallocheck.spec.clauses import select
from rich.console import Console

TIMES = 6  #: for the first defect of each clause, which every check relies on; the others a few times
FIRST = {d.clause: d for d in reversed(DEFECTS)}
EACH = pytest.mark.parametrize("defect", DEFECTS, ids=lambda d: f"{d.number}-{d.clause}")


@EACH
def test_it_shows_its_clause_every_time(defect: Defect) -> None:
    """As `gallocheck replay` runs it: each time in a process that has run nothing before."""
    saved = load(path_of(defect))
    times = TIMES if defect is FIRST[defect.clause] else 3
    with Judge(str(library_path("planted")), defect.number, timeout=2.0) as judge:
        verdicts = [judge.judge(saved.trace, anew=True).failed for _ in range(times)]
    assert all(v == verdicts[0] for v in verdicts)
    first = verdicts[0]
    assert first is not None and first.sort == "broken"
    assert (first.clause, first.step) == (defect.clause, saved.step)


def test_the_shipped_build_shows_none() -> None:
    with Judge(str(library_path("bundled"))) as judge:
        found = {d.number: judge.judge(load(path_of(d)).trace, anew=True).failed for d in DEFECTS}
    assert {number: str(v) for number, v in found.items() if v is not None} == {}


@pytest.mark.parametrize("defect", SCHED_DEFECTS, ids=lambda d: f"{d.number}-{d.clause}")
def test_the_canaries_of_a_tree_sing(defect: Defect) -> None:
    """C1, C2, C5: planted in the adapter of a ggml tree."""
    with Judge(canary.library_of(defect), timeout=2.0) as judge:
        assert canary.found(defect, judge)


@pytest.mark.parametrize("how", ["silent", "another clause"])
def test_a_check_with_a_silent_canary_could_not_run(
    how: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Exit code 3: a green table would mean nothing."""
    saved = load(path_of(next(d for d in DEFECTS if d.clause == "G5")))
    other = next(d for d in DEFECTS if d.clause == ("P9" if how == "silent" else "R1"))
    monkeypatch.setattr(canary, "load", lambda path: load(path_of(other)) if "P1." in str(path) else saved)
    console = Console(record=True, width=200, quiet=False)
    code = check.run(console, ["P1"], "bundled", None, 1, 5.0, 3, tmp_path, None, 0)
    assert code == 3
    text = console.export_text()
    assert "canary of P1 was not found" in text and "holds" not in text
    assert list(tmp_path.iterdir()) == []


def test_a_check_whose_canary_sings_runs(tmp_path: Path) -> None:
    console = Console(record=True, width=200)
    assert check.run(console, ["P1"], "bundled", None, 1, 5.0, 3, tmp_path, None, 0) == 0
    assert [c.id for c in select(["P1"])] == ["P1"] and "holds" in console.export_text()
