"""How soon a campaign finds each planted defect: `python bench/defects.py [--seeds 10] [--every 1] [--limit 60]`.

The batches of a campaign, one after the other, as fuzz/campaign/run.py hands them out without kept
traces; every seed of every defect draws traces of its own. Seconds are processor time, the subject's
process too; the first start of the processes is left out. Found: something fails; blamed: on the defect's clause.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from gallocheck.fuzz.campaign.run import lanes_of
from gallocheck.fuzz.campaign.work import BatchResult, Bench, Task
from gallocheck.fuzz.catalogue import DEFECTS, Defect
from gallocheck.native.library import library_path
from timing import spent

LIBRARY = str(library_path("planted"))
TIMEOUT = 2.0  #: seconds of an operation that hangs
MORE = 5.0  #: seconds that are waited for the right clause, once something was found


@dataclass
class Sought:
    """When a defect showed with a seed, in seconds; None: it did not, within `limit`."""

    defect: int
    seed: int
    limit: float
    found: float | None = None
    blamed: float | None = None


def seek(bench: Bench, defect: Defect, seed: int, limit: float) -> Sought:
    """Runs batches until the defect is blamed, or the time is over."""
    sought, begin, number = Sought(defect.number, seed, limit), spent(), 0

    def over(result: BatchResult) -> bool:
        taken = spent() - begin
        if result.failures and sought.found is None:
            sought.found = taken
        if any(f.verdict.clause == defect.clause for f in result.failures):
            sought.blamed = taken
        end = limit if sought.found is None else min(limit, sought.found + MORE)
        return sought.blamed is not None or taken >= end

    while True:
        name, lanes = 1000 * seed + defect.number, lanes_of(number)
        task = Task(LIBRARY, name, number, defect.number, lanes=lanes, timeout=TIMEOUT)
        result = bench.run(task, over)
        assert isinstance(result, BatchResult)
        if over(result):
            return sought
        number += 1


def kept(log: Path | None) -> Iterator[Sought]:
    """The runs that an earlier call wrote down."""
    for line in log.read_text().splitlines() if log is not None and log.exists() else ():
        yield Sought(**json.loads(line))


def report(runs: list[Sought]) -> str:
    """Median and 95th percentile of the time to find; what was missed counts with its limit."""
    found = sorted(r.limit if r.found is None else r.found for r in runs)
    blamed = [r.blamed for r in runs if r.blamed is not None]
    missed = sum(r.found is None for r in runs)
    return (
        f"{len(runs)} runs of {len({r.defect for r in runs})} defects, {missed} missed; found after: median"
        f" {statistics.median(found):.2f} s, 95th percentile {found[int(0.95 * (len(found) - 1))]:.1f} s, at most"
        f" {found[-1]:.1f} s; blamed: median {statistics.median(blamed or [0]):.2f} s ({len(blamed)} of {len(runs)})"
    )


def line(defect: Defect, runs: list[Sought]) -> str:
    times = sorted(r.found for r in runs if r.found is not None)
    lost, unblamed = len(runs) - len(times), sum(r.blamed is None for r in runs)
    note = (f" MISSED in {lost}" if lost else "") + (f" not blamed in {unblamed}" if unblamed > lost else "")
    middle, worst = (statistics.median(times), times[-1]) if times else (0.0, 0.0)
    return f"{defect.number:3} {defect.clause:4} median {middle:5.2f} s, worst {worst:5.1f} s{note}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--every", type=int, default=1, help="look at every so many-th defect,")
    parser.add_argument("--offset", type=int, default=0, help="from this one on")
    parser.add_argument("--only", type=int, nargs="+", help="the numbers of defects")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each")
    parser.add_argument(
        "--log", type=Path, help="a file that runs are added to; those that it has are not run again"
    )
    asked = parser.parse_args()
    known = {(r.defect, r.seed): r for r in kept(asked.log)}
    runs: list[Sought] = []
    with Bench() as bench:
        for lanes in (0, 1):  # starts the processes
            bench.run(Task(LIBRARY, 0, 0, ops=1, lanes=lanes, timeout=TIMEOUT))
        for defect in DEFECTS[asked.offset :: asked.every]:
            if asked.only and defect.number not in asked.only:
                continue
            mine = []
            for seed in range(asked.first_seed, asked.first_seed + asked.seeds):
                if (run := known.get((defect.number, seed))) is None:
                    run = seek(bench, defect, seed, asked.limit)
                    if asked.log:
                        with asked.log.open("a") as file:
                            file.write(json.dumps(asdict(run)) + "\n")
                mine.append(run)
            runs += mine
            print(line(defect, mine), flush=True)
    print(report(runs))
    return int(any(r.found is None for r in runs))


if __name__ == "__main__":
    raise SystemExit(main())
