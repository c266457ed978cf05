"""Models of counted sharing that are wrong on purpose, each by one seam: the proof must refute every one.

`breaks` is the clause that a variant breaks (it may break others too). A variant
says in its docstring what an implementer might have thought.
"""

from __future__ import annotations

import operator
from typing import Any, ClassVar

from ..model.counted import Counted
from ..model.domain import Tree, Value
from ..model.pair import ROLES, Out, RoleOp, by_role, put, without
from ..model.records import Status

Pair = Any  #: a Shares
_REFUSED = int(Status.REFUSED)


class Variant(Counted):
    breaks: ClassVar[str]

    def others(self, me: Tree, by_role: Tree) -> Tree:
        """The part [role] of the role that does not act."""
        return self.of((me[1], me[0]), by_role)


class MakesTheSum(Variant):
    """Joint buffers are made as large as both requirements together."""

    breaks = "S1"

    def renew(self, s: Pair, me: Tree, op: RoleOp, t: int, tried: Value) -> tuple[Pair, Value, Value]:
        theirs = self.others(me, s.req)[t]
        both = tuple(self.d.ite(s.joint[t], a + b, a) for a, b in zip(op.need[t], theirs, strict=True))
        return super().renew(s, me, op._replace(need=put(op.need, t, both)), t, tried)


class MadeForOne(Variant):
    """Who makes joint buffers makes them for itself alone; the other makes some when it comes to reserve."""

    breaks = "S1"

    def renew(self, s: Pair, me: Tree, op: RoleOp, t: int, tried: Value) -> tuple[Pair, Value, Value]:
        new, fail, tried = super().renew(s, me, op, t, tried)
        return new._replace(asked=by_role(self.d, me, new.asked, s.asked)), fail, tried


class Restless(Variant):
    """Buffers are made anew whenever the need differs, also a smaller one."""

    breaks = "S1"

    def refit(
        self, s: Pair, me: Tree, op: RoleOp, t: int, live: Value, tried: Value
    ) -> tuple[Pair, Value, Value]:
        d = self.d
        differs = d.any(*map(operator.ne, op.need[t], self.of(me, s.asked)[t]))
        go = d.all(live, self.of(me, s.uses)[t], differs)
        return d.ite(go, self.renew(s, me, op, t, tried), (s, False, tried))  # type: ignore[no-any-return]


class MovesTheOther(Variant):
    """Who needs more grows the joint buffers, for both."""

    breaks = "S2"

    def renew(self, s: Pair, me: Tree, op: RoleOp, t: int, tried: Value) -> tuple[Pair, Value, Value]:
        d = self.d
        alone = s._replace(joint=put(s.joint, t, False))
        new, fail, tried = super().renew(alone, me, op, t, tried)
        both = d.all(s.joint[t], d.inv(fail))
        grown = new._replace(asked=tuple(put(x, t, op.need[t]) for x in new.asked), joint=s.joint)
        return d.ite(both, grown, new), fail, tried


class LeavesQuietly(Variant):
    """A role that left its buffers for larger ones reads the same generation."""

    breaks = "S2"

    def renew(self, s: Pair, me: Tree, op: RoleOp, t: int, tried: Value) -> tuple[Pair, Value, Value]:
        new, fail, tried = super().renew(s, me, op, t, tried)
        return new._replace(gen=self.d.ite(s.joint[t], s.gen, new.gen)), fail, tried


class TellsTheOther(Variant):
    """When one leaves, the other reads a new generation too, and drops its graph for nothing."""

    breaks = "S2"

    def renew(self, s: Pair, me: Tree, op: RoleOp, t: int, tried: Value) -> tuple[Pair, Value, Value]:
        new, fail, tried = super().renew(s, me, op, t, tried)
        told = self.up(without(self.d, s.active, me), new.gen)
        return new._replace(gen=self.d.ite(s.joint[t], told, new.gen)), fail, tried


class FreesWhatIsShared(Variant):
    """Who lets go of buffers frees them, whoever else holds them."""

    breaks = "S3"

    def let_go(self, s: Pair, me: Tree, t: int) -> Pair:
        return super().let_go(s._replace(joint=put(s.joint, t, False)), me, t)


