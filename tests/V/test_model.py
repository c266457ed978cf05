"""Pools by hand: what docs/choices.md says of them, on the model and on the reference of a session."""

from __future__ import annotations

from typing import Any

from gallocheck.model.domain import Ints
from gallocheck.model.pool import KEPT, Model, Out, PoolOp, State
from gallocheck.model.records import (
    UNLIMITED,
    BufferType,
    Kind,
    Observation,
    Op,
    PoolKind,
    Setup,
    Status,
)
from gallocheck.model.stack import Stack
from gallocheck.model.stack.pools import scratch_size

from tests.shorthand import given, graph, node, out

UNIT, ROOM = 4096, 3 * 4096
TAKE, GIVE, TRIM = Kind.POOL_ALLOC, Kind.POOL_FREE, Kind.TRIM


class Pools:
    """One device with one stream; every operation gives (status, mapped, out)."""

    def __init__(self, kind: PoolKind = PoolKind.VMM_POOL, cap: int = UNLIMITED) -> None:
        self.model = Model(Ints, kind, KEPT, 1, 1, UNIT)
        self.state: State = self.model.init((cap,), (ROOM,))
        self.last = Out(0)
        self.fresh = 1 << 20

    def do(self, kind: Kind, **how: Any) -> tuple[int, int, int]:
        self.fresh += 1 << 20
        self.state, self.last = self.model.step(
            self.state, PoolOp(kind, fresh=self.fresh, reach=(True,), **how)
        )
        pool = self.state.pools[0]
        return self.last.status, pool.mapped, pool.out


def test_blocks_lie_behind_each_other() -> None:
    """V2: at the end of what is handed out, 128 bytes at least; mapped in units as they are missing."""
    p = Pools()
    assert p.do(TAKE, size=0) == (1, UNIT, 128)
    base = p.last.address
    assert p.do(TAKE, size=129) == (1, UNIT, 384) and p.last.address == base + 128
    assert p.do(TAKE, size=UNIT) == (1, 2 * UNIT, 384 + UNIT) and p.last.allocations == 3
    assert p.do(GIVE, size=256, address=base + 128)[0] == Status.MISUSE
    assert p.do(GIVE, size=UNIT, address=base + 384) == (1, 2 * UNIT, 384)
    assert p.do(TAKE, size=100) == (1, 2 * UNIT, 512) and p.last.allocations == 0


def test_the_range_ends() -> None:
    p = Pools()
    assert p.do(TAKE, size=ROOM + 1) == (0, 0, 0) and p.last.allocations == 0
    assert p.state.pools[0].base > 0  # reserved all the same (V1)
    assert p.do(TAKE, size=ROOM) == (1, ROOM, ROOM) and p.do(TAKE, size=0)[0] == Status.REFUSED


def test_a_mapping_that_fails_half_way_is_undone() -> None:
    """V5: at each of create, map and set-access; afterwards it works again."""
    for nth in (1, 2, 3):
        p = Pools()
        assert p.do(TAKE, size=1, fail_nth=nth) == (0, 0, 0)
        assert p.last.allocations == nth and p.state.used == (0,)
        assert p.do(TAKE, size=1, fail_nth=4) == (1, UNIT, 128)
    p = Pools(cap=UNIT)
    assert p.do(TAKE, size=UNIT)[0] == Status.DONE and p.do(TAKE, size=1) == (0, UNIT, UNIT)


def test_a_trim_is_for_idle_pools() -> None:
    """V1, V3: everything goes but the range; the next block is where the first was."""
    p = Pools()
    p.do(TAKE, size=5000)
    first = p.last.address
    assert p.do(TRIM) == (1, 2 * UNIT, 5120) and p.last.released == 0
    p.do(GIVE, size=5120, address=first)
    assert p.do(TRIM) == (1, 0, 0) and p.last.released == 2 * UNIT and p.state.used == (0,)
    assert p.do(TAKE, size=1) == (1, UNIT, 128) and p.last.address == first


def test_a_legacy_pool_keeps_blocks() -> None:
    """The smallest that is large enough; of equals the one kept longest; sixteen at most."""
    p = Pools(PoolKind.LEGACY_POOL)
    blocks = []
    for size in (3, 1, 2, 1):
        p.do(TAKE, size=size * UNIT)
        blocks.append((p.last.address, p.last.size))
    for address, size in blocks:
        assert p.do(GIVE, address=address, size=size)[0] == Status.DONE
    assert p.do(TAKE, size=UNIT) == (1, 7 * UNIT, UNIT) and p.last.address == blocks[1][0]
    assert p.do(TAKE, size=UNIT + 1)[0] == Status.DONE and p.last.address == blocks[2][0]
    assert p.do(TAKE, size=4 * UNIT) == (1, 11 * UNIT, 7 * UNIT)
    many = []
    for _ in range(KEPT + 1):
        p.do(TAKE, size=9 * UNIT)
        many.append((p.last.address, p.last.size))
    held = p.state.pools[0].mapped
    for address, size in many:
        p.do(GIVE, address=address, size=size)
    assert p.state.pools[0].mapped == held - 3 * 9 * UNIT  # two were kept already
    assert p.do(TAKE, size=2**63)[0] == Status.REFUSED and p.last.allocations == 0


# -- a session's reference -------------------------------------------------------------

DEVICES = (
    BufferType(granularity=UNIT),
    BufferType(granularity=8192),
    BufferType(granularity=8192, meta=0b11),
)
G = graph(given(64), out(5000, 0))


def session(*ops: Op, pool: PoolKind = PoolKind.VMM_POOL) -> list[Observation]:
    stack = Stack(Setup(DEVICES, ((0,), (2,)), pool=pool, pool_range=10 * UNIT), [G])
    return [stack.step(op) for op in ops]


def test_a_meta_type_is_trimmed_on_all_its_devices() -> None:
    """V4; it has no pools of its own."""
    takes = (Op(TAKE, 0, 0, value=1), Op(TAKE, 1, 1, value=1))
    gives = (Op(GIVE, 0, 0), Op(GIVE, 1, 1))
    seen = session(*takes, Op(TAKE, 0, 2), *gives, Op(TRIM, other=0), Op(TRIM, other=2))
    assert seen[1].pooled == (UNIT, 8192, 0) and seen[2].status == Status.MISUSE
    assert (seen[5].released, seen[5].pooled) == (UNIT, (0, 8192, 0))
    assert (seen[6].released, seen[6].used) == (8192, (0, 0, 0))


def test_a_computation_takes_scratch_on_every_device_of_its_graph() -> None:
    """4096 bytes at most; refused, nothing computed, where it cannot be had; given back at once."""
    assert scratch_size(G) == 4096 and scratch_size(graph(given(9), node(1, 0))) == 128
    setup = (Op(Kind.NEW, 1, 1), Op(Kind.ALLOC, 1))
    *_, done = session(*setup, Op(Kind.COMPUTE, 1))
    assert done.status == Status.DONE and done.pooled == (UNIT, 8192, 0) and done.allocations == 6
    *_, refused, again = session(*setup, Op(Kind.COMPUTE, 1, fail_nth=5), Op(Kind.COMPUTE, 1))
    assert refused.status == Status.REFUSED and refused.digest == 0 and refused.pooled == (UNIT, 0, 0)
    assert again.status == Status.DONE and again.allocations == 3


def test_without_pools_there_is_nothing_to_do() -> None:
    seen = session(Op(TAKE), Op(GIVE), Op(TRIM), pool=PoolKind.NO_POOL)
    assert {o.status for o in seen} == {Status.MISUSE}
