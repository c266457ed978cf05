"""Many sessions at once: what session.py keeps track of, over arrays with one lane a session.

At each step all lanes make the same kind of operation by the same allocator; what it names (graph,
capacity, failures) is the lane's own, and lanes may sit a step out. Allocator 0 may own; the others may
borrow from it. Rules are those of model/resizable.py, read over lanes; here is only which allocator
is which role of which pair. Arrays are int64 or bool, shape [lane]; sizes are bytes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...model.domain import Tree
from ...model.lanes import Lanes, spread
from ...model.pair import BORROWER, OWNER, Devices, RoleOp, State, candidate
from ...model.records import Kind, Shared, Status
from ...model.resizable import Model

Array = Any  #: np.ndarray of shape [lane]
NOTHING = -1  #: no graph

_MISUSE, _REFUSED, _DONE, _STALE = map(int, (Status.MISUSE, Status.REFUSED, Status.DONE, Status.STALE))


class Plans(NamedTuple):
    """What planning says of all graphs there are, under one config. Arrays of shape [graph]."""

    plannable: Array
    need: Tree  # [type][chunk]  bytes
    measured: Tree  # [slot]     bytes; what is listed twice counts once (G3)
    places: Array  # a hash over the placements
    digest: Array  # of the outputs, 0: not known


class Order(NamedTuple):
    """One step of all lanes: a records.Op whose values are arrays."""

    kind: Kind
    alloc: int
    graph: Array  # index among all graphs
    number: Array  # the same graph's number in the lane's session
    inject: Tree  # [device]     every allocation on it fails
    fail_nth: Array  # the n-th allocation of the operation fails, 0: none
    device: int = 0  # CAPACITY: which
    value: Any = 0  # CAPACITY: bytes from now on
    does: Any = True  # who does not, looks


class LaneSession:
    """`uses` [alloc][type] says which types an allocator has, `slots` [alloc] its list, `plans` [alloc] its Plans.

    `cap` [device] are arrays, bytes; `gran` [type] numbers, bytes; `devices` as for DeviceMemory.
    """

    def __init__(
        self,
        uses: Tree,
        slots: tuple[tuple[int, ...], ...],
        plans: tuple[Plans, ...],
        cap: Tree,
        gran: tuple[int, ...],
        chunks: int,
        devices: Devices | None = None,
        model: type[Model] = Model,
    ) -> None:
        self.lanes, self.d = len(cap[0]), Lanes()
        self.model = model(self.d, len(gran), chunks, devices)
        self.slots, self.plans, self.cap = slots, plans, cap
        self.uses = spread(uses, self.lanes)
        self.fresh: State = spread(self.model.init((0,) * len(cap), gran), self.lanes)
        self.used = self.fresh.used
        self.no, self.zero = np.zeros(self.lanes, bool), np.zeros(self.lanes, np.int64)
        count = len(slots)
        self.states = [self.fresh] * count
        self.joined = [self.no] * count  # borrows from 0, in its pair
        self.role = [self.zero] * count
        self.plan = [self.zero + NOTHING] * count
        self.bound = [self.zero + NOTHING] * count

    # -- who is where --------------------------------------------------------------

    def pair(self, a: int) -> State:
        """The state of a's pair, with the devices as they are now."""
        s = self.states[a]
        if self.joined[a].any():
            s = self.d.ite(self.joined[a], self.states[0], s)
        return s._replace(used=self.used, cap=self.cap)

    def keep(self, a: int, t: State) -> None:
        """`t` is the state of a's pair from now on."""
        self.used = t.used
        if not self.joined[a].any():
            self.states[a] = t
            return
        self.states[0] = self.d.ite(self.joined[a], t, self.states[0])
        self.states[a] = self.d.ite(self.joined[a], self.states[a], t)

    def alive(self, a: int, s: State) -> Array:
        """`s` is the state of a's pair."""
        return np.where(self.role[a] == OWNER, *s.active)

    # -- one step ----------------------------------------------------------------------

    def step(self, o: Order) -> dict[str, Any]:
        """What is seen by lane: "status", where it is DONE, STALE or REFUSED also what `look` says, and more by kind."""
        if o.kind == Kind.CAPACITY:
            return self.set_capacity(o)
        if o.kind == Kind.BORROW:
            return self.borrow(o)
        s = self.pair(o.alloc)
        here = self.alive(o.alloc, s)
        if o.kind == Kind.LOOK:
            return self.looked(o.alloc, s, np.where(here, _DONE, _MISUSE))
        t, out = self.model.step(s, self.asked(o, s))
        status = out.status
        if o.does is not True:
            t = self.d.ite(o.does, t, s)
            status = np.where(o.does, status, np.where(here, _DONE, _MISUSE))
        self.keep(o.alloc, t)
        self.note(o, here, status, out.planned)
        if o.kind == Kind.FREE:
            gone = self.of_those(o, here)
            self.leave(o.alloc, gone)
            seen = self.looked(o.alloc, self.pair(o.alloc), status)
            return seen | {"allocations": self.zero}
        seen = self.looked(o.alloc, t, status)
        if o.kind in (Kind.RESERVE, Kind.ALLOC):
            seen["allocations"] = self.where(o, spread_like(out.allocations, self.zero))
        return seen | self.shown(o, status)

    def of_those(self, o: Order, what: Array) -> Array:
        return what if o.does is True else what & o.does

    def where(self, o: Order, what: Array) -> Array:
        return what if o.does is True else np.where(o.does, what, 0)

    def asked(self, o: Order, s: State) -> RoleOp:
        """What the step asks of the pair, as Session.asked says it."""
        p = self.plans[o.alloc]
        named = o.kind in (Kind.RESERVE, Kind.MEASURE, Kind.ALLOC)
        return RoleOp(
            int(o.kind),
            self.role[o.alloc],
            uses=self.uses[o.alloc],
            need=tuple(tuple(c[o.graph] for c in chunks) for chunks in p.need) if named else self.fresh.asked,
            plannable=p.plannable[o.graph] if named else self.no,
            match=self.plan[o.alloc] == o.graph,
            inject=o.inject,
            fail_nth=o.fail_nth,
            by_sched=self.no,
            unchecked=self.no,
        )

    def note(self, o: Order, here: Array, status: Array, planned: Array) -> None:
        """Which plan and which bound graph the allocator has after it."""
        a, did = o.alloc, self.of_those(o, here)
        if o.kind in (Kind.RESERVE, Kind.ALLOC):
            self.plan[a] = np.where(did & planned, o.graph, self.plan[a])
        if o.kind == Kind.ALLOC:
            self.bound[a] = np.where(did & (status == _DONE), o.graph, self.bound[a])
        if o.kind == Kind.REMAKE:
            remade = did & (status == _DONE)
            self.plan[a], self.bound[a] = (
                np.where(remade, NOTHING, x) for x in (self.plan[a], self.bound[a])
            )
        if o.kind == Kind.COMPUTE:
            self.bound[a] = np.where(did & (status == _STALE), NOTHING, self.bound[a])

    def leave(self, a: int, gone: Array) -> None:
        """Allocator `a` is freed in the lanes `gone`; who borrowed from it keeps the pair."""
        d, empty = self.d, self.fresh
        if a == 0:
            for b in range(1, len(self.slots)):
                heir = gone & self.joined[b]
                if heir.any():
                    self.states[b] = d.ite(heir, self.states[0], self.states[b])
                    self.joined[b] = self.joined[b] & ~heir
            self.states[0] = d.ite(gone, empty, self.states[0])
        else:
            self.states[a] = d.ite(gone & ~self.joined[a], empty, self.states[a])
            self.joined[a] = self.joined[a] & ~gone
        self.role[a] = np.where(gone, OWNER, self.role[a])
        self.plan[a], self.bound[a] = (np.where(gone, NOTHING, x) for x in (self.plan[a], self.bound[a]))

    def borrow(self, o: Order) -> dict[str, Any]:
        """R1, R2: allocator `o.alloc`, which is not 0, asks 0 to share."""
        d, a = self.d, o.alloc
        mine, other = self.pair(a), self.pair(0)
        here = self.alive(a, mine)
        could = self.model.could_own(mine, OWNER)
        ask = candidate(d, mine, self.role[a] == OWNER, could, self.uses[a], (self.no,) * len(Shared))
        t, out = self.model.step(other, ask._replace(other=self.role[0]))
        may = self.of_those(o, here & ~self.joined[a] & self.alive(0, other))
        ok = may & (out.status == _DONE)
        self.states[0] = d.ite(ok, t, self.states[0])
        self.states[a] = d.ite(ok, self.fresh, self.states[a])
        self.joined[a] = self.joined[a] | ok
        self.role[a] = np.where(ok, BORROWER, self.role[a])
        done = ok if o.does is True else ok | ~o.does
        status = np.where(here, np.where(done, _DONE, _REFUSED), _MISUSE)
        return self.looked(a, self.pair(a), status)

    def set_capacity(self, o: Order) -> dict[str, Any]:
        was = self.cap[o.device]
        now = o.value if o.does is True else np.where(o.does, o.value, was)
        self.cap = (*self.cap[: o.device], now, *self.cap[o.device + 1 :])
        return {"status": self.zero + _DONE, "used": self.used}

    # -- what is seen --------------------------------------------------------------------

    def looked(self, a: int, s: State, status: Array) -> dict[str, Any]:
        """What allocator `a` shows, whose pair is in state `s`."""
        d, m, owner = self.d, self.model, self.role[a] == OWNER

        def of_role(each: Any) -> Any:
            return d.ite(owner, each(OWNER), each(BORROWER)) if self.role[a].any() else each(OWNER)

        types = range(len(s.asked))
        asked = of_role(lambda r: tuple(m.holding(s, r, t) for t in types))
        real = [sum(m.real(s, t, chunks)) for t, chunks in enumerate(asked)]
        slots = self.slots[a]
        return {
            "status": status,
            "used": self.used,
            "generation": of_role(lambda r: s.gen[r]),
            "shrink_generation": of_role(lambda r: s.shrink_gen[r]),
            "asked": asked,
            "owned": of_role(lambda r: m.owned(s, r)),
            "reported": tuple(real[t] if slots.index(t) == k else self.zero for k, t in enumerate(slots)),
            "allocations": self.zero,
        }

    def shown(self, o: Order, status: Array) -> dict[str, Any]:
        """What only this kind of operation shows, 0 for who did not do it."""
        p, did = self.plans[o.alloc], self.of_those(o, status == _DONE)
        if o.kind == Kind.MEASURE:
            return {"measured": tuple(np.where(did, x[o.graph], 0) for x in p.measured)}
        if o.kind == Kind.ALLOC:
            return {"places": np.where(did, p.places[o.graph], 0)}
        if o.kind == Kind.COMPUTE:
            return {"digest": np.where(did, p.digest[self.bound[o.alloc]], 0)}
        return {}


def spread_like(x: Any, zero: Array) -> Array:
    """A number as an array; an array as it is."""
    return zero + x
