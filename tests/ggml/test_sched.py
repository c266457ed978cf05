"""The tree's scheduler over several backends: splits, copies, work in flight, larger schedulers, other owners."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from gallocheck.model import oracle
from gallocheck.model.records import BufferType, Graph, Kind, Observation, Op, OpFlag, Setup, Status, Tensor
from gallocheck.native.binding import Library

from .cases import IN, OUT, SCHED, mixed, node, op, tail_of

NEW, RESERVE, ALLOC, COMPUTE, FREE = Kind.NEW, Kind.RESERVE, Kind.ALLOC, Kind.COMPUTE, Kind.FREE
OWN, BORROW, SYNC, RESET, LOOK = Kind.OWN, Kind.BORROW, Kind.SYNC, Kind.RESET, Kind.LOOK
DONE, REFUSED, MISUSE, STALE = Status.DONE, Status.REFUSED, Status.MISUSE, Status.STALE
ASYNC = OpFlag.ASYNC
TYPES = tuple(BufferType(64) for _ in range(4))
SETUP = Setup(TYPES, ((0,), (0, 1), (0, 1, 2), (0, 1, 2, 3)))
BY_SCHED = op(NEW, flags=SCHED)


def play(
    library: Path, graphs: Sequence[Graph], ops: Sequence[Op], setup: Setup = SETUP
) -> list[Observation]:
    """In this process: only for what a right allocator survives. Nothing may leak."""
    session = Library(library).open(setup)
    for graph in graphs:
        session.define(graph)
    seen = session.run(ops)
    assert session.close() == 0
    return seen


def ladder(rungs: int) -> Graph:
    """An input on the host, then nodes that each read the one before, from two devices in turn."""
    nodes = [Tensor(64, (i,), OUT if i == rungs - 1 else OUT & 0, slot=i % 2) for i in range(rungs)]
    return Graph((Tensor(64, flags=IN, slot=2), *nodes))


def test_a_source_on_another_device_is_copied(plain: Path) -> None:
    """The reader's device holds a copy beside the result, with pipeline parallelism one for each of four runs."""
    graph = Graph((Tensor(64, flags=IN, slot=1), Tensor(64, (0,), OUT)))
    two = play(plain, [graph], [op(NEW, other=1, flags=SCHED), op(ALLOC), op(COMPUTE)])
    assert two[1].asked[:2] == ((128,), (64,))
    three = play(plain, [graph], [op(NEW, other=2, flags=SCHED), op(ALLOC), op(COMPUTE)])
    assert three[1].asked[:3] == ((5 * 64,), (4 * 64,), ())
    assert two[2].digest == three[2].digest == oracle.digest(graph)


@pytest.mark.parametrize("config", [1, 2, 3])
@pytest.mark.parametrize("flags", [OpFlag(0), ASYNC])
def test_many_splits_compute_what_the_graph_says(plain: Path, config: int, flags: OpFlag) -> None:
    graphs = (ladder(9), mixed(100), ladder(5))
    ops = [op(NEW, other=config, flags=SCHED)]
    for g in (0, 1, 2, 0):
        ops += [
            op(ALLOC, graph=g),
            op(COMPUTE, graph=g, flags=flags),
            op(COMPUTE, graph=g, flags=flags),
            op(SYNC),
        ]
    seen = play(plain, graphs, ops)
    assert all(o.status == DONE and not o.trouble for o in seen)
    for n, g in enumerate((0, 1, 2, 0)):
        computed, waited = seen[4 * n + 3], seen[4 * n + 4]
        shown = waited if computed.in_flight else computed
        assert shown.digest == oracle.digest(graphs[g]) or (flags and not computed.in_flight)
    assert not flags or seen[3].in_flight


def test_work_waits_for_somebody_who_waits(plain: Path) -> None:
    ops = [
        op(NEW, other=2, flags=SCHED),
        op(ALLOC),
        op(COMPUTE, flags=ASYNC),
        op(LOOK),
        op(RESET),
        op(SYNC),
        op(SYNC),
    ]
    seen = play(plain, [ladder(7)], ops)
    assert [o.in_flight for o in seen] == [0, 0, 1, 1, 1, 0, 0]
    assert [o.digest for o in seen] == [0, 0, 0, 0, 0, oracle.digest(ladder(7)), 0]


def test_five_runs_are_in_flight_at_once(plain: Path) -> None:
    """What they are given is on the host, so that nobody has to wait before the next is launched."""
    ops = [op(NEW, other=2, flags=SCHED), op(RESERVE)]
    ops += [o for _ in range(5) for o in (op(ALLOC), op(COMPUTE, flags=ASYNC))]
    seen = play(plain, [ladder(7)], [*ops, op(SYNC)])
    assert [o.in_flight for o in seen] == [0, 0, 0, *[1] * 9, 0]
    assert not any(o.trouble for o in seen) and seen[-1].digest == oracle.digest(ladder(7))


@pytest.mark.parametrize("last", [op(RESERVE, graph=1), op(FREE)])
def test_no_buffer_goes_under_work_in_flight(plain: Path, last: Op) -> None:
    ops = [op(NEW, other=2, flags=SCHED), op(ALLOC), op(COMPUTE, flags=ASYNC), last]
    seen = play(plain, [ladder(7), mixed(1000)], ops)
    assert all(o.status == DONE and not o.trouble for o in seen) and not seen[-1].in_flight


