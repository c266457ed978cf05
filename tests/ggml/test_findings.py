"""Defects of the pinned tree, each by its smallest sequence; the overlay has a few of them too.

The clause each breaks is the one it is listed under in docs/findings.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from gallocheck.model.records import BufferType, Flag, Graph, Kind, Op, OpFlag, Setup, Tensor, Trace
from gallocheck.native.packet import Run
from gallocheck.native.worker import Worker

from .cases import IN, LEAF, OUT, SCHED, node, op

NEW, RESERVE, ALLOC, COMPUTE, MEASURE = Kind.NEW, Kind.RESERVE, Kind.ALLOC, Kind.COMPUTE, Kind.MEASURE
BY_SCHED = op(NEW, flags=SCHED)


class Case(NamedTuple):
    """`shows`: what a run shows when the defect is there: how it died, a trouble, or a figure."""

    name: str
    clause: str
    shows: str
    graphs: tuple[Graph, ...]
    ops: tuple[Op, ...]
    slots: tuple[int, ...] = (0,)
    mended: bool = True
    meta: int = 0  # the devices of the last type, where that is a meta type


def chain(*sources: int, flags: int = 0) -> Graph:
    """Nodes of 64 bytes, each reading the tensor named; the last is an output."""
    nodes = [Tensor(64, flags=OUT & flags)] + [Tensor(64, (s,)) for s in sources[:-1]]
    return Graph((*nodes, Tensor(64, (sources[-1],), OUT)))


def scattered() -> Graph:
    """300 outputs with a hole between each two."""
    pairs = [t for _ in range(300) for t in (Tensor(32, flags=OUT), Tensor(32))]
    return Graph((*pairs, *(Tensor(0, tuple(range(i, i + 8, 2))) for i in range(1, 600, 8))))


def many_inputs() -> Graph:
    """29 nodes with an input from another device each, then one with two."""
    readers = [Tensor(8, (i,), slot=1) for i in range(29)]
    return Graph((*(Tensor(8, flags=IN) for _ in range(31)), *readers, Tensor(8, (29, 30), slot=1)))


OUTPUT_VIEW = Graph((Tensor(64), Tensor(64, (0,), OUT, view_src=0), Tensor(64, (1,)), Tensor(64, (2,), OUT)))
READ_INPUT = Graph((Tensor(100, flags=IN), Tensor(100, (0,), OUT)))
ON_TWO = tuple(Graph((Tensor(s), Tensor(s, slot=1))) for s in (100, 1000))
SMALL_LARGE = (node(100), node(1000))
ZERO_READ = Graph((Tensor(0), Tensor(0, (0,))))
WRAPPED = Graph((Tensor(64), Tensor(2**64 - 31)))
IN_FLIGHT = op(COMPUTE, flags=OpFlag.ASYNC)

WEIGHT_VIEW = Graph(
    (Tensor(64, flags=LEAF | Flag.PREALLOC), Tensor(64, (0,), view_src=0), Tensor(64, (1,), OUT))
)
OTHERS_VIEW = Graph((Tensor(8), Tensor(8, slot=1), Tensor(8, (0,), view_src=0), Tensor(8, (1,), OUT, slot=1)))


def crossed(a: int, b: int) -> Graph:
    """Two results on one device that another reads; a and b say what they are made from."""
    return Graph(
        (Tensor(64), Tensor(64), Tensor(64, (a,)), Tensor(64, (b,)), Tensor(64, (2, 3), OUT, slot=1))
    )


PIPELINE = tuple(
    o for g in (0, 0, 0, 0, 1) for o in (op(ALLOC, graph=g), op(COMPUTE, graph=g, flags=OpFlag.ASYNC))
)

CASES = (
    Case("alloc after a failed reserve", "G2", "fault", (node(100),),
         (op(NEW), op(RESERVE, fail_types=1), op(ALLOC))),
    Case("type listed twice, failed reserve", "G2", "fault", SMALL_LARGE,
         (op(NEW), op(RESERVE), op(RESERVE, graph=1, fail_types=1)), (0, 0)),
    Case("alloc after a measure", "P12", "fault", (node(100),), (op(NEW), op(MEASURE), op(ALLOC))),
    Case("measure frees buffers", "P12", "used 0", SMALL_LARGE, (op(NEW), op(ALLOC), op(MEASURE, graph=1))),
    Case("measure replaces the plan", "P12", "refused", (Graph((Tensor(100), Tensor(100))), node(50)),
         (op(NEW), op(RESERVE), op(MEASURE, graph=1), op(ALLOC)), (0, 1)),
    Case("measure counts a type twice", "G3", "measured 128 128", (node(100),),
         (op(NEW), op(MEASURE)), (0, 0)),
    Case("other sources, old plan", "G4", "BAD_SOURCE", (chain(0, 1, 2), chain(0, 1, 0)),
         (op(NEW), op(RESERVE), op(ALLOC, graph=1), op(COMPUTE))),
    Case("new output flag, old plan", "G4", "BAD_OUTPUT", (chain(0, 1), chain(0, 1, flags=OUT)),
         (op(NEW), op(RESERVE), op(ALLOC, graph=1), op(COMPUTE))),
    Case("larger leaf that nobody reads, old plan", "G4", "abort",
         (Graph((Tensor(64, flags=LEAF),)), Graph((Tensor(640, flags=LEAF),))),
         (op(NEW), op(RESERVE), op(ALLOC, graph=1))),
    Case("view is an output", "P5", "BAD_OUTPUT", (OUTPUT_VIEW,), (op(NEW), op(ALLOC), op(COMPUTE))),
    Case("view is an output, scheduler", "P5", "BAD_OUTPUT", (OUTPUT_VIEW,),
         (BY_SCHED, op(ALLOC), op(COMPUTE))),
    Case("empty tensor that is read", "P13", "abort", (ZERO_READ,), (op(NEW), op(ALLOC))),
    Case("empty tensor, no chunk yet", "P13", "abort", (Graph(()), node(0)),
         (op(NEW), op(RESERVE), op(ALLOC, graph=1))),
    Case("size wraps to nothing", "P13", "abort", (node(2**64 - 31),), (op(NEW), op(RESERVE), op(ALLOC))),
    Case("size wraps, bound", "P13", "fault", (WRAPPED,), (op(NEW), op(RESERVE), op(ALLOC), op(COMPUTE))),
    Case("256 free blocks", "P13", "abort", (scattered(),), (op(NEW), op(RESERVE)), mended=False),
    Case("scheduler: alloc fails", "C2", "fault", (node(100),), (BY_SCHED, op(ALLOC, fail_types=1))),
    Case("scheduler: alloc after a failed reserve", "C2", "fault", (node(100),),
         (BY_SCHED, op(RESERVE, fail_types=1), op(ALLOC))),
    Case("scheduler: measure forgets assignments", "P12", "measured 0 256", (READ_INPUT,),
         (BY_SCHED, op(MEASURE)), (0, 1)),
    Case("scheduler: measure of a leaf that nobody reads", "P12", "abort", (Graph((Tensor(8, flags=LEAF),)),),
         (BY_SCHED, op(MEASURE))),
    Case("scheduler of one backend frees under work in flight", "C1", "FREED_BUSY", SMALL_LARGE,
         (BY_SCHED, op(ALLOC), IN_FLIGHT, op(ALLOC, graph=1))),
    Case("scheduler: 31 inputs of a split", "C2", "abort", (many_inputs(),), (BY_SCHED, op(RESERVE)), (0, 1),
         mended=False),
    Case("scheduler: five computes in flight", "P1", "BAD_SOURCE", (crossed(0, 1), crossed(1, 0)),
         (BY_SCHED, op(RESERVE), *PIPELINE, op(Kind.SYNC)), (0, 1, 2)),
    Case("meta: a part cannot be had", "M1", "abort", (node(100),), (op(NEW), op(RESERVE, fail_types=2)), (2,), meta=3),
    Case("meta: empty tensor that is read", "P13", "abort", (Graph((Tensor(0), Tensor(8, (0,)))),),
         (op(NEW), op(ALLOC)), (2,), mended=False, meta=3),
    Case("meta: empty tensor", "P13", "abort", (node(0),), (op(NEW), op(ALLOC), op(COMPUTE)), (2,), mended=False, meta=3),
    Case("meta: view of a weight, two allocators", "M2", "abort", (WEIGHT_VIEW,),
         (op(NEW), op(ALLOC), op(COMPUTE), op(NEW, 1), op(ALLOC, 1), op(COMPUTE)), (2,), mended=False, meta=3),
    Case("meta: view of a weight, allocated again", "G2", "abort", (WEIGHT_VIEW,), (op(NEW), *[op(ALLOC)] * 70), (2,),
         mended=False, meta=3),
    Case("meta: another backend's view in its split", "C2", "abort", (OTHERS_VIEW,),
         (BY_SCHED, op(ALLOC), op(COMPUTE)), (0, 2), mended=False, meta=3),
)  # fmt: skip


def seen(run: Run) -> Iterator[str]:
    """The words for what a run shows at its end."""
    if run.death is not None:
        yield run.death.kind
        return
    last = run.steps[-1].obs
    yield f"used {sum(last.used)}"
    yield "measured " + " ".join(map(str, last.measured[:2]))
    if last.status == 0:
        yield "refused"
    if last.trouble:
        yield str(last.trouble.name)


def types_of(case: Case, kind: BufferType) -> tuple[BufferType, ...]:
    """Devices all alike, and at times a meta type over some of them."""
    simple = (kind,) * (max(case.slots) + (0 if case.meta else 1))
    return (*simple, replace(kind, meta=case.meta)) if case.meta else simple


def run(worker: Worker, case: Case) -> set[str]:
    setup = Setup(types_of(case, BufferType(32)), (case.slots,))
    return set(seen(worker.run(Trace(setup, case.graphs, case.ops))))


@pytest.fixture(scope="module")
def real(plain: Path) -> Iterator[Worker]:
    with Worker(plain) as worker:
        yield worker


@pytest.fixture(scope="module")
def mended(resizable: Path) -> Iterator[Worker]:
    with Worker(resizable) as worker:
        yield worker


@pytest.mark.parametrize("case", CASES, ids=[c.name for c in CASES])
def test_pinned_tree_has_it(real: Worker, case: Case) -> None:
    assert case.shows in run(real, case)


@pytest.mark.parametrize("case", CASES, ids=[c.name for c in CASES])
def test_overlay_has_it_not(mended: Worker, case: Case) -> None:
    assert (case.shows in run(mended, case)) != case.mended
