"""Small graphs and set-ups for the tests of the ggml subject."""

from __future__ import annotations

from gallocheck.model.records import BufferType, Flag, Graph, Kind, Op, OpFlag, Setup, Tensor

IN, OUT, LEAF = Flag.LEAF | Flag.INPUT, Flag.OUTPUT, Flag.LEAF
SCHED = OpFlag.BY_SCHED


def mixed(unit: int) -> Graph:
    """Inputs, a weight, views, reuse in place, another layout, padding, outputs, on two slots."""
    return Graph(
        (
            Tensor(unit, flags=IN),
            Tensor(2 * unit, flags=LEAF | Flag.PREALLOC, slot=1),
            Tensor(unit, (0, 1)),
            Tensor(unit, (2,), Flag.INPLACE),
            Tensor(unit // 2, (3,), view_src=3, view_offs=unit // 4),
            Tensor(3 * unit, (4, 0), slot=1, pad=40),
            Tensor(unit, (3,), Flag.INPLACE | Flag.LAYOUT),
            Tensor(7, flags=LEAF, slot=1),
            Tensor(2 * unit, (5, 6, 7), OUT),
            Tensor(unit, (1, 6), OUT, slot=1),
        )
    )


def tail_of(size: int) -> Graph:
    """One input, one output."""
    return Graph((Tensor(size, flags=IN), Tensor(size, (0,), OUT)))


def node(size: int) -> Graph:
    return Graph((Tensor(size),))


SETUP = Setup((BufferType(32, granularity=256), BufferType(64)), ((0,), (0, 1), (0, 0), (0, 1, 0)))


def op(kind: Kind, alloc: int = 0, **fields: int | OpFlag) -> Op:
    return Op(kind, alloc, **fields)  # type: ignore[arg-type]
