"""S1 to S5, and what S7 says of one step, as predicates over what two allocators show.

`rules` gives, for one operation, every clause as named parts (see step.Rule), over any domain.
Between histories (S5 as a whole, S6, S7) counted sharing is compared with its rivals: beside.py for the
proof, fuzz/differential.py for a subject. The parts are as permissive as the contract.
"""

from __future__ import annotations

import operator

from ..model.domain import Value
from ..model.pair import BORROWER, OWNER, ROLES, mine
from ..model.records import Kind, Status
from .machine import Rules
from .shares import Move, same, some
from .step import Rule

CLAUSES = ("S1", "S2", "S3", "S4", "S5", "S7")


def rules(p: Move) -> dict[str, Rules]:
    """Every clause as its named parts; where the kind is known, parts that say nothing of it are left out."""
    found: dict[str, Rules] = {clause: {} for clause in CLAUSES}
    groups = [always(p)]
    if p.kind(Kind.RESERVE, Kind.ALLOC) is not False:
        groups += [fitting(p), failing(p)]
    if p.kind(Kind.ALLOC) is not False:
        groups.append(binding(p))
    if p.kind(Kind.COMPUTE) is not False:
        groups.append(computing(p))
    if p.kind(Kind.BORROW) is not False:
        groups.append(attaching(p))
    if p.kind(Kind.FREE) is not False:
        groups.append(leaving(p))
    for group in groups:
        for clause, parts in group.items():
            found[clause] |= parts
    return found


def always(p: Move) -> dict[str, Rules]:
    """What holds of every step: joint buffers are the same ones, and no byte is lost or counted twice."""
    d = p.d
    r1: Rules = {}
    r3: Rules = {}
    others = d.inv(d.any(p.reserve, p.kind(Kind.FREE, Kind.BORROW, Kind.NEW)))
    for t in p.types:
        lent = p.h.joint[t]
        both = d.any(*(some(d, p.t.asked[r][t]) for r in ROLES))
        r1[f"type {t}: both see the same buffers"] = Rule(d.all(lent, both), same(
            d, p.t.asked[OWNER][t], p.t.asked[BORROWER][t]))  # fmt: skip
        r1[f"type {t}: a joint byte is counted once, with the owner"] = Rule(
            d.all(lent, both), p.t.owned[BORROWER][t] == 0, counts=False
        )
    for k in range(len(p.on)):
        r3[f"device {k}: no byte lost"] = Rule(d.inv(p.kind(Kind.NEW)), p.balanced(k), counts=False)
    r3["only a reserve or a free changes buffers"] = Rule(
        others, d.all(*(p.keeps(r, t) for r in ROLES for t in p.types)), counts=False
    )
    return {"S1": r1, "S3": r3}


