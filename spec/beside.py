"""S5 and S1 between histories: counted sharing beside the same two allocators with buffers of their own.

Both sides get the same operations on devices of the same sizes, with the same bytes in use by others. The
claim that is proved: as long as every reservation works apart, and nobody left or went, every reservation
works shared too, and no device has more in use shared than apart. Without "nobody left" it is false of the
design: `FALSE_CLAIM` is refuted, with a trace.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import z3

from ..model.counted import Counted, Shares
from ..model.domain import Tree, Value
from ..model.pair import BORROWER, OWNER, ROLES, Out, RoleOp
from ..model.records import Kind
from ..model.resizable import Model
from ..model.terms import equal, fresh, leaves
from . import asking
from .asking import implies, roles
from .machine import Machine, Rules
from .shares import same, some
from .step import Rule

KINDS = (Kind.NEW, Kind.OWN, Kind.BORROW, Kind.RESERVE, Kind.ALLOC, Kind.CAPACITY)
CLAIM = "S5: sharing never fails where independent buffers would have worked"  #: false after a detach


class Two(NamedTuple):
    """The same allocators, shared and apart."""

    c: Shares
    own: Tree  # [role]  a pair.State: the role as a plain allocator; both on the same devices
    fine: Value  # history: every reservation worked apart
    stayed: Value  # history: nobody left the shared buffers


class Answers(NamedTuple):
    """What the operation gave on either side."""

    status: Value  # shared
    ok: Value  # shared: done
    apart: Value  # apart: done
    leaves: Value  # shared: the role has to leave


class Beside:
    """Both sides in lockstep. `cls`: the model of counted sharing, or a wrong variant of it."""

    def __init__(self, d: Any, types: int, chunks: int, cls: type[Counted] = Counted) -> None:
        self.d, self.two, self.plain = d, cls(d, types, chunks), Model(d, types, chunks)

    def init(self, cap: Tree, gran: Tree, used: Tree | None = None) -> Two:
        alone = self.plain.init(cap, gran, used)
        return Two(self.two.init(cap, gran, used), (alone, alone), True, True)

    def step(self, s: Two, op: RoleOp) -> tuple[Two, Answers]:
        d = self.d
        c, out = self.two.step(s.c, op)  # type: ignore[arg-type]
        leaves_ = self.leaves(s.c, op)
        own, apart = self.alone(s.own, op, out)
        ask = d.any(op.kind == int(Kind.RESERVE), op.kind == int(Kind.ALLOC))
        fine = d.all(s.fine, d.any(d.inv(ask), apart))
        t = Two(c, own, fine, d.all(s.stayed, d.inv(leaves_)))  # type: ignore[arg-type]
        return t, Answers(out.status, out.ok, apart, leaves_)

    def alone(self, own: Tree, op: RoleOp, out: Out) -> tuple[Tree, Value]:
        """The plain allocators after the operation, and whether it was done."""
        d = self.d
        new, done = zip(*(self.one(own[r], r, op, out) for r in ROLES), strict=True)
        used = d.ite(op.role == OWNER, new[OWNER].used, new[BORROWER].used)
        return tuple(x._replace(used=used) for x in new), d.any(*done)

    def one(self, s: Tree, role: int, op: RoleOp, out: Out) -> tuple[Tree, Value]:
        """The plain allocator of a role: it comes by NEW or, as a borrower, by BORROW."""
        d = self.d

        def now(kind: Value) -> tuple[Tree, Out]:
            t, answer = self.plain.step(s, op._replace(kind=kind, role=OWNER))
            return t, answer

        asks = d.all(d.any(op.kind == int(Kind.RESERVE), op.kind == int(Kind.ALLOC)), op.role == role)
        comes = d.all(op.kind == int((Kind.NEW, Kind.BORROW)[role]), out.ok)
        t, answer = now(op.kind)
        same_or_new = d.ite(comes, now(int(Kind.NEW))[0], s)
        moved = d.ite(d.any(asks, op.kind == int(Kind.CAPACITY)), t, same_or_new)
        return moved, d.all(asks, answer.ok)

    def leaves(self, c: Shares, op: RoleOp) -> Value:
        """The acting role needs more than joint buffers have."""
        d = self.d
        asks = d.any(op.kind == int(Kind.RESERVE), op.kind == int(Kind.ALLOC))
        found = False
        for r in ROLES:
            for t in self.two.types:
                small = d.any(*map(operator.gt, op.need[t], self.two.real(c, t, c.asked[r][t])))  # type: ignore[arg-type]
                here = d.all(asks, op.role == r, c.joint[t], some(d, c.asked[r][t]), small)
                found = d.any(found, here)
        return found


def beside(cls: type[Counted]) -> Callable[..., Beside]:
    """The machine's model with a wrong variant in its place."""
    return partial(Beside, cls=cls)


