"""Policies, contexts and servers that are wrong on purpose, each by one seam: the proof must refute every one.

`breaks` is the clause that a variant breaks. Its docstring says what an implementer might have thought.
"""

from __future__ import annotations

from typing import ClassVar

from ..model import server, waiting
from ..model.domain import Tree, Value
from ..model.pair import put
from ..model.records import Memory, Status
from ..model.server import ServerOp, ServerOut
from ..model.waiting import DRAFT, TARGET, ContextOp, ContextOut
from ..model.workspace import PATIENCE, STEPS, WIDE, Frame, Lane, Need, Pair, Parts, Policy
from .workspace import Watched


class StartsAtAQuarter(Policy):
    """The smallest step is a quarter of the cache."""

    def cells(self, c: Frame, used: Value) -> Value:
        return super().cells(c, self.d.max(used, 2 * c.eighth))


class RoundsDown(Policy):
    """The step is the one below what is used: nearly all of it is there already."""

    def cells(self, c: Frame, used: Value) -> Value:
        step = c.eighth
        for k in STEPS[1:]:
            step = self.d.ite(used >= k * c.eighth, k * c.eighth, step)
        return self.d.ite(self.bounded(c), step, STEPS[-1] * c.eighth)


class PromptsAreGeneration(Policy):
    """Tokens stay at the generation size, also for a prompt."""

    def tokens(self, c: Frame, tokens: Value) -> Value:
        return self.d.ite(c.phase, c.generation, c.batch)


class Impatient(Policy):
    """The 63rd call in a row is enough."""

    def patience(self) -> int:
        return PATIENCE - 1


class TakesTheLastNeed(Policy):
    """A smaller reservation is for the last call, not for the largest of the 64."""

    def larger(self, peak: Need, need: Need, counts: Value) -> Need:
        return need


class CountsOn(Policy):
    """A call that needs as much as is reserved does not start the count again."""

    def follow(self, lane: Lane, need: Need) -> Lane:
        d, r = self.d, lane.reserved
        equal = d.all(need.tokens == r.tokens, need.cells == r.cells)
        out: Lane = d.ite(equal, lane, super().follow(lane, need))
        return out


class GrowsLate(Policy):
    """Growth, too, waits until it is needed twice."""

    def follow(self, lane: Lane, need: Need) -> Lane:
        d, r = self.d, lane.reserved
        above = d.any(need.tokens > r.tokens, need.cells > r.cells)
        late = d.all(above, lane.fewer == 0)
        out: Lane = d.ite(late, lane._replace(fewer=1), super().follow(lane, need))
        return out


class KeepsWhatFailed(Policy):
    """A reservation that failed is kept in mind: it is what the lane needs."""

    def failed(self, lane: Lane) -> Lane:
        return lane


class LanesShareState(Policy):
    """There is one state of a context; both lanes follow it in turn."""

    def decode(self, c: Frame, lanes: Tree, tokens: Value, used: Value) -> Tree:
        first, second = super().decode(c, lanes, tokens, used)
        after = self.follow(first, self.need(c, tokens, used))
        return first, self.d.ite(self.runs(c, tokens)[1], after, second)


class LanesTogether(Policy):
    """Both lanes follow every batch."""

    def runs(self, c: Frame, tokens: Value) -> Tree:
        return (True, c.two)


class WideAboveWide(Policy):
    """Lane 1 follows batches of more than 64 tokens."""

    def runs(self, c: Frame, tokens: Value) -> Tree:
        return (True, self.d.all(c.two, tokens > WIDE))


class BoundsEverything(Policy):
    """Every kind of memory has a bounded reservation."""

    def bounded(self, c: Frame) -> Value:
        return c.live


class WindowAlone(Policy):
    """A window's cells are the window, without the micro-batch on top."""

    def parts(self, c: Frame, cells: Value) -> Parts:
        most = c.window + c.batch
        found = super().parts(c, cells)
        return found._replace(window=self.d.ite(found.window == most, c.window, found.window))


class IndexerStaysFull(Policy):
    """The indexer keeps the whole cache, whatever the attention cache has."""

    def parts(self, c: Frame, cells: Value) -> Parts:
        indexed = c.memory == int(Memory.HYBRID_INDEXER)
        return super().parts(c, cells)._replace(indexer=self.d.ite(indexed, 8 * c.eighth, 0))


class OffIsBoundedToo(Policy):
    """Without the option, cells are bounded all the same."""

    def bounded(self, c: Frame) -> Value:
        return c.memory != int(Memory.OTHER_MEMORY)


class OffIsForGeneration(Policy):
    """Without the option, generation batches are reserved for until a prompt comes."""

    def tokens(self, c: Frame, tokens: Value) -> Value:
        return self.d.ite(tokens <= c.generation, c.generation, c.batch)


#: the clause that each breaks
POLICIES: tuple[tuple[type[Policy], str], ...] = (
    (StartsAtAQuarter, "W1"), (RoundsDown, "W1"), (PromptsAreGeneration, "W1"),
    (Impatient, "W2"), (TakesTheLastNeed, "W2"), (CountsOn, "W2"), (GrowsLate, "W2"), (KeepsWhatFailed, "W2"),
    (LanesTogether, "W3"), (LanesShareState, "W3"), (WideAboveWide, "W3"),
    (BoundsEverything, "W7"), (WindowAlone, "W7"), (IndexerStaysFull, "W7"),
    (OffIsBoundedToo, "W8"), (OffIsForGeneration, "W8"),
)  # fmt: skip


def watched(wrong: type[Policy]) -> type[Watched]:
    """The machine of a wrong policy."""
    return type(f"Watched{wrong.__name__}", (Watched,), {"policy": wrong})


# -- two contexts -------------------------------------------------------------------------------