class LastOneLeaks(Variant):
    """What was joint once is never freed."""

    breaks = "S3"

    def let_go(self, s: Pair, me: Tree, t: int) -> Pair:
        new = super().let_go(s, me, t)
        return new._replace(used=self.d.ite(self.d.any(*s.active), s.used, new.used))


class NeverAsks(Variant):
    """Sharing turns itself on wherever it can."""

    breaks = "S4"

    def borrow(self, s: Pair, op: RoleOp) -> tuple[Pair, Out]:
        t, out = super().borrow(s, op._replace(missing=(False,) * len(op.missing)))
        return t, out._replace(reason=op.missing)


class AsksForThree(Variant):
    """That the two run one sequence is not looked at."""

    breaks = "S4"

    def borrow(self, s: Pair, op: RoleOp) -> tuple[Pair, Out]:
        return super().borrow(s, op._replace(missing=(False, *op.missing[1:])))


class GivesNoReason(Variant):
    """Where sharing stays off nothing is said."""

    breaks = "S4"

    def borrow(self, s: Pair, op: RoleOp) -> tuple[Pair, Out]:
        t, out = super().borrow(s, op)
        return t, out._replace(reason=(False,) * len(op.missing))


class NeverLeaves(Variant):
    """Who needs more than the joint buffers have is refused."""

    breaks = "S5"

    def renew(self, s: Pair, me: Tree, op: RoleOp, t: int, tried: Value) -> tuple[Pair, Value, Value]:
        had = self.d.any(*(x > 0 for x in self.of(me, s.asked)[t]))
        stuck = self.d.all(s.joint[t], had)
        return self.d.ite(stuck, (s, True, tried), super().renew(s, me, op, t, tried))  # type: ignore[no-any-return]


class RoomForBoth(Variant):
    """A reservation must leave room for the other's requirement."""

    breaks = "S5"

    def make(self, s: Pair, op: RoleOp, t: int, want: Tree, tried: Value) -> tuple[Tree, Value, Value]:
        d = self.d
        used, fail, tried = super().make(s, op, t, want, tried)
        both = sum(sum(self.real(s, t, s.req[r][t])) for r in ROLES)
        tight = s.used[t] + both > s.cap[t]
        fail = d.any(fail, d.all(*s.active, tight))
        return d.ite(fail, s.used, used), fail, tried


class OwnOnesFirst(Variant):
    """Buffers of one's own are asked for first, and given back where the joint ones do."""

    breaks = "S7"

    def refit(
        self, s: Pair, me: Tree, op: RoleOp, t: int, live: Value, tried: Value
    ) -> tuple[Pair, Value, Value]:
        d = self.d
        new, fail, after = super().refit(s, me, op, t, live, tried)
        _, full, asked = self.make(s, op, t, op.need[t], tried)
        trial = d.all(live, s.joint[t])
        return d.ite(d.all(trial, full), (s, True, asked), (new, fail, after))  # type: ignore[no-any-return]


class AsksTwice(Variant):
    """Before it is asked for, the memory is asked for by way of trial."""

    breaks = "S7"

    def renew(self, s: Pair, me: Tree, op: RoleOp, t: int, tried: Value) -> tuple[Pair, Value, Value]:
        _, fail, tried = self.make(s, op, t, op.need[t], tried)
        return self.d.ite(fail, (s, True, tried), super().renew(s, me, op, t, tried))  # type: ignore[no-any-return]


class ChecksForTheSum(Variant):
    """Both requirements together must be within the device, shared or not."""

    breaks = "S7"

    def make_fit(self, s: Pair, me: Tree, op: RoleOp) -> tuple[Pair, Out]:
        d = self.d
        t, out = super().make_fit(s, me, op)
        sums = (
            sum(sum(self.real(s, k, x[k])) for x in (op.need, self.others(me, s.req))) for k in self.types
        )
        over = d.any(*(x > c for x, c in zip(sums, s.cap, strict=True)))
        status = d.ite(d.all(*s.joint, over), _REFUSED, out.status)
        return t, out._replace(status=status)


VARIANTS: tuple[type[Variant], ...] = (
    MakesTheSum, MadeForOne, Restless, MovesTheOther, LeavesQuietly, TellsTheOther, FreesWhatIsShared,
    LastOneLeaks, NeverAsks, AsksForThree, GivesNoReason, NeverLeaves, RoomForBoth, OwnOnesFirst, AsksTwice,
    ChecksForTheSum,
)  # fmt: skip
