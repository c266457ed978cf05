"""Whether the check is still told of damage: what looks for it shows a slip only where there is some.

The bundled allocator does none, but its planted defects do: their kept traces (fuzz/canaries) are run on the
slip and on the original, each with the defects in it.
"""

from __future__ import annotations

import time

from ..canary import path_of
from ..catalogue import DEFECTS, Defect
from ..judge import Judge
from ..replay import load
from ..verdict import Verdict

SLOW_S = 0.5  #: what takes longer (a hang, mostly) is left out
TIMEOUT_S = 2.0


class Told:
    """What the original tells of each planted defect's kept trace. `library`: it, with planted defects."""

    def __init__(self, library: str) -> None:
        self.of: dict[Defect, Verdict] = {}
        with Judge(library, timeout=TIMEOUT_S) as judge:
            for defect in DEFECTS:
                begin = time.monotonic()
                failed = told(judge, defect)
                if failed is not None and time.monotonic() < begin + SLOW_S:
                    self.of[defect] = failed

    def otherwise(self, library: str) -> Verdict | None:
        """How the slip in `library` is noticed: the first defect of which it tells something else, or nothing."""
        with Judge(library, timeout=TIMEOUT_S) as judge:
            for defect, failed in self.of.items():
                if (now := told(judge, defect)) != failed:
                    what = f"planted defect {defect.number} is told as {now.message if now else 'nothing'}"
                    return Verdict("broken", defect.clause, what, failed.step, failed.op)
        return None


def told(judge: Judge, defect: Defect) -> Verdict | None:
    judge.plant(defect.number)
    return judge.judge(load(path_of(defect)).trace).failed
