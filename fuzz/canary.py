"""The canary: for each clause a planted defect that must be found, so that a dead check is noticed.

The traces are kept in fuzz/canaries/, one replay file a defect, written by
`python -m gallocheck.fuzz.canary [NUMBER...]` from a hunt for each defect.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path

from ..native import trees
from ..native.library import library_path
from .batch.engine import IN_LOCKSTEP, Lanes
from .catalogue import DEFECTS, SCHED_DEFECTS, Defect
from .hunt import Hunt, Result
from .judge import Judge
from .replay import load, save

LOWER = ("plan", "gallocr", "huge", "pair")
#: by letter, the kinds of traces (profiles.SOURCES) that show its defects
SHOWS = {
    **dict.fromkeys("PGR", LOWER), "C": ("sched",), "S": ("counted",), "M": ("meta",), "V": ("pools",),
    "Q": ("captures",), "W": ("contexts", "server"), "T": ("server",),
}  # fmt: skip

FOLDER = Path(__file__).parent / "canaries"


def path_of(defect: Defect) -> Path:
    return FOLDER / f"{defect.number:03}-{defect.clause}.json"


def library_of(defect: Defect) -> str:
    """The library that has the defect. Raises TreeError where a tree is needed and cannot be had."""
    if defect in DEFECTS:
        return str(library_path("planted"))
    return str(trees.build(trees.pinned(), "resizable-planted"))


def run(clauses: Collection[str]) -> tuple[list[str], int]:
    """(clauses whose canary is missing or stayed silent, canaries found), of the bundled allocator."""
    first: dict[str, Defect] = {}
    for defect in DEFECTS:
        if path_of(defect).exists() and defect.clause in clauses:
            first.setdefault(defect.clause, defect)
    with Judge(str(library_path("planted")), timeout=2.0) as judge:
        sing = {clause for clause, defect in first.items() if found(defect, judge)}
    return [c for c in clauses if c not in sing], len(sing)


def found(defect: Defect, judge: Judge) -> bool:
    """Whether the kept trace of a defect still shows it, in a new process, and names its clause.

    `judge`: of the library that has the defect; one judge does for many.
    """
    judge.plant(defect.number)
    failed = judge.judge(load(path_of(defect)).trace).failed
    return failed is not None and failed.clause == defect.clause


#: by the hundreds of their numbers, from 200 on (native/bundled/defects/)
LAYERS = "CSMVQWT"


def layer_of(defect: Defect) -> str:
    """The layer that has the defect, which may break a clause of another: of those up to 200 its clause's."""
    return LAYERS[defect.number // 100 - 2] if defect.number > 200 else defect.clause[0]


def hunt_for(defect: Defect, seed: int, seconds: float, shrink_s: float = 2.0) -> tuple[Hunt, Result]:
    """Hunts for a defect, among the traces of its layer, until its clause is blamed."""
    library, among = library_of(defect), SHOWS[layer_of(defect)]
    if defect in SCHED_DEFECTS:
        among = ("meta",) if defect.clause[0] == "M" else ("sched",)
    with ExitStack() as opened:
        judge = opened.enter_context(Judge(library, defect.number, timeout=2.0))
        many = defect in DEFECTS and layer_of(defect) in IN_LOCKSTEP
        lanes = opened.enter_context(Lanes(library, defect.number, 2.0)) if many else None
        hunt = Hunt(judge, seed, shrink_s=shrink_s, lanes=lanes)
        hunt.profiles = [p for p in hunt.profiles if p in among]
        result = hunt.run(seconds, until=lambda r: any(f.verdict.clause == defect.clause for f in r.findings))
    return hunt, result


def record(defects: Collection[Defect], seed: int = 1, seconds: float = 60.0) -> list[Defect]:
    """Writes the traces of these defects anew; returns those that were not found."""
    missed = []
    for defect in defects:
        hunt, result = hunt_for(defect, seed, seconds)
        mine = [f for f in result.findings if f.verdict.clause == defect.clause]
        others = sorted({f.verdict.clause for f in result.findings} - {defect.clause})
        print(
            f"{defect.number:3} {defect.clause:4} {'found' if mine else 'MISSED':6} {result.seconds:5.1f} s"
            f" {result.operations:6} ops  also {others}  {defect.what}",
            flush=True,
        )
        if mine:
            save(hunt.replay(mine[0]), path_of(defect))
        else:
            missed.append(defect)
    return missed


if __name__ == "__main__":
    wanted = {int(n) for n in sys.argv[1:]}
    every = [d for d in (*DEFECTS, *SCHED_DEFECTS) if not wanted or d.number in wanted]
    raise SystemExit(1 if record(every) else 0)
