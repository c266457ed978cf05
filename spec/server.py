"""T1 as predicates of one step of a server, and its proof."""

from __future__ import annotations

from typing import Any

from ..model.domain import Value
from ..model.records import Kind, Status
from ..model.server import SLOTS, Model, ServerOp, ServerOut, State
from ..model.terms import equal
from .machine import Machine, Rules
from .step import Rule

CLAUSES = ("T1",)


def rules(d: Any, s: State, op: ServerOp, t: State, out: ServerOut) -> dict[str, Rules]:
    """What is seen: which slots are busy, what the pools hold, and what an operation released."""
    done = out.status == int(Status.DONE)
    leaves = d.all(op.kind == int(Kind.SLOT_LEAVE), done)
    trims = op.kind == int(Kind.CTX_TRIM)
    before, after = d.any(*s.busy), d.any(*t.busy)
    found = {
        "nothing is released while a slot is busy": Rule(after, out.released == 0),
        "pools hold nothing idle once the last slot is free": Rule(
            d.all(leaves, d.inv(after)), t.pooled == 0
        ),
        "what was released was held": Rule(
            out.released > 0, t.pooled + out.released == s.pooled
        ),
        "a slot that leaves while others are busy leaves pools as they are": Rule(
            d.all(leaves, after), t.pooled == s.pooled
        ),
        "a context's trim is refused while a slot is busy": Rule(
            d.all(trims, s.ready, before), out.status == int(Status.REFUSED)
        ),
        "and trims otherwise": Rule(d.all(trims, s.ready, d.inv(before)), d.all(done, t.pooled == 0)),
        "a target stays open while a slot is busy": Rule(
            d.all(op.kind == int(Kind.CTX_CLOSE), before), d.inv(done)
        ),
    }  # fmt: skip
    for slot in SLOTS:
        mine = op.slot == slot
        found |= {f"slot {slot} {name}": rule for name, rule in _slot(d, s, op, t, done, slot, mine).items()}
    return {"T1": found}


def _slot(d: Any, s: State, op: ServerOp, t: State, done: Value, slot: int, mine: Value) -> Rules:
    kinds = {k: d.all(mine, op.kind == int(k)) for k in (Kind.SLOT_ENTER, Kind.SLOT_STEP, Kind.SLOT_LEAVE)}
    enters, steps, goes = kinds.values()
    moves = d.any(enters, goes)
    return {
        "is entered once, where a target is open": Rule(
            enters, done == d.all(s.ready, d.inv(s.busy[slot]))
        ),
        "is left only where it is busy": Rule(goes, done == s.busy[slot]),
        "is stepped only where it is busy": Rule(
            d.all(steps, d.inv(s.busy[slot])), d.all(d.inv(done), *equal(s, t))
        ),
        "is busy from its request on": Rule(d.all(enters, done), t.busy[slot]),
        "is free when its request is done": Rule(d.all(goes, done), d.inv(t.busy[slot])),
        "is as it was otherwise": Rule(d.inv(moves), t.busy[slot] == s.busy[slot], False),
    }  # fmt: skip


def invariants(m: Model, s: State) -> dict[str, Value]:
    d = m.d
    return {
        "a busy slot has a target": d.any(s.ready, d.inv(d.any(*s.busy))),
        "sizes are not negative": d.all(s.pooled >= 0, *(c >= 0 for c in s.cells)),
    }


def lawful(m: Model, s: State, op: ServerOp) -> list[Value]:
    return [op.slot >= 0, op.slot < len(SLOTS), op.tokens >= 0, op.grows >= 0]


MACHINE = Machine(
    name="the server",
    model=Model,
    configs=((),),
    kinds=(Kind.SLOT_ENTER, Kind.SLOT_STEP, Kind.SLOT_LEAVE, Kind.CTX_OPEN, Kind.CTX_CLOSE, Kind.CTX_TRIM,
           Kind.CTX_DECODE),
    clauses=CLAUSES,
    init=lambda m: m.init(),
    operation=lambda _: ServerOp(0),
    rules=lambda m, s, op, t, out: rules(m.d, s, op, t, out),
    invariants=invariants,
    lawful=lawful,
)  # fmt: skip
