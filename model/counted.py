"""Sharing by reference count, with detach, and not sharing at all: the other two strategies (S).

`Counted` is stepped like `resizable.Model`, and differs in what a role holds. An
entry is made as its maker needs it: there is no maximum and no shrinking. A type
that both roles have is *joint*: one entry, two references. A role that needs more
than a joint entry has drops its reference and makes one of its own. `Apart` never
lets anybody share. Exact behaviour is fixed in docs/choices.md; S1 to S5 and S7.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

from .domain import Tree, Value
from .pair import BORROWER, OWNER, Out, RoleOp, State, by_role, put, without
from .resizable import Model

Pair = Any  #: a Shares; what Model says of a State holds of it too, as far as it has the fields


class Shares(NamedTuple):
    """Two roles, the buffers that each holds, and the devices. Bytes are bytes, counters count from 0."""

    uses: Tree  # [role][type]          the role's config has the type
    joint: Tree  # [type]               one entry, which both roles hold
    active: Tree  # [role]              the role is attached
    owner: Value  # role OWNER may be borrowed from
    req: Tree  # [role][type][chunk]    published requirement
    asked: Tree  # [role][type][chunk]  bytes asked for of what the role holds, 0: no buffer
    used: Tree  # [device]              bytes in use, by anyone
    cap: Tree  # [device]               bytes there are
    gran: Tree  # [type]                every buffer is rounded up to a multiple of this
    gen: Tree  # [role]                 generation, as the role reads it
    shrink_gen: Tree  # [role]          shrink generation: nothing shrinks, so it stays
    planned: Tree  # [role]             has a plan; its requirement is req
    ever: Tree  # [role]                a reserve once succeeded
    bound: Tree  # [role]               a graph is bound
    bound_gen: Tree  # [role]           generation when it was bound
    held: Tree  # [role][type]          the bound graph has bytes in the type
    stale: Tree  # [role]               history: the role let go of memory of its bound graph


class Counted(Model):
    """The step function for a fixed number of types and chunks, over domain `d`; see resizable.Model."""

    remakes = False

    def init(self, cap: Tree, gran: Tree | None = None, used: Tree | None = None) -> Pair:
        none, types = self.nobody, len(self.types)
        return Shares(
            uses=(self.no_type,) * 2, joint=self.no_type, active=none, owner=False,
            req=(self.no_need,) * 2, asked=(self.no_need,) * 2,
            used=tuple(used or (0,) * types), cap=tuple(cap), gran=tuple(gran or (1,) * types),
            gen=(0, 0), shrink_gen=(0, 0), planned=none, ever=none, bound=none, bound_gen=(0, 0),
            held=(self.no_type,) * 2, stale=none,
        )  # fmt: skip

    # -- coming, going -------------------------------------------------------------

    def holds(self, s: Pair) -> Value:
        return self.d.any(*(x > 0 for role in s.asked for entry in role for x in entry))

    def borrow(self, s: Pair, op: RoleOp) -> tuple[Pair, Out]:
        """S4: where something is missing it is refused, and says what."""
        lacks = self.d.any(*op.missing)
        t, out = self.d.ite(lacks, self.refused(s), super().borrow(s, op))
        return t, out._replace(reason=op.missing)

    def attach(self, s: Pair, op: RoleOp) -> Pair:
        """What both have is joint from now on; the borrower has nothing else yet."""
        joint = tuple(map(self.d.all, s.uses[OWNER], op.uses))
        lent = tuple(self.d.ite(j, x, self.empty) for j, x in zip(joint, s.asked[OWNER], strict=True))
        return s._replace(
            uses=(s.uses[OWNER], op.uses), joint=joint, active=(s.active[OWNER], True),
            req=(s.req[OWNER], op.need), asked=(s.asked[OWNER], lent), gen=(s.gen[OWNER], s.gen[OWNER]),
            planned=(s.planned[OWNER], op.match), ever=(s.ever[OWNER], False),
            bound=(s.bound[OWNER], False), stale=(s.stale[OWNER], False),
        )  # fmt: skip

    def detach(self, s: Pair, me: Tree, op: RoleOp) -> tuple[Pair, Out]:
        """S3: the role goes, and with it its references."""
        d = self.d
        for t in self.types:
            s = self.let_go(s, me, t)
        off = {f: without(d, getattr(s, f), me) for f in ("active", "planned", "ever", "bound", "stale")}
        gone = s._replace(
            uses=by_role(d, me, (self.no_type,) * 2, s.uses), req=by_role(d, me, (self.no_need,) * 2, s.req),
            owner=d.all(s.owner, d.inv(me[OWNER])), **off,
        )  # fmt: skip
        return self.done(gone)

    def let_go(self, s: Pair, me: Tree, t: int) -> Pair:
        """The role drops its reference to its buffers of type `t`; without another they are freed."""
        d = self.d
        freed = self.given_back(s, s.used, t, self.of(me, s.asked)[t])
        hit = [d.all(m, b, h[t]) for m, b, h in zip(me, s.bound, s.held, strict=True)]
        return s._replace(
            asked=by_role(d, me, tuple(put(x, t, self.empty) for x in s.asked), s.asked),
            joint=put(s.joint, t, False), used=d.ite(s.joint[t], s.used, freed),
            stale=tuple(map(d.any, s.stale, hit)),
        )  # fmt: skip

    def request_shrink(self, s: Pair, me: Tree, op: RoleOp) -> tuple[Pair, Out]:
        return self.misuse(s)

    def remake(self, s: Pair, me: Tree, op: RoleOp) -> tuple[Pair, Out]:
        return self.misuse(s)

    def start_over(self, s: Pair, me: Tree) -> Pair:
        """C3: a role begins anew, without buffers, requirement or plan; what it shared stays with the other."""
        d = self.d
        for t in self.types:
            had = d.any(*(x > 0 for x in self.of(me, s.asked)[t]))
            gen = self.up(tuple(d.all(m, had) for m in me), s.gen)
            s = self.let_go(s, me, t)._replace(gen=gen)
        off = {f: without(d, getattr(s, f), me) for f in ("planned", "ever", "bound", "stale")}
        return s._replace(req=by_role(d, me, (self.no_need,) * 2, s.req), **off)

    # -- reserve ---------------------------------------------------------------------

    def in_step(self, s: Pair, me: Tree) -> Pair:
        return s

    def publish(self, s: Pair, me: Tree, op: RoleOp) -> Pair:
        planned = tuple(map(self.d.any, s.planned, me))
        return s._replace(req=by_role(self.d, me, (op.need,) * 2, s.req), planned=planned)

    def finish_shrink(self, s: Pair, me: Tree) -> Pair:
        return s

    def refit(
        self, s: Pair, me: Tree, op: RoleOp, t: int, live: Value, tried: Value
    ) -> tuple[Pair, Value, Value]:
        """Make one entry fit; `live` is false once an earlier one failed. What fits is left alone (S1)."""
        d = self.d
        uses, have = (self.of(me, x)[t] for x in (s.uses, s.asked))
        small = d.any(*map(operator.gt, op.need[t], self.real(s, t, have)))
        out: tuple[Pair, Value, Value] = d.choose(
            d.all(live, uses, small), lambda: self.renew(s, me, op, t, tried), lambda: (s, False, tried)
        )
        return out

    def renew(self, s: Pair, me: Tree, op: RoleOp, t: int, tried: Value) -> tuple[Pair, Value, Value]:
        """S2: what the role has goes, or stays with the other; what it needs is made, for both where the
        entry is joint and has no buffers yet."""
        d = self.d
        had = d.any(*(x > 0 for x in self.of(me, s.asked)[t]))
        both = d.all(s.joint[t], d.inv(had))
        s = d.ite(both, s, self.let_go(s, me, t))
        used, fail, tried = self.make(s, op, t, op.need[t], tried)
        made = tuple(d.all(d.any(m, both), d.inv(fail)) for m in me)
        moved = tuple(d.any(x, d.all(m, had)) for x, m in zip(made, me, strict=True))
        asked = by_role(d, made, tuple(put(x, t, op.need[t]) for x in s.asked), s.asked)
        return s._replace(asked=asked, used=used, gen=self.up(moved, s.gen)), fail, tried

    # -- what is seen ------------------------------------------------------------------

    def of(self, me: Tree, by_role: Tree) -> Tree:
        """The part [role] of the role that acts."""
        return self.d.ite(me[OWNER], by_role[OWNER], by_role[BORROWER])

    def holding(self, s: Pair, role: int, t: int) -> Tree:
        return s.asked[role][t]

    def owned(self, s: Pair, role: int) -> Tree:
        """A joint byte is the owner's."""
        lent = tuple(self.d.all(role == BORROWER, s.joint[t]) for t in self.types)
        return tuple(self.d.ite(lent[t], 0, sum(self.real(s, t, s.asked[role][t]))) for t in self.types)


class Apart(Model):
    """Every allocator is a plain one; to own means nothing, and nobody may borrow."""

    def own(self, s: State, me: Tree, op: RoleOp) -> tuple[State, Out]:
        return self.done(s)

    def borrow(self, s: State, op: RoleOp) -> tuple[State, Out]:
        t, out = self.refused(s)
        return t, out._replace(reason=op.missing)
