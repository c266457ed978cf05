"""One step of a pair, and the words that the rules of R are written in."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

from ..model.domain import Tree, Value
from ..model.pair import BORROWER, OWNER, ROLES, Devices, Out, RoleOp, mine, simple
from ..model.records import Kind, Status
from .history import Past, Seen, acting, holding, real, reserves


class Rule(NamedTuple):
    """One part of a clause: wherever `when` holds, `then` must.

    A part that speaks of nearly every step (`counts` false) does not by itself exercise its clause.
    """

    when: Value
    then: Value
    counts: bool = True


def once(f: Callable[..., Any]) -> Callable[..., Any]:
    """A method that is worked out once for each list of arguments; its object has a dict `_kept`."""

    @wraps(f)
    def kept(self: Any, *args: Any) -> Any:
        key = (f, *args)
        if key not in self._kept:
            self._kept[key] = f(self, *args)
        return self._kept[key]

    return kept


class Step:
    """One step and the words that the rules are written in.

    `s`, `t`: seen before and after; `g`, `h`: the past before and after; `devices`: of each type, None: its own.
    """

    def __init__(
        self, d: Any, s: Seen, op: RoleOp, t: Seen, out: Out, g: Past, h: Past, devices: Devices | None = None
    ) -> None:
        self.d, self.s, self.op, self.t, self.out, self.g, self.h = d, s, op, t, out, g, h
        self.types = range(len(s.asked))
        self.devices = devices or simple(len(s.asked))
        #: by device, the types that have a part on it
        self.on = [[t for t in self.types if k in self.devices[t]] for k in range(len(s.used))]
        self.me = acting(d, g, op)
        self.acts = d.any(*self.me)
        self.reserve = reserves(d, g, s, op)
        self.served = d.all(self.reserve, out.ok)
        self.failed = d.all(self.reserve, d.inv(out.ok))
        #: a borrower that is behind lets go of what it has and starts anew (R14)
        self.late = d.all(self.me[BORROWER], g.behind)
        self._kept: dict[tuple[Any, ...], Any] = {}

    @once
    def kind(self, *kinds: Kind) -> Value:
        return self.d.any(*(self.op.kind == int(k) for k in kinds))

    @once
    def mine(self, t: int) -> Value:
        """The acting role uses the type."""
        return mine(self.d, self.me, tuple(u[t] for u in self.h.uses))

    def part(self, role: int, t: int) -> Value:
        """The role takes part in the type's entry, once the operation is over."""
        here = self.d.all(self.h.active[role], self.h.uses[role][t])
        return here if role == OWNER else self.d.all(here, self.d.inv(self.h.behind))

    @once
    def want(self, t: int) -> Tree:
        """R3: chunk by chunk, the largest published requirement of those who take part."""
        d, nothing = self.d, (0,) * len(self.s.asked[t])
        own, lent = (d.ite(self.part(r, t), self.h.req[r][t], nothing) for r in ROLES)
        return tuple(map(d.max, own, lent))

    def same(self, a: Tree, b: Tree) -> Value:
        """Two rows of numbers are equal."""
        return True if a is b else self.d.all(*map(operator.eq, a, b))

    @once
    def changed(self, t: int) -> Value:
        return self.d.inv(self.same(self.s.asked[t], self.t.asked[t]))

    @once
    def empty(self, t: int) -> Value:
        """After the step the entry has no buffer."""
        return self.d.all(*(x == 0 for x in self.t.asked[t]))

    @once
    def wanted(self, t: int) -> Value:
        return self.d.any(*(x > 0 for x in self.want(t)))

    @once
    def had_room(self, t: int) -> Value:
        """Before the step the entry's buffer was enough for what is wanted now."""
        return self.d.all(*map(operator.le, self.want(t), real(self.d, self.s, t, self.s.asked[t])))

    @once
    def has_room(self, t: int) -> Value:
        """After the step the entry's buffer is enough."""
        return self.d.all(*map(operator.le, self.want(t), real(self.d, self.t, t, self.t.asked[t])))

    @once
    def exact(self, t: int) -> Value:
        return self.same(self.t.asked[t], self.want(t))

    def bytes(self, s: Seen, t: int) -> Value:
        """Bytes that the pair has of the type; of a meta type on each of its devices."""
        return sum(real(self.d, s, t, s.asked[t])) + sum(real(self.d, s, t, s.old[t]))

    @once
    def on_device(self, t: int) -> Value:
        """Each device can give what is wanted, once the entry's old buffer is given back (R4).

        By then the entries before it are as they are after the step: they may have parts on the same device.
        """
        d, s, want = self.d, self.s, sum(real(self.d, self.s, t, self.want(t)))
        enough = []
        for k in self.devices[t]:
            freed = sum(real(d, s, t, s.asked[t]))
            freed += d.ite(self.late, sum(sum(real(d, s, j, s.old[j])) for j in self.on[k]), 0)
            for j in self.on[k]:
                if j < t:
                    freed += sum(real(d, s, j, s.asked[j])) - sum(real(d, s, j, self.t.asked[j]))
            enough.append(s.used[k] - freed + want <= s.cap[k])
        return d.all(*enough)

    @once
    def room_beside(self, t: int) -> Value:
        """Each device could give what is wanted without the old buffer being given back first."""
        s, want = self.s, sum(real(self.d, self.s, t, self.want(t)))
        return self.d.all(*(s.used[k] + want <= s.cap[k] for k in self.devices[t]))

    @once
    def injected(self, t: int) -> Value:
        """Some device of the type was told to fail."""
        return self.d.any(*(self.op.inject[k] for k in self.devices[t]))

    @once
    def balanced(self, k: int) -> Value:
        """Device k's bytes in use changed by what the pair's buffers, or their parts on it, changed."""
        moved = sum(self.bytes(self.t, t) - self.bytes(self.s, t) for t in self.on[k])
        return self.t.used[k] - self.s.used[k] == moved

    def private_request(self) -> Value:
        return mine(self.d, self.me, self.g.asking)

    @once
    def all_tried(self, t: int) -> Value:
        """A request may be pending, and all who take part in the entry reserved since (this time counts)."""
        d = self.d
        since = tuple(map(d.any, self.g.tried, self.me))
        return d.all(self.g.open, *(d.any(d.inv(self.part(r, t)), since[r]) for r in ROLES))

    def completed(self) -> Value:
        """A request was pending for certain, and with this reserve all attached roles have reserved since."""
        d = self.d
        done = tuple(map(d.any, self.g.done, self.me))
        return d.all(self.served, self.g.sure, *(d.any(d.inv(self.h.active[r]), done[r]) for r in ROLES))

    def stays(self, role: int) -> Value:
        return self.d.all(self.g.active[role], self.h.active[role])

    def holds(self, s: Seen, g: Past, role: int) -> list[Tree]:
        """By type, what the role uses."""
        return [holding(self.d, g, s, role, t) for t in self.types]

    @once
    def keeps(self, role: int) -> Value:
        """The role's buffers are the same before and after."""
        pairs = zip(self.holds(self.s, self.g, role), self.holds(self.t, self.h, role), strict=True)
        return self.d.all(*(self.same(a, b) for a, b in pairs))

    @once
    def untouched(self) -> Value:
        """No buffer, no byte in use and no counter changed."""
        s, t = self.s, self.t
        rows = [*zip(s.asked, t.asked, strict=True), *zip(s.old, t.old, strict=True)]
        rows += [(s.used, t.used), (s.gen, t.gen), (s.shrink_gen, t.shrink_gen)]
        return self.d.all(*(self.same(a, b) for a, b in rows))

    def no_allocations(self) -> Value:
        return self.out.allocations == 0

    def refused(self) -> Value:
        return self.out.status == int(Status.REFUSED)