def rules(model: Beside, s: Two, op: RoleOp, t: Two, out: Answers) -> dict[str, Rules]:
    d = model.d
    calm = d.all(t.fine, t.stayed)
    return {
        "S5": {"a reservation that works apart works shared, while nobody left": Rule(
            d.all(s.fine, s.stayed, d.inv(out.leaves), out.apart), out.ok)},
        "S1": {f"type {k}: no more bytes in use than apart, while nobody left": Rule(
            calm, t.c.used[k] <= t.own[OWNER].used[k]) for k in model.two.types},
    }  # fmt: skip


def claim(model: Beside, s: Two, op: RoleOp, t: Two, out: Answers) -> dict[str, Rules]:
    return {CLAIM: {"": Rule(model.d.all(s.fine, out.apart), out.ok)}}


def invariants(model: Beside, s: Two) -> dict[str, Value]:
    """What holds of both sides, while nobody left and all works apart; by name."""
    d, two, c = model.d, model.two, s.c
    calm = d.all(s.fine, s.stayed)
    sizes = [x for tree in (c.asked, c.req, *(o.asked for o in s.own)) for x in leaves(tree)]
    both, parts = d.all(*c.active), []
    parts += [implies(d, j, d.all(both, c.uses[0][t], c.uses[1][t])) for t, j in enumerate(c.joint)]
    parts += [implies(d, c.uses[r][t], c.active[r]) for r in ROLES for t in two.types]
    parts.append(implies(d, c.active[BORROWER], c.active[OWNER]))
    nothing = [d.all(d.inv(c.planned[r]), *(x == 0 for x in leaves((c.req[r], c.asked[r])))) for r in ROLES]
    parts += [d.any(c.active[r], nothing[r]) for r in ROLES]
    alike = []
    for r in ROLES:
        o = s.own[r]
        alike += [o.active[OWNER] == c.active[r], d.inv(o.active[BORROWER]), d.inv(o.owner), d.inv(o.behind)]
        alike += [d.inv(o.pending), *map(d.inv, o.asking), *map(d.inv, o.common), *map(d.inv, o.seen)]
        alike += equal((o.uses[OWNER], o.req[OWNER], o.planned[OWNER]), (c.uses[r], c.req[r], c.planned[r]))
        alike += [d.inv(u) for u in o.uses[BORROWER]]
    devices = [*equal(s.own[OWNER].used, s.own[BORROWER].used)]
    for o in s.own:
        devices += equal((o.cap, o.gran), (c.cap, c.gran))
    return {
        "sizes are not negative": d.all(*(x >= 0 for x in sizes), *(x >= 1 for x in c.gran)),
        "who is attached": d.all(*parts),
        "both sides are of the same allocators": implies(d, calm, d.all(*alike)),
        "both sides are on the same devices": d.all(*devices),
        "others use the same on both": implies(d, calm, d.all(*(_others(model, s, t) for t in two.types))),
        "what is not joint is the same": implies(d, calm, d.all(*(_own(model, s, t) for t in two.types))),
        "what is joint is one of theirs": implies(d, calm, d.all(*(_joint(model, s, t) for t in two.types))),
        "all needs are met": implies(d, calm, d.all(*(_met(model, s, t) for t in two.types))),
    }


