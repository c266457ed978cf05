"""What a proof takes for granted of an operation by one of two roles; for every machine that has two."""

from __future__ import annotations

from typing import Any

import z3

from ..model.domain import Value
from ..model.pair import BORROWER, OWNER, ROLES, RoleOp
from ..model.records import Kind
from ..model.terms import equal, leaves
from .machine import Fields


def implies(d: Any, a: Value, b: Value) -> Value:
    """Wherever `a` holds, so does `b`."""
    return d.any(d.inv(a), b)


def lawful(d: Any, s: Any, op: RoleOp) -> list[Value]:
    """What a caller must keep to: sizes are sizes, and a plan's graph has the plan's requirement.

    `s` has, by role, `req` (published requirement, bytes) and `planned`.
    """
    law = [x >= 0 for x in leaves(op.need)]
    law += [op.fail_nth >= 0, op.value >= 0, op.other >= 0, op.other < len(ROLES)]
    law += [op.role >= OWNER, op.role <= BORROWER]
    for r in ROLES:
        fits = d.all(*equal(op.need, s.req[r]))
        law.append(implies(d, d.all(op.kind == int(Kind.ALLOC), op.role == r, op.match, s.planned[r]), fits))
    return law


def roles(kind: int) -> tuple[Fields, ...]:
    """Either role acts, where the kind does not say which."""
    return tuple(
        {"role": r} for r in ROLES if r == OWNER or kind not in (Kind.NEW, Kind.BORROW, Kind.CAPACITY)
    )


def wishes(op: RoleOp, kind: Value | None = None) -> list[list[Value]]:
    """Of a counterexample: no failures, everything ordinary; a borrower that attaches brings nothing.

    `kind`: where the operation is a part of another, that one's.
    """
    out = [
        [op.fail_nth == 0, *map(z3.Not, op.inject)],
        [op.plannable, op.clean, *op.uses, z3.Not(op.unchecked)],
    ]
    if not z3.is_expr(op.kind if kind is None else kind):
        out.append([*(x == 0 for x in leaves(op.need)), z3.Not(op.match), op.other == OWNER])
    return out
