"""What a trace must show beside exercising its clause, so that it tells what the clause is about.

Many rules also say that nothing happens where nothing should: R6 is exercised by any reserve without a request.
As an example that is of no use, so for these clauses the events that they are about must be in the trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...model.records import Kind, Op, Status, Trace
from ...native.worker import StepSeen

Seen = Sequence[StepSeen]


class Event(NamedTuple):
    """An operation and how it ends; `some`: its value is above 0."""

    kind: Kind
    status: Status = Status.DONE
    some: bool = False

    def is_shown(self, op: Op, seen: StepSeen) -> bool:
        return op.kind == self.kind and seen.obs.status == self.status and op.value >= self.some


class Demand(NamedTuple):
    """What must be shown.

    `events`: in this order, others between them. `sizes`: so many graphs of different bytes, none of them empty
    (0: any graphs). `turn`: whether bytes in use must go up (1) or down (-1) in a reserve that is not the first.
    `both`: two allocators, or contexts, are there and both of them act; `stay`: none is freed.
    """

    events: tuple[Event, ...] = ()
    sizes: int = 0
    turn: int = 0
    both: bool = False
    stay: bool = False

    def met(self, trace: Trace, seen: Seen) -> bool:
        if self.both and not both_act(trace):
            return False
        if self.stay and any(op.kind == Kind.FREE for op in trace.ops):
            return False
        turned = not self.turn or self.turns(trace, seen)
        return turned and self.in_order(trace, seen) and self.of_sizes(trace)

    def in_order(self, trace: Trace, seen: Seen) -> bool:
        shown = zip(trace.ops, seen, strict=False)
        return all(any(event.is_shown(op, s) for op, s in shown) for event in self.events)

    def of_sizes(self, trace: Trace) -> bool:
        if not self.sizes:
            return True
        sizes = [sum(t.alloc_size for t in g.tensors if not t.view and not t.prealloc) for g in trace.graphs]
        return all(sizes) and len(set(sizes)) >= self.sizes

    def turns(self, trace: Trace, seen: Seen) -> bool:
        used = [sum(s.obs.used) for s in seen]
        pairs = zip(trace.ops[1:], used, used[1:], strict=False)
        return any(
            op.kind == Kind.RESERVE and before and (now - before) * self.turn > 0 for op, before, now in pairs
        )


def both_act(trace: Trace) -> bool:
    """Two are made, and both ask for memory."""
    made = sum(op.kind in (Kind.NEW, Kind.CTX_OPEN) for op in trace.ops)
    return made == 2 and len({op.alloc for op in trace.ops if op.kind in _ACTS}) == 2


def _events(*kinds: Kind | Event) -> tuple[Event, ...]:
    return tuple(k if isinstance(k, Event) else Event(k) for k in kinds)


_ACTS = (Kind.RESERVE, Kind.ALLOC, Kind.CTX_DECODE)
_PAIR = (Kind.OWN, Kind.BORROW)
_RESERVE, _NO_RESERVE = Kind.RESERVE, Event(Kind.RESERVE, Status.REFUSED)
_STALE, _NO_LAUNCH = Event(Kind.COMPUTE, Status.STALE), Event(Kind.LAUNCH, Status.MISUSE)
_TAKE = Event(Kind.POOL_ALLOC, some=True)
_DECODES = _events(Kind.CTX_OPEN, Kind.CTX_DECODE)
_TOGETHER = _events(Kind.CTX_OPEN, Kind.CTX_OPEN, Kind.CTX_ATTACH, Kind.CTX_DECODE, Kind.CTX_DECODE)
_CAPTURE = (Kind.CAPTURE_BEGIN, Kind.COMPUTE, Kind.CAPTURE_END)
_WHOLE = Demand(sizes=1)
DEMANDS: dict[str, Demand] = {
    **dict.fromkeys(("P7", "P8", "P9", "P12", "G3", "C2", "C3"), _WHOLE),
    "G1": Demand(_events(_RESERVE, _RESERVE), 1),
    "G2": Demand(_events(_NO_RESERVE, Kind.ALLOC), 1),
    "G4": Demand(_events(_RESERVE, Kind.ALLOC), 1),
    "G5": Demand(_events(_RESERVE, Kind.FREE), 1),
    "R1": Demand(_events(_RESERVE, Event(Kind.OWN, Status.REFUSED)), 1),
    "R2": Demand(_events(*_PAIR, Event(Kind.BORROW, Status.REFUSED))),
    "R3": Demand(_events(*_PAIR, _RESERVE, _RESERVE), 2, both=True, stay=True),
    "R4": Demand(_events(*_PAIR, _RESERVE, _RESERVE), 2, 1, both=True, stay=True),
    "R5": Demand(_events(*_PAIR, _RESERVE, _RESERVE), 2, both=True, stay=True),
    "R6": Demand(_events(*_PAIR, Kind.SHRINK, _RESERVE, _RESERVE), 2, -1, both=True, stay=True),
    "R7": Demand(_events(*_PAIR, _RESERVE, _RESERVE), 2, 1, both=True, stay=True),
    "R8": Demand(_events(*_PAIR, Kind.SHRINK)),
    "R9": Demand(_events(*_PAIR, _RESERVE, _NO_RESERVE), 2, both=True, stay=True),
    "R10": Demand(_events(*_PAIR, _NO_RESERVE, _NO_RESERVE, _RESERVE), 2, both=True, stay=True),
    "R11": Demand(_events(*_PAIR, _RESERVE, Kind.FREE, Kind.FREE), 1),
    "R12": Demand(_events(*_PAIR, Kind.ALLOC, _RESERVE, _STALE), 2, both=True, stay=True),
    "R13": Demand(_events(*_PAIR, _RESERVE), 1),
    "R14": Demand(_events(*_PAIR, _RESERVE, Kind.REMAKE, _RESERVE), 1, both=True, stay=True),
    "S1": Demand(_events(*_PAIR, _RESERVE, _RESERVE), 1, both=True, stay=True),
    "S2": Demand(_events(*_PAIR, _RESERVE, _RESERVE), 2, 1, both=True, stay=True),
    "S3": Demand(_events(*_PAIR, _RESERVE, Kind.FREE, Kind.FREE), 1),
    "S5": Demand(_events(*_PAIR, _RESERVE), 1),
    "S6": Demand(_events(*_PAIR, Kind.ALLOC, Kind.COMPUTE), 1, both=True),
    "S7": Demand(_events(*_PAIR, _RESERVE, _RESERVE), 1, both=True, stay=True),
    "C1": Demand(_events(Kind.ALLOC, Kind.COMPUTE, _RESERVE), 2, 1),
    "C4": Demand(_events(_RESERVE, Kind.RESET, Kind.COMPUTE), 1),
    "C5": Demand(_events(*_PAIR, _RESERVE), 1),
    "M1": Demand(_events(_NO_RESERVE), 1),
    "M2": Demand(_events(*_PAIR, Kind.ALLOC, Kind.ALLOC, Kind.COMPUTE), 1, both=True),
    "M3": Demand(_events(*_PAIR, Kind.ALLOC, _RESERVE, Kind.ALLOC, Kind.COMPUTE), 2, both=True),
    "V1": Demand(_events(_TAKE, Kind.POOL_FREE, Kind.TRIM)),
    "V2": Demand(_events(_TAKE, _TAKE, Kind.POOL_FREE, Kind.POOL_FREE)),
    "V3": Demand(_events(_TAKE, Kind.POOL_FREE, Kind.TRIM, _TAKE)),
    "V4": Demand(_events(_TAKE, Kind.POOL_FREE, Kind.TRIM)),
    "V5": Demand(_events(Event(Kind.POOL_ALLOC, Status.REFUSED, True))),
    "Q1": Demand(_events(*_CAPTURE, Kind.LAUNCH), 1),
    "Q2": Demand(_events(*_CAPTURE, Kind.TRIM, _NO_LAUNCH), 1),
    "Q3": Demand(_events(Kind.ALLOC, Kind.CAPTURE_BEGIN, Event(Kind.TRIM, Status.MISUSE)), 1),
    "W1": Demand(_DECODES, 1),
    "W2": Demand((*_DECODES, Event(Kind.CTX_DECODE)), 1),
    "W3": Demand(_DECODES, 1),
    "W4": Demand(_TOGETHER, 1, both=True),
    "W5": Demand(_TOGETHER, 1, both=True),
    "W7": Demand(_DECODES, 1),
    "W8": Demand(_DECODES, 1),
    "T1": Demand(_events(Kind.CTX_OPEN, Kind.SLOT_ENTER, Kind.SLOT_LEAVE), 1),
}


def tells(clause: str, trace: Trace, seen: Seen) -> bool:
    """Whether the trace, of which `seen` was shown, has what its clause is about."""
    return clause not in DEMANDS or DEMANDS[clause].met(trace, seen)
