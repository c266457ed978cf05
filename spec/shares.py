"""What a judge of S knows: what two allocators show, and what happened to them before.

As in history.py, `Seen` holds only what any subject shows, and `Past` only what follows from the
operations, their statuses and what was seen: a subject, the model over ints and the model in a proof
are judged by the same rules (sharing.py).
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

from ..model.counted import Counted, Shares
from ..model.domain import Tree, Value
from ..model.pair import BORROWER, OWNER, ROLES, Devices, Out, RoleOp, by_role, mine, simple, without
from ..model.records import Kind, Status
from .step import once


class Seen(NamedTuple):
    """Two roles at one moment. Bytes are bytes."""

    asked: Tree  # [role][type][chunk]  bytes asked for of the buffers that the role uses, 0: none
    used: Tree  # [device]              bytes in use, by anyone
    cap: Tree  # [device]               bytes there are
    gran: Tree  # [type]                every buffer is rounded up to a multiple of this
    gen: Tree  # [role]                 generation read
    owned: Tree  # [role][type]         bytes that the role reports as its own


class Past(NamedTuple):
    """What the operations, their statuses and what was seen say about the two."""

    uses: Tree  # [role][type]
    joint: Tree  # [type]          both hold the same buffers: borrowed, and nobody left since
    active: Tree  # [role]
    owner: Value  # role OWNER may be borrowed from
    req: Tree  # [role][type][chunk]  published requirement
    planned: Tree  # [role]        a plan was made and its requirement published
    bound: Tree  # [role]          a graph is bound
    bound_gen: Tree  # [role]      generation read when it was bound


def seen(model: Counted, s: Shares) -> Seen:
    """What is seen of a model's state."""
    return Seen(s.asked, s.used, s.cap, s.gran, s.gen, tuple(model.owned(s, r) for r in ROLES))


def past(types: int, chunks: int) -> Past:
    """Nothing has happened."""
    none, off, need = (False, False), (False,) * types, ((0,) * chunks,) * types
    return Past((off, off), off, none, False, (need, need), none, none, (0, 0))


def real(d: Any, s: Seen, t: int, chunks: Tree) -> Tree:
    """What the device gives for chunks asked for."""
    return tuple(d.roundup(x, s.gran[t]) for x in chunks)


def within(d: Any, s: Seen, t: int, need: Tree, chunks: Tree) -> Value:
    """`need` fits what the device gave for `chunks`."""
    return d.all(*map(operator.le, need, real(d, s, t, chunks)))


def some(d: Any, chunks: Tree) -> Value:
    """There is a buffer."""
    return d.any(*(x > 0 for x in chunks))


def same(d: Any, a: Tree, b: Tree) -> Value:
    """Two rows of numbers are equal."""
    return True if a is b else d.all(*map(operator.eq, a, b))


def acting(d: Any, g: Past, op: RoleOp) -> Tree:
    """[role]: this attached role makes the operation."""
    return tuple(d.all(op.role == r, g.active[r]) for r in ROLES)


def of(d: Any, me: Tree, by_role: Tree) -> Tree:
    """The part [role] of the role that acts."""
    return d.ite(me[OWNER], by_role[OWNER], by_role[BORROWER])


def ready(d: Any, g: Past, s: Seen, op: RoleOp) -> Value:
    """ALLOC: the current plan is right for the graph, and the buffers fit it."""
    parts = []
    for r in ROLES:
        fits = (d.any(d.inv(u), within(d, s, t, g.req[r][t], s.asked[r][t])) for t, u in enumerate(g.uses[r]))
        parts.append(d.all(g.planned[r], op.match, *fits))
    return mine(d, acting(d, g, op), tuple(parts))


def reserves(d: Any, g: Past, s: Seen, op: RoleOp) -> Value:
    """The operation makes a reservation: RESERVE, or ALLOC where it must plan again and may."""
    me = acting(d, g, op)
    single = sum(d.ite(u, 1, 0) for u in of(d, me, g.uses)) == 1
    may = d.any(single, op.by_sched)
    again = d.choose(op.kind == Kind.ALLOC, lambda: d.all(may, d.inv(ready(d, g, s, op))), lambda: False)
    return d.all(d.any(*me), op.plannable, d.any(op.kind == Kind.RESERVE, again))


# -- the past after one more operation ---------------------------------------------------


