"""The adapter: what it drives, what it observes, and that its oracle sees what goes wrong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from gallocheck.model import oracle
from gallocheck.model.records import (
    BufferType,
    Cap,
    Graph,
    Kind,
    Observation,
    Op,
    OpFlag,
    Setup,
    Status,
    Tensor,
    Trace,
    Trouble,
)
from gallocheck.native import trees
from gallocheck.native.binding import Library
from gallocheck.native.worker import Worker

from .cases import IN, OUT, SCHED, SETUP, mixed, node, op, tail_of

NEW, RESERVE, ALLOC, COMPUTE, FREE = Kind.NEW, Kind.RESERVE, Kind.ALLOC, Kind.COMPUTE, Kind.FREE
DONE, REFUSED, MISUSE, STALE = Status.DONE, Status.REFUSED, Status.MISUSE, Status.STALE


def play(library: Path, setup: Setup, graphs: Sequence[Graph], ops: Sequence[Op]) -> list[Observation]:
    """In this process: only for what a right allocator survives. Nothing may leak."""
    session = Library(library).open(setup)
    for n, graph in enumerate(graphs):
        assert session.define(graph) == n
    seen = session.run(ops)
    assert session.close() == 0
    return seen


def everything(library: Path) -> None:
    """Each config, plain and by scheduler, small tensors and large ones with views."""
    graphs = (mixed(100), mixed(300), mixed(150_000))
    for config in range(len(SETUP.configs)):
        for flags in (OpFlag(0), SCHED):
            ops = [op(NEW, other=config, flags=flags)]
            for g in (0, 2, 1):
                ops += [op(RESERVE, graph=g), op(ALLOC, graph=g), op(COMPUTE), op(COMPUTE)]
            seen = play(library, SETUP, graphs, [*ops, op(FREE)])
            assert all(o.status == DONE and not o.trouble for o in seen), (config, flags, seen)
            done = [o.digest for o, p in zip(seen, ops, strict=False) if p.kind == COMPUTE]
            small, large = oracle.digest(graphs[0]), oracle.digest(graphs[1])
            assert done == [small, small, done[2], done[2], large, large]


def test_pinned_tree_computes_what_the_graph_says(plain: Path) -> None:
    library = Library(plain)
    assert library.capabilities == Cap.PLAN | Cap.SCHED | Cap.META
    assert library.describe == "ggml 0.15.3, meta backend"
    everything(plain)


def test_overlay_computes_what_the_graph_says(resizable: Path) -> None:
    also = Cap.RESIZABLE | Cap.REMAKE | Cap.META
    assert Library(resizable).capabilities == Cap.PLAN | Cap.SCHED | also
    everything(resizable)


def test_oldest_and_newest_tree(sample: trees.Tree) -> None:
    everything(trees.build(sample))


def test_places_are_those_of_the_buffers(plain: Path) -> None:
    session = Library(plain).open(SETUP)
    graph = mixed(100)
    session.define(graph)
    session.run([op(NEW, other=1), op(RESERVE), op(ALLOC)])
    places = session.places(0, 99)
    assert [p.type for p in places] == [0, -1, 0, 0, 0, 1, 0, 1, 0, 1]
    assert places[4].offset == places[3].offset + 25
    assert all(
        p.offset % SETUP.types[p.type].alignment == 0 for i, p in enumerate(places) if p.type >= 0 and i != 4
    )
    session.close()


def test_device_rounds_counts_and_refuses(plain: Path) -> None:
    setup = Setup((BufferType(16, granularity=4096, capacity=8192),), ((0,),))
    ops = [
        op(NEW),
        op(RESERVE, graph=0),
        op(NEW, 1),
        op(RESERVE, 1, graph=0),
        op(NEW, 2),
        op(RESERVE, 2, graph=0),
    ]
    ops += [op(Kind.CAPACITY, value=12288), op(RESERVE, 2, graph=0), op(FREE)]
    seen = play(plain, setup, [node(100)], ops)
    assert [o.used[0] for o in seen] == [0, 4096, 4096, 8192, 8192, 8192, 8192, 12288, 8192]
    assert (seen[1].asked, seen[1].reported[0], seen[1].allocations) == (((112,),), 4096, 1)
    assert (seen[5].status, seen[5].allocations, seen[5].asked) == (REFUSED, 1, ((),))
    assert seen[7].status == DONE


@pytest.mark.parametrize("fail", [{"fail_types": 2}, {"fail_nth": 2}])
def test_injected_failures(plain: Path, fail: dict[str, int]) -> None:
    graph = Graph((Tensor(10), Tensor(10, slot=1)))
    ops = [op(NEW, other=1), op(RESERVE, **fail), op(RESERVE)]
    seen = play(plain, SETUP, [graph], ops)
    assert [o.status for o in seen] == [DONE, REFUSED, DONE]
    assert seen[1].asked == ((32,), ()) and seen[2].asked == ((32,), (64,))


def test_misuse(plain: Path) -> None:
    kinds = [
        op(FREE),
        op(RESERVE),
        op(COMPUTE),
        op(Kind.LOOK),
        op(NEW),
        op(NEW),
        op(COMPUTE),
        op(RESERVE, graph=9),
    ]
    kinds += [
        op(Kind.SYNC),
        op(Kind.RESET),
        op(Kind.OWN),
        op(Kind.SHRINK),
        op(Kind.CAPACITY, other=3),
        op(NEW, 9),
    ]
    seen = play(plain, SETUP, [node(1)], kinds)
    assert [i for i, o in enumerate(seen) if o.status != MISUSE] == [4]


def test_graphs_that_make_no_sense(plain: Path) -> None:
    session = Library(plain).open(SETUP)
    for bad in (Tensor(1, (0,)), Tensor(1, flags=IN, view_src=0), Tensor(1, view_src=5)):
        assert session.define(Graph((bad,))) == -1
    assert session.define(Graph((Tensor(4), Tensor(4, (0,), view_src=0, view_offs=1)))) == -1
    session.close()


def test_replaced_buffers_make_a_graph_stale(plain: Path) -> None:
    ops = [op(NEW), op(ALLOC, graph=0), op(RESERVE, graph=1), op(COMPUTE), op(COMPUTE)]
    seen = play(plain, SETUP, [node(10), node(1000)], ops)
    assert [o.status for o in seen][-2:] == [STALE, MISUSE]


def test_unchecked_use_of_freed_memory_faults(plain: Path) -> None:
    ops = (op(NEW), op(ALLOC, graph=0), op(RESERVE, graph=1), op(COMPUTE, flags=OpFlag.UNCHECKED))
    with Worker(plain) as worker:
        run = worker.run(Trace(SETUP, (node(10), node(1000)), ops))
    assert run.death is not None and (run.death.step, run.death.kind) == (3, "fault")


def test_unchecked_use_of_what_the_other_role_freed_faults(resizable: Path) -> None:
    """R12 through schedulers: the owner's graph, after the borrower grew the buffers."""
    pair = [op(NEW, flags=SCHED), op(Kind.OWN), op(NEW, 1, flags=SCHED), op(Kind.BORROW, 1, other=0)]
    ops = (*pair, op(ALLOC), op(RESERVE, 1, graph=1), op(COMPUTE, flags=OpFlag.UNCHECKED))
    with Worker(resizable) as worker:
        run = worker.run(Trace(SETUP, (node(10), node(1000)), ops))
    assert run.death is not None and (run.death.step, run.death.kind) == (6, "fault")