def pair(*ops: Op, config: int = 1, nodes: int = 0, flags: OpFlag = SCHED) -> list[Op]:
    new = [
        op(NEW, other=config, flags=flags, value=nodes),
        op(OWN),
        op(NEW, 1, other=config, flags=flags, value=nodes),
    ]
    return [*new, op(BORROW, 1, other=0), *ops]


def test_a_partner_that_works_is_waited_for_by_the_caller(resizable: Path) -> None:
    busy = [op(ALLOC), op(ALLOC, 1), op(COMPUTE, flags=ASYNC)]
    seen = play(resizable, [tail_of(64)], pair(*busy, op(COMPUTE, 1), op(SYNC), op(COMPUTE, 1)))[4:]
    assert [o.status for o in seen] == [DONE, DONE, DONE, MISUSE, DONE, DONE]


def test_a_larger_graph_makes_a_larger_scheduler(plain: Path) -> None:
    """C3; a measure needs none."""
    graphs = (tail_of(64), ladder(7), ladder(80))
    ops = [op(NEW, other=1, flags=SCHED, value=2), op(RESERVE), op(RESERVE, graph=1), op(ALLOC, graph=2)]
    ops += [op(COMPUTE, graph=2), op(RESERVE), op(RESET), op(COMPUTE, graph=1)]
    seen = play(plain, graphs, ops)
    assert all(o.status == DONE and not o.trouble for o in seen)
    assert [o.nodes for o in seen] == [2, 2, 8, 81, 81, 81, 81, 81]
    assert (seen[4].digest, seen[7].digest) == (oracle.digest(graphs[2]), oracle.digest(graphs[1]))


def test_a_measure_needs_no_larger_scheduler(resizable: Path) -> None:
    ops = [
        op(NEW, other=1, flags=SCHED, value=2),
        op(RESERVE),
        op(Kind.MEASURE, graph=1),
        op(RESERVE, graph=1),
    ]
    seen = play(resizable, (tail_of(64), ladder(7)), ops)
    assert [o.nodes for o in seen] == [2, 2, 2, 8]
    assert list(seen[2].measured[:2]) == [sum(chunks) for chunks in seen[3].asked[:2]]


@pytest.mark.parametrize("flags", [SCHED, OpFlag(0)])
def test_a_borrower_keeps_the_old_buffers_until_it_reserves(resizable: Path, flags: OpFlag) -> None:
    """R14, with schedulers and without."""
    remade = [op(ALLOC, graph=1), op(ALLOC, 1), op(Kind.REMAKE), op(COMPUTE, 1), op(ALLOC), op(LOOK, 1)]
    again = [op(RESERVE, 1), op(LOOK), op(ALLOC, 1), op(COMPUTE, 1), op(COMPUTE)]
    seen = play(resizable, (node(64), node(640)), pair(*remade, *again, config=0, flags=flags))[4:]
    assert all(o.status == DONE and not o.trouble for o in seen)
    own, lent = seen[4], seen[5]
    assert (own.asked[0], lent.asked[0], lent.used[0]) == ((64,), (640,), 704)
    assert seen[2].generation > seen[0].generation and seen[3].generation == seen[1].generation
    assert (seen[6].asked[0], seen[7].asked[0], seen[6].used[0]) == ((64,), (64,), 64)
    assert seen[6].generation > lent.generation


def test_an_owner_whose_scheduler_grows_is_remade(resizable: Path) -> None:
    """C3 and R14 in one."""
    graphs = (tail_of(64), ladder(7))
    ops = [op(ALLOC, 1), op(RESERVE, graph=1), op(LOOK, 1), op(COMPUTE, 1), op(RESERVE, 1, graph=1), op(LOOK)]
    seen = play(resizable, graphs, pair(*ops, nodes=2))[4:]
    assert all(o.status == DONE and not o.trouble for o in seen)
    assert [o.nodes for o in seen] == [2, 8, 2, 2, 8, 8]
    assert seen[2].asked == seen[0].asked != seen[1].asked and seen[4].asked == seen[5].asked


def test_what_a_scheduler_says_is_what_its_allocator_says(resizable: Path) -> None:
    """C5; of the overlay both can be asked."""
    ops = [op(RESERVE), op(Kind.SHRINK), op(RESERVE, 1, graph=1), op(Kind.REMAKE), op(RESERVE), op(LOOK, 1)]
    seen = play(resizable, (tail_of(64), tail_of(640)), pair(*ops))
    assert all(
        (o.sched_generation, o.sched_shrink_generation) == (o.generation, o.shrink_generation) for o in seen
    )
    assert seen[-2].generation >= 3 and seen[-1].shrink_generation >= 1


def test_what_no_tree_has_is_refused(plain: Path) -> None:
    for strategy in (1, 2):
        with pytest.raises(Exception):  # noqa: B017
            Library(plain).open(Setup(TYPES, ((0,),), strategy=strategy))  # type: ignore[arg-type]
    kinds = [
        Kind.POOL_ALLOC,
        Kind.TRIM,
        Kind.CAPTURE_BEGIN,
        Kind.LAUNCH,
        Kind.CTX_OPEN,
        Kind.SLOT_ENTER,
        Kind.REMAKE,
    ]
    seen = play(plain, [node(1)], [BY_SCHED, *(op(kind) for kind in kinds)])
    assert [o.status for o in seen] == [DONE, *[MISUSE] * len(kinds)]
