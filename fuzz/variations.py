"""The same history of schedulers under another strategy, or on devices with pools."""

from __future__ import annotations

from dataclasses import replace

from ..model.records import VALIDATED, Kind, Op, PoolKind, Shared, Strategy, Trace
from .draw import Draw


def counted(draw: Draw, trace: Trace) -> Trace:
    """The same history of schedulers whose allocators share by reference count (S).

    A larger scheduler lets go of what it has, also where it then gets nothing: the largest graph comes
    after smaller ones, and fails at times.
    """
    often, ops = draw.boolean(0.4), []
    most = max(range(len(trace.graphs)), key=lambda g: len(trace.graphs[g].tensors))
    for op in trace.ops:
        if op.kind == Kind.BORROW:
            op = replace(op, value=draw_validated(draw, often))
        ops.append(op)
        if op.kind == Kind.BORROW and op.value != VALIDATED and draw.boolean(0.5):  # and then it is
            ops.append(replace(op, value=VALIDATED))
        if op.kind == Kind.RESERVE and draw.boolean(0.15):
            ops.append(Op(Kind.RESERVE, op.alloc, graph=most, fail_nth=draw.choice((1, 1, 0))))
    return replace(trace, setup=replace(trace.setup, strategy=Strategy.COUNTED), ops=tuple(ops))


def draw_validated(draw: Draw, often: bool) -> int:
    """What is so of the two that share (S4): mostly all, else one or several bits missing."""
    if not draw.boolean(0.5 if often else 0.08):
        return VALIDATED
    if draw.boolean(0.5):
        return VALIDATED & ~draw.choice(tuple(Shared))
    return draw.integer(0, VALIDATED)


def pooled(draw: Draw, trace: Trace) -> Trace:
    """The same history on devices with pools, whose range may be too small for a computation's scratch (C2)."""
    pool = draw.choice((PoolKind.VMM_POOL, PoolKind.LEGACY_POOL))
    unit = max(4096, *(t.granularity for t in trace.setup.types))
    room = unit * draw.choice((1, 1, 2, 16, 256)) if draw.boolean(0.7) else draw.choice((1, 100, 1000))
    ops: list[Op] = []
    for op in trace.ops:
        ops.append(op)
        if op.kind == Kind.RESERVE and draw.boolean(0.4):  # there is room, but no scratch
            fails = replace(op, kind=Kind.COMPUTE, fail_nth=1, fail_types=0)
            others = [g for g in range(len(trace.graphs)) if g != op.graph]
            ops += [fails, Op(Kind.COMPUTE, op.alloc, graph=draw.choice(others or [op.graph]))]
    return replace(trace, setup=replace(trace.setup, pool=pool, pool_range=room), ops=tuple(ops))
