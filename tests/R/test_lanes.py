"""One code, two readings: what lanes of traces give is what each trace gives alone."""

from __future__ import annotations

import random

import numpy as np
import pytest
from gallocheck.model.domain import Ints
from gallocheck.model.lanes import Lanes, lane, spread, stack
from gallocheck.model.records import Kind
from gallocheck.model.resizable import Model

from tests.R.traces import KINDS, lawful, operation, start

LANES, LENGTH = 48, 60


@pytest.mark.parametrize(("types", "chunks"), [(1, 1), (2, 2), (3, 3), (1, 16)])
@pytest.mark.parametrize("mixed", [True, False], ids=["mixed kinds", "one kind a step"])
def test_lanes_give_what_ints_give(types: int, chunks: int, mixed: bool) -> None:
    """R: every field of state and result, after every operation."""
    rng = random.Random(types * 100 + chunks + mixed)
    alone, together = Model(Ints, types, chunks), Model(Lanes(), types, chunks)
    states = [start(rng, alone) for _ in range(LANES)]
    many = stack(states)
    for n in range(LENGTH):
        kind = Kind.NEW if n == 0 else rng.choice(KINDS)
        ops = [lawful(operation(rng, types, chunks), s) for s in states]
        if not mixed or n == 0:
            ops = [lawful(op._replace(kind=kind), s) for op, s in zip(ops, states, strict=True)]
        wide = stack(ops)
        many, out = together.step(many, wide if mixed and n else wide._replace(kind=kind))
        for i, (s, op) in enumerate(zip(states, ops, strict=True)):
            states[i], mine = alone.step(s, op)
            assert lane(many, i) == states[i], f"operation {n}, lane {i}: {op}"
            assert lane(out, i) == mine, f"operation {n}, lane {i}: {op}"


def test_lanes_stay_integers() -> None:
    """No value turns into a float or an object on the way."""
    rng = random.Random(7)
    model = Model(Lanes(), 2, 2)
    s = spread(start(rng, model), LANES)
    for _ in range(40):
        s, _ = model.step(s, spread(operation(rng, 2, 2), LANES))

    def kinds(tree: object) -> set[str]:
        return set().union(*map(kinds, tree)) if isinstance(tree, tuple) else {np.asarray(tree).dtype.kind}

    assert kinds(s) <= {"i", "b"}
