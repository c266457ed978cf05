"""Whether a failure is the fault that is asked for.

The bad release breaks the clause, and the good one gets past that step. Where other faults of the bad release
could be it, mending tells: with this one alone mended it gets past; or with all others mended it still breaks
the clause there, and with this one mended too it gets past.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...model.records import Trace
from ..judge import Judge
from ..verdict import Verdict


@dataclass(frozen=True, slots=True)
class Blame:
    """The releases that are compared. Of the bad one: `alone` has the fault mended, `others` all others, `every` all;
    None where nothing is known to mend."""

    bad: Judge
    good: Judge
    clauses: frozenset[str]
    alone: Judge | None = None
    others: Judge | None = None
    every: Judge | None = None

    def failure(self, trace: Trace, anew: bool = False, strict: bool = True) -> Verdict | None:
        """How the trace shows the fault; None where it does not.

        Not `strict`: the good release may fail at the same step by another clause. Such a trace is worth
        shrinking; what is left must show it strictly.
        """
        failed = self.bad.judge(trace, anew).failed
        if failed is None or failed.clause not in self.clauses:
            return None
        other = frozenset() if strict else self.clauses
        right = gets_past(self.good, trace, failed, anew, other)
        return failed if right and self.mending_tells(trace, failed, anew) else None

    def mending_tells(self, trace: Trace, failed: Verdict, anew: bool) -> bool:
        if self.alone is not None and gets_past(self.alone, trace, failed, anew):
            return True
        if self.others is None:
            return self.alone is None
        still = not gets_past(self.others, trace, failed, anew)
        return still and (self.every is None or gets_past(self.every, trace, failed, anew))


def gets_past(
    judge: Judge, trace: Trace, failed: Verdict, anew: bool = False, clauses: frozenset[str] = frozenset()
) -> bool:
    """Whether this subject runs the trace beyond the step at which the other one failed; or, where `clauses`
    are given, breaks none of them up to there."""
    verdict = judge.judge(trace, anew).failed
    if verdict is None or verdict.sort != "broken" or verdict.step > failed.step:
        return True
    return bool(clauses) and verdict.step == failed.step and verdict.clause not in clauses
