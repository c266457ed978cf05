"""Pools that are wrong on purpose, each by one seam: the proof must refute every one.

`breaks` is the clause that a variant breaks (it may break others too), `legacy` says that it is
about a legacy pool. The docstring says what an implementer might have thought.
"""

from __future__ import annotations

from typing import ClassVar

from ..model.domain import Tree, Value
from ..model.pool import Model, Out, Pool, PoolOp, State


class Variant(Model):
    breaks: ClassVar[str]
    legacy: ClassVar[bool] = False


class TrimFreesRange(Variant):
    """An empty pool needs no addresses: trimming gives the range back too."""

    breaks = "V1"

    def emptied(self, pool: Pool) -> Pool:
        return super().emptied(pool)._replace(base=0)


class RangeAnew(Variant):
    """A pool without memory reserves a range, also where it has one already."""

    breaks = "V1"

    def reserved(self, pool: Pool, op: PoolOp) -> Pool:
        return pool._replace(base=self.d.ite(pool.mapped == 0, op.fresh, pool.base))


class MapsAtStart(Variant):
    """A block begins where the range begins."""

    breaks = "V2"

    def end(self, pool: Pool) -> Value:
        return pool.base


class ExactPieces(Variant):
    """What is missing is mapped, to the byte."""

    breaks = "V2"

    def piece(self, missing: Value, device: int) -> Value:
        return missing


class AnyOrder(Variant):
    """A block may be freed whenever its user is done with it."""

    breaks = "V2"

    def latest(self, pool: Pool, op: PoolOp) -> Value:
        return True


class NeverReuses(Variant):
    """A block that was freed is kept, but never handed out again."""

    breaks, legacy = "V2", True

    def best(self, pool: Pool, need: Value) -> Tree:
        return tuple(False for _ in pool.kept)


class FirstFit(Variant):
    """The first kept block that is large enough is as good as any."""

    breaks, legacy = "V2", True

    def best(self, pool: Pool, need: Value) -> Tree:
        d, fits = self.d, [x >= need for x in pool.kept]
        return tuple(d.all(f, *map(d.inv, fits[:i])) for i, f in enumerate(fits))


class TrimsInUse(Variant):
    """Whatever is handed out can be mapped again when it is needed."""

    breaks = "V3"

    def idle(self, pool: Pool) -> Value:
        return True


class TrimsAtOnce(Variant):
    """Nothing is handed out, so nothing uses the memory: no need to wait for the device."""

    breaks = "V3"

    def finished(self, s: State, op: PoolOp) -> State:
        return s


class KeepsSome(Variant):
    """A legacy pool that is trimmed frees the block that it kept longest."""

    breaks, legacy = "V3", True

    def emptied(self, pool: Pool) -> Pool:
        rest = self.without(pool, (True, *(False for _ in pool.kept[1:])))
        return rest._replace(mapped=pool.mapped - pool.kept[0])


class FirstDevice(Variant):
    """A trim goes to one device: the first of those under the type."""

    breaks = "V4"

    def reached(self, op: PoolOp, device: int) -> Value:
        return self.d.all(op.reach[device], *map(self.d.inv, op.reach[:device]))


class EveryDevice(Variant):
    """A trim is for all devices, whatever type it names."""

    breaks = "V4"

    def reached(self, op: PoolOp, device: int) -> Value:
        return True


class LeakedHandle(Variant):
    """When mapping fails the handle is forgotten, not released."""

    breaks = "V5"

    def take_end(self, s: State, op: PoolOp, p: int) -> tuple[State, Out]:
        d, k = self.d, self.device(p)
        t, out = super().take_end(s, op, p)
        leaked = d.all(out.allocations > 1, out.size == 0)
        return self.put(t, p, t.pools[p], d.ite(leaked, t.used[k] + self.units[k], t.used[k])), out


class CountsFailed(Variant):
    """The pool counts a piece as mapped before it knows that it is."""

    breaks = "V5"

    def take_end(self, s: State, op: PoolOp, p: int) -> tuple[State, Out]:
        d, k = self.d, self.device(p)
        t, out = super().take_end(s, op, p)
        failed = d.all(out.allocations > 0, out.size == 0)
        old = t.pools[p]
        return self.put(
            t, p, old._replace(mapped=old.mapped + d.ite(failed, self.units[k], 0)), t.used[k]
        ), out


class FailsOnce(Variant):
    """Only create can fail."""

    breaks = "V5"

    def fails(self, op: PoolOp, nth: int) -> Value:
        return super().fails(op, nth) if nth == 1 else False


class KeepsScratch(Variant):
    """A computation gives its scratch back when it has been launched; one that is refused never is."""

    breaks = "V5"

    def given_back(self, s: State, op: PoolOp, p: int, taken: Out) -> State:
        right: State = super().given_back(s, op, p, taken)
        new: State = self.d.ite(op.beside, s, right)
        return new


class FailureEmpties(Variant):
    """A legacy pool that cannot allocate gives up what it keeps, and fails all the same."""

    breaks, legacy = "V5", True

    def take_block(self, s: State, op: PoolOp, p: int) -> tuple[State, Out]:
        d, k = self.d, self.device(p)
        t, out = super().take_block(s, op, p)
        old = t.pools[p]
        empty = self.put(t, p, self.emptied(old)._replace(mapped=old.out), t.used[k] - sum(old.kept))
        new: State = d.ite(out.size == 0, empty, t)
        return new, out


VARIANTS: tuple[type[Variant], ...] = (
    TrimFreesRange, RangeAnew, MapsAtStart, ExactPieces, AnyOrder, NeverReuses, FirstFit, TrimsInUse, TrimsAtOnce,
    KeepsSome, FirstDevice, EveryDevice, LeakedHandle, CountsFailed, FailsOnce, KeepsScratch,
    FailureEmpties,
)  # fmt: skip
