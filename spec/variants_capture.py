"""Captured graphs that are wrong on purpose, each by one seam: the proof must refute every one.

`breaks` is the clause that a variant breaks (it may break others too). The docstring says what an
implementer might have thought.
"""

from __future__ import annotations

from typing import ClassVar

from ..model.capture import NOBODY, CaptureOp, Model, Out, State
from ..model.domain import Tree, Value
from ..model.records import Status


class Variant(Model):
    breaks: ClassVar[str]


class ReplaysOlder(Variant):
    """The driver would complain if an address were wrong: no need to compare generations."""

    breaks = "Q1"

    def outdated(self, s: State, me: Tree) -> Value:
        return False


class LooksAtBound(Variant):
    """What is bound is what was captured: where that is current, so is the captured graph."""

    breaks = "Q1"

    def outdated(self, s: State, me: Tree) -> Value:
        return self.mine(me, tuple(a != b for a, b in zip(s.gen, s.bound_gen, strict=True)))


class IgnoresPools(Variant):
    """Only compute buffers count; the pools take care of themselves."""

    breaks = "Q1"

    def launch(self, s: State, me: Tree, op: CaptureOp) -> tuple[State, Out]:
        everything = s._replace(mapped=(True,) * len(self.allocs))
        t, out = super().launch(everything, me, op)
        gone = self.d.all(out.status == int(Status.DONE), self.d.inv(self.mine(me, s.mapped)))
        return t._replace(mapped=s.mapped), out._replace(touched=self.d.any(out.touched, gone))


class LentIsMapped(Variant):
    """Pool memory that is mapped can be written, whoever has it now."""

    breaks = "Q1"

    def launch(self, s: State, me: Tree, op: CaptureOp) -> tuple[State, Out]:
        return super().launch(s, me, op._replace(lent=False))


class RecordsAnyway(Variant):
    """Nothing runs during a capture, so nothing needs scratch yet."""

    breaks = "Q1"

    def compute(self, s: State, me: Tree, op: CaptureOp) -> tuple[State, Out]:
        return super().compute(s, me, op._replace(scratch=True))


class TrimKeeps(Variant):
    """A captured graph can be replayed once the pool has been mapped again."""

    breaks = "Q2"

    def kept(self, s: State, op: CaptureOp) -> Tree:
        return s.has


class DropsFirst(Variant):
    """A backend has one captured graph: the first is dropped."""

    breaks = "Q2"

    def kept(self, s: State, op: CaptureOp) -> Tree:
        d, right = self.d, super().kept(s, op)
        first = (d.all(h, *map(d.inv, s.has[:n])) for n, h in enumerate(s.has))
        return tuple(d.ite(f, k, h) for f, k, h in zip(first, right, s.has, strict=True))


class DropsAll(Variant):
    """A trim drops every captured graph there is, to be safe."""

    breaks = "Q2"

    def kept(self, s: State, op: CaptureOp) -> Tree:
        return tuple(False for _ in s.has)


class TrimsDuring(Variant):
    """The pools are idle while a stream is captured: nothing runs."""

    breaks = "Q3"

    def trim(self, s: State, op: CaptureOp) -> tuple[State, Out]:
        t, out = super().trim(s._replace(at=NOBODY), op)
        return t._replace(at=s.at), out


class ReplacesDuring(Variant):
    """A reservation does not touch the stream that is captured."""

    breaks = "Q3"

    def reserve(self, s: State, me: Tree, op: CaptureOp) -> tuple[State, Out]:
        t, out = super().reserve(s._replace(at=NOBODY), me, op)
        return t._replace(at=s.at), out


VARIANTS: tuple[type[Variant], ...] = (
    ReplaysOlder, LooksAtBound, IgnoresPools, LentIsMapped, RecordsAnyway, TrimKeeps, DropsFirst, DropsAll,
    TrimsDuring, ReplacesDuring,
)  # fmt: skip