def test_scheduler_allocates_what_was_reset(plain: Path) -> None:
    for graph in (node(10), tail_of(10)):
        ops = [op(NEW, flags=SCHED), op(ALLOC), op(COMPUTE), op(Kind.RESET), op(COMPUTE), op(Kind.SYNC)]
        seen = play(plain, SETUP, [graph], ops)
        assert all(o.status == DONE and not o.trouble for o in seen)
        assert seen[4].digest == seen[2].digest == oracle.digest(graph)


# -- the oracle sees what is really wrong in the pinned tree -----------------------


def test_sees_an_output_that_is_overwritten(plain: Path) -> None:
    """A view is an output; its root is freed after the view's reader."""
    graph = Graph(
        (
            Tensor(8),
            Tensor(8, (0,), OUT, view_src=0),
            Tensor(8, (1,)),
            Tensor(8, (2,), OUT),
            Tensor(8, (3,), OUT),
        )
    )
    seen = play(plain, SETUP, [graph], [op(NEW), op(ALLOC), op(COMPUTE)])
    assert seen[2].trouble == Trouble.BAD_OUTPUT and seen[2].bad_node == 1 and seen[2].bad_src == -1


def test_sees_a_buffer_freed_under_work_in_flight(plain: Path) -> None:
    ops = [op(NEW, flags=SCHED), op(ALLOC, graph=0), op(COMPUTE, flags=OpFlag.ASYNC), op(ALLOC, graph=1)]
    seen = play(plain, SETUP, [node(10), node(1000)], ops)
    assert seen[3].trouble == Trouble.FREED_BUSY
    ops.insert(3, op(Kind.SYNC))
    assert not play(plain, SETUP, [node(10), node(1000)], ops)[4].trouble


def test_an_abort_of_ggml_is_told_by_its_own_words(plain: Path) -> None:
    graph = Graph((Tensor(0), Tensor(0, (0,))))
    with Worker(plain) as worker:
        run = worker.run(Trace(SETUP, (graph,), (op(NEW), op(ALLOC))))
    assert run.death is not None and run.death.kind == "abort"
    assert "GGML_ASSERT" in run.death.stderr
