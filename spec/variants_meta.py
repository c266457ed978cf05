"""Models of meta buffers that are wrong on purpose: the proof of M1 must refute every one."""

from __future__ import annotations

from typing import ClassVar

from ..model.domain import Tree, Value
from ..model.pair import RoleOp, State, put
from ..model.resizable import Model


class Variant(Model):
    breaks: ClassVar[str] = "M1"

    def only_last_fails(self, fail: Value, op: RoleOp, t: int, want: Tree) -> Value:
        """The entry failed in its first chunk, at the last of its several devices."""
        first, last = self.devices[t][0], self.devices[t][-1]
        return self.d.all(fail, first != last, op.inject[last], self.d.inv(op.inject[first]), want[0] > 0)


class HalfMade(Variant):
    """Where a device cannot give its part of a buffer, the part that the first device gave stays."""

    def replace(self, s: State, op: RoleOp, t: int, want: Tree, tried: Value) -> tuple[State, Value, Value]:
        new, fail, tried = super().replace(s, op, t, want, tried)
        first, half = self.devices[t][0], self.only_last_fails(fail, op, t, want)
        part = self.d.ite(half, self.real(s, t, want)[0], 0)
        return new._replace(used=put(new.used, first, new.used[first] + part)), fail, tried


class FirstCounts(Variant):
    """A buffer counts as made where its first device gave its part, whatever the others did."""

    def replace(self, s: State, op: RoleOp, t: int, want: Tree, tried: Value) -> tuple[State, Value, Value]:
        new, fail, tried = super().replace(s, op, t, want, tried)
        first, half = self.devices[t][0], self.only_last_fails(fail, op, t, want)
        used = put(new.used, first, new.used[first] + sum(self.real(s, t, want)))
        made = new._replace(asked=put(new.asked, t, want), used=used)
        return self.d.ite(half, made, new), self.d.all(fail, self.d.inv(half)), tried


VARIANTS: tuple[type[Variant], ...] = (HalfMade, FirstCounts)
