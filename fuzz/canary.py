"""The canary: for each clause a planted defect that must be found, so that a dead check is noticed.

The traces are kept in fuzz/canaries/, one replay file a defect, written by
`python -m gallocheck.fuzz.canary` from a hunt for each defect.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from ..native.library import library_path
from .catalogue import DEFECTS, Defect
from .hunt import Hunt, Result
from .judge import Judge
from .replay import load, save

FOLDER = Path(__file__).parent / "canaries"


def path_of(defect: Defect) -> Path:
    return FOLDER / f"{defect.number:03}-{defect.clause}.json"


def run(clauses: Collection[str]) -> tuple[list[str], int]:
    """(clauses whose canary stayed silent, canaries found) on the planted build."""
    first: dict[str, Defect] = {}
    for defect in DEFECTS:
        if defect.clause in clauses and path_of(defect).exists():
            first.setdefault(defect.clause, defect)
    silent = [c for c, defect in first.items() if not found(defect)]
    return silent, len(first) - len(silent)


def found(defect: Defect) -> bool:
    """Whether the kept trace of a defect still shows it and names its clause."""
    trace = load(path_of(defect)).trace
    with Judge(str(library_path("planted")), defect.number, timeout=2.0) as judge:
        failed = judge.judge(trace).failed
    return failed is not None and failed.clause == defect.clause


def hunt_for(defect: Defect, seed: int, seconds: float) -> tuple[Hunt, Result]:
    """Hunts for a defect until its clause is blamed."""
    with Judge(str(library_path("planted")), defect.number, timeout=2.0) as judge:
        hunt = Hunt(judge, seed, shrink_s=2.0)
        result = hunt.run(seconds, until=lambda r: any(f.verdict.clause == defect.clause for f in r.findings))
    return hunt, result


def record(seed: int = 1, seconds: float = 60.0) -> list[Defect]:
    """Writes the traces anew; returns the defects that were not found."""
    missed = []
    for defect in DEFECTS:
        hunt, result = hunt_for(defect, seed, seconds)
        mine = [f for f in result.findings if f.verdict.clause == defect.clause]
        others = sorted({f.verdict.clause for f in result.findings} - {defect.clause})
        print(f"{defect.number:3} {defect.clause:4} {'found' if mine else 'MISSED':6}"
              f" {result.seconds:5.1f} s {result.operations:6} ops  also {others}  {defect.what}", flush=True)  # fmt: skip
        if mine:
            save(hunt.replay(mine[0]), path_of(defect))
        else:
            missed.append(defect)
    return missed


if __name__ == "__main__":
    raise SystemExit(1 if record() else 0)
