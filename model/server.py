"""T1: a server with slots, over a domain (see domain.py): who may enter, step and leave, and when pools are trimmed.

What a step computes is the contexts' business; here a step only makes pools hold more. Cells are counts,
pools are bytes. Exact behaviour: docs/choices.md, "The server".
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .domain import Tree, Value
from .pair import put
from .records import MAX_SERVER_SLOTS, Kind, Status

_MISUSE, _REFUSED, _DONE = map(int, (Status.MISUSE, Status.REFUSED, Status.DONE))
SLOTS = range(MAX_SERVER_SLOTS)


class State(NamedTuple):
    """The server and the pools under it."""

    ready: Value  # a target is open
    busy: Tree  # [slot]    a request is in it
    cells: Tree  # [slot]   cells of the cache that its request has in use
    pooled: Value  # bytes that the pools hold and nobody uses


class ServerOp(NamedTuple):
    """SLOT_ENTER, SLOT_STEP, SLOT_LEAVE; CTX_OPEN, CTX_CLOSE and CTX_TRIM of the target; CTX_DECODE."""

    kind: Value  # records.Kind
    slot: Value = 0
    tokens: Value = 1  # SLOT_STEP
    status: Value = _DONE  # SLOT_STEP: what the target's decode answers
    grows: Value = 0  # SLOT_STEP, CTX_DECODE: bytes that the pools hold more after it


class ServerOut(NamedTuple):
    """What the caller sees."""

    status: Value  # records.Status
    released: Value = 0  # bytes that went back to the devices


class Model:
    """The step function over domain `d`."""

    def __init__(self, d: Any) -> None:
        self.d = d

    def init(self) -> State:
        return State(False, (False,) * len(SLOTS), (0,) * len(SLOTS), 0)

    def step(self, s: State, op: ServerOp) -> tuple[State, ServerOut]:
        """The state after `op`, and what the caller sees."""

        def of_slot(arm: Any) -> Any:
            def each(slot: int) -> Any:
                if slot == len(SLOTS) - 1:
                    return arm(s, op, slot)
                return self.d.choose(op.slot == slot, lambda: arm(s, op, slot), lambda: each(slot + 1))

            return lambda: each(0)

        arms = {
            Kind.SLOT_ENTER: of_slot(self.enter),
            Kind.SLOT_STEP: of_slot(self.advance),
            Kind.SLOT_LEAVE: of_slot(self.leave),
            Kind.CTX_OPEN: lambda: self.may(self.d.inv(s.ready), s._replace(ready=True), s),
            Kind.CTX_CLOSE: lambda: self.may(self.may_close(s), s._replace(ready=False), s),
            Kind.CTX_TRIM: lambda: self.trim(s),
            Kind.CTX_DECODE: lambda: self.may(s.ready, s._replace(pooled=s.pooled + op.grows), s),
        }
        new: tuple[State, ServerOut] = self.d.switch(op.kind, arms, lambda: (s, ServerOut(_MISUSE)))
        return new

    def may(self, may: Value, t: State, s: State, released: Value = 0) -> tuple[State, ServerOut]:
        new: tuple[State, ServerOut] = self.d.ite(
            may, (t, ServerOut(_DONE, released)), (s, ServerOut(_MISUSE))
        )
        return new

    def idle(self, s: State) -> Value:
        """No slot is busy."""
        return self.d.inv(self.d.any(*s.busy))

    def may_close(self, s: State) -> Value:
        return self.d.all(s.ready, self.idle(s))

    def enter(self, s: State, op: ServerOp, slot: int) -> tuple[State, ServerOut]:
        may = self.d.all(s.ready, self.d.inv(s.busy[slot]))
        return self.may(may, s._replace(busy=put(s.busy, slot, True), cells=put(s.cells, slot, 0)), s)

    def advance(self, s: State, op: ServerOp, slot: int) -> tuple[State, ServerOut]:
        """The slot's cells go up by the tokens that the target decoded."""
        d = self.d
        more = d.ite(op.status == _DONE, op.tokens, 0)
        t = s._replace(cells=put(s.cells, slot, s.cells[slot] + more), pooled=s.pooled + op.grows)
        out: tuple[State, ServerOut] = d.ite(s.busy[slot], (t, ServerOut(op.status)), (s, ServerOut(_MISUSE)))
        return out

    def leave(self, s: State, op: ServerOp, slot: int) -> tuple[State, ServerOut]:
        """T1: when no slot is busy any more, the pools give back what nobody uses."""
        d = self.d
        t = s._replace(busy=put(s.busy, slot, False), cells=put(s.cells, slot, 0))
        last = self.idle(t)
        t = d.ite(last, t._replace(pooled=0), t)
        return self.may(s.busy[slot], t, s, d.ite(last, s.pooled, 0))

    def trim(self, s: State) -> tuple[State, ServerOut]:
        """A context's own trim is refused while a slot is busy."""
        d = self.d
        good, bad = (s._replace(pooled=0), ServerOut(_DONE, s.pooled)), (s, ServerOut(_REFUSED))
        out: tuple[State, ServerOut] = d.ite(s.ready, d.ite(self.idle(s), good, bad), (s, ServerOut(_MISUSE)))
        return out