def _others(model: Beside, s: Two, t: int) -> Value:
    d, c, two = model.d, s.c, model.two
    shared = [sum(two.real(c, t, c.asked[r][t])) for r in ROLES]  # type: ignore[arg-type]
    apart = [sum(two.real(c, t, o.asked[t])) for o in s.own]  # type: ignore[arg-type]
    rest = c.used[t] - shared[OWNER] - d.ite(c.joint[t], 0, shared[BORROWER])
    return d.all(rest >= 0, rest == s.own[OWNER].used[t] - sum(apart))


def _own(model: Beside, s: Two, t: int) -> Value:
    d, c = model.d, s.c
    return d.any(c.joint[t], d.all(*(same(d, s.own[r].asked[t], c.asked[r][t]) for r in ROLES)))


def _joint(model: Beside, s: Two, t: int) -> Value:
    """The one entry is what one of the two has apart; neither has more."""
    d, c = model.d, s.c
    entry = c.asked[OWNER][t]
    real = model.two.real(c, t, entry)  # type: ignore[arg-type]
    makers = d.any(*(same(d, o.asked[t], entry) for o in s.own))
    within = (x <= y for o in s.own for x, y in zip(o.asked[t], real, strict=True))
    one = d.all(same(d, entry, c.asked[BORROWER][t]), makers, *within)
    return implies(d, c.joint[t], one)


def _met(model: Beside, s: Two, t: int) -> Value:
    d, c = model.d, s.c
    parts = []
    for r in ROLES:
        for have in (c.asked[r][t], s.own[r].asked[t]):
            enough = d.all(*map(operator.le, c.req[r][t], model.two.real(c, t, have)))  # type: ignore[arg-type]
            parts.append(implies(d, c.uses[r][t], enough))
    parts += [implies(d, x > 0, c.uses[r][t]) for r in ROLES for x in (*c.asked[r][t], *s.own[r].asked[t])]
    return d.all(*parts)


def lawful(model: Beside, s: Two, op: RoleOp) -> list[Value]:
    """As of any two roles; and who borrows never had a plan (all works)."""
    d = model.d
    none = d.all(d.inv(op.match), *(x == 0 for x in leaves(op.need)))
    return [*asking.lawful(d, s.c, op), implies(d, op.kind == int(Kind.BORROW), none)]


def any_start(model: Beside) -> tuple[Two, list[Value]]:
    """Devices of any size and rounding, of which others use any part."""
    cap, gran, used = (fresh((0,) * len(model.two.types), name) for name in ("cap", "gran", "used"))
    return model.init(cap, gran, used), [*(x >= 1 for x in gran), *(x >= 0 for x in used)]


def first(model: Beside) -> tuple[Two, list[Value]]:
    """Devices of any size that round nothing, and that nobody else uses."""
    types = len(model.two.types)
    cap = fresh((0,) * types, "cap")
    return model.init(cap, (1,) * types), [c >= 0 for c in cap]


def operation(model: Beside) -> RoleOp:
    two = model.two
    return RoleOp(0, uses=two.no_type, need=two.no_need, inject=two.no_type)


def wishes(op: RoleOp) -> list[list[Value]]:
    """Plain reservations, no failures."""
    return [[op.fail_nth == 0, *map(z3.Not, op.inject)], [op.plannable, z3.Not(op.by_sched)]]


_MINE, _THEIRS = {"role": OWNER}, {"role": BORROWER}
MACHINE = Machine(
    name="beside",
    model=Beside,
    configs=tuple((types, chunks) for types in (1, 2) for chunks in (1, 2)),
    kinds=KINDS,
    clauses=("S1", "S5"),
    init=lambda model: model.init((0,) * len(model.two.types), (1,) * len(model.two.types)),
    operation=operation,
    rules=rules,
    invariants=invariants,
    lawful=lawful,
    start=any_start,
    begin=first,
    splits=roles,
    prefixes=(((Kind.NEW, _MINE), (Kind.OWN, _MINE), (Kind.BORROW, _THEIRS)), ((Kind.NEW, _MINE),)),
    wishes=wishes,
    sizes="types x chunks",
)
FALSE_CLAIM = replace(MACHINE, name="claim", clauses=(CLAIM,), rules=claim)
