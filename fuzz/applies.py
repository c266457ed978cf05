"""Which clauses a subject is held to, by what it declares that it can do."""

from __future__ import annotations

from collections.abc import Iterator

from ..model.records import Cap, Kind, OpFlag, PoolKind, Strategy, Trace, has
from .legal import CONTEXT_KINDS, SLOT_KINDS
from .words import describe_op

#: what an operation asks of a subject: any one of these
NEEDS = {
    Kind.OWN: Cap.RESIZABLE | Cap.GROUP,
    Kind.BORROW: Cap.RESIZABLE | Cap.GROUP,
    Kind.SHRINK: Cap.RESIZABLE | Cap.GROUP,
    Kind.REMAKE: Cap.REMAKE,
    Kind.SYNC: Cap.SCHED,
    Kind.RESET: Cap.SCHED,
    **dict.fromkeys((Kind.POOL_ALLOC, Kind.POOL_FREE, Kind.TRIM), Cap.POOL),
    **dict.fromkeys((Kind.CAPTURE_BEGIN, Kind.CAPTURE_END, Kind.LAUNCH, Kind.DROP), Cap.CAPTURE),
    **dict.fromkeys(CONTEXT_KINDS, Cap.CONTEXTS),
    **dict.fromkeys(SLOT_KINDS, Cap.SERVER),
}


class NotApplicable(ValueError):
    """Clauses were named that the subject is not held to; one sentence; the check could not run."""

    exit_code = 3


def declared(caps: Cap) -> str:
    """What a subject declares, in words: 'plan resizable sched'; 'no-measure' is what it lacks."""
    return " ".join(c.name.lower().replace("_", "-") for c in Cap if caps & c and c.name)


def applies(clause: str, caps: Cap) -> bool:
    """Whether a subject of these capabilities is held to the clause."""
    if not clause:
        return False
    letter = clause[0]
    if clause == "P12" and caps & Cap.NO_MEASURE:
        return False
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
    if letter == "S":
        return bool(caps & Cap.COUNTED)
    if letter == "M":
        return bool(caps & Cap.META) and (clause != "M3" or bool(caps & (Cap.RESIZABLE | Cap.GROUP)))
    if clause in ("C1", "C2", "C3", "C4"):
        return bool(caps & Cap.SCHED)
    if clause == "C5":
        return bool(caps & Cap.SCHED) and bool(caps & (Cap.RESIZABLE | Cap.GROUP))
    if letter == "V":
        return bool(caps & Cap.POOL) and (clause != "V4" or bool(caps & Cap.META))
    if letter == "Q":
        return bool(caps & Cap.CAPTURE)
    if letter == "W":
        return bool(caps & Cap.CONTEXTS)
    if letter == "T":
        return bool(caps & Cap.SERVER)
    return False


def required(trace: Trace) -> Iterator[tuple[str, Cap]]:
    """What the trace asks of a subject: words for a part of it, and the capabilities of which it takes any."""
    setup = trace.setup
    if setup.strategy != Strategy.PAIR:
        yield f"The strategy {setup.strategy.name.lower()}", Cap.COUNTED
    if any(kind.meta for kind in setup.types):
        yield "A buffer type over several devices", Cap.META
    if setup.pool != PoolKind.NO_POOL:
        yield "A setup with pools", Cap.POOL
    for i, op in enumerate(trace.ops):
        by_sched = op.kind == Kind.NEW and has(op.flags, OpFlag.BY_SCHED)
        by_sched |= op.kind == Kind.COMPUTE and has(op.flags, OpFlag.ASYNC)
        needs = Cap.SCHED if by_sched else NEEDS.get(op.kind, Cap(0))
        if needs:
            yield f"Operation {i} ({describe_op(op, trace)})", needs


def lacking(trace: Trace, caps: Cap) -> tuple[str, Cap] | None:
    """The first part of the trace that a subject of these capabilities does not have, and what (any of them) it takes."""
    return next(((what, needs) for what, needs in required(trace) if not caps & needs), None)
