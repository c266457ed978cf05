"""Schedulers that are wrong on purpose, each by one seam: the proof must refute every one.

`breaks` is the clause that a variant breaks (it may break others too). The docstring says what an
implementer might have thought.
"""

from __future__ import annotations

from typing import ClassVar

from ..model.domain import Tree
from ..model.pair import BORROWER, OWNER, ROLES, by_role
from ..model.records import Kind, Status
from ..model.scheduler import Model, Out, SchedOp, State


class Variant(Model):
    breaks: ClassVar[str]
    later: ClassVar[bool] = False  #: what it does wrong shows in a later operation only


class WaitsForItself(Variant):
    """A reservation waits for its own stream; the partner's work is the partner's business."""

    breaks = "C1"

    def wait(self, s: State, me: Tree) -> State:
        return self.wait_for(s, me)


class FreesAtOnce(Variant):
    """Who goes has nothing to wait for."""

    breaks = "C1"

    def free(self, s: State, me: Tree, op: SchedOp) -> tuple[State, Out]:
        t, out = self.play(s, Kind.FREE, op)
        return self.wait_for(t, me), Out(out.status, role=op.role)


class RemakesAtOnce(Variant):
    """An owner is remade while its work is in flight."""

    breaks = "C1"

    def remake(self, s: State, me: Tree, op: SchedOp) -> tuple[State, Out]:
        t, out = self.play(s, Kind.REMAKE, op)
        return t, Out(out.status, role=op.role)


class AllocNeverWaits(Variant):
    """Alloc binds, and what binds waits for nothing: also where it had to reserve."""

    breaks = "C1"

    def alloc(self, s: State, me: Tree, op: SchedOp) -> tuple[State, Out]:
        kept = s.busy
        t, out = super().alloc(s._replace(busy=self.nobody), me, op)
        hurt = self.d.any(
            *(self.d.all(b, self.moved(s.pair, t.pair, r)) for r, b in zip(ROLES, kept, strict=True))
        )
        return t._replace(busy=kept, hurt=self.d.any(t.hurt, hurt)), out


class FailureIsDone(Variant):
    """Whether memory could be had shows when the graph is computed."""

    breaks = "C2"

    def reserve(self, s: State, me: Tree, op: SchedOp) -> tuple[State, Out]:
        t, out = super().reserve(s, me, op)
        return t, out._replace(status=int(Status.DONE))


class ComputesAnyway(Variant):
    """A compute whose alloc failed launches the graph all the same."""

    breaks = "C2"

    def after_failure(self, s: State, op: SchedOp, out: Out) -> tuple[State, Out]:
        me = tuple(out.role == r for r in ROLES)
        flies = by_role(self.d, me, (op.run_async,) * 2, s.busy)
        return s._replace(busy=flies), out._replace(ran=op.graph)


class StaysBound(Variant):
    """A compute that found no scratch may be tried again: what it bound stays bound."""

    breaks, later = "C2", True

    def launch(self, s: State, op: SchedOp, out: Out) -> tuple[State, Out]:
        return self.run(s, op._replace(role=out.role), out)


class ScratchIsExtra(Variant):
    """Scratch that cannot be had is nothing that a caller could mend."""

    breaks = "C2"

    def run(self, s: State, op: SchedOp, out: Out) -> tuple[State, Out]:
        t, out = super().run(s, op, out)
        return t, out._replace(status=self.d.ite(op.scratch, out.status, int(Status.DONE)))


class SmallIsRefused(Variant):
    """A graph that is too large for the scheduler is the caller's mistake."""

    breaks = "C3"

    def reserve(self, s: State, me: Tree, op: SchedOp) -> tuple[State, Out]:
        small = self.too_small(s, me, op)
        new: tuple[State, Out] = self.d.ite(
            small, (s, Out(int(Status.REFUSED), role=op.role)), super().reserve(s, me, op)
        )
        return new


class KeepsItsSize(Variant):
    """The larger scheduler is made, but the number of tensors stays the old one's."""

    breaks = "C3"

    def larger(self, s: State, me: Tree, op: SchedOp) -> tuple[State, SchedOp]:
        t, op = super().larger(s, me, op)
        me = tuple(op.role == r for r in ROLES)
        nodes = self.d.ite(me[OWNER], *s.nodes)
        return t._replace(nodes=by_role(self.d, me, (nodes,) * 2, t.nodes)), op


class ResetKeeps(Variant):
    """A reset only says that the next graph will be another."""

    breaks = "C4"

    def reset(self, s: State, me: Tree, op: SchedOp) -> tuple[State, Out]:
        return s, Out(int(Status.DONE), role=op.role)


class ComputeNeedsAlloc(Variant):
    """Nothing is bound: there is nothing to compute."""

    breaks = "C4"

    def compute(self, s: State, me: Tree, op: SchedOp) -> tuple[State, Out]:
        bound = self.d.ite(me[OWNER], *s.pair.bound)
        new: tuple[State, Out] = self.d.ite(bound, super().compute(s, me, op), self.misuse(s, op))
        return new


class ResetWaits(Variant):
    """A reset begins anew, so it ends what is in flight."""

    breaks = "C4"

    def reset(self, s: State, me: Tree, op: SchedOp) -> tuple[State, Out]:
        t, out = super().reset(s, me, op)
        return self.wait_for(t, me), out


class KnowsItsOwn(Variant):
    """A scheduler reads its allocator when it does something itself."""

    breaks = "C5"

    def report(self, before: State, s: State, me: Tree) -> State:
        d, t = self.d, super().report(before, s, me)
        return t._replace(
            gen=by_role(d, me, t.gen, before.gen), shrink_gen=by_role(d, me, t.shrink_gen, before.shrink_gen)
        )


class SeesNoRequest(Variant):
    """The scheduler's shrink generation is what it was before the operation."""

    breaks = "C5"

    def report(self, before: State, s: State, me: Tree) -> State:
        return super().report(before, s, me)._replace(shrink_gen=before.pair.shrink_gen)


class LargerTakesAlong(Variant):
    """An owner that needs a larger scheduler gives back all its buffers, its borrower's too."""

    breaks = "R14"

    def larger(self, s: State, me: Tree, op: SchedOp) -> tuple[State, SchedOp]:
        t, op = super().larger(s, me, op)
        gone = t._replace(pair=self.under.drop_old(t.pair)._replace(behind=t.pair.behind))
        return self.d.ite(me[OWNER], gone, t), op


class LargerIsNews(Variant):
    """A larger scheduler of the owner is a change of the borrower's buffers."""

    breaks = "R14"

    def larger(self, s: State, me: Tree, op: SchedOp) -> tuple[State, SchedOp]:
        t, op = super().larger(s, me, op)
        pair = t.pair._replace(gen=(t.pair.gen[OWNER], t.pair.gen[BORROWER] + 1))
        return self.d.ite(me[OWNER], t._replace(pair=pair), t), op


VARIANTS: tuple[type[Variant], ...] = (
    WaitsForItself, FreesAtOnce, RemakesAtOnce, AllocNeverWaits, FailureIsDone, ComputesAnyway, StaysBound,
    ScratchIsExtra, SmallIsRefused, KeepsItsSize, ResetKeeps, ComputeNeedsAlloc, ResetWaits, KnowsItsOwn,
    SeesNoRequest, LargerTakesAlong, LargerIsNews,
)  # fmt: skip
