"""M1 by hand: a buffer of a meta type is one part a device, made whole or not at all; and the bundled allocator agrees."""

from __future__ import annotations

import random

import pytest
from gallocheck.model.domain import Ints
from gallocheck.model.lanes import Lanes, lane, stack
from gallocheck.model.records import BufferType, Kind, Observation, Op, Setup, Status, Trace
from gallocheck.model.resizable import Model
from gallocheck.model.stack import Stack
from gallocheck.native.worker import LocalRunner

from tests.R.traces import KINDS, lawful, operation, start
from tests.shorthand import bundled, given, graph, judged, node, out

PLAIN, OVER_BOTH = BufferType(), BufferType(meta=0b11)
BOTH = (PLAIN, PLAIN, OVER_BOTH)  #: two devices, and a type over both
NEW, RESERVE, ALLOC, COMPUTE, FREE = (
    Op(k) for k in (Kind.NEW, Kind.RESERVE, Kind.ALLOC, Kind.COMPUTE, Kind.FREE)
)


@pytest.fixture(scope="module")
def runner() -> LocalRunner:
    return bundled()


def seen(
    runner: LocalRunner, *ops: Op, types: tuple[BufferType, ...] = BOTH, configs: tuple[tuple[int, ...], ...] = ((2,),),
    sizes: tuple[int, ...] = (64,),
) -> list[Observation]:  # fmt: skip
    """What the model shows; the bundled allocator is judged by it on the way."""
    graphs = tuple(graph(given(n), out(n, 0)) for n in sizes)
    trace = Trace(Setup(types, configs), graphs, ops)
    report = judged(runner, trace)
    assert report.failed is None, report.failed
    reference = Stack(trace.setup, list(graphs))
    return [reference.step(op) for op in ops]


def test_every_device_gives_a_part(runner: LocalRunner) -> None:
    """Input and output of 64 bytes: 128 on each of the two devices, nothing on the type's own index."""
    done = seen(runner, NEW, RESERVE, ALLOC, COMPUTE, FREE)
    assert done[1].used == (128, 128, 0) and done[1].asked[2] == (128,) and done[1].allocations == 2
    assert done[1].owned == (0, 0, 128) and done[3].status == Status.DONE and done[4].used == (0, 0, 0)


@pytest.mark.parametrize(
    ("fail", "tried"), [({"fail_nth": 1}, 1), ({"fail_nth": 2}, 2), ({"fail_types": 2}, 2)]
)
def test_where_a_part_fails_nothing_is_left(runner: LocalRunner, fail: dict[str, int], tried: int) -> None:
    done = seen(runner, NEW, RESERVE, Op(Kind.RESERVE, graph=1, **fail), RESERVE, sizes=(16, 64))
    assert (done[2].status, done[2].used, done[2].allocations) == (Status.REFUSED, (0, 0, 0), tried)
    assert done[2].asked == ((), (), ()) and done[2].generation == done[1].generation + 1
    assert done[3].status == Status.DONE and done[3].used == (32, 32, 0)


def test_a_meta_types_own_index_is_no_device(runner: LocalRunner) -> None:
    """Failures and capacities of its index mean nothing."""
    done = seen(runner, NEW, Op(Kind.CAPACITY, other=2, value=0), Op(Kind.RESERVE, fail_types=4))
    assert done[2].status == Status.DONE and done[2].used == (128, 128, 0)


def test_chunks_got_before_go_back_on_every_device(runner: LocalRunner) -> None:
    """Two chunks of two parts each: the fourth part fails."""
    types = (PLAIN, PLAIN, BufferType(max_size=64, meta=0b11))
    done = seen(runner, NEW, Op(Kind.RESERVE, fail_nth=4), RESERVE, types=types)
    assert (done[1].used, done[1].allocations) == ((0, 0, 0), 4)
    assert done[2].asked[2] == (64, 64) and done[2].used == (128, 128, 0)


