"""Small traces of what is really wrong in the pinned release, one a kind."""

from __future__ import annotations

from dataclasses import dataclass

from gallocheck.model.records import BufferType, Flag, Graph, Kind, Op, OpFlag, Setup, Tensor, Trace

LEAF, OUT, WEIGHT = Flag.LEAF, Flag.OUTPUT, Flag.LEAF | Flag.PREALLOC
ONE = Setup((BufferType(),), ((0,),))
TWICE = Setup((BufferType(),), ((0, 0),))
FULL = Setup((BufferType(capacity=0),), ((0,),))
NEW, BY_SCHED = Op(Kind.NEW), Op(Kind.NEW, flags=OpFlag.BY_SCHED)


def node(size: int) -> Graph:
    return Graph((Tensor(size),))


def chain(*sources: tuple[int, ...]) -> Graph:
    """Nodes of 64 bytes that read what is listed."""
    return Graph(tuple(Tensor(64, src) for src in sources))


@dataclass(frozen=True)
class Case:
    """A trace, the clause that it breaks, and how the program ends ('FAILED' or a word for a signal)."""

    name: str
    clause: str
    trace: Trace
    ends: str


CASES = (
    Case(
        "alloc after a failed reserve",
        "G2",
        Trace(FULL, (node(64),), (NEW, Op(Kind.RESERVE), Op(Kind.ALLOC))),
        "exit 139",
    ),
    Case(
        "a measure frees buffers",
        "P12",
        Trace(ONE, (node(64), node(128)), (NEW, Op(Kind.RESERVE), Op(Kind.MEASURE, graph=1))),
        "FAILED: no buffer is freed",
    ),
    Case(
        "alloc where there was only a measure",
        "P12",
        Trace(ONE, (node(64),), (NEW, Op(Kind.MEASURE), Op(Kind.ALLOC))),
        "exit 139",
    ),
    Case(
        "measure of a type that is listed twice",
        "G3",
        Trace(TWICE, (node(64),), (NEW, Op(Kind.MEASURE))),
        "FAILED: 0 bytes are measured for entry 1",
    ),
    Case(
        "as many tensors, other lifetimes",
        "G4",
        Trace(
            ONE,
            (chain((), (0,), (1,), (1, 2)), chain((), (0,), (1,), (0, 2))),
            (NEW, Op(Kind.RESERVE), Op(Kind.ALLOC, graph=1)),
        ),
        "FAILED: n2 (64 bytes at T0 buffer 0 offset 0) overlaps n0",
    ),
    Case(
        "leafs are not compared",
        "G4",
        Trace(
            ONE,
            (Graph((Tensor(64, flags=WEIGHT),)), Graph((Tensor(64, flags=LEAF),))),
            (NEW, Op(Kind.RESERVE), Op(Kind.ALLOC, graph=1)),
        ),
        "exit 139",
    ),
    Case(
        "what an output shows is freed",
        "P5",
        Trace(
            ONE,
            (
                Graph(
                    (Tensor(64), Tensor(64, (0,), OUT, view_src=0), Tensor(0, (1,)), Tensor(64))
                ),
            ),
            (NEW, Op(Kind.RESERVE)),
        ),
        "FAILED: n3 (64 bytes at T0 buffer 0 offset 0) overlaps n0",
    ),
    Case(
        "a size that wraps round",
        "P13",
        Trace(
            Setup((BufferType(256, capacity=256),), ((0,),)),
            (Graph((Tensor(1), Tensor(2**64 - 255))),),
            (NEW, Op(Kind.RESERVE)),
        ),
        "FAILED: n1 needs 18446744073709551361 bytes",
    ),
    Case(
        "a zero-sized tensor that is read",
        "P13",
        Trace(ONE, (Graph((Tensor(0), Tensor(0, (0,)))),), (NEW, Op(Kind.ALLOC))),
        "exit 134",
    ),
    Case(
        "a failed alloc through the scheduler",
        "C2",
        Trace(FULL, (node(64),), (BY_SCHED, Op(Kind.ALLOC))),
        "exit 139",
    ),
    Case(
        "buffers freed under work in flight",
        "C1",
        Trace(
            ONE,
            (node(64), node(128)),
            (BY_SCHED, Op(Kind.ALLOC), Op(Kind.COMPUTE, flags=OpFlag.ASYNC), Op(Kind.ALLOC, graph=1)),
        ),
        "FAILED: no buffer of T0 is freed while work in flight uses it",
    ),
)  # fmt: skip
