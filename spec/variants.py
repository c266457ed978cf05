"""Models that are wrong on purpose, each by one seam: the proof must refute every one.

`breaks` is the clause that a variant breaks (it may break others too). A variant
says in its docstring what an implementer might have thought.
"""

from __future__ import annotations

import operator
from typing import ClassVar

from ..model.domain import Tree, Value
from ..model.pair import BORROWER, OWNER, Out, RoleOp, State, by_role, put
from ..model.resizable import Model


class Variant(Model):
    breaks: ClassVar[str]


class LateOwner(Variant):
    """An allocator that has buffers may still become an owner."""

    breaks = "R1"

    def holds(self, s: State) -> Value:
        return False

    def could_own(self, s: State, role: int) -> Value:
        return super().could_own(s._replace(ever=(False, False)), role)


class StrangeTypes(Variant):
    """A borrower may attach where no buffer type is common."""

    breaks = "R2"

    def may_borrow(self, s: State, op: RoleOp) -> Value:
        everything = (True,) * len(self.types)
        return super().may_borrow(s._replace(uses=(everything, everything)), op._replace(uses=everything))


class LastWins(Variant):
    """The entry takes the requirement of whoever reserves, not the maximum."""

    breaks = "R3"

    def make_fit(self, s: State, me: Tree, op: RoleOp) -> tuple[State, Out]:
        nothing = (self.no_need, self.no_need)
        t, out = super().make_fit(s._replace(req=by_role(self.d, me, s.req, nothing)), me, op)
        return t._replace(req=by_role(self.d, me, t.req, s.req)), out


class BothCount(Variant):
    """The new buffer is asked for before the old one is freed."""

    breaks = "R4"

    def replace(self, s: State, op: RoleOp, t: int, want: Tree, tried: Value) -> tuple[State, Value, Value]:
        old, cap = sum(self.real(s, t, s.asked[t])), s.cap
        for k in self.devices[t]:
            cap = put(cap, k, cap[k] - old)
        new, fail, tried = super().replace(s._replace(cap=cap), op, t, want, tried)
        return new._replace(cap=s.cap), fail, tried


class KeepOnGrow(Variant):
    """Where an entry grows, its other chunks keep what they have if that is more."""

    breaks = "R5"

    def replace(self, s: State, op: RoleOp, t: int, want: Tree, tried: Value) -> tuple[State, Value, Value]:
        d = self.d
        grow = d.any(*map(operator.gt, want, self.real(s, t, s.asked[t])))
        kept = d.ite(grow, tuple(map(d.max, want, s.asked[t])), want)
        return super().replace(s, op, t, kept, tried)


class EagerShrink(Variant):
    """An entry takes the size of every reserve, also a smaller one that nobody asked for."""

    breaks = "R5"

    def shrink_due(self, s: State, me: Tree, t: int) -> Value:
        return True


class AnySeen(Variant):
    """One role's reserve is enough to shrink."""

    breaks = "R6"

    def shrink_due(self, s: State, me: Tree, t: int) -> Value:
        due = self.d.all(s.pending, self.d.any(*s.seen))
        return self.d.ite(s.common[t], due, super().shrink_due(s, me, t))


class NeverShrinks(Variant):
    """A request is forgotten without anything becoming smaller."""

    breaks = "R6"

    def shrink_due(self, s: State, me: Tree, t: int) -> Value:
        return False


class StaleSeen(Variant):
    """Who reserved during a request still counts for the next one."""

    breaks = "R6"

    def start_shrink(self, s: State) -> State:
        return super().start_shrink(s)._replace(seen=s.seen)

    def finish_shrink(self, s: State, me: Tree) -> State:
        return super().finish_shrink(s, me)._replace(seen=s.seen)


class QuietFailure(Variant):
    """The generation does not go up when the replacement fails."""

    breaks = "R7"

    def replace(self, s: State, op: RoleOp, t: int, want: Tree, tried: Value) -> tuple[State, Value, Value]:
        new, fail, tried = super().replace(s, op, t, want, tried)
        return new._replace(gen=self.d.ite(fail, s.gen, new.gen)), fail, tried


class DeafOwner(Variant):
    """Only the role that reserves sees the generation change."""

    breaks = "R7"

    def make_fit(self, s: State, me: Tree, op: RoleOp) -> tuple[State, Out]:
        t, out = super().make_fit(s, me, op)
        return t._replace(gen=by_role(self.d, me, t.gen, s.gen)), out


