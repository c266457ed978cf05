"""One code, two readings: what lanes of traces of contexts give is what each gives alone; and every step keeps W."""

from __future__ import annotations

import random
from typing import Any

import pytest
from gallocheck.model.domain import Ints
from gallocheck.model.lanes import Lanes, lane, stack
from gallocheck.model.records import Kind, Memory
from gallocheck.model.waiting import ContextOp, Contexts
from gallocheck.model.workspace import Frame
from gallocheck.spec import waiting, workspace
from gallocheck.spec.machine import Machine
from gallocheck.spec.workspace import PolicyOp, Watched, shape

LANES, LENGTH = 24, 100


def any_frame(rng: random.Random) -> Frame:
    generation = rng.choice((1, 2, 4))
    batch = rng.choice((generation, 8, 64, 65, 70))
    flip = [rng.random() < 0.55 for _ in range(3)]
    return Frame(
        rng.randrange(len(Memory)),
        *flip,
        rng.choice((1, 2)),
        rng.randrange(9),
        generation,
        max(batch, generation),
    )


def batch(rng: random.Random, s: Any) -> PolicyOp:
    f: Frame = s.frame
    kind = Kind.CTX_DECODE if s.open and rng.random() < 0.99 else rng.choice((Kind.CTX_OPEN, Kind.CTX_CLOSE))
    tokens = rng.choice((1, 1, 1, f.generation, rng.choice((63, 64, 65, f.batch))))
    used = rng.choice((0, 1, 1, f.eighth, rng.randrange(8 * f.eighth + 1)))
    fails = (rng.random() < 0.01, rng.random() < 0.01)
    return PolicyOp(int(kind), tokens, used, fails)


def operation(rng: random.Random, s: Any) -> ContextOp:
    kind = rng.choice((*waiting.MACHINE.kinds, *[Kind.CTX_DECODE] * 6))
    flags = [rng.random() < p for p in (0.5, 0.3, 0.2, 0.1, 0.4, 0.05, 0.8, 0.4, 0.1)]
    return ContextOp(int(kind), rng.randrange(2), *flags)


@pytest.mark.parametrize("m", [workspace.MACHINE, waiting.MACHINE], ids=lambda m: m.name)
def test_lanes_give_what_ints_give(m: Machine) -> None:
    rng = random.Random(7)
    policy = m is workspace.MACHINE
    cls: Any = Watched if policy else Contexts
    alone, together = cls(Ints), cls(Lanes())
    states = [shape(alone)._replace(frame=any_frame(rng)) if policy else alone.init() for _ in range(LANES)]
    many, exercised = stack(states), set()
    for n in range(LENGTH):
        ops = [batch(rng, s) if policy else operation(rng, s) for s in states]
        many, out = together.step(many, stack(ops))
        for i, (s, op) in enumerate(zip(states, ops, strict=True)):
            states[i], mine = alone.step(s, op)
            assert lane(many, i) == states[i], f"operation {n}, lane {i}: {op}"
            assert lane(out, i) == mine, f"operation {n}, lane {i}: {op}"
            found = m.rules(alone, s, op, states[i], mine)
            exercised |= {c for c, parts in found.items() for r in parts.values() if r.when and r.counts}
            assert not [
                (c, x) for c, parts in found.items() for x, r in parts.items() if r.when and not r.then
            ]
            assert all(m.invariants(alone, states[i]).values())
    assert exercised == set(m.clauses)
