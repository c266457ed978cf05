"""The reference model of a shared pair: owner and borrower, at requirement level.

`Model.step` is a pure function from a state and an operation to a new state and
what the caller sees of it. It is written over a domain (see domain.py), so the
same code is the executable model, thousands of traces at once, and the
transition relation that is proven. No `if` looks at a value. Sizes are bytes.

A pair has two roles. A plain allocator is a pair whose role OWNER is active and
has not become an owner. Where a graph's tensors go is the planner's business;
here a graph is only its requirement: bytes by type and chunk. Exact behaviour
is fixed in docs/choices.md; clauses R1 to R14, G1, G2 and M1 of the contract.
"""

from __future__ import annotations

import operator
from typing import Any

from .device_memory import DeviceMemory
from .domain import Domain, Tree, Value
from .pair import BORROWER, OWNER, ROLES, Devices, Out, RoleOp, State, by_role, may_plan, mine, put, without
from .records import Kind, Status

__all__ = ["BORROWER", "OWNER", "ROLES", "Model", "Out", "RoleOp", "State"]

_MISUSE, _REFUSED, _DONE, _STALE = map(int, (Status.MISUSE, Status.REFUSED, Status.DONE, Status.STALE))


class Model(DeviceMemory):
    """The step function for a fixed number of types and chunks, over domain `d`; `devices` as for DeviceMemory."""

    remakes = True  # an owner can be remade (R14); else it can start over

    def __init__(
        self, d: Domain | type[Any], types: int, chunks: int, devices: Devices | None = None
    ) -> None:
        super().__init__(d, types, chunks, devices)
        self.no_need = (self.empty,) * types
        self.no_type = (False,) * types
        self.nobody = (False,) * len(ROLES)

    def init(self, cap: Tree, gran: Tree | None = None, used: Tree | None = None) -> State:
        """A pair with no role yet. `cap` and `used` are [device], `gran` is [type]; bytes."""
        none, types = self.nobody, len(self.types)
        return State(
            uses=(self.no_type,) * 2, common=self.no_type, active=none, owner=False, behind=False,
            req=(self.no_need,) * 2, asked=self.no_need, old=self.no_need,
            used=tuple(used or (0,) * types), cap=tuple(cap), gran=tuple(gran or (1,) * types),
            seen=none, asking=none, pending=False, gen=(0, 0), shrink_gen=(0, 0), planned=none, ever=none,
            bound=none, bound_gen=(0, 0), held=(self.no_type,) * 2, stale=none,
        )  # fmt: skip

    # -- the step ----------------------------------------------------------------

    def step(self, s: State, op: RoleOp) -> tuple[State, Out]:
        """The state after `op`, and what the caller sees. An inactive role may do nothing (MISUSE)."""
        d, me = self.d, tuple(op.role == r for r in ROLES)
        here = mine(d, me, s.active)

        def member(arm: Any) -> Any:
            return lambda: d.choose(here, lambda: arm(s, me, op), lambda: self.misuse(s))

        arms = {
            Kind.NEW: lambda: self.new(s, op),
            Kind.FREE: member(self.detach),
            Kind.OWN: member(self.own),
            Kind.BORROW: lambda: self.borrow(s, op),
            Kind.RESERVE: member(self.reserve),
            Kind.MEASURE: member(self.measure),
            Kind.ALLOC: member(self.alloc),
            Kind.COMPUTE: member(self.compute),
            Kind.SHRINK: member(self.request_shrink),
            Kind.CAPACITY: lambda: self.capacity(s, op),
            Kind.REMAKE: member(self.remake),
        }
        new: tuple[State, Out] = d.switch(op.kind, arms, lambda: self.done(s))
        return new

    def done(self, s: State) -> tuple[State, Out]:
        return s, Out(_DONE, self.no_type, 0)

    def misuse(self, s: State) -> tuple[State, Out]:
        return s, Out(_MISUSE, self.no_type, 0)

    def refused(self, s: State) -> tuple[State, Out]:
        return s, Out(_REFUSED, self.no_type, 0)

    def only_if(self, may: Value, new: State, s: State) -> tuple[State, Out]:
        """`new` and DONE where `may` holds, otherwise nothing changed and REFUSED."""
        out: tuple[State, Out] = self.d.ite(may, self.done(new), self.refused(s))
        return out

    # -- coming, going -------------------------------------------------------------

    def new(self, s: State, op: RoleOp) -> tuple[State, Out]:
        """A plain allocator; misuse where the pair has a role already."""
        empty = self.init(s.cap, s.gran)
        fresh = empty._replace(used=s.used, gen=s.gen, shrink_gen=s.shrink_gen, active=(True, False),
                               uses=(op.uses, self.no_type))  # fmt: skip
        out: tuple[State, Out] = self.d.ite(self.d.any(*s.active), self.misuse(s), self.done(fresh))
        return out

    def could_own(self, s: State, role: int) -> Value:
        """R1: may become an owner or a borrower: is neither, and never had buffers."""
        d = self.d
        plain = d.all(s.active[role], d.inv(s.owner), role == OWNER)
        return d.all(plain, d.inv(s.ever[role]), d.inv(self.holds(s)))

    def holds(self, s: State) -> Value:
        return self.d.any(*(x > 0 for entry in s.asked for x in entry))

    def own(self, s: State, me: Tree, op: RoleOp) -> tuple[State, Out]:
        may = mine(self.d, me, tuple(self.could_own(s, r) for r in ROLES))
        return self.only_if(may, s._replace(owner=True), s)

    def may_borrow(self, s: State, op: RoleOp) -> Value:
        """R1, R2: the candidate is clean, the other is a living owner without a borrower, types meet."""
        d = self.d
        free = d.all(op.other == OWNER, s.owner, s.active[OWNER], d.inv(s.active[BORROWER]))
        meet = d.any(*map(d.all, s.uses[OWNER], op.uses))
        return d.all(op.clean, free, meet)

    def borrow(self, s: State, op: RoleOp) -> tuple[State, Out]:
        """The candidate comes as BORROWER, with its plan and published requirement if it has them."""
        may = self.may_borrow(s, op)
        return self.only_if(may, self.attach(s, op), s)

    def attach(self, s: State, op: RoleOp) -> State:
        def join(both: Tree, of_borrower: Tree) -> Tree:
            return (both[OWNER], of_borrower)

        return s._replace(
            uses=join(s.uses, op.uses), common=tuple(map(self.d.all, s.uses[OWNER], op.uses)),
            active=join(s.active, True), req=join(s.req, op.need), seen=join(s.seen, False),
            asking=join(s.asking, False), gen=join(s.gen, s.gen[OWNER]),
            shrink_gen=join(s.shrink_gen, s.shrink_gen[OWNER]), planned=join(s.planned, op.match),
            ever=join(s.ever, False), bound=join(s.bound, False), stale=join(s.stale, False),
        )  # fmt: skip

    def forget(self, s: State, me: Tree) -> State:
        """The roles of `me` have no requirement, plan, bound graph or request of their own any more."""
        d = self.d
        flags = ("planned", "ever", "bound", "stale", "asking", "seen")
        off = {name: without(d, getattr(s, name), me) for name in flags}
        return s._replace(req=by_role(d, me, (self.no_need,) * 2, s.req), **off)

    def detach(self, s: State, me: Tree, op: RoleOp) -> tuple[State, Out]:
        """R8, R11: shared entries live until the last role is gone; the first to go starts a shrink."""
        d = self.d
        stay = without(d, s.active, me)
        left = d.any(*stay)
        gone = self.forget(s._replace(active=stay), me)
        for t in self.types:
            own = mine(d, me, tuple(u[t] for u in s.uses))
            dies = d.any(d.inv(left), d.all(own, d.inv(s.common[t])), d.all(me[OWNER], s.behind))
            gone = d.ite(dies, self.drop(gone, t), gone)
        gone = d.choose(d.all(s.behind, me[BORROWER]), lambda: self.drop_old(gone), lambda: gone)
        gone = gone._replace(uses=by_role(d, me, (self.no_type,) * 2, gone.uses),
                             owner=d.all(gone.owner, d.inv(me[OWNER])))  # fmt: skip
        gone = d.ite(d.all(s.behind, me[OWNER]), self.onto_old(gone), gone)
        over = gone._replace(pending=False, seen=self.nobody)
        return self.done(d.ite(left, self.start_shrink(gone), over))

    def remake(self, s: State, me: Tree, op: RoleOp) -> tuple[State, Out]:
        """R14: a new owner of the same config; a borrower keeps what it had and is behind."""
        d = self.d
        owner, kept = (True, False), d.all(s.active[BORROWER], d.inv(s.behind))
        new = self.forget(s, owner)
        for t in self.types:
            keeps = d.all(kept, s.uses[BORROWER][t])
            moved = new._replace(old=put(new.old, t, s.asked[t]), asked=put(new.asked, t, self.empty))
            new = d.ite(keeps, moved, self.drop(new, t))
        new = new._replace(
            behind=s.active[BORROWER], pending=False, seen=self.nobody,
            gen=(s.gen[OWNER] + 1, s.gen[BORROWER]), shrink_gen=self.up(s.active, s.shrink_gen),
        )  # fmt: skip
        out: tuple[State, Out] = d.ite(d.all(me[OWNER], s.owner), self.done(new), self.misuse(s))
        return out

    def start_over(self, s: State, me: Tree) -> State:
        """An owner begins anew where it cannot be remade; nothing for a pair."""
        return s

    def onto_old(self, s: State) -> State:
        """The new owner is gone before its borrower came after it: the borrower is alone on `old`."""
        return s._replace(asked=s.old, old=self.no_need, behind=False)

    def capacity(self, s: State, op: RoleOp) -> tuple[State, Out]:
        cap = tuple(self.d.ite(op.type == t, op.value, s.cap[t]) for t in self.types)
        return self.done(s._replace(cap=cap))

    # -- shrink requests -------------------------------------------------------------

    def request_shrink(self, s: State, me: Tree, op: RoleOp) -> tuple[State, Out]:
        """R8. Misuse for a plain allocator; one that is behind only notes that it asked."""
        d = self.d
        asks = s._replace(asking=tuple(map(d.any, s.asking, me)))
        quiet = d.any(s.pending, d.all(me[BORROWER], s.behind))
        resizable = d.any(s.owner, me[BORROWER])
        new = d.ite(quiet, asks, self.start_shrink(asks))
        out: tuple[State, Out] = d.ite(resizable, self.done(new), self.misuse(s))
        return out

    def start_shrink(self, s: State) -> State:
        return s._replace(pending=True, seen=self.nobody, shrink_gen=self.up(s.active, s.shrink_gen))

    def up(self, who: Tree, counters: Tree) -> Tree:
        """Counters [role], one more for each role of `who`."""
        return by_role(self.d, who, tuple(c + 1 for c in counters), counters)

    def shrink_due(self, s: State, me: Tree, t: int) -> Value:
        """R6: a common entry when all who take part were seen, a private one when its role asked."""
        d = self.d
        all_seen = d.all(s.pending, *(d.any(d.inv(self.part(s, r, t)), s.seen[r]) for r in ROLES))
        return d.ite(s.common[t], all_seen, mine(d, me, s.asking))

    def finish_shrink(self, s: State, me: Tree) -> State:
        """After a successful reserve: the role's own request is met; the pair's when all were seen."""
        d = self.d
        over = d.all(s.pending, *(d.any(d.inv(s.active[r]), s.seen[r]) for r in ROLES))
        return s._replace(
            asking=without(d, s.asking, me),
            pending=d.all(s.pending, d.inv(over)), seen=d.ite(over, self.nobody, s.seen),
        )  # fmt: skip

    # -- reserve ---------------------------------------------------------------------

    def reserve(self, s: State, me: Tree, op: RoleOp) -> tuple[State, Out]:
        """Publish the requirement, then fit the role's entries in type order until one fails."""
        s = self.d.ite(op.by_sched, self.unbind(s, me), s)
        out: tuple[State, Out] = self.d.choose(
            op.plannable, lambda: self.make_fit(s, me, op), lambda: self.refused(s)
        )
        return out

    def make_fit(self, s: State, me: Tree, op: RoleOp) -> tuple[State, Out]:
        d = self.d
        s = self.publish(self.in_step(s, me), me, op)
        failed: Tree = ()
        live, tried = True, 0
        for t in self.types:
            s, fail, tried = self.refit(s, me, op, t, live, tried)
            live, failed = d.all(live, d.inv(fail)), (*failed, fail)
        good = self.finish_shrink(s, me)._replace(ever=tuple(map(d.any, s.ever, me)))
        s = d.ite(live, good, self.after_failure(s, me))
        return s, Out(d.ite(live, _DONE, _REFUSED), failed, tried, planned=True)

    def publish(self, s: State, me: Tree, op: RoleOp) -> State:
        d = self.d
        counts = tuple(d.all(m, s.pending) for m in me)
        return s._replace(
            req=by_role(d, me, (op.need,) * 2, s.req), planned=tuple(map(d.any, s.planned, me)),
            seen=tuple(map(d.any, s.seen, counts)),
        )  # fmt: skip

    def in_step(self, s: State, me: Tree) -> State:
        """A borrower that is behind is so no more."""
        late = self.d.all(me[BORROWER], s.behind)
        out: State = self.d.choose(late, lambda: self.catch_up(s), lambda: s)
        return out

    def catch_up(self, s: State) -> State:
        """R14: the borrower lets go of `old` and takes part in the new owner's entries."""
        s = self.drop_old(s)
        return s._replace(gen=(s.gen[OWNER], s.gen[BORROWER] + 1))

    def after_failure(self, s: State, me: Tree) -> State:
        """R9: everything stays as it is, the requirement above all."""
        return s

    def part(self, s: State, role: int, t: int) -> Value:
        """The role takes part in the type's entry."""
        here = self.d.all(s.active[role], s.uses[role][t])
        return here if role == OWNER else self.d.all(here, self.d.inv(s.behind))

    def want(self, s: State, t: int) -> Tree:
        """R3: chunk by chunk the largest requirement of those who take part."""
        d = self.d
        own, lent = (d.ite(self.part(s, r, t), s.req[r][t], self.empty) for r in ROLES)
        return tuple(map(d.max, own, lent))

    def refit(
        self, s: State, me: Tree, op: RoleOp, t: int, live: Value, tried: Value
    ) -> tuple[State, Value, Value]:
        """Make one entry fit; `live` is false once an earlier entry failed. R4, R5, R6, R9."""
        d = self.d
        own = mine(d, me, tuple(u[t] for u in s.uses))
        want = self.want(s, t)
        grow = d.any(*map(operator.gt, want, self.real(s, t, s.asked[t])))
        differ = d.any(*map(operator.ne, want, s.asked[t]))
        move = d.all(live, own, d.any(grow, d.all(differ, self.shrink_due(s, me, t))))
        out: tuple[State, Value, Value] = d.choose(
            move, lambda: self.replace(s, op, t, want, tried), lambda: (s, False, tried)
        )
        return out

    def replace(self, s: State, op: RoleOp, t: int, want: Tree, tried: Value) -> tuple[State, Value, Value]:
        """Free the entry, then make it anew; where that fails it has no chunks."""
        freed = self.bump(self.drop(s, t), t)
        used, fail, tried = self.make(freed, op, t, want, tried)
        placed = freed._replace(asked=put(freed.asked, t, want), used=used)
        return self.d.ite(fail, freed, placed), fail, tried

    def bump(self, s: State, t: int) -> State:
        """R7: every role that takes part in the entry sees the change."""
        return s._replace(gen=self.up(tuple(self.part(s, r, t) for r in ROLES), s.gen))

    def drop(self, s: State, t: int) -> State:
        """Free the entry's chunks; graphs bound to them are stale from now on."""
        d = self.d
        hit = [d.all(s.bound[r], s.held[r][t], self.part(s, r, t)) for r in ROLES]
        return s._replace(asked=put(s.asked, t, self.empty), stale=tuple(map(d.any, s.stale, hit)),
                          used=self.given_back(s, s.used, t, s.asked[t]))  # fmt: skip

    def drop_old(self, s: State) -> State:
        """Free all that a borrower that is behind holds."""
        d = self.d
        hit = d.all(s.bound[BORROWER], d.any(*s.held[BORROWER]))
        used = s.used
        for t in self.types:
            used = self.given_back(s, used, t, s.old[t])
        return s._replace(old=self.no_need, used=used, behind=False,
                          stale=(s.stale[OWNER], d.any(s.stale[BORROWER], hit)))  # fmt: skip

    # -- measure, alloc, compute ---------------------------------------------------------

    def measure(self, s: State, me: Tree, op: RoleOp) -> tuple[State, Out]:
        """P12: nothing changes."""
        return self.only_if(op.plannable, s, s)

    def holding(self, s: State, role: int, t: int) -> Tree:
        """Bytes asked for, by chunk, of the entry that the role uses now (zeros where it uses none)."""
        d = self.d
        entry = s.asked[t] if role == OWNER else d.ite(s.behind, s.old[t], s.asked[t])
        return d.ite(d.all(s.active[role], s.uses[role][t]), entry, self.empty)

    def owned(self, s: State, role: int) -> Tree:
        """R13: device bytes by type (of a meta type on each of its devices), every byte counted with
        one role: what both use, with the owner."""
        d = self.d
        return tuple(
            d.ite(
                d.all(role == BORROWER, s.active[OWNER], d.inv(s.behind), s.common[t]),
                0,
                sum(self.real(s, t, self.holding(s, role, t))),
            )
            for t in self.types
        )

    def fits(self, s: State, role: int) -> Value:
        """Every entry that the role uses still fits its requirement."""
        d = self.d
        enough = []
        for t in self.types:
            have = self.real(s, t, self.holding(s, role, t))
            enough.append(d.any(d.inv(s.uses[role][t]), d.all(*map(operator.le, s.req[role][t], have))))
        return d.all(*enough)

    def alloc(self, s: State, me: Tree, op: RoleOp) -> tuple[State, Out]:
        """G2, G4: bind by the plan, or reserve and bind (one type, or a scheduler), or refuse."""
        d = self.d
        s = d.ite(op.by_sched, self.unbind(s, me), s)
        ready = mine(d, me, tuple(d.all(s.planned[r], op.match, self.fits(s, r)) for r in ROLES))
        uses = d.ite(me[OWNER], s.uses[OWNER], s.uses[BORROWER])

        def again() -> Tree:
            may = may_plan(d, uses, op.by_sched)
            return d.choose(may, lambda: self.reserve(s, me, op), lambda: self.refused(s))

        t, out = d.choose(ready, lambda: self.done(s), again)
        return d.ite(out.ok, self.bind(t, me), t), out

    def bind(self, s: State, me: Tree) -> State:
        d = self.d
        held = [tuple(d.any(*(x > 0 for x in q)) for q in req) for req in s.req]
        return s._replace(
            bound=tuple(map(d.any, s.bound, me)), bound_gen=by_role(d, me, s.gen, s.bound_gen),
            held=by_role(d, me, held, s.held), stale=without(d, s.stale, me),
        )  # fmt: skip

    def unbind(self, s: State, me: Tree) -> State:
        """The role's bound graph is forgotten."""
        return s._replace(bound=without(self.d, s.bound, me), stale=without(self.d, s.stale, me))

    def compute(self, s: State, me: Tree, op: RoleOp) -> tuple[State, Out]:
        """R12: a graph that was bound under an older generation is dropped, not computed."""
        d = self.d
        bound, stale = (d.ite(me[OWNER], *x) for x in (s.bound, s.stale))
        older = d.all(bound, d.inv(op.unchecked), self.outdated(s, me))
        dropped = self.unbind(s, me)
        status = d.ite(bound, d.ite(older, _STALE, _DONE), _MISUSE)
        touched = d.all(bound, d.inv(older), stale)
        return d.ite(older, dropped, s), Out(status, self.no_type, 0, touched)

    def outdated(self, s: State, me: Tree) -> Value:
        """The check of R12: the generation is another than when the graph was bound."""
        return mine(self.d, me, tuple(map(operator.ne, s.gen, s.bound_gen)))