class NeverWaits(Pair):
    """The stream's order is enough."""

    def waits(self, attached: Value, other_busy: Value) -> Value:
        return self.d.all(attached, other_busy, False)


class AlwaysWaits(Pair):
    """To wait once more does no harm."""

    def waits(self, attached: Value, other_busy: Value) -> Value:
        return attached


class Trusting(Pair):
    """Reserves where its own need changed: what the other does shows in time."""

    def reserves(self, changed: Value, due: Value, outdated: Value, unchecked: Value) -> Value:
        return self.d.any(changed, due)


class Careful(Pair):
    """To reserve once more does no harm."""

    def reserves(self, changed: Value, due: Value, outdated: Value, unchecked: Value) -> Value:
        return True


class FailureIsNo(Pair):
    """An attempt that fails is told as 0: it is not shared, after all."""

    def attach(self, present: Value, attached: Value, places: Value, fails: Value) -> Value:
        answer = super().attach(present, attached, places, fails)
        return self.d.ite(answer == int(Status.FAILED), int(Status.REFUSED), answer)


class TriesAnyPlace(Pair):
    """Placements that do not match are tried all the same."""

    def attach(self, present: Value, attached: Value, places: Value, fails: Value) -> Value:
        return super().attach(present, attached, True, fails)


class Duo(waiting.Contexts):
    breaks: ClassVar[str]


class NoWait(Duo):
    __doc__ = NeverWaits.__doc__
    breaks, pair = "W4", NeverWaits


class IdleWait(Duo):
    __doc__ = AlwaysWaits.__doc__
    breaks, pair = "W4", AlwaysWaits


class OneLane(Duo):
    """Synchronizing waits for lane 0, which is the one that is shared."""

    breaks = "W4"

    def idle(self, s: waiting.State, who: int) -> waiting.State:
        return s._replace(busy=put(s.busy, who, (False, s.busy[who][1])))


class NoGenerations(Duo):
    __doc__ = Trusting.__doc__
    breaks, pair = "W5", Trusting


class ReservesAlways(Duo):
    __doc__ = Careful.__doc__
    breaks, pair = "W5", Careful


class ComparesTooSoon(Duo):
    """The reading is taken as known before the reservation that may change it."""

    breaks = "W5"

    def reserve(
        self, s: waiting.State, op: ContextOp, who: int, shared: Value
    ) -> tuple[waiting.State, Value]:
        t, torn = super().reserve(s, op, who, shared)
        return t._replace(known=put(t.known, who, s.reading[who])), torn


class KeepsGraphs(Duo):
    """A reservation leaves the bound graph bound: its sizes are the same."""

    breaks = "W5"

    def reserve(
        self, s: waiting.State, op: ContextOp, who: int, shared: Value
    ) -> tuple[waiting.State, Value]:
        t, torn = super().reserve(s, op, who, shared)
        kept = self.d.any(s.gone[who], self.d.all(s.bound[who], op.replaces))
        return t._replace(bound=s.bound, gone=put(t.gone, who, kept)), torn


class SaysNo(Duo):
    __doc__ = FailureIsNo.__doc__
    breaks, pair = "W6", FailureIsNo


class AnyPlace(Duo):
    __doc__ = TriesAnyPlace.__doc__
    breaks, pair = "W6", TriesAnyPlace


class KeepsItsScheduler(Duo):
    """After an attempt that failed the draft goes on with a scheduler of its own."""

    breaks = "W6"

    def attach(self, s: waiting.State, op: ContextOp, who: int) -> tuple[waiting.State, ContextOut]:
        t, out = super().attach(s, op, who)
        return t._replace(able=s.able), out


class MismatchCloses(Duo):
    """The draft's graph is dropped before the placements are compared."""

    breaks = "W6"

    def attach(self, s: waiting.State, op: ContextOp, who: int) -> tuple[waiting.State, ContextOut]:
        t, out = super().attach(s, op, who)
        no = out.status == int(Status.REFUSED)
        dropped = t._replace(bound=(t.bound[TARGET], self.d.all(t.bound[DRAFT], self.d.inv(no))))
        return dropped, out


DUOS: tuple[type[Duo], ...] = (
    NoWait, IdleWait, OneLane, NoGenerations, ReservesAlways, ComparesTooSoon, KeepsGraphs, SaysNo, AnyPlace,
    KeepsItsScheduler, MismatchCloses,
)  # fmt: skip


# -- the server -----------------------------------------------------------------------------------


class TrimsAtEveryLeave(server.Model):
    """A request that goes gives back what it used."""

    def leave(self, s: server.State, op: ServerOp, slot: int) -> tuple[server.State, ServerOut]:
        t, out = super().leave(s, op, slot)
        good = out.status == int(Status.DONE)
        after: tuple[server.State, ServerOut] = self.d.ite(
            good, (t._replace(pooled=0), out._replace(released=s.pooled)), (t, out)
        )
        return after


class NeverTrims(server.Model):
    """Pools are kept for the next request."""

    def leave(self, s: server.State, op: ServerOp, slot: int) -> tuple[server.State, ServerOut]:
        t, out = super().leave(s, op, slot)
        return t._replace(pooled=s.pooled), out._replace(released=0)


class LooksAtSlotZero(server.Model):
    """The server is idle when its first slot is."""

    def idle(self, s: server.State) -> Value:
        return self.d.inv(s.busy[0])


class TrimsWhenAsked(server.Model):
    """A context may trim at any time: an idle pool is an idle pool."""

    def trim(self, s: server.State) -> tuple[server.State, ServerOut]:
        return self.may(s.ready, s._replace(pooled=0), s, s.pooled)


SERVERS: tuple[type[server.Model], ...] = (TrimsAtEveryLeave, NeverTrims, LooksAtSlotZero, TrimsWhenAsked)
