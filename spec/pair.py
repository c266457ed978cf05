"""R as a machine: invariants of the model of a pair, for the proof that its clauses hold for every size.

The rules (resizable.py) speak of what is seen and of the past (history.py), so the
machine's state is the model's with the past beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from ..model.domain import Tree, Value
from ..model.pair import BORROWER, OWNER, ROLES, Out, RoleOp, State
from ..model.records import Kind
from ..model.resizable import Model
from ..model.terms import equal, fresh, leaves
from . import pair_words
from .asking import implies, lawful, roles, wishes
from .history import Past, follow, past, seen
from .machine import Machine
from .resizable import CHECKED, Rules, chunk_claim, rules
from .step import Rule, Step

KINDS = (Kind.NEW, Kind.FREE, Kind.OWN, Kind.BORROW, Kind.RESERVE, Kind.MEASURE, Kind.ALLOC, Kind.COMPUTE,
         Kind.SHRINK, Kind.CAPACITY, Kind.REMAKE)  # fmt: skip
#: the parts of the past that are what the model's state says
LINKED = (
    "uses",
    "common",
    "active",
    "owner",
    "behind",
    "req",
    "planned",
    "ever",
    "asking",
    "bound",
    "bound_gen",
)
CHUNK_CLAIM = "R5: no chunk ever shrinks without a request"  #: the claim that is false of the design


class Both(NamedTuple):
    """The model's state, and the past that led to it."""

    s: State
    g: Past


class Remembered:
    """A model of a pair that keeps its past. `cls`: the model, or a wrong variant of it.

    `masks`: of each type, the devices that it is on, a bit each; none: each type on its own.
    """

    def __init__(self, d: Any, types: int, chunks: int, *masks: int, cls: type[Model] = Model) -> None:
        devices = tuple(tuple(k for k in range(types) if mask >> k & 1) for mask in masks)
        self.d, self.pair = d, cls(d, types, chunks, devices or None)

    def step(self, both: Both, op: RoleOp) -> tuple[Both, Out]:
        s, g = both
        t, out = self.pair.step(s, op)
        h = follow(self.d, g, seen(self.pair, s), op, out, seen(self.pair, t))
        return Both(t, h), out


def remembered(cls: type[Model]) -> Callable[..., Remembered]:
    """The machine's model with a wrong variant in its place."""
    return partial(Remembered, cls=cls)


def start(model: Remembered, cap: Tree, gran: Tree) -> Both:
    pair = model.pair
    return Both(pair.init(cap, gran), past(len(pair.types), len(pair.chunks)))


def operation(model: Remembered) -> RoleOp:
    """An operation of plain values, for its shape."""
    pair = model.pair
    return RoleOp(0, uses=pair.no_type, need=pair.no_need, inject=pair.no_type)


def step(model: Remembered, before: Both, op: RoleOp, after: Both, out: Out) -> Step:
    pair = model.pair
    return Step(model.d, seen(pair, before.s), op, seen(pair, after.s), out, before.g, after.g, pair.devices)


def claim(model: Remembered, before: Both, op: RoleOp, after: Both, out: Out) -> dict[str, Rules]:
    return {CHUNK_CLAIM: {"": Rule(True, chunk_claim(step(model, before, op, after, out)))}}


