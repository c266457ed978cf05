"""Random traces of one pair: operations that a caller may make, drawn from small numbers."""

from __future__ import annotations

import random
from collections.abc import Iterator

from gallocheck.model.domain import Ints
from gallocheck.model.pair import RoleOp, State
from gallocheck.model.records import Kind
from gallocheck.model.resizable import Model
from gallocheck.spec.history import follow, past, seen
from gallocheck.spec.step import Step

SIZES = (0, 1, 2, 3, 5, 8, 13)
KINDS = (
    [Kind.NEW, Kind.FREE, Kind.REMAKE, Kind.MEASURE, Kind.CAPACITY]
    + [Kind.OWN, Kind.BORROW] * 2
    + [Kind.RESERVE] * 8
    + [Kind.ALLOC] * 4
    + [Kind.COMPUTE, Kind.SHRINK] * 3
)


def operation(rng: random.Random, types: int, chunks: int) -> RoleOp:
    """Any operation; its numbers are small, so that limits are met often."""

    def chance(p: float) -> bool:
        return rng.random() < p

    return RoleOp(
        kind=rng.choice(KINDS),
        role=rng.randrange(2),
        uses=tuple(chance(0.7) for _ in range(types)),
        clean=chance(0.9),
        other=int(chance(0.05)),
        need=tuple(tuple(rng.choice(SIZES) for _ in range(chunks)) for _ in range(types)),
        plannable=chance(0.95),
        match=chance(0.6),
        inject=tuple(chance(0.05) for _ in range(types)),
        fail_nth=rng.choice((0,) * 8 + (1, 2)),
        unchecked=chance(0.2),
        type=rng.randrange(types),
        value=rng.choice((10, 20, 1000)),
    )


def lawful(op: RoleOp, s: State) -> RoleOp:
    """A graph that the plan was made for has the plan's requirement."""
    made = op.kind == Kind.ALLOC and op.match and s.planned[op.role]
    return op._replace(need=s.req[op.role]) if made else op


def start(rng: random.Random, model: Model) -> State:
    """A fresh pair on devices that are often too small."""
    types = len(model.types)
    return model.init(
        tuple(rng.choice((20, 40, 1000)) for _ in range(types)),
        tuple(rng.choice((1, 4)) for _ in range(types)),
    )


def steps(rng: random.Random, model: Model, length: int) -> Iterator[Step]:
    """A random trace of a model over ints, step by step as the clauses see it; a new allocator first."""
    types, chunks = len(model.types), len(model.chunks)
    s, g = start(rng, model), past(types, chunks)
    for n in range(length):
        op = lawful(operation(rng, types, chunks), s)
        if n == 0:
            op = op._replace(kind=Kind.NEW, uses=(True,) * types)
        t, out = model.step(s, op)
        before, after = seen(model, s), seen(model, t)
        h = follow(Ints, g, before, op, out, after)
        yield Step(Ints, before, op, after, out, g, h)
        s, g = t, h
