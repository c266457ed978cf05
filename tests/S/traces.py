"""Random traces of two that share by reference count, and a hand-driven one; every step judged by S."""

from __future__ import annotations

import random
from typing import Any

from gallocheck.model.counted import Counted, Shares
from gallocheck.model.domain import Ints
from gallocheck.model.pair import BORROWER, OWNER, Out, RoleOp
from gallocheck.model.records import Kind
from gallocheck.spec import sharing
from gallocheck.spec.shares import Move, follow, past, seen

from tests.R import traces

#: one allocator is enough to come and go; most operations are reservations
KINDS = traces.KINDS


def operation(rng: random.Random, types: int, chunks: int) -> RoleOp:
    """Any operation; at times something is missing for sharing."""
    missing = tuple(rng.random() < 0.05 for _ in range(4))
    return traces.operation(rng, types, chunks)._replace(missing=missing)


def lawful(op: RoleOp, s: Shares) -> RoleOp:
    """A graph that the plan was made for has the plan's requirement."""
    made = op.kind == Kind.ALLOC and op.match and s.planned[op.role]
    return op._replace(need=s.req[op.role]) if made else op


class Two:
    """Two that share, over ints, one operation a call; every step is judged by all clauses."""

    def __init__(self, cap: int = 100, gran: int = 1, types: int = 1, cls: type[Counted] = Counted) -> None:
        self.model = cls(Ints, types, 2)
        self.s: Any = self.model.init((cap,) * types, (gran,) * types)
        self.g = past(types, 2)
        self.broken: list[tuple[str, str]] = []
        self(Kind.NEW)
        self(Kind.OWN)

    def __call__(self, kind: Kind, role: int = OWNER, need: tuple[int, ...] = (), **more: Any) -> Out:
        types = len(self.model.types)
        row = (*need, 0, 0)[:2]
        given = {"uses": (True,) * types, "inject": (False,) * types} | more
        return self.step(RoleOp(kind, role, need=(row,) * types, **given))

    def step(self, op: RoleOp) -> Out:
        s, g = self.s, self.g
        self.s, out = self.model.step(s, op)
        a, b = seen(self.model, s), seen(self.model, self.s)
        self.g = follow(Ints, g, a, op, out, b)
        found = sharing.rules(Move(Ints, a, op, b, out, g, self.g))
        self.broken += [
            (c, n) for c, parts in found.items() for n, r in parts.items() if r.when and not r.then
        ]
        return out

    def attach(self, **more: Any) -> bool:
        return bool(self(Kind.BORROW, BORROWER, match=False, **more).ok)

    def reserve(self, role: int, *need: int, **more: Any) -> bool:
        return bool(self(Kind.RESERVE, role, need, **more).ok)

    @property
    def held(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Bytes asked for, chunk by chunk, of the first type: what the owner holds, what the borrower holds."""
        return self.s.asked[OWNER][0], self.s.asked[BORROWER][0]
