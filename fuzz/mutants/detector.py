"""Whether the check is still told of damage: what looks for it shows a slip only where there is some.

The bundled allocator does none, but its planted defects do: their kept traces (fuzz/canaries), as they are and
behind schedulers, are run on the slip and on the original, each with the defects in it.
"""

from __future__ import annotations

import time
from dataclasses import replace

from ...model.records import Kind, OpFlag, Trace
from ..canary import path_of
from ..catalogue import DEFECTS, Defect
from ..judge import Judge
from ..replay import load
from ..verdict import Verdict

SLOW_S = 0.5  #: what takes longer (a hang, mostly) is left out
TIMEOUT_S = 2.0
LAYERS = 200  #: defects of plain allocators and pairs have lower numbers


class Told:
    """What the original tells of each planted defect's kept trace. `library`: it, with planted defects."""

    def __init__(self, library: str) -> None:
        self.of: list[tuple[Defect, Trace, Verdict]] = []
        with Judge(library, timeout=TIMEOUT_S) as judge:
            for defect in DEFECTS:
                for trace in traces(defect):
                    begin = time.monotonic()
                    failed = told(judge, defect, trace)
                    if failed is not None and time.monotonic() < begin + SLOW_S:
                        self.of.append((defect, trace, failed))

    def otherwise(self, library: str) -> Verdict | None:
        """How the slip in `library` is noticed: the first defect of which it tells something else, or nothing."""
        with Judge(library, timeout=TIMEOUT_S) as judge:
            for defect, trace, failed in self.of:
                if (now := told(judge, defect, trace)) != failed:
                    what = f"planted defect {defect.number} is told as {now.message if now else 'nothing'}"
                    return Verdict("broken", defect.clause, what, failed.step, failed.op)
        return None


def traces(defect: Defect) -> list[Trace]:
    """Its kept trace; of a plain allocator's or a pair's defect, the same behind schedulers too."""
    kept = load(path_of(defect)).trace
    if defect.number >= LAYERS:
        return [kept]
    ops = (replace(op, flags=op.flags | OpFlag.BY_SCHED) if op.kind == Kind.NEW else op for op in kept.ops)
    return [kept, replace(kept, ops=tuple(ops))]


def told(judge: Judge, defect: Defect, trace: Trace) -> Verdict | None:
    judge.plant(defect.number)
    return judge.judge(trace).failed
