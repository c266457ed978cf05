"""The overlay against the model of R, operation by operation.

Graphs are of inputs alone, so that every planner plans them alike, and what is
compared is the pair: statuses, generations, what was asked for, device bytes.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from gallocheck.model.records import (
    BufferType,
    Graph,
    Kind,
    Observation,
    Op,
    OpFlag,
    Setup,
    Status,
    Tensor,
    Trouble,
)
from gallocheck.model.session import Session as Model
from gallocheck.native.binding import Library

from .cases import IN, SCHED, node, op

SEEN = ("status", "generation", "shrink_generation", "used", "asked", "reported", "allocations")
BRIEF = (Kind.CAPACITY, Kind.FREE)  # of which the model shows no more
SIZES = (1, 100, 1000, 5000)
KINDS = (Kind.RESERVE,) * 8 + (Kind.ALLOC,) * 3 + (Kind.COMPUTE,) * 3 + (Kind.SHRINK,) * 3 + (
    Kind.OWN, Kind.BORROW, Kind.MEASURE, Kind.FREE, Kind.NEW, Kind.CAPACITY)  # fmt: skip


def graphs(n_types: int) -> tuple[Graph, ...]:
    """Of one tensor of each size on each type, and of one tensor on each type."""
    alone = [Graph((Tensor(size, flags=IN, slot=t),)) for size in SIZES for t in range(n_types)]
    return (*alone, *(Graph(tuple(Tensor(size, flags=IN, slot=t) for t in range(n_types))) for size in SIZES))


def draw(rng: random.Random, n_types: int, n_graphs: int, last: list[int]) -> Op:
    kind = rng.choice(KINDS)
    a = rng.randrange(3)
    types, nth = rng.choice((0, 0, 0, 1, 2)) % (1 << n_types), rng.choice((0, 0, 0, 1, 2))
    if kind == Kind.NEW:
        return Op(kind, a, rng.randrange(2))
    if kind == Kind.BORROW:
        return Op(kind, a, rng.choice([x for x in range(3) if x != a]))
    if kind == Kind.CAPACITY:
        return Op(kind, a, rng.randrange(n_types), value=rng.choice((3000, 6000, 12_000, 1 << 40)))
    if kind == Kind.RESERVE:
        last[a] = rng.randrange(n_graphs)
        return Op(kind, a, graph=last[a], fail_types=types, fail_nth=nth)
    if kind in (Kind.ALLOC, Kind.MEASURE):
        return Op(kind, a, graph=last[a])
    return Op(kind, a)


def comparable(model: Model, o: Op) -> bool:
    """A shrink by a plain allocator has no call in ggml."""
    a = model.allocs.get(o.alloc)
    return not (o.kind == Kind.SHRINK and a is not None and not a.pair.state.owner and a.role == 0)


@pytest.mark.parametrize("n_types", [1, 2])
def test_pair_does_what_the_model_says(resizable: Path, n_types: int) -> None:
    types = tuple(BufferType(1, granularity=(1, 4096)[t], capacity=20_000) for t in range(n_types))
    setup = Setup(types, (tuple(range(n_types)), (n_types - 1,)))
    library, all_graphs = Library(resizable), graphs(n_types)
    compared = 0
    for seed in range(250):
        rng, model, subject = random.Random(seed), Model(setup, list(all_graphs)), library.open(setup)
        for g in all_graphs:
            subject.define(g)
        last = [0, 0, 0]
        start = [
            op(Kind.NEW),
            op(Kind.OWN),
            op(Kind.NEW, 1, other=rng.randrange(2)),
            op(Kind.BORROW, 1, other=0),
        ]
        for i in range(40):
            o = start[i] if i < 4 else draw(rng, n_types, len(all_graphs), last)
            if not comparable(model, o):
                continue
            expect, (seen,) = model.step(o), subject.run([o])
            for name in SEEN if seen.status != Status.MISUSE and o.kind not in BRIEF else ("status", "used"):
                want, have = getattr(expect, name), getattr(seen, name)
                assert want == have, f"seed {seed}, step {i}, {o}: {name} is {have}, the model says {want}"
                compared += 1
            assert not seen.trouble
        assert subject.close() == 0
    assert compared > 20_000


def pair_by_sched(*ops: Op) -> list[Op]:
    new = [op(Kind.NEW, flags=SCHED), op(Kind.OWN), op(Kind.NEW, 1, flags=SCHED), op(Kind.BORROW, 1, other=0)]
    return [*new, *ops]


def play(library: Path, ops: list[Op]) -> list[Observation]:
    setup = Setup((BufferType(32), BufferType(32)), ((0, 1),))
    session = Library(library).open(setup)
    session.define(node(100))
    session.define(node(10_000))
    seen = session.run(ops)
    assert session.close() == 0
    return seen


def test_schedulers_share_and_wait_for_each_other(resizable: Path) -> None:
    """C1, C5: the borrower grows what the owner has work in flight on."""
    busy = [op(Kind.ALLOC, graph=0), op(Kind.COMPUTE, flags=OpFlag.ASYNC), op(Kind.RESERVE, 1, graph=1)]
    again = [op(Kind.LOOK), op(Kind.COMPUTE), op(Kind.ALLOC, graph=0), op(Kind.COMPUTE)]
    ops = pair_by_sched(*busy, *again)
    seen = play(resizable, ops)
    assert [o.status for o in seen] == [Status.DONE] * 8 + [Status.STALE, Status.DONE, Status.DONE]
    assert not any(o.trouble & Trouble.FREED_BUSY for o in seen)
    before, after = seen[4], seen[7]
    assert after.generation == before.generation + 1 and after.asked == ((10_016,), ())
    assert after.used == (10_016, 0)


def test_failed_scheduler_reservation_is_a_status(resizable: Path) -> None:
    """C2, R10: and the owner fails too, until the borrower asks for less."""
    failing = [op(Kind.RESERVE, 1, graph=1, fail_types=1), op(Kind.ALLOC, graph=0, fail_types=1)]
    working = [op(Kind.RESERVE, 1, graph=0), op(Kind.ALLOC, graph=0), op(Kind.COMPUTE)]
    ops = pair_by_sched(op(Kind.RESERVE, graph=0), *failing, *working)
    seen = play(resizable, ops)
    assert [o.status for o in seen[4:]] == [1, 0, 0, 1, 1, 1]