def invariants(model: Remembered, both: Both) -> dict[str, Value]:
    """What holds in every state that can be reached; by name."""
    d, pair, (s, g) = model.d, model.pair, both
    types, out = pair.types, {}
    sizes = [x for tree in (s.asked, s.old, s.req) for x in leaves(tree)]
    out["sizes are not negative"] = d.all(*(x >= 0 for x in sizes), *(x >= 1 for x in s.gran))

    def held(chunks: Tree, t: int) -> Value:
        return sum(pair.real(s, t, chunks))

    on = [[t for t in types if k in pair.devices[t]] for k in range(len(s.used))]
    out["the devices count the pair's bytes"] = d.all(
        *(s.used[k] >= sum(held(s.asked[t], t) + held(s.old[t], t) for t in ts) for k, ts in enumerate(on))
    )
    both_here = d.all(*s.active)
    out["who is attached, and how"] = d.all(
        implies(d, s.owner, s.active[OWNER]), implies(d, both_here, s.owner), implies(d, s.behind, both_here),
        *(implies(d, s.uses[r][t], s.active[r]) for r in ROLES for t in types),
        *(implies(d, both_here, s.common[t] == d.all(s.uses[OWNER][t], s.uses[BORROWER][t])) for t in types),
    )  # fmt: skip
    out["no buffer that nobody uses"] = d.all(
        *(implies(d, x > 0, d.any(*(pair.part(s, r, t) for r in ROLES))) for t in types for x in s.asked[t]),
        *(implies(d, x > 0, d.all(s.behind, s.uses[BORROWER][t])) for t in types for x in s.old[t]),
    )  # fmt: skip
    out["a pending request is as the past says"] = d.all(
        implies(d, g.sure, s.pending), implies(d, s.pending, g.open), implies(d, g.open, d.any(*s.active)),
        *(implies(d, d.all(s.pending, g.done[r]), s.seen[r]) for r in ROLES),
        *(implies(d, d.all(s.pending, s.seen[r]), g.tried[r]) for r in ROLES),
        *(implies(d, s.seen[r], s.pending) for r in ROLES),
    )  # fmt: skip
    out["a bound graph's generation tells"] = d.all(
        *(implies(d, s.bound[r], s.bound_gen[r] <= s.gen[r]) for r in ROLES),
        *(implies(d, d.all(s.bound[r], s.stale[r]), s.bound_gen[r] < s.gen[r]) for r in ROLES),
    )
    out["the past agrees"] = d.all(*(e for f in LINKED for e in equal(getattr(g, f), getattr(s, f))))
    return out


def tidy(both: Both) -> Both:
    """The past agrees with the state."""
    return both._replace(g=both.g._replace(**{f: getattr(both.s, f) for f in LINKED}))


def any_start(model: Remembered) -> tuple[Both, list[Value]]:
    """Devices of any size and rounding."""
    cap, gran = (fresh((0,) * len(model.pair.types), name) for name in ("cap", "gran"))
    return start(model, cap, gran), [x >= 1 for x in gran]


def first(model: Remembered) -> tuple[Both, list[Value]]:
    """Devices of any size that round nothing."""
    types = len(model.pair.types)
    cap = fresh((0,) * types, "cap")
    return start(model, cap, (1,) * types), [c >= 0 for c in cap]


def words(tree: Tree) -> str:
    if isinstance(tree, Both):
        return pair_words.state(tree.s)
    return pair_words.operation(tree) if isinstance(tree, RoleOp) else pair_words.result(tree)


_MINE, _THEIRS = {"role": OWNER}, {"role": BORROWER}
MACHINE = Machine(
    name="resizable",
    model=Remembered,
    configs=tuple((types, chunks) for types in (1, 2, 3) for chunks in (1, 2, 3)),
    kinds=KINDS,
    clauses=CHECKED,
    init=lambda model: start(model, (0,) * len(model.pair.types), (1,) * len(model.pair.types)),
    operation=operation,
    rules=lambda *a: rules(step(*a)),
    invariants=invariants,
    lawful=lambda model, both, op: lawful(model.d, both.s, op),
    words=words,
    start=any_start,
    begin=first,
    splits=roles,
    tidy=tidy,
    prefixes=(((Kind.NEW, _MINE), (Kind.OWN, _MINE), (Kind.BORROW, _THEIRS)), ((Kind.NEW, _MINE),)),
    wishes=wishes,
    sizes="types x chunks",
)
FALSE_CLAIM = replace(MACHINE, name="claim", clauses=(CHUNK_CLAIM,), rules=claim)
