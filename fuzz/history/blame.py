"""Whether a failure is the fault that is asked for: broken in the bad release, not in the good one, nor
in the bad one with that fault alone mended.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...model.records import Trace
from ..judge import Judge
from ..verdict import Verdict


def gets_past(judge: Judge, trace: Trace, failed: Verdict, anew: bool = False) -> bool:
    """Whether this subject runs the trace beyond the step at which the other one failed."""
    verdict = next((v for v in judge.judge(trace, anew).verdicts if v.sort == "broken"), None)
    return verdict is None or verdict.step > failed.step


class Blame:
    """The bad release, and those that must be right where it is wrong."""

    def __init__(self, bad: Judge, right: Sequence[Judge], clauses: Iterable[str]) -> None:
        self.bad, self.right, self.clauses = bad, tuple(right), frozenset(clauses)
        self.elsewhere = 0  #: failures of these clauses that the others show too

    def failure(self, trace: Trace, anew: bool = False) -> Verdict | None:
        """How the trace shows the fault; None where it does not."""
        failed = self.bad.judge(trace, anew).failed
        if failed is None or failed.clause not in self.clauses:
            return None
        if all(gets_past(judge, trace, failed, anew) for judge in self.right):
            return failed
        self.elsewhere += 1
        return None
