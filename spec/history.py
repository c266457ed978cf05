"""What a judge of R knows: what is seen of a pair, and what happened to it before.

`Seen` holds only what any subject shows. `Past` is history that no subject can
fake: it follows from the operations and their statuses alone (`follow`), so a
foreign subject, the model over ints and the model in a proof are judged by the
same predicates. Where the contract leaves open whether something counts, `Past`
keeps both readings: what is sure, and what may be.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

from ..model.domain import Tree, Value
from ..model.pair import BORROWER, OWNER, ROLES, Out, RoleOp, State, by_role, mine, without
from ..model.records import Kind, Status


class Seen(NamedTuple):
    """One pair at one moment, as observed. Bytes are bytes; nothing of how it is done."""

    asked: Tree  # [type][chunk]   bytes asked for of the entry's buffer, 0: no buffer
    old: Tree  # [type][chunk]     the same of what a borrower that is behind still holds (R14)
    used: Tree  # [device]         bytes in use, by anyone
    cap: Tree  # [device]          bytes there are
    gran: Tree  # [type]           every buffer is rounded up to a multiple of this
    gen: Tree  # [role]            generation read
    shrink_gen: Tree  # [role]     shrink generation read
    owned: Tree  # [role][type]    bytes that the role reports as its own, on each of the type's devices (R13)


class Past(NamedTuple):
    """What the operations and their statuses say about the pair."""

    uses: Tree  # [role][type]
    common: Tree  # [type]
    active: Tree  # [role]
    owner: Value  # role OWNER became an owner
    behind: Value  # the owner was remade, the borrower has not reserved since (R14)
    req: Tree  # [role][type][chunk]  published requirement
    planned: Tree  # [role]        a plan was made and its requirement published
    ever: Tree  # [role]           a reserve succeeded
    asking: Tree  # [role]         requested a shrink and has not reserved successfully since
    open: Value  # a request may be pending
    sure: Value  # a request is pending for certain
    tried: Tree  # [role]          reserved since the request, successfully or not
    done: Tree  # [role]           reserved successfully since the request
    bound: Tree  # [role]          a graph is bound
    bound_gen: Tree  # [role]      generation read when it was bound


def seen(model: Any, s: State) -> Seen:
    """What is seen of a model's state."""
    return Seen(
        s.asked, s.old, s.used, s.cap, s.gran, s.gen, s.shrink_gen, tuple(model.owned(s, r) for r in ROLES)
    )


def past(types: int, chunks: int) -> Past:
    """Nothing has happened."""
    none, off, need = (False, False), (False,) * types, ((0,) * chunks,) * types
    return Past((off, off), off, none, False, False, (need, need), none, none, none, False, False, none, none,
                none, (0, 0))  # fmt: skip


def holding(d: Any, g: Past, s: Seen, role: int, t: int) -> Tree:
    """Bytes asked for, by chunk, of the entry of type `t` that the role uses (zeros where none)."""
    nothing = (0,) * len(s.asked[t])
    entry = s.asked[t] if role == OWNER else d.ite(g.behind, s.old[t], s.asked[t])
    return d.ite(d.all(g.active[role], g.uses[role][t]), entry, nothing)


def real(d: Any, s: Seen, t: int, chunks: Tree) -> Tree:
    """What the device gives for chunks asked for."""
    return tuple(d.roundup(x, s.gran[t]) for x in chunks)


def fits(d: Any, g: Past, s: Seen, role: int) -> Value:
    """All that the role uses still fits its published requirement."""
    parts = []
    for t in range(len(s.asked)):
        have = real(d, s, t, holding(d, g, s, role, t))
        parts.append(d.any(d.inv(g.uses[role][t]), d.all(*map(operator.le, g.req[role][t], have))))
    return d.all(*parts)


def acting(d: Any, g: Past, op: RoleOp) -> Tree:
    """[role]: this attached role makes the operation."""
    return tuple(d.all(op.role == r, g.active[r]) for r in ROLES)


def ready(d: Any, g: Past, s: Seen, op: RoleOp) -> Value:
    """ALLOC: the current plan is right for the graph, and the buffers fit it (G4)."""
    me = acting(d, g, op)
    return mine(d, me, tuple(d.all(g.planned[r], op.match, fits(d, g, s, r)) for r in ROLES))


def reserves(d: Any, g: Past, s: Seen, op: RoleOp) -> Value:
    """The operation makes a reservation: RESERVE, or ALLOC where it must plan again and may."""
    me = acting(d, g, op)
    single = sum(d.ite(d.any(*(d.all(m, u[t]) for m, u in zip(me, g.uses, strict=True))), 1, 0)
                 for t in range(len(s.asked))) == 1  # fmt: skip
    plans = d.any(single, op.by_sched)
    again = d.choose(op.kind == Kind.ALLOC, lambda: d.all(plans, d.inv(ready(d, g, s, op))), lambda: False)
    return d.all(d.any(*me), op.plannable, d.any(op.kind == Kind.RESERVE, again))