def follow(d: Any, g: Past, s: Seen, op: RoleOp, out: Out, t: Seen) -> Past:
    """The past after one more operation, seen before (`s`) and after (`t`) it."""
    arms = {
        Kind.NEW: lambda: _new(d, g, op),
        Kind.FREE: lambda: _free(d, g, op),
        Kind.OWN: lambda: g._replace(owner=d.any(g.owner, out.ok)),
        Kind.BORROW: lambda: d.ite(out.ok, _borrow(d, g, op), g),
        Kind.RESERVE: lambda: _reserve(d, g, s, op, t),
        Kind.ALLOC: lambda: _alloc(d, g, s, op, out, t),
        Kind.COMPUTE: lambda: d.ite(out.status == int(Status.STALE), _unbind(d, g, op), g),
    }
    new: Past = d.switch(op.kind, arms, lambda: g)
    return new


def _new(d: Any, g: Past, op: RoleOp) -> Past:
    fresh = past(len(g.joint), len(g.req[OWNER][0]))
    fresh = fresh._replace(active=(True, False), uses=(op.uses, fresh.joint))
    out: Past = d.ite(d.any(*g.active), g, fresh)
    return out


def _free(d: Any, g: Past, op: RoleOp) -> Past:
    me, off = acting(d, g, op), (False,) * len(g.joint)
    none = tuple(tuple((0,) * len(q) for q in need) for need in g.req)
    gone = g._replace(
        uses=by_role(d, me, (off, off), g.uses), joint=off, active=without(d, g.active, me),
        owner=d.all(g.owner, d.inv(me[OWNER])), req=by_role(d, me, none, g.req),
        planned=without(d, g.planned, me), bound=without(d, g.bound, me),
    )  # fmt: skip
    out: Past = d.ite(d.any(*me), gone, g)
    return out


def _borrow(d: Any, g: Past, op: RoleOp) -> Past:
    return g._replace(
        uses=(g.uses[OWNER], op.uses), joint=tuple(map(d.all, g.uses[OWNER], op.uses)),
        active=(g.active[OWNER], True), req=(g.req[OWNER], op.need), planned=(g.planned[OWNER], op.match),
        bound=(g.bound[OWNER], False),
    )  # fmt: skip


def _reserve(d: Any, g: Past, s: Seen, op: RoleOp, t: Seen) -> Past:
    """The requirement is published even where the reserve fails; who has other buffers now has left the old."""
    me = acting(d, g, op)
    before, after = of(d, me, s.asked), of(d, me, t.asked)
    stays = (d.any(d.inv(some(d, x)), same(d, x, y)) for x, y in zip(before, after, strict=True))
    new = g._replace(
        req=by_role(d, me, (op.need, op.need), g.req), planned=tuple(map(d.any, g.planned, me)),
        joint=tuple(map(d.all, g.joint, stays)),
    )  # fmt: skip
    out: Past = d.ite(reserves(d, g, s, op), new, g)
    return d.ite(op.by_sched, _unbind(d, out, op), out)


def _alloc(d: Any, g: Past, s: Seen, op: RoleOp, out: Out, t: Seen) -> Past:
    me = acting(d, g, op)
    h = _reserve(d, g, s, op, t)
    bound = h._replace(bound=tuple(map(d.any, h.bound, me)), bound_gen=by_role(d, me, t.gen, h.bound_gen))
    new: Past = d.ite(out.ok, bound, h)
    return new


def _unbind(d: Any, g: Past, op: RoleOp) -> Past:
    return g._replace(bound=without(d, g.bound, acting(d, g, op)))


# -- one step -------------------------------------------------------------------------------