def test_the_smallest_device_decides(runner: LocalRunner) -> None:
    types = (PLAIN, BufferType(capacity=100), OVER_BOTH)
    done = seen(runner, NEW, RESERVE, types=types)
    assert done[1].status == Status.REFUSED and done[1].used == (0, 0, 0)


def test_types_share_a_device_in_their_order(runner: LocalRunner) -> None:
    """Type 0 takes 128 bytes of device 0 first; what is left is too little for the meta type."""
    types = (BufferType(capacity=200), PLAIN, OVER_BOTH)
    graphs = (graph(given(64), node(64, 0), given(64, 1), out(64, 2, slot=1)),)
    trace = Trace(Setup(types, ((0, 2),)), graphs, (NEW, RESERVE))
    assert judged(runner, trace).failed is None
    reference = Stack(trace.setup, list(graphs))
    done = [reference.step(op) for op in trace.ops]
    assert done[1].status == Status.REFUSED and done[1].used[0] == sum(done[1].asked[0]) > 0
    assert done[1].used[1] == 0 and done[1].asked[2] == ()


def test_it_rounds_as_the_meta_type_does(runner: LocalRunner) -> None:
    types = (PLAIN, BufferType(granularity=64), BufferType(granularity=4096, meta=0b11))
    done = seen(runner, NEW, RESERVE, types=types)
    assert done[1].used == (4096, 4096, 0) and done[1].reported[0] == 4096


def test_two_meta_types_over_the_same_devices(runner: LocalRunner) -> None:
    types = (PLAIN, PLAIN, OVER_BOTH, OVER_BOTH)
    graphs = (graph(given(64), out(64, 0, slot=1)),)
    trace = Trace(Setup(types, ((2, 3),)), graphs, (NEW, RESERVE, ALLOC, COMPUTE, FREE))
    assert judged(runner, trace).failed is None
    reference = Stack(trace.setup, list(graphs))
    assert [reference.step(op).used for op in trace.ops][1] == (128, 128, 0, 0)


def test_what_is_shared_is_counted_once_on_every_device(runner: LocalRunner) -> None:
    """R13: over all allocators what they own of a device is what is in use there."""
    ops = [NEW, Op(Kind.OWN), Op(Kind.NEW, 1, 1), Op(Kind.BORROW, 1), Op(Kind.NEW, 2, 2)]
    ops += [Op(Kind.RESERVE, n) for n in (0, 1, 2)]
    configs = ((2,), (0, 2), (0, 1))
    graphs = (graph(given(64), out(64, 0, slot=1)),)
    trace = Trace(Setup(BOTH, configs), graphs, tuple(ops))
    assert judged(runner, trace).failed is None
    reference = Stack(trace.setup, list(graphs))
    last = [reference.step(op) for op in ops][-1]
    shown = [reference.look(n).owned for n in (0, 1, 2)]
    for k in (0, 1):
        assert sum(own[k] + own[2] for own in shown) == last.used[k] > 0


@pytest.mark.parametrize("devices", [((0,), (0, 1)), ((0, 1), (0, 1))])
def test_lanes_give_what_ints_give(devices: tuple[tuple[int, ...], ...]) -> None:
    rng = random.Random(len(devices[0]))
    alone, together = Model(Ints, 2, 2, devices), Model(Lanes(), 2, 2, devices)
    states = [start(rng, alone) for _ in range(32)]
    many = stack(states)
    for n in range(40):
        kind = Kind.NEW if n == 0 else rng.choice(KINDS)
        ops = [lawful(operation(rng, 2, 2)._replace(kind=kind), s) for s in states]
        many, result = together.step(many, stack(ops)._replace(kind=kind))
        for i, (s, op) in enumerate(zip(states, ops, strict=True)):
            states[i], mine = alone.step(s, op)
            assert lane(many, i) == states[i] and lane(result, i) == mine, f"operation {n}, lane {i}: {op}"