def fitting(p: Move) -> dict[str, Rules]:
    """S1, S2, S7: what a reservation does to each entry of its own role and of the other."""
    d = p.d
    r1: Rules = {}
    r2: Rules = {}
    calm = d.all(*(p.fits(t) for t in p.types))
    for t in p.types:
        other = [d.all(d.inv(p.me[r]), p.g.active[r]) for r in ROLES]
        still = d.all(*(d.any(d.inv(o), p.keeps(r, t)) for r, o in zip(ROLES, other, strict=True)))
        r1[f"type {t}: what fits is left alone"] = Rule(
            d.all(p.reserve, p.mine(t), p.fits(t)),
            d.all(same(d, p.have(t), p.now(t)), still, p.fewer(t, 0)),
        )
        r1[f"type {t}: joint buffers are what their maker needs, no sum"] = Rule(
            d.all(p.reserve, p.made(t)), same(d, p.now(t), p.op.need[t])
        )
        r2[f"type {t}: who needs more has its own, as large as it needs"] = Rule(
            d.all(p.served, p.leaves(t)), same(d, p.now(t), p.op.need[t])
        )
        r2[f"type {t}: the other keeps its buffers"] = Rule(d.all(p.reserve, p.leaving(t)), still)
        r2[f"type {t}: so it does of what was never joint"] = Rule(
            d.all(p.reserve, d.inv(p.first(t))), still, counts=False
        )
        r2[f"type {t}: what was its own is made anew as large as it needs"] = Rule(
            d.all(p.served, p.mine(t), d.inv(p.fits(t)), d.inv(p.first(t))),
            same(d, p.now(t), p.op.need[t]),
            counts=False,
        )
    left = d.any(*(p.leaving(t) for t in p.types))
    made = d.any(*(p.made(t) for t in p.types))
    for r, who in zip(ROLES, ("owner", "borrower"), strict=True):
        mine_, other = p.me[r], d.all(d.inv(p.me[r]), p.g.active[r])
        moved = d.inv(d.all(*(p.keeps(r, t) for t in p.types)))
        r2[f"{who}: its generation stays when the other leaves"] = Rule(
            d.all(p.reserve, other, left, d.inv(made)), p.t.gen[r] == p.s.gen[r]
        )
        r2[f"{who}: its generation says that it left"] = Rule(
            d.all(p.reserve, mine_, left), p.t.gen[r] > p.s.gen[r]
        )
        r2[f"{who}: its generation says that its buffers are others"] = Rule(
            d.all(p.reserve, moved), p.t.gen[r] > p.s.gen[r], counts=False
        )
    r1["a reservation that fits changes nothing"] = Rule(d.all(p.reserve, calm), p.untouched())
    return {"S1": r1, "S2": r2, "S7": limit(p)}


def limit(p: Move) -> Rules:
    """S7, of one reservation: what fits asks the device for nothing, what is made for nothing else."""
    d = p.d
    calm = d.all(*(p.fits(t) for t in p.types))
    tight = d.any(*(d.all(p.mine(t), p.g.joint[t], p.had(t), p.fits(t), d.inv(p.beside(t))) for t in p.types))
    chunks = _chunks(p, len(p.types) - 1)
    return {
        "what fits works on a full device": Rule(d.all(p.reserve, calm, tight), p.out.ok),
        "what fits asks for nothing": Rule(d.all(p.reserve, calm), p.no_allocations(), counts=False),
        "joint buffers are asked for once": Rule(
            d.all(p.reserve, d.any(*(p.first(t) for t in p.types))), p.out.allocations <= chunks
        ),
        "no more is asked for than is needed": Rule(p.reserve, p.out.allocations <= chunks, counts=False),
    }


def failing(p: Move) -> dict[str, Rules]:
    """S5: when a reservation may be refused, and when not."""
    d, op = p.d, p.op
    closed = d.any(*(_closed(p, t) for t in p.types))
    fine = (d.any(p.fits(t), d.all(d.inv(p.injected(t)), p.on_device(t))) for t in p.types)
    needs = d.any(*(d.inv(p.fits(t)) for t in p.types))
    return {
        "S5": {
            "refused only where the device cannot give what the role itself needs": Rule(p.failed, closed),
            "works where it can": Rule(d.all(p.reserve, needs, op.fail_nth == 0, *fine), p.out.ok),
        },
    }


def _closed(p: Move, t: int) -> Value:
    """Entry `t` failed: its role has none, those before it have what is needed, those after were not touched."""
    d, op = p.d, p.op
    before = (d.any(p.fits(j), same(d, p.now(j), op.need[j])) for j in p.types if j < t)
    after = (same(d, p.have(j), p.now(j)) for j in p.types if j > t)
    reason = d.any(p.injected(t), op.fail_nth > 0, d.inv(p.on_device(t)))
    first = _chunks(p, t - 1) + len(p.devices[t])  # where all of its buffers fail, the first one does
    stops = p.out.allocations <= d.ite(p.injected(t), first, _chunks(p, t))
    return d.all(p.mine(t), d.inv(p.fits(t)), reason, d.inv(some(d, p.now(t))), stops, *before, *after)


def _chunks(p: Move, last: int) -> Value:
    """What may be asked for up to that entry; a buffer of a meta type is one on every device."""
    d = p.d
    return sum(
        d.ite(d.all(p.mine(t), d.inv(p.fits(t)), x > 0), len(p.devices[t]), 0)
        for t in p.types
        for x in p.op.need[t]
        if t <= last
    )