class Move:
    """One step of the two and the words that the rules are written in.

    `s`, `t`: seen before and after; `g`, `h`: the past before and after; `devices`: of each type, None: its own.
    """

    def __init__(
        self, d: Any, s: Seen, op: RoleOp, t: Seen, out: Out, g: Past, h: Past, devices: Devices | None = None
    ) -> None:
        self.d, self.s, self.op, self.t, self.out, self.g, self.h = d, s, op, t, out, g, h
        self.types = range(len(g.joint))
        self.devices = devices or simple(len(g.joint))
        #: by device, the types that have a part on it
        self.on = [[t for t in self.types if k in self.devices[t]] for k in range(len(s.used))]
        self.me = acting(d, g, op)
        self.acts = d.any(*self.me)
        self.reserve = reserves(d, g, s, op)
        self.served = d.all(self.reserve, out.ok)
        self.failed = d.all(self.reserve, d.inv(out.ok))
        self.refused = out.status == int(Status.REFUSED)
        self._kept: dict[tuple[Any, ...], Any] = {}

    def kind(self, *kinds: Kind) -> Value:
        return self.d.any(*(self.op.kind == int(k) for k in kinds))

    @once
    def mine(self, t: int) -> Value:
        """The acting role uses the type."""
        return mine(self.d, self.me, tuple(u[t] for u in self.g.uses))

    @once
    def have(self, t: int) -> Tree:
        """What the acting role used before."""
        return of(self.d, self.me, self.s.asked)[t]

    @once
    def now(self, t: int) -> Tree:
        """What the acting role uses after."""
        return of(self.d, self.me, self.t.asked)[t]

    @once
    def fits(self, t: int) -> Value:
        """What the acting role needs from now on fits what it had (so does what it has no use for)."""
        return self.d.any(self.d.inv(self.mine(t)), within(self.d, self.s, t, self.op.need[t], self.have(t)))

    @once
    def had(self, t: int) -> Value:
        return some(self.d, self.have(t))

    @once
    def first(self, t: int) -> Value:
        """Both hold it, it has no buffers yet, and some are needed."""
        return self.d.all(self.mine(t), self.g.joint[t], self.d.inv(self.had(t)), self.d.inv(self.fits(t)))

    @once
    def leaves(self, t: int) -> Value:
        """Both hold it, and the acting role needs more."""
        return self.d.all(self.mine(t), self.g.joint[t], self.had(t), self.d.inv(self.fits(t)))

    @once
    def leaving(self, t: int) -> Value:
        """The acting role left its joint buffers (after an entry that failed nothing is touched)."""
        return self.d.all(self.leaves(t), self.d.inv(self.h.joint[t]))

    def made(self, t: int) -> Value:
        """Joint buffers came to be."""
        return self.d.all(self.first(t), some(self.d, self.now(t)))

    def real(self, s: Seen, t: int, chunks: Tree) -> Value:
        """Bytes that the device gives for these chunks."""
        return sum(real(self.d, s, t, chunks))

    def given_back(self, t: int) -> Value:
        """Bytes that the acting role alone holds: they go before new ones are asked for."""
        return self.d.ite(self.g.joint[t], 0, self.real(self.s, t, self.have(t)))

    @once
    def on_device(self, t: int) -> Value:
        """Each device can give what is needed, beside what the other holds.

        By then the entries before it are as they are after the step: they may have parts on the same device.
        """
        s, need = self.s, self.real(self.s, t, self.op.need[t])
        enough = []
        for k in self.devices[t]:
            freed = self.given_back(t) + sum(self.less(j) for j in self.on[k] if j < t)
            enough.append(s.used[k] - freed + need <= s.cap[k])
        return self.d.all(*enough)

    def less(self, t: int) -> Value:
        """By how many bytes the two have less of the type after the step."""
        return self.bytes(self.s, self.g, t) - self.bytes(self.t, self.h, t)

    @once
    def balanced(self, k: int) -> Value:
        """Device k's bytes in use changed by what the two's buffers, or their parts on it, changed."""
        return self.s.used[k] - self.t.used[k] == sum(self.less(t) for t in self.on[k])

    @once
    def beside(self, t: int) -> Value:
        """Each device could give what is needed beside all that is in use."""
        need = self.real(self.s, t, self.op.need[t])
        return self.d.all(*(self.s.used[k] + need <= self.s.cap[k] for k in self.devices[t]))

    @once
    def injected(self, t: int) -> Value:
        """Some device of the type was told to fail."""
        return self.d.any(*(self.op.inject[k] for k in self.devices[t]))

    def fewer(self, t: int, bytes_: Value) -> Value:
        """So many bytes less are in use, on every device that has no other type's parts (`balanced` is of all)."""
        alone = [k for k in self.devices[t] if self.on[k] == [t]]
        return self.d.all(*(self.t.used[k] == self.s.used[k] - bytes_ for k in alone))

    def bytes(self, s: Seen, g: Past, t: int) -> Value:
        """Device bytes of the two: what both hold counts once."""
        owner, borrower = (self.real(s, t, s.asked[r][t]) for r in ROLES)
        return owner + self.d.ite(g.joint[t], 0, borrower)

    def keeps(self, role: int, t: int) -> Value:
        """The role uses the same buffers as before."""
        return same(self.d, self.s.asked[role][t], self.t.asked[role][t])

    @once
    def untouched(self) -> Value:
        """No buffer, no byte in use and no generation changed."""
        s, t, d = self.s, self.t, self.d
        rows = [(a, b) for x, y in zip(s.asked, t.asked, strict=True) for a, b in zip(x, y, strict=True)]
        return d.all(*(same(d, a, b) for a, b in (*rows, (s.used, t.used), (s.gen, t.gen))))

    def no_allocations(self) -> Value:
        return self.out.allocations == 0
