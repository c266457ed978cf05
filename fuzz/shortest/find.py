"""Finds short traces that exercise a clause: draws many, and makes the shortest of them, and seeds, shorter."""

from __future__ import annotations

import heapq
import random
import time
from collections.abc import Callable, Sequence

import msgspec

from ...model.records import Trace
from .. import wire
from ..canary import SHOWS
from ..found import draw, profiles_for
from ..judge import Judge
from ..shrink import shrink
from . import FILE, length, read
from .seeds import SEEDS
from .telling import DEMANDS, tells

MOST = 4  #: traces of a clause that are made shorter,
LONGER = 6  #: times as long the best of them


def exercises(judge: Judge, trace: Trace, clause: str) -> bool:
    """Whether the trace exercises the clause, tells what it is about, and breaks nothing."""
    report = judge.judge(trace)
    if report.failed is not None or not report.tally[clause]:
        return False
    return clause not in DEMANDS or tells(clause, trace, judge.run(trace).steps)


def drawn(judge: Judge, clauses: Sequence[str], seed: int, seconds: float) -> dict[str, list[Trace]]:
    """By clause, the shortest of the traces drawn in so many seconds that exercise it."""
    best: dict[str, list[tuple[tuple[int, ...], int, Trace]]] = {clause: [] for clause in clauses}
    among = {kind for clause in clauses for kind in SHOWS[clause[0]]}
    profiles = [p for p in profiles_for(judge.caps) if p in among]
    end, number = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        trace = draw(random.Random(f"{seed}/{number}"), profiles, judge.caps)
        report, size = judge.judge(trace), tuple(-n for n in length(trace))
        steps = judge.run(trace).steps if report.failed is None else []
        for clause in clauses if steps else ():
            if report.tally[clause] and tells(clause, trace, steps):
                heapq.heappush(best[clause], (size, number, trace))
                if len(best[clause]) > MOST:
                    heapq.heappop(best[clause])  # the longest
        number += 1
    return {clause: [trace for _, _, trace in sorted(found, reverse=True)] for clause, found in best.items()}


def shortest(judge: Judge, clause: str, traces: Sequence[Trace], shrink_s: float) -> Trace | None:
    """The shortest that these become; None where there is none."""

    def still(trace: Trace) -> bool:
        return exercises(judge, trace, clause)

    best = min((shrink(trace, still, shrink_s) for trace in traces), key=length, default=None)
    return shrink(best, still, LONGER * shrink_s) if best else None


def find(
    library: str,
    clauses: Sequence[str],
    seed: int,
    seconds: float,
    shrink_s: float,
    say: Callable[[str], None],
) -> list[str]:
    """Keeps what is shorter than what was kept; the clauses that have none then."""
    with Judge(library) as judge:
        found = drawn(judge, clauses, seed, seconds)
        best = read() if FILE.exists() else {}
        for clause in clauses:
            known = [t for t in (best.pop(clause, None), SEEDS.get(clause)) if t is not None]
            begin = [t for t in known if exercises(judge, t, clause)]
            trace = shortest(judge, clause, [*begin, *found[clause]], shrink_s)
            if trace is not None:
                best[clause] = trace
                say(f"{clause:4} {len(trace.ops)} operations")
                keep(best)
    return [clause for clause in clauses if clause not in best]


def keep(best: dict[str, Trace]) -> None:
    """One clause a line."""
    lines = [
        f'"{clause}": {msgspec.json.encode(wire.trace_out(best[clause])).decode()}'
        for clause in sorted(best, key=lambda c: (c[0], int(c[1:])))
    ]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
