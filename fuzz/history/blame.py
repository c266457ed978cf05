"""Whether a failure is the fault that is asked for.

It is where the bad release breaks the clause, and the good one gets past that step; and where the bad release still
breaks it with all other faults mended, and gets past it with this one mended too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...model.records import Trace
from ..judge import Judge
from ..verdict import Verdict


class Blame:
    """The bad release, those that must be right where it is wrong, and those that must be wrong as well."""

    def __init__(
        self, bad: Judge, right: Sequence[Judge], wrong: Sequence[Judge], clauses: Iterable[str]
    ) -> None:
        self.bad, self.right, self.wrong = bad, tuple(right), tuple(wrong)
        self.clauses = frozenset(clauses)
        self.elsewhere = 0  #: failures of these clauses that are not this fault's

    def failure(self, trace: Trace, anew: bool = False, strict: bool = True) -> Verdict | None:
        """How the trace shows the fault; None where it does not.

        Not `strict`: those that must be right may fail at the same step by another clause. Such a trace is
        worth shrinking; what is left must show it strictly.
        """
        failed = self.bad.judge(trace, anew).failed
        if failed is None or failed.clause not in self.clauses:
            return None
        others = frozenset() if strict else self.clauses
        if all(gets_past(j, trace, failed, anew, others) for j in self.right) and not any(
            gets_past(j, trace, failed, anew) for j in self.wrong
        ):
            return failed
        self.elsewhere += 1
        return None


def gets_past(
    judge: Judge, trace: Trace, failed: Verdict, anew: bool = False, clauses: frozenset[str] = frozenset()
) -> bool:
    """Whether this subject runs the trace beyond the step at which the other one failed; or, where `clauses`
    are given, breaks none of them up to there."""
    verdict = judge.judge(trace, anew).failed
    if verdict is None or verdict.sort != "broken" or verdict.step > failed.step:
        return True
    return bool(clauses) and verdict.step == failed.step and verdict.clause not in clauses
