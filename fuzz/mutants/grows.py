"""Whether a subject keeps ever more of the host's memory: what no observation shows, and a server would die of."""

from __future__ import annotations

from collections.abc import Sequence

from ...model.records import Trace
from ..judge import Judge
from ..verdict import Verdict

ROUNDS, TIMES = 50, 3
FAR = 4  #: times as much as the original's
LEAST, MOST, OPERATIONS = 3, 40, 600  #: traces; operations of them from which on no more are run
NOISE = 8 << 10  #: bytes that a heap may grow by on its own


def grows(judge: Judge, base: Judge, traces: Sequence[Trace]) -> Verdict | None:
    """How a mutant fails whose memory grows with every session, where the original's does not.

    `traces`: which both pass; the first of them are run again and again.
    """
    some: list[Trace] = []
    for trace in varied(traces)[:MOST]:
        if len(some) < LEAST or sum(len(t.ops) for t in some) < OPERATIONS:
            some.append(trace)
    most = NOISE * TIMES
    for subject in (base, judge):
        _growth(subject, some)  # a heap grows up
        grown = sum(_growth(subject, some) for _ in range(TIMES))  # what is free there is used first
        if subject is judge and grown <= most:
            return None
        most = max(most, FAR * grown)
    return Verdict("silent", "", "its process holds more memory after every session", 0, "close")


def varied(traces: Sequence[Trace]) -> list[Trace]:
    """Those first, the shorter the earlier, in which something happens that does not in those before."""
    known: set[object] = set()
    first: list[Trace] = []
    rest: list[Trace] = []
    for t in sorted(traces, key=lambda t: len(t.ops)):
        news = {(op.kind, t.setup.pool, t.setup.strategy) for op in t.ops} - known
        last = t.ops[-1:]
        (first if news or not known.issuperset(last and [last[0].kind]) else rest).append(t)
        known |= news | {op.kind for op in last}
    return first + rest


def _growth(judge: Judge, traces: Sequence[Trace]) -> int:
    """Bytes by which the subject's process grows while it runs them a number of times."""
    before = judge.worker.resident()
    for _ in range(ROUNDS):
        for trace in traces:
            judge.run(trace)
    return judge.worker.resident() - before
