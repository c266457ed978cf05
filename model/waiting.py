"""W4 to W6: target and draft on shared buffers, as one state machine over a domain.

What is abstracted: a reservation either replaces the shared buffers or does not, and either fails or does
not; both are parts of the operation, so the proof covers every policy, plan and device. A scheduler's own
waits (C1) are left out, so that W4's wait has to carry the weight alone. Decisions are workspace.Pair's.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .domain import Tree, Value
from .pair import put
from .records import Kind, Status
from .workspace import Pair

TARGET, DRAFT = CONTEXTS = (0, 1)

_MISUSE, _REFUSED, _DONE, _FAILED = map(int, (Status.MISUSE, Status.REFUSED, Status.DONE, Status.FAILED))


class State(NamedTuple):
    """Both contexts. Counters count from 0."""

    open: Tree  # [context]
    busy: Tree  # [context][lane]  has work in flight
    attached: Value  # the draft's lane 0 uses the target's buffers
    able: Value  # the draft's lane 0 has a scheduler (W6)
    reading: (
        Tree  # [context]     what lane 0 reads: goes up with every change of its buffers, or of a request
    )
    known: Tree  # [context]       the reading after lane 0's last reservation
    bound: Tree  # [context]       lane 0 has a graph
    gone: Tree  # [context]        history: the memory of that graph was freed


class ContextOp(NamedTuple):
    """An operation of one context. What a kind does not name is ignored."""

    kind: Value  # records.Kind: CTX_OPEN to CTX_NODES
    who: Value = TARGET
    asynchronous: Value = False  # CTX_DECODE: returns with work in flight
    wide: Value = False  # CTX_DECODE: runs on both lanes
    changed: Value = False  # CTX_DECODE: lane 0's reservation is another than before (W2)
    due: Value = False  # CTX_DECODE: a larger scheduler (C3)
    rebinds: Value = False  # CTX_DECODE: the graph is another than the one bound
    unchecked: Value = False  # CTX_DECODE: R12's counter-test
    places: Value = True  # CTX_ATTACH: the placement matches
    replaces: Value = False  # the reservation, if there is one, replaces buffers
    fails: Value = False  # the reservation, if there is one, fails
    bumps: Value = 0  # CTX_OPEN: what a new scheduler reads


class ContextOut(NamedTuple):
    """What the caller sees, and two things that must never be."""

    status: Value  # records.Status
    waits: Value = 0  # how often it waited for the other context
    reserves: Value = 0  # reservations of lane 0
    torn: Value = False  # shared buffers were replaced while the other context's work used them
    touched: Value = False  # a graph ran on memory that is gone


class Contexts:
    """The step function over domain `d`."""

    pair: type[Pair] = Pair

    def __init__(self, d: Any) -> None:
        self.d, self.p = d, self.pair(d)

    def init(self) -> State:
        """Neither is open."""
        none, zero = (False, False), (0, 0)
        return State(none, (none, none), False, True, zero, zero, none, none)

    def step(self, s: State, op: ContextOp) -> tuple[State, ContextOut]:
        """The state after `op`, and what the caller sees."""
        arms = {
            Kind.CTX_OPEN: self.opening,
            Kind.CTX_CLOSE: self.closing,
            Kind.CTX_ATTACH: self.attach,
            Kind.CTX_DECODE: self.decode,
            Kind.CTX_SYNC: self.sync,
        }

        def by(who: int) -> Any:
            return {k: (lambda f=arm: f(s, op, who)) for k, arm in arms.items()}

        def nothing() -> Tree:
            return s, ContextOut(_MISUSE)

        new: tuple[State, ContextOut] = self.d.choose(
            op.who == TARGET,
            lambda: self.d.switch(op.kind, by(TARGET), nothing),
            lambda: self.d.switch(op.kind, by(DRAFT), nothing),
        )
        return new

    def may(self, may: Value, t: State, s: State, out: ContextOut) -> tuple[State, ContextOut]:
        """`t` and `out` where `may` holds, otherwise misuse."""
        new: tuple[State, ContextOut] = self.d.ite(may, (t, out), (s, ContextOut(_MISUSE)))
        return new

    def any_busy(self, s: State, who: int) -> Value:
        return self.d.any(*s.busy[who])

    def idle(self, s: State, who: int) -> State:
        """All of the context's work has finished: synchronizing covers both lanes."""
        return s._replace(busy=put(s.busy, who, (False, False)))

    # -- coming, going ---------------------------------------------------------------------

    def opening(self, s: State, op: ContextOp, who: int) -> tuple[State, ContextOut]:
        d = self.d
        t = self.idle(s, who)._replace(
            open=put(s.open, who, True), bound=put(s.bound, who, False), gone=put(s.gone, who, False),
            reading=put(s.reading, who, op.bumps), known=put(s.known, who, op.bumps),
            able=True if who == DRAFT else s.able,
        )  # fmt: skip
        status = d.ite(op.fails, _REFUSED, _DONE)
        return self.may(d.inv(s.open[who]), d.ite(op.fails, s, t), s, ContextOut(status))

    def closing(self, s: State, op: ContextOp, who: int) -> tuple[State, ContextOut]:
        """It syncs. Whoever stays keeps the buffers (R11), alone."""
        t = self.idle(s, who)._replace(
            open=put(s.open, who, False), attached=False, bound=put(s.bound, who, False),
            gone=put(s.gone, who, False),
        )  # fmt: skip
        return self.may(s.open[who], t, s, ContextOut(_DONE))

    def sync(self, s: State, op: ContextOp, who: int) -> tuple[State, ContextOut]:
        return self.may(s.open[who], self.idle(s, who), s, ContextOut(_DONE))

    # -- reservations ------------------------------------------------------------------------

    def reserve(self, s: State, op: ContextOp, who: int, shared: Value) -> tuple[State, Value]:
        """Lane 0's reservation: what it bound is forgotten; replaced buffers are seen by both (R7)."""
        d, other = self.d, 1 - who
        both = d.all(op.replaces, shared)
        torn = d.all(both, s.busy[other][0])
        readings = put(s.reading, who, d.ite(op.replaces, s.reading[who] + 1, s.reading[who]))
        readings = put(readings, other, d.ite(both, s.reading[other] + 1, s.reading[other]))
        gone = put(s.gone, other, d.any(s.gone[other], d.all(both, s.bound[other])))
        t = s._replace(reading=readings, bound=put(s.bound, who, False), gone=put(gone, who, False))
        return t._replace(known=put(s.known, who, readings[who])), torn

    def attach(self, s: State, op: ContextOp, who: int) -> tuple[State, ContextOut]:
        """W6. The draft waits for both, lets go of lane 0's scheduler, and reserves with one that borrows."""
        d = self.d
        answer = self.p.attach(d.all(*s.open), s.attached, op.places, op.fails)
        answer = answer if who == DRAFT else _MISUSE
        tried = d.any(answer == _DONE, answer == _FAILED)
        waits = d.ite(self.p.waits(tried, self.any_busy(s, TARGET)), 1, 0)
        calm = d.ite(waits > 0, self.idle(s, TARGET), s)
        calm = self.idle(calm, DRAFT)
        joined = calm._replace(reading=(s.reading[TARGET], s.reading[TARGET]))
        t, torn = self.reserve(joined, op, DRAFT, True)
        t = t._replace(attached=answer == _DONE, able=answer == _DONE)
        return d.ite(tried, (t, ContextOut(answer, waits, 1, torn)), (s, ContextOut(answer)))  # type: ignore[no-any-return]

    def decode(self, s: State, op: ContextOp, who: int) -> tuple[State, ContextOut]:
        d, other = self.d, 1 - who
        able = s.able if who == DRAFT else True
        waits = d.ite(self.p.waits(s.attached, self.any_busy(s, other)), 1, 0)
        calm = d.ite(waits > 0, self.idle(s, other), s)
        outdated = s.reading[who] != s.known[who]
        again = self.p.reserves(op.changed, op.due, outdated, op.unchecked)
        reserved, torn = self.reserve(calm, op, who, s.attached)
        t = d.ite(again, reserved, calm)
        failed = d.all(again, op.fails)
        done, touched = self.compute(t, op, who)
        count = d.ite(again, 1, 0)
        good = (done, ContextOut(_DONE, waits, count, d.all(again, torn), touched))
        bad = (t, ContextOut(_REFUSED, waits, count, d.all(again, torn)))
        u, out = d.ite(able, d.ite(failed, bad, good), (s, ContextOut(_REFUSED)))
        return self.may(s.open[who], u, s, out)

    def compute(self, s: State, op: ContextOp, who: int) -> tuple[State, Value]:
        """Binds where the graph is another, or none is bound; then computes."""
        d = self.d
        binds = d.any(op.rebinds, d.inv(s.bound[who]))
        gone = d.all(s.gone[who], d.inv(binds))
        lanes = (op.asynchronous, d.ite(op.wide, op.asynchronous, s.busy[who][1]))
        t = s._replace(
            bound=put(s.bound, who, True), gone=put(s.gone, who, gone), busy=put(s.busy, who, lanes)
        )
        return t, gone
