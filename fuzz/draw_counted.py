"""Traces of allocators that share by reference count (S): pairs' histories under another strategy.

Swarm weights, failures, near-limit capacities and wrong orders are those of pairs; what is added is what
validates sharing, who is first with the largest graph (then all fits, and nobody leaves), and that few go.
"""

from __future__ import annotations

from dataclasses import replace

from ..model.planner import plan
from ..model.records import UNLIMITED, VALIDATED, Cap, Kind, Op, Setup, Strategy, Trace
from .draw import Draw
from .generate import draw_history, draw_trace
from .setups import draw_meta_frame
from .variations import draw_validated

_NOT_HERE = (Kind.SHRINK, Kind.REMAKE)  #: misuse under these strategies
_BINDS = (Kind.RESERVE, Kind.ALLOC)


def draw_counted(draw: Draw, caps: Cap) -> Trace:
    """A legal trace of the strategy COUNTED, at times of APART."""
    trace = _as_pair(draw, (caps | Cap.RESIZABLE) & ~Cap.REMAKE)
    stays, bits = draw.boolean(0.5), draw.boolean(0.25)
    ops: list[Op] = []
    for op in trace.ops:
        if op.kind in _NOT_HERE and not draw.boolean(0.05):
            continue
        if op.kind == Kind.FREE and stays:
            continue
        if op.kind == Kind.BORROW:
            op = replace(op, value=draw_validated(draw, bits))
        ops.append(op)
        if op.kind == Kind.BORROW and op.value != VALIDATED and draw.boolean(0.5):  # and then it is
            op = replace(op, value=VALIDATED)
            ops.append(op)
        if op.kind == Kind.BORROW and op.value == VALIDATED:
            ops += _first(draw, trace, op)
    strategy = Strategy.APART if draw.boolean(0.06) else Strategy.COUNTED
    setup = replace(trace.setup, strategy=strategy)
    if draw.boolean(0.3) and not any(kind.meta for kind in setup.types):
        setup = _tight(draw, setup, trace)
    return replace(trace, setup=setup, ops=tuple(ops))


def _as_pair(draw: Draw, caps: Cap) -> Trace:
    """A pair's history, at times on buffer types over several devices."""
    if caps & Cap.META and draw.boolean(0.1):
        return draw_history(draw, draw_meta_frame(draw), caps, pair=True, sched=False, length=20)
    return draw_trace(draw, "pair", caps)


def _first(draw: Draw, trace: Trace, op: Op) -> list[Op]:
    """Who reserves first: with the largest graph, and all fits; with the smallest, and the other leaves."""
    one, other = draw.choice(((op.alloc, op.other), (op.other, op.alloc)))
    largest, smallest = (f(range(len(trace.graphs)), key=lambda g: sum(_needs(trace, g))) for f in (max, min))
    how = draw.integer(0, 5)
    if how == 0:
        return []
    if how == 1:  # the first time they cannot be made
        ops = [Op(Kind.RESERVE, one, graph=largest, fail_nth=1)]
        return [*ops, *(Op(Kind.RESERVE, n, graph=draw.choice((largest, smallest))) for n in (other, one))]
    if how < 4:
        return [Op(Kind.RESERVE, one, graph=largest)]
    ops = [Op(kind, n, graph=g) for n, g in ((one, smallest), (other, largest)) for kind in _BINDS]
    return [*ops, Op(Kind.COMPUTE, other), Op(Kind.COMPUTE, one)]


def _needs(trace: Trace, graph: int) -> list[int]:
    """Bytes by type that the graph needs on config 0, as the devices round."""
    kinds = trace.setup.types
    planned = plan(kinds, trace.setup.configs[0], trace.graphs[graph])
    rows = planned.need if planned else ((),) * len(kinds)
    return [
        sum(-(-c // k.granularity) * k.granularity for c in row) for k, row in zip(kinds, rows, strict=True)
    ]


def _largest(trace: Trace) -> int:
    return max(range(len(trace.graphs)), key=lambda g: sum(_needs(trace, g)))


def _tight(draw: Draw, setup: Setup, trace: Trace) -> Setup:
    """S7: devices that have what one needs, and less than two need."""
    needs = _needs(trace, _largest(trace))
    types = tuple(
        replace(k, capacity=n + n * draw.integer(0, 9) // 10 if n else UNLIMITED)
        for k, n in zip(setup.types, needs, strict=True)
    )
    return replace(setup, types=types)