def follow(d: Any, g: Past, s: Seen, op: RoleOp, out: Out, t: Seen) -> Past:
    """The past after one more operation, seen before (`s`) and after (`t`) it."""
    arms = {
        Kind.NEW: lambda: _new(d, g, op),
        Kind.FREE: lambda: _detach(d, g, op),
        Kind.OWN: lambda: g._replace(owner=d.any(g.owner, out.ok)),
        Kind.BORROW: lambda: d.ite(out.ok, _borrow(d, g, op), g),
        Kind.RESERVE: lambda: _reserve(d, g, s, op, out),
        Kind.ALLOC: lambda: _alloc(d, g, s, op, out, t),
        Kind.COMPUTE: lambda: _compute(d, g, op, out),
        Kind.SHRINK: lambda: _request(d, g, op, out),
        Kind.REMAKE: lambda: d.ite(out.ok, _remake(d, g), g),
    }
    new: Past = d.switch(op.kind, arms, lambda: g)
    return new


def _new(d: Any, g: Past, op: RoleOp) -> Past:
    types, chunks = len(g.common), len(g.req[OWNER][0])
    fresh = past(types, chunks)
    fresh = fresh._replace(active=(True, False), uses=(op.uses, fresh.common))
    out: Past = d.ite(d.any(*g.active), g, fresh)
    return out


def _forget(d: Any, g: Past, me: Tree) -> Past:
    """A role starts anew or is gone."""
    none = tuple(tuple((0,) * len(q) for q in need) for need in g.req)
    flags = ("planned", "ever", "asking", "tried", "done", "bound")
    off = {name: without(d, getattr(g, name), me) for name in flags}
    return g._replace(req=by_role(d, me, none, g.req), **off)


def _detach(d: Any, g: Past, op: RoleOp) -> Past:
    me = acting(d, g, op)
    off = (False,) * len(g.common)
    active = without(d, g.active, me)
    left = d.any(*active)
    gone = _forget(d, g, me)._replace(
        active=active, uses=by_role(d, me, (off, off), g.uses), owner=d.all(g.owner, d.inv(me[OWNER])),
        behind=False, open=left, sure=left, tried=(False, False), done=(False, False),
    )  # fmt: skip
    out: Past = d.ite(d.any(*me), gone, g)
    return out


def _borrow(d: Any, g: Past, op: RoleOp) -> Past:
    came = _forget(d, g, (False, True))
    return came._replace(
        uses=(g.uses[OWNER], op.uses), common=tuple(map(d.all, g.uses[OWNER], op.uses)),
        active=(g.active[OWNER], True), req=(g.req[OWNER], op.need), planned=(g.planned[OWNER], op.match),
    )  # fmt: skip


def _reserve(d: Any, g: Past, s: Seen, op: RoleOp, out: Out) -> Past:
    """The requirement is published even where the reserve fails (R9, R10); a scheduler forgets its graph first."""
    me, good = acting(d, g, op), out.ok
    g = d.ite(op.by_sched, g._replace(bound=without(d, g.bound, me)), g)
    tried = tuple(d.any(x, d.all(m, g.open)) for x, m in zip(g.tried, me, strict=True))
    done = tuple(d.any(x, d.all(m, g.open, good)) for x, m in zip(g.done, me, strict=True))
    all_tried, all_done = (d.all(*map(d.any, x, map(d.inv, g.active))) for x in (tried, done))
    new = g._replace(
        behind=d.all(g.behind, d.inv(me[BORROWER])),
        req=by_role(d, me, (op.need, op.need), g.req), planned=tuple(map(d.any, g.planned, me)),
        ever=d.ite(good, tuple(map(d.any, g.ever, me)), g.ever),
        asking=d.ite(good, without(d, g.asking, me), g.asking),
        open=d.all(g.open, d.inv(d.all(good, all_done))), sure=d.all(g.sure, d.inv(d.all(good, all_tried))),
        tried=tried, done=done,
    )  # fmt: skip
    over: Past = d.ite(new.open, new, new._replace(tried=(False, False), done=(False, False)))
    out_: Past = d.ite(reserves(d, g, s, op), over, g)
    return out_


def _alloc(d: Any, g: Past, s: Seen, op: RoleOp, out: Out, t: Seen) -> Past:
    me = acting(d, g, op)
    h = _reserve(d, g, s, op, out)
    bound = h._replace(bound=tuple(map(d.any, h.bound, me)), bound_gen=by_role(d, me, t.gen, h.bound_gen))
    new: Past = d.ite(out.ok, bound, h)
    return new


def _compute(d: Any, g: Past, op: RoleOp, out: Out) -> Past:
    dropped = g._replace(bound=without(d, g.bound, acting(d, g, op)))
    new: Past = d.ite(out.status == int(Status.STALE), dropped, g)
    return new


def _request(d: Any, g: Past, op: RoleOp, out: Out) -> Past:
    """R8: a new request forgets who had reserved; where one may be pending already, both are kept in mind."""
    me = acting(d, g, op)
    asks = g._replace(asking=tuple(map(d.any, g.asking, me)))
    none = (False, False)
    new = asks._replace(
        open=True, sure=True, tried=d.ite(g.open, g.tried, none), done=d.ite(g.sure, g.done, none)
    )
    aside = d.all(me[BORROWER], g.behind)
    after: Past = d.ite(d.all(out.ok, d.any(*me)), d.ite(aside, asks, new), g)
    return after


def _remake(d: Any, g: Past) -> Past:
    none = (False, False)
    return _forget(d, g, (True, False))._replace(
        behind=g.active[BORROWER], open=False, sure=False, tried=none, done=none
    )
