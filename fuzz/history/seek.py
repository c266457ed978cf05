"""The blind check of one fault: a hunt by all profiles until it has shown, or time is over."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from ...model.records import Trace
from ..hunt import Hunt
from ..replay import Replay
from ..shrink import shrink
from ..verdict import Verdict
from .blame import Blame


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How it went. `seconds`: until it showed, or in all; `given`: the time that it had. `length`: operations of
    the shrunk trace; `clause`, `message`: of its failure."""

    caught: bool
    seconds: float
    given: float
    traces: int
    operations: int
    length: int = 0
    clause: str = ""
    message: str = ""


#: seconds to shrink what may turn out to be something else
DOUBT_S = 2.0
Showing = Callable[[float, int], None]  #: told seconds and traces so far


def seek(
    blame: Blame, seed: int, given: float, shrink_s: float, version: str, show: Showing
) -> tuple[Outcome, Replay | None]:
    """Hunts on the bad release; the hunt knows of no fault. With a replay of the shrunk trace where it showed."""
    hunt = Hunt(blame.bad, seed)
    begin, number, operations = time.monotonic(), 0, 0
    doubtful: set[str] = set()  # how something else showed that looked like it
    while (spent := time.monotonic() - begin) < given:
        show(spent, number)
        trace = hunt.trace(number)
        number, operations = number + 1, operations + len(trace.ops)
        failed = blame.failure(trace, strict=False)
        if failed is None:
            continue
        sure = blame.failure(trace) is not None
        if not sure and failed.signature in doubtful:
            continue
        spent = time.monotonic() - begin
        small, verdict = smaller(blame, trace, failed, shrink_s if sure else min(DOUBT_S, shrink_s))
        if (
            blame.failure(small, anew=True) is None
        ):  # it depends on the past of a process, or is another fault
            doubtful.add(failed.signature)
            continue
        outcome = Outcome(
            caught=True, seconds=spent, given=given, traces=number, operations=operations,
            length=len(small.ops), clause=verdict.clause, message=verdict.message,
        )  # fmt: skip
        return outcome, Replay(
            verdict.clause,
            verdict.sort,
            verdict.message,
            blame.bad.describe,
            small,
            verdict.step,
            version,
            seed,
        )
    return Outcome(caught=False, seconds=given, given=given, traces=number, operations=operations), None


def smaller(blame: Blame, trace: Trace, failed: Verdict, budget_s: float) -> tuple[Trace, Verdict]:
    """The shrunk trace that still shows the fault by the same clause, and how it fails."""
    last = failed

    def same(candidate: Trace) -> bool:
        nonlocal last
        verdict = blame.failure(candidate, strict=False)
        if verdict is None or verdict.clause != failed.clause:
            return False
        last = verdict
        return True

    return shrink(trace, same, budget_s), last
