"""How soon a campaign finds each planted defect: `python bench/defects.py [--seeds 10] [--every 1] [--limit 30]`.

The batches of a campaign, one after the other, as fuzz/campaign/run.py hands them out without kept
traces; seconds are processor time, the subject's too. Found: something fails; blamed: on the defect's clause.
"""

from __future__ import annotations

import argparse
import statistics

from gallocheck.fuzz.campaign.run import EVERY, LANES
from gallocheck.fuzz.campaign.work import BatchResult, Bench, Task
from gallocheck.fuzz.catalogue import DEFECTS, Defect
from gallocheck.native.library import library_path
from timing import spent

BATCH = 60  #: operations: short, so that the time of a find is known well


def seek(bench: Bench, defect: Defect, seed: int, limit: float) -> tuple[float | None, float | None]:
    """(seconds until something failed, until it was blamed on the clause); None: not within `limit`."""
    found = None
    begin, number = spent(), 0
    while (taken := spent() - begin) < limit:
        lanes = LANES if number % (EVERY * 10) == 0 else 0
        task = Task(
            str(library_path("planted")), seed, number, defect.number, BATCH, lanes=lanes, timeout=2.0
        )
        result = bench.run(task)
        assert isinstance(result, BatchResult)
        taken = spent() - begin
        if result.failures and found is None:
            found = taken
        if any(f.verdict.clause == defect.clause for f in result.failures):
            return found, taken
        number += 1
    return found, None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--every", type=int, default=1, help="look at every so many-th defect")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds for each")
    asked = parser.parse_args()
    found: list[float] = []
    blamed: list[float] = []
    missed = 0
    with Bench() as bench:
        for defect in DEFECTS[:: asked.every]:
            times = [seek(bench, defect, seed, asked.limit) for seed in range(1, asked.seeds + 1)]
            found += [f if f is not None else asked.limit for f, _ in times]
            blamed += [b for _, b in times if b is not None]
            lost = sum(f is None for f, _ in times)
            missed += lost
            unblamed = sum(b is None for _, b in times) - lost
            worst = max((f for f, _ in times if f is not None), default=0.0)
            note = (f" MISSED in {lost}" if lost else "") + (f" not blamed in {unblamed}" if unblamed else "")
            print(f"{defect.number:3} {defect.clause:4} worst {worst:5.1f} s{note}", flush=True)
    ranked = sorted(found)
    print(
        f"{len(found)} runs, {missed} missed; found after: median {statistics.median(found):.2f} s,"
        f" 95th percentile {ranked[int(0.95 * (len(ranked) - 1))]:.1f} s; blamed: median"
        f" {statistics.median(blamed):.2f} s ({len(blamed)} of {len(found)})"
    )
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
