"""Allocators beside contexts: those that no context drives, and what a context lets nobody else do (W).

A context's lanes are allocators of fixed numbers. Another one may have the number that a closed context
would need; the numbers that no context needs are free for all.
"""

from __future__ import annotations

from ..model.records import MAX_ALLOCS, MAX_LANES, Kind, Op, OpFlag, Setup
from .draw import Draw

_NO_FLAG = OpFlag(0)
#: what only its context may do with an allocator
_FOREIGN = (
    Kind.FREE, Kind.OWN, Kind.RESERVE, Kind.MEASURE, Kind.ALLOC, Kind.COMPUTE, Kind.SHRINK, Kind.REMAKE, Kind.SYNC,
    Kind.RESET, Kind.CAPTURE_BEGIN, Kind.CAPTURE_END, Kind.LAUNCH, Kind.DROP,
)  # fmt: skip


def draw_beside(draw: Draw, setup: Setup, graphs: int, meanwhile: list[Op]) -> list[Op]:
    """An allocator comes, works and mostly goes; `meanwhile`: what contexts and slots do in that time.
    `graphs`: how many there are."""
    lanes = [c * MAX_LANES + lane for c, made in enumerate(setup.contexts) for lane in range(made.lanes)]
    others = [n for n in range(MAX_ALLOCS) if n not in lanes]
    n = draw.choice(others) if others and draw.boolean(0.7) else draw.choice(lanes)
    foreign = Op(draw.choice(_FOREIGN), draw.choice(lanes), graph=draw.integer(0, graphs - 1))
    how = draw.integer(0, 3)
    if how == 0:
        return [foreign]
    sched = draw.boolean(0.5)
    ops = [Op(Kind.NEW, n, flags=OpFlag.BY_SCHED if sched else _NO_FLAG)]
    if how == 1:
        ops += [Op(Kind.BORROW, n, draw.choice(lanes)), Op(Kind.LOOK, n)]
    else:
        later = OpFlag.ASYNC if sched and draw.boolean(0.5) else _NO_FLAG
        ops += [Op(Kind.RESERVE, n), Op(Kind.ALLOC, n), Op(Kind.COMPUTE, n, flags=later)]
    if how == 3:
        ops += [Op(Kind.SYNC, n), Op(Kind.CAPTURE_BEGIN, n), *meanwhile, foreign, Op(Kind.CAPTURE_END, n)]
    if draw.boolean(0.3):  # while its number is taken
        ops.append(Op(Kind.CTX_OPEN, n // MAX_LANES))
    ops += [*meanwhile, Op(Kind.SYNC, n)]
    if draw.boolean(0.8):
        ops.append(Op(Kind.FREE, n))
    return ops
