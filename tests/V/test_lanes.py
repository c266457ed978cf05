"""One code, two readings: what lanes of pools give is what each gives alone."""

from __future__ import annotations

import random

import pytest
from gallocheck.model.domain import Ints
from gallocheck.model.lanes import Lanes, lane, stack
from gallocheck.model.pool import Model, PoolOp
from gallocheck.model.records import Kind, PoolKind

LANES, LENGTH = 32, 40
CONFIGS = ((PoolKind.VMM_POOL, 0, 2, 2, 4096, 8192), (PoolKind.LEGACY_POOL, 3, 2, 1, 4096))


def operation(rng: random.Random, kind: Kind, blocks: list[tuple[int, int, int]]) -> PoolOp:
    """One that may be asked; what it gives back is out."""
    if kind == Kind.POOL_FREE and blocks:
        pool, address, size = blocks.pop(rng.choice((-1, -1, 0)))
        return PoolOp(int(kind), pool, size, address, reach=(False, False))
    if kind == Kind.POOL_FREE:
        kind = Kind.SYNC
    return PoolOp(
        int(kind), rng.randrange(2), rng.choice((0, 1, 4000, 5000, 9000)), 0, rng.randrange(1, 99) << 20,
        rng.random() < 0.1, rng.choice((0, 0, 1, 2, 3)), 0, rng.random() < 0.3,
        (rng.random() < 0.5, rng.random() < 0.5),
        False, rng.randrange(2), rng.choice((0, 20000, 1 << 40)),
    )  # fmt: skip


@pytest.mark.parametrize("config", CONFIGS, ids=lambda c: c[0].name)
def test_lanes_give_what_ints_give(config: tuple[int, ...]) -> None:
    rng = random.Random(config[0])
    alone, together = Model(Ints, *config), Model(Lanes(), *config)
    states = [alone.init((1 << 40, 60000), (40960, 16384)) for _ in range(LANES)]
    blocks: list[list[tuple[int, int, int]]] = [[] for _ in states]
    many = stack(states)
    for n in range(LENGTH):
        kinds = (Kind.POOL_ALLOC, Kind.POOL_ALLOC, Kind.POOL_FREE, Kind.TRIM, Kind.CAPACITY, Kind.COMPUTE)
        ops = [operation(rng, rng.choice(kinds), mine) for mine in blocks]
        many, outs = together.step(many, stack(ops))
        for i, (s, op) in enumerate(zip(states, ops, strict=True)):
            states[i], mine = alone.step(s, op)
            assert lane(many, i) == states[i], f"operation {n}, lane {i}: {op}"
            assert lane(outs, i) == mine, f"operation {n}, lane {i}: {op}"
            if op.kind == Kind.POOL_ALLOC and mine.status == 1:
                blocks[i].append((op.pool, mine.address, mine.size))
            if op.kind == Kind.POOL_FREE and mine.status == -1:
                blocks[i].insert(0, (op.pool, op.address, op.size))
