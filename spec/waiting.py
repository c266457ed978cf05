"""W4, W5, W6 as predicates of one step of two contexts, for any interleaving of their operations; and their proof.

What is seen of each context: whether it is open, has work in flight, what its lane 0 reads, and what it
read after its last reservation. That the draft lacks a scheduler follows from statuses alone.
"""

from __future__ import annotations

from typing import Any

from ..model.domain import Value
from ..model.records import Kind, Status
from ..model.terms import equal
from ..model.waiting import CONTEXTS, DRAFT, TARGET, ContextOp, ContextOut, Contexts, State
from .machine import Machine, Rules
from .step import Rule

CLAUSES = ("W4", "W5", "W6")


def rules(d: Any, s: State, op: ContextOp, t: State, out: ContextOut) -> dict[str, Rules]:
    """By clause, the parts that speak of one operation."""
    found: dict[str, Rules] = {clause: {} for clause in CLAUSES}
    for who in CONTEXTS:
        mine = op.who == who
        found["W4"] |= {f"{NAMES[who]} {k}": r for k, r in _waits(d, s, op, t, out, who, mine).items()}
        found["W5"] |= {f"{NAMES[who]} {k}": r for k, r in _again(d, s, op, t, out, who, mine).items()}
    found["W4"] |= {
        "never both in flight on shared buffers": Rule(
            t.attached, d.any(*(d.inv(d.any(*t.busy[c])) for c in CONTEXTS)), False
        ),
        "no shared buffer is replaced under work in flight": Rule(out.reserves > 0, d.inv(out.torn), False),
    }
    found["W6"] = _attaching(d, s, op, t, out)
    return found


NAMES = ("the target", "the draft")


def _kind(op: ContextOp, kind: Kind) -> Value:
    return op.kind == int(kind)


def _waits(d: Any, s: State, op: ContextOp, t: State, out: ContextOut, who: int, mine: Value) -> Rules:
    busy = d.any(*s.busy[1 - who])
    decodes = d.all(mine, _kind(op, Kind.CTX_DECODE))
    gets_on = d.all(decodes, out.status != int(Status.MISUSE), s.able if who == DRAFT else True)
    shares = d.all(gets_on, s.attached)
    tried = d.any(out.status == int(Status.DONE), out.status == int(Status.FAILED))
    attaches = d.all(mine, _kind(op, Kind.CTX_ATTACH), tried) if who == DRAFT else False
    synced = d.all(mine, _kind(op, Kind.CTX_SYNC), out.status == int(Status.DONE))
    other = d.inv(d.any(*t.busy[1 - who]))
    return {
        "waits where the other has work in flight": Rule(
            d.all(d.any(shares, attaches), busy), d.all(out.waits >= 1, other)
        ),
        "waits only then": Rule(
            d.all(decodes, d.inv(d.all(s.attached, busy))), out.waits == 0
        ),
        "waits to attach only then": Rule(
            d.all(mine, _kind(op, Kind.CTX_ATTACH), d.inv(busy)), out.waits == 0
        ),
        "synchronizing covers both lanes": Rule(synced, d.inv(d.any(*t.busy[who]))),
    }  # fmt: skip


def _again(d: Any, s: State, op: ContextOp, t: State, out: ContextOut, who: int, mine: Value) -> Rules:
    done = d.all(mine, _kind(op, Kind.CTX_DECODE), d.inv(op.unchecked), out.status == int(Status.DONE))
    replaced = s.reading[who] != s.known[who]
    must = d.any(op.changed, op.due, replaced)
    return {
        "reserves again only where it must": Rule(d.all(done, d.inv(must)), out.reserves == 0),
        "reserves again where the other replaced the buffers": Rule(
            d.all(done, replaced), d.all(out.reserves >= 1, t.known[who] == t.reading[who])
        ),
        "never computes on memory that is gone": Rule(done, d.inv(out.touched), False),
        "knows the present reading once it has computed": Rule(done, t.known[who] == t.reading[who], False),
    }


def _attaching(d: Any, s: State, op: ContextOp, t: State, out: ContextOut) -> Rules:
    asked = d.all(_kind(op, Kind.CTX_ATTACH), op.who == DRAFT, *s.open, d.inv(s.attached))
    done, refused, failed = (
        d.all(asked, out.status == int(x)) for x in (Status.DONE, Status.REFUSED, Status.FAILED)
    )
    decodes = d.all(_kind(op, Kind.CTX_DECODE), op.who == DRAFT, s.open[DRAFT])
    stays = d.inv(d.any(_kind(op, Kind.CTX_ATTACH), _kind(op, Kind.CTX_OPEN)))
    return {
        "0 where the placement does not match": Rule(
            d.all(asked, d.inv(op.places)), out.status == int(Status.REFUSED)
        ),
        "not 0 where it matches": Rule(d.all(asked, op.places), out.status != int(Status.REFUSED)),
        "-1 where the reservation failed": Rule(
            d.all(asked, op.places, op.fails), out.status == int(Status.FAILED)
        ),
        "1 where it did not": Rule(
            d.all(asked, op.places, d.inv(op.fails)), out.status == int(Status.DONE)
        ),
        "0 changes nothing": Rule(refused, d.all(out.reserves == 0, out.waits == 0, *equal(s, t))),
        "1 is shared": Rule(done, d.all(t.attached, t.able)),
        "-1 is not shared, and leaves no scheduler": Rule(failed, d.inv(d.any(t.attached, t.able))),
        "without a scheduler a decode is refused": Rule(
            d.all(decodes, d.inv(s.able)), d.all(out.status == int(Status.REFUSED), out.reserves == 0)
        ),
        "only attaching (or opening anew) brings a scheduler back": Rule(
            d.all(d.inv(s.able), stays), d.inv(t.able)
        ),
    }  # fmt: skip


def invariants(m: Contexts, s: State) -> dict[str, Value]:
    d = m.d
    both = d.all(*(d.any(*x) for x in s.busy))
    return {
        "never both in flight": d.any(d.inv(s.attached), d.inv(both)),
        "who is not open has no work": d.all(*(d.any(s.open[c], d.inv(d.any(*s.busy[c]))) for c in CONTEXTS)),
        "attached are two that are open": d.any(d.inv(s.attached), d.all(*s.open, s.able)),
        "readings go up": d.all(*(s.known[c] <= s.reading[c] for c in CONTEXTS)),
        "memory that is gone is seen in the reading": d.all(
            *(d.any(d.inv(s.gone[c]), s.known[c] < s.reading[c]) for c in CONTEXTS)
        ),
        "without a scheduler there is no work on it": d.any(s.able, d.inv(s.busy[DRAFT][0])),
    }


def lawful(m: Contexts, s: State, op: ContextOp) -> list[Value]:
    d = m.d
    return [d.any(op.who == TARGET, op.who == DRAFT), op.bumps >= 0]


MACHINE = Machine(
    name="target and draft",
    model=Contexts,
    configs=((),),
    kinds=(Kind.CTX_OPEN, Kind.CTX_CLOSE, Kind.CTX_ATTACH, Kind.CTX_DECODE, Kind.CTX_SYNC),
    clauses=CLAUSES,
    init=lambda m: m.init(),
    operation=lambda _: ContextOp(0),
    rules=lambda m, s, op, t, out: rules(m.d, s, op, t, out),
    invariants=invariants,
    lawful=lawful,
)