def binding(p: Move) -> dict[str, Rules]:
    """S2: the plan of whom the other left is as good as before."""
    d = p.d
    calm = d.all(*(p.fits(t) for t in p.types))
    binds = d.all(p.kind(Kind.ALLOC), p.acts, p.op.plannable, d.inv(p.reserve), mine(d, p.me, p.g.planned))
    done = d.all(p.out.ok, p.untouched())
    return {"S2": {"a plan that fits binds": Rule(d.all(binds, p.op.match, calm), done, counts=False)}}


def computing(p: Move) -> dict[str, Rules]:
    """S2: who is not the one that left computes as before; who left finds out."""
    d, g = p.d, p.g
    run = d.all(p.kind(Kind.COMPUTE), mine(d, p.me, g.bound), d.inv(p.op.unchecked))
    older = mine(d, p.me, tuple(map(operator.ne, p.s.gen, g.bound_gen)))
    dropped = p.out.status == int(Status.STALE)
    return {
        "S2": {
            "a graph whose buffers stayed is computed": Rule(
                d.all(run, d.inv(older)), p.out.ok, counts=False
            ),
            "a graph whose buffers were left is dropped": Rule(d.all(run, older), dropped, counts=False),
            "no buffer that was left is touched": Rule(run, d.inv(p.out.touched), counts=False),
        },
    }


def attaching(p: Move) -> dict[str, Rules]:
    """S4, and what attaching costs (S1, S7)."""
    d, g, op = p.d, p.g, p.op
    borrowing = p.kind(Kind.BORROW)
    lacks = d.any(*op.missing)
    meet = d.any(*map(d.all, g.uses[OWNER], op.uses))
    free = d.all(op.clean, op.other == OWNER, g.owner, g.active[OWNER], d.inv(g.active[BORROWER]), meet)
    told = d.all(*map(operator.eq, p.out.reason, op.missing))
    shown = (
        d.any(d.inv(j), same(d, p.t.asked[BORROWER][t], p.s.asked[OWNER][t])) for t, j in enumerate(p.h.joint)
    )
    return {
        "S1": {
            "attaching adds no bytes": Rule(
                d.all(borrowing, p.out.ok), d.all(same(d, p.s.used, p.t.used), *shown)),
        },
        "S4": {
            "refused where it was not validated": Rule(d.all(borrowing, lacks), p.refused),
            "says what is missing, and nothing else": Rule(borrowing, told),
            "nothing changed": Rule(d.all(borrowing, p.refused), p.untouched()),
            "done where it was": Rule(d.all(borrowing, d.inv(lacks), free), p.out.ok),
            "by an owner without a borrower, of a common type, with one that has no buffers": Rule(
                d.all(borrowing, d.inv(free)), p.refused),
        },
        "S7": {"attaching asks for nothing": Rule(borrowing, p.no_allocations(), counts=False)},
    }  # fmt: skip


def leaving(p: Move) -> dict[str, Rules]:
    """S3: the last reference frees, no other does."""
    d = p.d
    free = d.all(p.kind(Kind.FREE), p.acts)
    parts: Rules = {}
    for t in p.types:
        parts[f"type {t}: freed with its last reference"] = Rule(
            d.all(free, p.had(t), d.inv(p.g.joint[t])),
            p.fewer(t, p.real(p.s, t, p.have(t))),
        )
        parts[f"type {t}: and only then"] = Rule(d.all(free, p.had(t), p.g.joint[t]), p.fewer(t, 0))
    for r, who in zip(ROLES, ("owner", "borrower"), strict=True):
        stays = d.all(free, p.g.active[r], p.h.active[r])
        parts[f"the {who} keeps its buffers when the other goes"] = Rule(
            stays, d.all(p.t.gen[r] == p.s.gen[r], *(p.keeps(r, t) for t in p.types)), counts=False
        )
    return {"S3": parts}