class CountsEveryRequest(Variant):
    """The shrink generation goes up with every request, also while one is pending."""

    breaks = "R8"

    def request_shrink(self, s: State, me: Tree, op: RoleOp) -> tuple[State, Out]:
        t, out = super().request_shrink(s, me, op)
        again = self.d.all(out.ok, s.pending, self.d.inv(s.behind))
        return t._replace(shrink_gen=self.d.ite(again, self.up(s.active, s.shrink_gen), t.shrink_gen)), out


class QuietDetach(Variant):
    """A role that goes starts no shrink."""

    breaks = "R8"

    def detach(self, s: State, me: Tree, op: RoleOp) -> tuple[State, Out]:
        t, out = super().detach(s, me, op)
        return t._replace(pending=False, shrink_gen=s.shrink_gen), out


class KeepOld(Variant):
    """Where the replacement fails, the old buffer is still reported."""

    breaks = "R9"

    def replace(self, s: State, op: RoleOp, t: int, want: Tree, tried: Value) -> tuple[State, Value, Value]:
        new, fail, tried = super().replace(s, op, t, want, tried)
        return self.d.ite(fail, self.bump(s, t), new), fail, tried


class Leak(Variant):
    """The chunks got before the one that failed are not given back."""

    breaks = "R9"

    def replace(self, s: State, op: RoleOp, t: int, want: Tree, tried: Value) -> tuple[State, Value, Value]:
        new, fail, tried = super().replace(s, op, t, want, tried)
        first = self.d.ite(self.d.all(fail, op.fail_nth > 1), self.real(s, t, want)[0], 0)
        k = self.devices[t][0]
        return new._replace(used=put(new.used, k, new.used[k] + first)), fail, tried


class DropRequirement(Variant):
    """A failed reserve leaves no requirement behind."""

    breaks = "R10"

    def after_failure(self, s: State, me: Tree) -> State:
        return s._replace(req=by_role(self.d, me, (self.no_need, self.no_need), s.req))


class OwnersGo(Variant):
    """When the owner goes, its buffers go, though the borrower stays."""

    breaks = "R11"

    def detach(self, s: State, me: Tree, op: RoleOp) -> tuple[State, Out]:
        t, out = super().detach(s, me, op)
        gone = t
        for x in self.types:
            gone = self.bump(self.drop(gone, x), x)
        return self.d.ite(me[OWNER], gone, t), out


class NoCheck(Variant):
    """A bound graph is computed without comparing generations."""

    breaks = "R12"

    def outdated(self, s: State, me: Tree) -> Value:
        return False


class CountedTwice(Variant):
    """A borrower reports borrowed bytes as its own."""

    breaks = "R13"

    def owned(self, s: State, role: int) -> Tree:
        return tuple(sum(self.real(s, t, self.holding(s, role, t))) for t in self.types)


class RemakeFrees(Variant):
    """When the owner is remade, its borrower's buffers are freed at once."""

    breaks = "R14"

    def remake(self, s: State, me: Tree, op: RoleOp) -> tuple[State, Out]:
        t, out = super().remake(s, me, op)
        freed = self.drop_old(t)._replace(behind=t.behind, gen=(t.gen[OWNER], t.gen[BORROWER] + 1))
        return self.d.ite(out.ok, freed, t), out


class KeepsOld(Variant):
    """A borrower whose owner was remade keeps its old buffers for ever."""

    breaks = "R14"

    def catch_up(self, s: State) -> State:
        return super().catch_up(s)._replace(old=s.old, used=s.used)


class Restless(Variant):
    """Every reserve counts as a change of buffers."""

    breaks = "G1"

    def make_fit(self, s: State, me: Tree, op: RoleOp) -> tuple[State, Out]:
        t, out = super().make_fit(s, me, op)
        return t._replace(gen=self.up(me, t.gen)), out


class BlindAlloc(Variant):
    """Alloc trusts the plan without looking whether the buffers are still there."""

    breaks = "G2"

    def fits(self, s: State, role: int) -> Value:
        return True


class MeasureReserves(Variant):
    """To measure, the allocator reserves."""

    breaks = "P12"

    def measure(self, s: State, me: Tree, op: RoleOp) -> tuple[State, Out]:
        return self.reserve(s, me, op)


VARIANTS: tuple[type[Variant], ...] = (
    LateOwner, StrangeTypes, LastWins, BothCount, KeepOnGrow, EagerShrink, AnySeen, NeverShrinks, StaleSeen,
    QuietFailure, DeafOwner, CountsEveryRequest, QuietDetach, KeepOld, Leak, DropRequirement, OwnersGo,
    NoCheck, CountedTwice, RemakeFrees, KeepsOld, Restless, BlindAlloc, MeasureReserves,
)  # fmt: skip
