"""Whether a failure is the fault that is asked for.

It is where the bad release breaks the clause, and the good one does not, nor the bad one with that fault alone
mended; and where mending another fault of the same clause does not help.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...model.records import Trace
from ..judge import Judge
from ..verdict import Verdict


def gets_past(judge: Judge, trace: Trace, failed: Verdict, anew: bool = False) -> bool:
    """Whether this subject runs the trace beyond the step at which the other one failed."""
    verdict = judge.judge(trace, anew).failed
    return verdict is None or verdict.sort != "broken" or verdict.step > failed.step


class Blame:
    """The bad release, those that must be right where it is wrong, and those that must be wrong as well."""

    def __init__(
        self, bad: Judge, right: Sequence[Judge], wrong: Sequence[Judge], clauses: Iterable[str]
    ) -> None:
        self.bad, self.right, self.wrong = bad, tuple(right), tuple(wrong)
        self.clauses = frozenset(clauses)
        self.elsewhere = 0  #: failures of these clauses that are not this fault's

    def failure(self, trace: Trace, anew: bool = False) -> Verdict | None:
        """How the trace shows the fault; None where it does not."""
        failed = self.bad.judge(trace, anew).failed
        if failed is None or failed.clause not in self.clauses:
            return None
        if all(gets_past(j, trace, failed, anew) for j in self.right) and not any(
            gets_past(j, trace, failed, anew) for j in self.wrong
        ):
            return failed
        self.elsewhere += 1
        return None
