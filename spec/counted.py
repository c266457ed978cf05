"""S as a machine: invariants of the model of counted sharing, for the proof that its clauses hold for every size.

The rules (sharing.py) speak of what is seen and of the past (shares.py), so the machine's state is
the model's with the past beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ..model.counted import Counted, Shares
from ..model.domain import Tree, Value
from ..model.pair import BORROWER, OWNER, ROLES, Out, RoleOp
from ..model.records import Kind
from ..model.terms import equal, fresh, leaves
from . import sharing
from .asking import implies, lawful, roles
from .machine import Machine, Rules
from .shares import Move, Past, follow, past, same, seen, some
from .words import describe

KINDS = (Kind.NEW, Kind.FREE, Kind.OWN, Kind.BORROW, Kind.RESERVE, Kind.MEASURE, Kind.ALLOC, Kind.COMPUTE,
         Kind.SHRINK, Kind.CAPACITY, Kind.REMAKE)  # fmt: skip


class Both(NamedTuple):
    """The model's state, and the past that led to it."""

    s: Shares
    g: Past


class Remembered:
    """A model of counted sharing that keeps its past. `cls`: the model, or a wrong variant of it."""

    def __init__(self, d: Any, types: int, chunks: int, cls: type[Counted] = Counted) -> None:
        self.d, self.two = d, cls(d, types, chunks)

    def step(self, both: Both, op: RoleOp) -> tuple[Both, Out]:
        s, g = both
        t, out = self.two.step(s, op)  # type: ignore[arg-type]
        h = follow(self.d, g, seen(self.two, s), op, out, seen(self.two, t))  # type: ignore[arg-type]
        return Both(t, h), out  # type: ignore[arg-type]


def remembered(cls: type[Counted]) -> Callable[..., Remembered]:
    """The machine's model with a wrong variant in its place."""
    return partial(Remembered, cls=cls)


def start(model: Remembered, cap: Tree, gran: Tree) -> Both:
    two = model.two
    return Both(two.init(cap, gran), past(len(two.types), len(two.chunks)))


def operation(model: Remembered) -> RoleOp:
    """An operation of plain values, for its shape."""
    two = model.two
    return RoleOp(0, uses=two.no_type, need=two.no_need, inject=two.no_type)


def rules(model: Remembered, before: Both, op: RoleOp, after: Both, out: Out) -> dict[str, Rules]:
    s, t = seen(model.two, before.s), seen(model.two, after.s)
    return sharing.rules(Move(model.d, s, op, t, out, before.g, after.g))


def invariants(model: Remembered, both: Both) -> dict[str, Value]:
    """What holds in every state that can be reached; by name."""
    d, two, (s, g) = model.d, model.two, both
    types, here = two.types, d.all(*s.active)
    sizes = [x for tree in (s.asked, s.req) for x in leaves(tree)]
    own, lent = ([sum(two.real(s, t, s.asked[r][t])) for t in types] for r in ROLES)  # type: ignore[arg-type]
    return {
        "sizes are not negative": d.all(*(x >= 0 for x in sizes), *(x >= 1 for x in s.gran)),
        "the device counts the two's bytes": d.all(
            *(s.used[t] >= own[t] + d.ite(s.joint[t], 0, lent[t]) for t in types)),
        "who is attached, and how": d.all(
            implies(d, s.owner, s.active[OWNER]),
            *(implies(d, s.uses[r][t], s.active[r]) for r in ROLES for t in types),
            *(implies(d, s.joint[t], d.all(here, s.uses[OWNER][t], s.uses[BORROWER][t])) for t in types)),
        "what is joint is one": d.all(
            *(implies(d, s.joint[t], same(d, s.asked[OWNER][t], s.asked[BORROWER][t])) for t in types)),
        "no buffer that nobody uses": d.all(
            *(implies(d, x > 0, s.uses[r][t]) for r in ROLES for t in types for x in s.asked[r][t])),
        "a bound graph has its memory, or let go of it": d.all(
            *(implies(d, d.all(s.bound[r], s.held[r][t], s.uses[r][t], d.inv(s.stale[r])), some(d, s.asked[r][t]))
              for r in ROLES for t in types)),
        "a bound graph's generation tells": d.all(
            *(implies(d, s.bound[r], s.bound_gen[r] <= s.gen[r]) for r in ROLES),
            *(implies(d, d.all(s.bound[r], s.stale[r]), s.bound_gen[r] < s.gen[r]) for r in ROLES)),
        "the past agrees": d.all(*(e for f in Past._fields for e in equal(getattr(g, f), getattr(s, f)))),
    }  # fmt: skip


def tidy(both: Both) -> Both:
    """The past agrees with the state."""
    return both._replace(g=both.g._replace(**{f: getattr(both.s, f) for f in Past._fields}))


def any_start(model: Remembered) -> tuple[Both, list[Value]]:
    """Devices of any size and rounding."""
    cap, gran = (fresh((0,) * len(model.two.types), name) for name in ("cap", "gran"))
    return start(model, cap, gran), [x >= 1 for x in gran]


def first(model: Remembered) -> tuple[Both, list[Value]]:
    """Devices of any size that round nothing."""
    types = len(model.two.types)
    cap = fresh((0,) * types, "cap")
    return start(model, cap, (1,) * types), [c >= 0 for c in cap]


def words(tree: Tree) -> str:
    return describe(tree.s if isinstance(tree, Both) else tree)


_MINE, _THEIRS = {"role": OWNER}, {"role": BORROWER}
MACHINE = Machine(
    name="counted",
    model=Remembered,
    configs=tuple((types, chunks) for types in (1, 2) for chunks in (1, 2)),
    kinds=KINDS,
    clauses=sharing.CLAUSES,
    init=lambda model: start(model, (0,) * len(model.two.types), (1,) * len(model.two.types)),
    operation=operation,
    rules=rules,
    invariants=invariants,
    lawful=lambda model, both, op: lawful(model.d, both.s, op),
    start=any_start,
    begin=first,
    splits=roles,
    tidy=tidy,
    prefixes=(((Kind.NEW, _MINE), (Kind.OWN, _MINE), (Kind.BORROW, _THEIRS)), ((Kind.NEW, _MINE),)),
    sizes="types x chunks",
)
