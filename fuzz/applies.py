"""Which clauses a subject is held to, by what it declares that it can do."""

from __future__ import annotations

from ..model.records import Cap, Kind, OpFlag, Trace

#: what an operation asks of a subject: any one of these
NEEDS = {
    Kind.OWN: Cap.RESIZABLE | Cap.GROUP,
    Kind.BORROW: Cap.RESIZABLE | Cap.GROUP,
    Kind.SHRINK: Cap.RESIZABLE | Cap.GROUP,
    Kind.REMAKE: Cap.REMAKE,
    Kind.SYNC: Cap.SCHED,
    Kind.RESET: Cap.SCHED,
}


class NotApplicable(ValueError):
    """Clauses were named that the subject is not held to; one sentence; the check could not run."""

    exit_code = 3


def applies(clause: str, caps: Cap) -> bool:
    """Whether a subject of these capabilities is held to the clause."""
    if not clause:
        return False
    letter = clause[0]
    if letter in "PG":
        return bool(caps & Cap.PLAN)
    if letter == "R":
        if clause == "R13":
            return bool(caps & Cap.BREAKDOWN)
        if clause == "R14":
            return bool(caps & Cap.REMAKE)
        if clause in ("R1", "R2"):
            return bool(caps & Cap.RESIZABLE)
        return bool(caps & (Cap.RESIZABLE | Cap.GROUP))
    if clause in ("C1", "C2"):
        return bool(caps & Cap.SCHED)
    if clause == "C5":
        return bool(caps & Cap.SCHED) and bool(caps & (Cap.RESIZABLE | Cap.GROUP))
    return False


def lacking(trace: Trace, caps: Cap) -> tuple[int, Cap] | None:
    """The first operation that a subject of these capabilities does not have, and which (any of them) it takes."""
    for i, op in enumerate(trace.ops):
        sched = op.flags & (OpFlag.BY_SCHED | OpFlag.ASYNC)
        needs = Cap.SCHED if sched else NEEDS.get(op.kind, Cap(0))
        if needs and not caps & needs:
            return i, needs
    return None
