"""Traces to begin with, by hand, where what a clause is about is rarely drawn: owner and borrower, both acting."""

from __future__ import annotations

from ...model.records import VALIDATED, BufferType, Graph, Kind, Op, Setup, Strategy, Tensor, Trace

SMALL, LARGE = 0, 1  #: graphs of 1 and 2 bytes
PAIR = (Op(Kind.NEW), Op(Kind.OWN), Op(Kind.NEW, 1), Op(Kind.BORROW, 1))
META = (BufferType(), BufferType(meta=1))


def pair(
    *ops: Op, types: tuple[BufferType, ...] = (BufferType(),), strategy: Strategy = Strategy.PAIR
) -> Trace:
    """Owner 0 and borrower 1 on the last of the types, then `ops`."""
    graphs = (Graph((Tensor(1),)), Graph((Tensor(2),)))
    joined = PAIR if strategy == Strategy.PAIR else (*PAIR[:3], Op(Kind.BORROW, 1, value=VALIDATED))
    return Trace(Setup(types, ((len(types) - 1,),), strategy), graphs, (*joined, *ops))


def reserve(alloc: int, graph: int, fail_nth: int = 0) -> Op:
    return Op(Kind.RESERVE, alloc, graph=graph, fail_nth=fail_nth)


def alloc(alloc: int, graph: int) -> Op:
    return Op(Kind.ALLOC, alloc, graph=graph)


COMPUTE, REMAKE, SHRINK = Op(Kind.COMPUTE), Op(Kind.REMAKE), Op(Kind.SHRINK)
FULL = (BufferType(capacity=1),)
SEEDS: dict[str, Trace] = {
    "R6": pair(reserve(0, LARGE), SHRINK, reserve(0, SMALL), reserve(1, SMALL)),
    "R7": pair(reserve(0, SMALL), reserve(1, LARGE)),
    "R9": pair(reserve(0, SMALL), reserve(1, LARGE, fail_nth=1)),
    "R10": pair(reserve(1, LARGE), reserve(0, SMALL), reserve(1, SMALL), types=FULL),
    "R12": pair(alloc(0, SMALL), reserve(1, LARGE), COMPUTE),
    "R14": pair(reserve(0, SMALL), REMAKE, reserve(1, SMALL)),
    "S2": pair(reserve(0, SMALL), reserve(1, LARGE), strategy=Strategy.COUNTED),
    "S7": pair(reserve(0, SMALL), reserve(1, SMALL), types=FULL, strategy=Strategy.COUNTED),
    "M2": pair(alloc(0, SMALL), alloc(1, SMALL), COMPUTE, types=META),
    "M3": pair(alloc(1, SMALL), reserve(0, LARGE), alloc(1, SMALL), Op(Kind.COMPUTE, 1), types=META),
}
