"""One code, two readings: what lanes of traces of schedulers give is what each trace gives alone."""

from __future__ import annotations

import random

import pytest
from gallocheck.model.domain import Ints
from gallocheck.model.lanes import Lanes, lane, stack
from gallocheck.model.pair import BORROWER, OWNER
from gallocheck.model.records import Kind
from gallocheck.model.scheduler import Model, SchedOp, State
from gallocheck.spec import scheduler
from gallocheck.spec.scheduler import KINDS

from tests.R.traces import lawful as pair_lawful
from tests.R.traces import operation as pair_operation

LANES, LENGTH = 24, 32
MANY = [*KINDS, *[Kind.RESERVE, Kind.ALLOC, Kind.COMPUTE] * 4, *[Kind.OWN, Kind.BORROW] * 2]


BEGIN = (Kind.NEW, Kind.OWN, Kind.BORROW)


def operation(rng: random.Random, s: State, types: int, kind: Kind) -> SchedOp:
    """Any lawful operation, of small numbers."""
    role = {Kind.NEW: OWNER, Kind.OWN: OWNER, Kind.BORROW: BORROWER}.get(kind, rng.randrange(2))
    on = pair_operation(rng, types, 1)._replace(kind=int(Kind.ALLOC), role=role)
    on = pair_lawful(on, s.pair)
    plannable = on.plannable or (on.match and s.pair.planned[role])
    return SchedOp(int(kind), role, rng.randrange(4), rng.randrange(6), rng.random() < 0.5, rng.random() < 0.9,
                   on._replace(kind=0, plannable=bool(plannable)))  # fmt: skip


@pytest.mark.parametrize("types", [1, 2])
@pytest.mark.parametrize("mixed", [True, False], ids=["mixed kinds", "one kind a step"])
def test_lanes_give_what_ints_give(types: int, mixed: bool) -> None:
    """Every field of state and result, after every operation; and every step keeps C."""
    rng = random.Random(types * 10 + mixed)
    alone, together = Model(Ints, types, 1), Model(Lanes(), types, 1)
    states = [alone.init(tuple(rng.choice((20, 40, 1000)) for _ in range(types))) for _ in range(LANES)]
    many, exercised = stack(states), set()
    for n in range(LENGTH):
        kind = BEGIN[n] if n < len(BEGIN) else rng.choice(MANY)
        ops = [
            operation(rng, s, types, rng.choice(MANY) if mixed and n >= len(BEGIN) else kind) for s in states
        ]
        wide = stack(ops)
        many, out = together.step(many, wide if mixed and n >= len(BEGIN) else wide._replace(kind=int(kind)))
        for i, (s, op) in enumerate(zip(states, ops, strict=True)):
            states[i], mine = alone.step(s, op)
            assert lane(many, i) == states[i], f"operation {n}, lane {i}: {op}"
            assert lane(out, i) == mine, f"operation {n}, lane {i}: {op}"
            found = scheduler.rules(scheduler.step(alone, s, op, states[i], mine))
            exercised |= {(c, part) for c, parts in found.items() for part, r in parts.items() if r.when}
            broken = [(c, x) for c, parts in found.items() for x, r in parts.items() if r.when and not r.then]
            assert broken == [], f"operation {n}, lane {i}: {op}"
    assert {c for c, _ in exercised} == set(scheduler.CLAUSES)
