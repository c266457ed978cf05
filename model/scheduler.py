"""The reference model of schedulers: a pair whose roles compute on streams (C1 to C5, R14).

`Model.step` is a pure function over a domain, as that of resizable.py, which it
wraps: a scheduler waits, forgets and makes itself larger, and leaves the rest to
the allocator in it. The two roles of a pair are each other's partners. Where no
borrower is, the pair is one scheduler alone. docs/choices.md, "The scheduler".
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

from . import pair, resizable
from .domain import Domain, Tree, Value
from .pair import BORROWER, OWNER, ROLES, RoleOp, by_role, mine, without
from .records import Kind, Status

_MISUSE, _REFUSED, _DONE, _STALE = map(int, (Status.MISUSE, Status.REFUSED, Status.DONE, Status.STALE))
NONE = -1  #: no graph
#: kinds that `follow` tells apart, and their numbers
_FOLLOWED = tuple((k, int(k)) for k in (Kind.NEW, Kind.FREE, Kind.BORROW, Kind.RESERVE, Kind.ALLOC, Kind.COMPUTE,
                                        Kind.REMAKE, Kind.RESET))  # fmt: skip


class State(NamedTuple):
    """The schedulers of one pair."""

    pair: pair.State
    busy: Tree  # [role]            has work in flight
    flying: Tree  # [role]          number of the last graph in flight
    nodes: Tree  # [role]           tensors that the scheduler is made for, 0: any number
    graph: Tree  # [role]           number of the bound graph, where the pair says that one is
    gen: Tree  # [role]             generation, as the scheduler says
    shrink_gen: Tree  # [role]      shrink generation, as the scheduler says
    meant: Tree  # [role]           history: the graph that is bound, going by operations and statuses; NONE
    sent: Tree  # [role]            history: the last graph that was launched, likewise
    turned_down: Tree  # [role]     history: its last compute had nothing bound and was refused, likewise
    hurt: Value  # history: the last operation freed a buffer under work in flight


class SchedOp(NamedTuple):
    """One operation of one scheduler. Fields that a kind does not name are ignored."""

    kind: Value  # records.Kind
    role: Value = OWNER
    graph: Value = 0  # RESERVE, ALLOC, COMPUTE: number of the graph
    tensors: Value = 0  # of that graph; NEW, BORROW: what the scheduler is made for, 0: any number
    run_async: Value = False  # COMPUTE: return with work in flight
    scratch: Value = True  # COMPUTE: the pools give what is asked of them
    on: RoleOp = RoleOp(0)  # the allocator's part; its kind and role are not read


class Out(NamedTuple):
    """What the caller sees, beside the state. `ran`: number of the graph whose digest is shown or that
    was launched, NONE: nothing was; `role`: which role the scheduler has from now on."""

    status: Value
    allocations: Value = 0
    reserved: Value = False  # a plan was made and published
    larger: Value = False  # a larger scheduler was made (C3)
    ran: Value = NONE
    hurt: Value = False
    role: Value = OWNER

    @property
    def ok(self) -> Value:
        return self.status == _DONE


class Model:
    """The step function over domain `d`; `under` is the model of the pair."""

    def __init__(self, d: Domain | type[Any], types: int, chunks: int, under: Any = None) -> None:
        self.d: Any = d
        self.under: Any = under or resizable.Model(d, types, chunks)
        self.types, self.nobody = self.under.types, self.under.nobody

    def init(self, cap: Tree, gran: Tree | None = None, used: Tree | None = None) -> State:
        """No scheduler yet. `cap` and `used` are [device], `gran` [type]; bytes."""
        nothing = (0, 0)
        return State(self.under.init(cap, gran, used), self.nobody, (NONE, NONE), nothing, (NONE, NONE),
                     nothing, nothing, (NONE, NONE), (NONE, NONE), self.nobody, False)  # fmt: skip

    # -- the step ----------------------------------------------------------------

    def step(self, s: State, op: SchedOp) -> tuple[State, Out]:
        """The state after `op`, and what the caller sees. A role that is not there may do nothing (MISUSE)."""
        d, me = self.d, tuple(op.role == r for r in ROLES)
        s = s._replace(hurt=False)
        here = mine(d, me, s.pair.active)

        def member(arm: Any) -> Any:
            return lambda: d.choose(here, lambda: arm(s, me, op), lambda: self.misuse(s, op))

        arms = {
            Kind.NEW: lambda: self.new(s, op),
            Kind.FREE: member(self.free),
            Kind.BORROW: lambda: self.borrow(s, op),
            Kind.RESERVE: member(self.reserve),
            Kind.ALLOC: member(self.alloc),
            Kind.COMPUTE: member(self.compute),
            Kind.REMAKE: member(self.remake),
            Kind.SYNC: member(self.sync),
            Kind.RESET: member(self.reset),
        }
        arms |= {k: member(self.plainly) for k in (Kind.OWN, Kind.MEASURE, Kind.SHRINK)}
        t, out = d.switch(op.kind, arms, lambda: self.done(s, op))
        t = self.report(s, t, me)
        meant, sent, turned_down = follow(d, s.meant, s.sent, s.turned_down, op, out)
        t = t._replace(meant=meant, sent=sent, turned_down=turned_down)
        return t, out._replace(hurt=t.hurt)

    def done(self, s: State, op: SchedOp) -> tuple[State, Out]:
        return s, Out(_DONE, role=op.role)

    def misuse(self, s: State, op: SchedOp) -> tuple[State, Out]:
        return s, Out(_MISUSE, role=op.role)

    def report(self, before: State, s: State, me: Tree) -> State:
        """C5: a scheduler says what its allocator says."""
        return s._replace(gen=s.pair.gen, shrink_gen=s.pair.shrink_gen)

    # -- waiting (C1) ------------------------------------------------------------------

    def wait(self, s: State, me: Tree) -> State:
        """Waits for the acting scheduler and its partner."""
        return self.wait_for(s, (True, True))

    def wait_for(self, s: State, who: Tree) -> State:
        return s._replace(busy=without(self.d, s.busy, who))

    def play(self, s: State, kind: Kind, op: SchedOp) -> tuple[State, pair.Out]:
        """One operation of the allocator; notes what it frees under work in flight."""
        on = op.on._replace(kind=int(kind), role=op.role, by_sched=True)
        after, out = self.under.step(s.pair, on)
        hurt = [self.d.all(s.busy[r], self.moved(s.pair, after, r)) for r in ROLES]
        return s._replace(pair=after, hurt=self.d.any(s.hurt, *hurt)), out

    def moved(self, before: pair.State, after: pair.State, role: int) -> Value:
        """Some buffer that the role holds is another one, or gone."""
        d = self.d
        rows = [(self.under.holding(before, role, t), self.under.holding(after, role, t)) for t in self.types]
        return d.any(*(d.any(*map(operator.ne, a, b)) for a, b in rows))

    def plainly(self, s: State, me: Tree, op: SchedOp) -> tuple[State, Out]:
        """As the allocator does it, waiting for nothing."""
        t, out = self.d.switch(
            op.kind,
            {
                Kind.OWN: lambda: self.play(s, Kind.OWN, op),
                Kind.MEASURE: lambda: self.play(s, Kind.MEASURE, op),
            },
            lambda: self.play(s, Kind.SHRINK, op),
        )
        return t, Out(out.status, role=op.role)

    # -- coming, going -------------------------------------------------------------------

    def new(self, s: State, op: SchedOp) -> tuple[State, Out]:
        t, out = self.play(s, Kind.NEW, op._replace(role=OWNER))
        made = t._replace(busy=self.nobody, nodes=(op.tensors, 0))
        return self.d.ite(out.ok, made, s), Out(out.status)

    def borrow(self, s: State, op: SchedOp) -> tuple[State, Out]:
        """The candidate comes as the borrower."""
        t, out = self.play(s, Kind.BORROW, op._replace(role=BORROWER))
        came = t._replace(busy=(t.busy[OWNER], False), nodes=(t.nodes[OWNER], op.tensors))
        return self.d.ite(out.ok, came, s), Out(out.status, role=BORROWER)

    def free(self, s: State, me: Tree, op: SchedOp) -> tuple[State, Out]:
        t, out = self.play(self.wait(s, me), Kind.FREE, op)
        return self.wait_for(t, me), Out(out.status, role=op.role)

    def remake(self, s: State, me: Tree, op: SchedOp) -> tuple[State, Out]:
        """R14. Misuse of what is no owner."""
        t, out = self.play(self.wait(s, me), Kind.REMAKE, op)
        return self.d.ite(out.ok, t, s), Out(out.status, role=op.role)

    # -- larger graphs (C3) ----------------------------------------------------------------

    def too_small(self, s: State, me: Tree, op: SchedOp) -> Value:
        nodes = self.d.ite(me[OWNER], *s.nodes)
        return self.d.all(nodes > 0, op.tensors > nodes)

    def fitting(self, s: State, me: Tree, op: SchedOp) -> tuple[State, SchedOp, Value]:
        """A larger scheduler where the graph needs one; the operation as the role that it then has; whether."""
        d = self.d
        grow = self.too_small(s, me, op)
        s, op = d.choose(grow, lambda: self.larger(s, me, op), lambda: (s, op))
        return s, op, grow

    def larger(self, s: State, me: Tree, op: SchedOp) -> tuple[State, SchedOp]:
        """An owner is remade; another is freed and made anew, and borrows again where its owner lives."""
        d = self.d
        alone = d.any(me[OWNER], d.inv(s.pair.active[OWNER]))  # it is a plain one from then on
        owns = d.all(me[OWNER], s.pair.owner)

        def anew() -> State:
            uses = d.ite(me[OWNER], *s.pair.uses)
            need = self.under.no_need
            ask = op._replace(on=op.on._replace(uses=uses, need=need, clean=True, match=False, other=OWNER))
            gone, _ = self.free(s, me, op)
            plain, _ = self.new(gone, ask)
            plain = plain._replace(pair=plain.pair._replace(gen=(0, 0), shrink_gen=(0, 0)))
            lent, _ = self.borrow(gone, ask)
            again: State = d.ite(alone, plain, lent)
            return again

        t = d.choose(owns, lambda: self.owner_anew(s, me, op), anew)
        role = d.ite(alone, OWNER, op.role)
        me = tuple(role == r for r in ROLES)
        t = t._replace(nodes=by_role(d, me, (op.tensors,) * 2, t.nodes))
        return t, op._replace(role=role, on=op.on._replace(match=False))

    def owner_anew(self, s: State, me: Tree, op: SchedOp) -> State:
        """R14; where its strategy knows no remake, it lets go of what it shares."""
        if self.under.remakes:
            return self.remake(s, me, op)[0]
        s = self.wait(s, me)
        return s._replace(pair=self.under.start_over(s.pair, me))

    # -- reserve, alloc, compute -----------------------------------------------------------

    def reserve(self, s: State, me: Tree, op: SchedOp) -> tuple[State, Out]:
        s, op, grown = self.fitting(s, me, op)
        t, out = self.play(self.wait(s, me), Kind.RESERVE, op)
        return t, Out(out.status, out.allocations, op.on.plannable, grown, role=op.role)

    def alloc(self, s: State, me: Tree, op: SchedOp) -> tuple[State, Out]:
        """Binds by the plan in force, else reserves and binds; where that fails nothing is bound."""
        d = self.d
        s, op, grown = self.fitting(s, me, op)
        me = tuple(op.role == r for r in ROLES)
        ready = mine(
            d, me, tuple(d.all(s.pair.planned[r], op.on.match, self.under.fits(s.pair, r)) for r in ROLES)
        )
        s = d.ite(ready, s, self.wait(s, me))
        t, out = self.play(s, Kind.ALLOC, op)
        t = t._replace(graph=by_role(d, me, (op.graph,) * 2, t.graph))
        reserved = d.all(d.inv(ready), op.on.plannable)
        return t, Out(out.status, out.allocations, reserved, grown, role=op.role)

    def compute(self, s: State, me: Tree, op: SchedOp) -> tuple[State, Out]:
        """C2, C4: what is bound, else the graph is bound first; nothing where that fails. Misuse while the
        partner has work in flight."""
        d = self.d
        waits = d.any(d.all(me[OWNER], s.busy[BORROWER]), d.all(me[BORROWER], s.busy[OWNER]))
        bound = mine(d, me, s.pair.bound)

        def first() -> tuple[State, Out]:
            t, out = self.alloc(s, me, op)
            return d.choose(out.ok, lambda: self.launch(t, op, out), lambda: self.after_failure(t, op, out))

        def go() -> tuple[State, Out]:
            return d.choose(bound, lambda: self.run(s, op, Out(_DONE, role=op.role)), first)

        out: tuple[State, Out] = d.choose(waits, lambda: self.misuse(s, op), go)
        return out

    def after_failure(self, s: State, op: SchedOp, out: Out) -> tuple[State, Out]:
        """C2: the graph could not be bound; nothing is computed."""
        return s, out

    def launch(self, s: State, op: SchedOp, out: Out) -> tuple[State, Out]:
        """Computes what it just bound; where the pools refuse, nothing stays bound."""
        d, me = self.d, tuple(out.role == r for r in ROLES)
        t, out = self.run(s, op._replace(role=out.role), out)
        return d.ite(out.ok, t, t._replace(pair=self.under.unbind(t.pair, me))), out

    def run(self, s: State, op: SchedOp, out: Out) -> tuple[State, Out]:
        """Computes what is bound: R12's check, then the pools' scratch, then the stream."""
        d, me = self.d, tuple(op.role == r for r in ROLES)
        t, computed = self.play(s, Kind.COMPUTE, op)
        graph = d.ite(me[OWNER], *t.graph)
        flying = t._replace(
            busy=by_role(d, me, (op.run_async,) * 2, t.busy), flying=by_role(d, me, (graph,) * 2, t.flying)
        )
        ran = d.all(computed.ok, op.scratch)
        status = d.ite(d.all(computed.ok, d.inv(op.scratch)), _REFUSED, computed.status)
        return d.ite(ran, flying, t), out._replace(status=status, ran=d.ite(ran, graph, NONE))

    def sync(self, s: State, me: Tree, op: SchedOp) -> tuple[State, Out]:
        """Waits for its own stream; the digest is that of the last graph that ran there."""
        d = self.d
        ran = d.ite(mine(d, me, s.busy), d.ite(me[OWNER], *s.flying), NONE)
        return self.wait_for(s, me), Out(_DONE, ran=ran, role=op.role)

    def reset(self, s: State, me: Tree, op: SchedOp) -> tuple[State, Out]:
        """C4: the bound graph is forgotten; work in flight goes on."""
        return s._replace(pair=self.under.unbind(s.pair, me)), Out(_DONE, role=op.role)


def follow(
    d: Any, meant: Tree, sent: Tree, turned_down: Tree, op: SchedOp, out: Out
) -> tuple[Tree, Tree, Tree]:
    """[role]: the graph that is bound, the last that was launched, and whether the last compute had nothing
    bound and was refused, after one more operation, going by what was asked and the status alone; NONE:
    nothing. C2 and C4 are stated over it."""
    me = tuple(op.role == r for r in ROLES)
    now = tuple(out.role == r for r in ROLES)
    kind = {k: op.kind == number for k, number in _FOLLOWED}
    misuse = out.status == _MISUSE
    had = d.ite(me[OWNER], *meant)
    binds = d.any(kind[Kind.ALLOC], d.all(kind[Kind.COMPUTE], had == NONE))
    ends = d.any(*(kind[k] for k in (Kind.RESERVE, Kind.RESET, Kind.REMAKE, Kind.FREE)),
                 d.all(d.any(kind[Kind.NEW], kind[Kind.BORROW]), out.ok), out.status == _STALE)  # fmt: skip
    graph = d.ite(binds, d.ite(out.ok, op.graph, NONE), d.ite(ends, NONE, had))
    new = by_role(d, now, (graph, graph), by_role(d, me, (NONE, NONE), meant))
    launched = d.all(kind[Kind.COMPUTE], out.ok)
    sent = d.ite(launched, by_role(d, now, (graph, graph), sent), sent)
    binding = d.any(ends, *(kind[k] for k in (Kind.ALLOC, Kind.COMPUTE, Kind.NEW, Kind.BORROW)))
    down = d.all(kind[Kind.COMPUTE], had == NONE, out.status == _REFUSED)
    left = by_role(d, now, (down, down), by_role(d, me, (False, False), turned_down))
    return d.ite(misuse, (meant, sent, turned_down), (new, sent, d.ite(binding, left, turned_down)))
