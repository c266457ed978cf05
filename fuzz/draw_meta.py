"""Traces on buffer types over several devices (M): owner and borrower that bind and compute in turn."""

from __future__ import annotations

from dataclasses import replace

from ..model.records import Cap, Kind, Op, OpFlag, Setup, Trace
from .draw import Draw, weighted
from .generate import draw_graphs, draw_history
from .setups import draw_meta_frame

#: maps and aliases show in what is computed after the other role did something
_MORE = ((Kind.ALLOC, 4), (Kind.COMPUTE, 8))
_MOVES = ((Kind.COMPUTE, 5), (Kind.ALLOC, 3), (Kind.RESERVE, 3), (Kind.SHRINK, 1), (Kind.FREE, 1))


def draw_meta(draw: Draw, caps: Cap) -> Trace:
    """Mostly an owner and its borrower; plain allocators at times, and where `caps` has no RESIZABLE."""
    trace = _draw(draw, caps)
    return trace if caps & Cap.EXACT or not _mixes(trace.setup) else _by_sched(trace)


def _mixes(setup: Setup) -> bool:
    """Some allocator has a meta type beside other types: a tree computes such graphs by its scheduler only."""
    return any(setup.types[t].meta and len(set(slots)) > 1 for slots in setup.configs for t in slots)


def _by_sched(trace: Trace) -> Trace:
    every = (replace(op, flags=OpFlag.BY_SCHED) if op.kind == Kind.NEW else op for op in trace.ops)
    return replace(trace, ops=tuple(every))  # a plain allocator shares with no scheduler


def _draw(draw: Draw, caps: Cap) -> Trace:
    shares = bool(caps & (Cap.RESIZABLE | Cap.GROUP))
    if shares and draw.boolean(0.3):
        return _in_turn(draw)
    sched = bool(caps & Cap.SCHED) and draw.boolean(0.25)
    pair = shares and draw.boolean(0.85)
    trace = draw_history(draw, draw_meta_frame(draw), caps, pair=pair, sched=sched, more=_MORE, length=24)
    return _by_sched(trace) if sched else trace


def _in_turn(draw: Draw) -> Trace:
    """Two roles with graphs that stay current for long, on devices without limit."""
    frame = draw_meta_frame(draw)
    graphs = draw_graphs(draw, frame)

    def attach() -> list[Op]:
        return [Op(Kind.NEW, 1, len(frame.configs) - 1), Op(Kind.BORROW, 1, 0), *bind(1)]

    def bind(role: int) -> list[Op]:
        graph = draw.integer(0, len(graphs) - 1)
        own[role] = graph
        return [Op(Kind.RESERVE, role, graph=graph), Op(Kind.ALLOC, role, graph=graph)]

    own = [0, 0]  # the graph that each role planned last
    ops = [Op(Kind.NEW), Op(Kind.OWN), *bind(0), *attach()]
    while len(ops) < 24:
        kind, role = weighted(draw, _MOVES), draw.integer(0, 1)
        if kind == Kind.FREE:
            ops += [Op(Kind.FREE, 1), Op(Kind.COMPUTE), *attach()]
        elif kind == Kind.RESERVE:
            ops += bind(role)
            if draw.boolean(0.4):  # where that replaced buffers, the other sees them with its next bind
                ops += [Op(k, 1 - role, graph=own[1 - role]) for k in (Kind.ALLOC, Kind.COMPUTE)]
        elif kind == Kind.SHRINK:  # and both reserve, so that buffers are replaced
            ops += [Op(Kind.SHRINK, role), *bind(role), *bind(1 - role)]
        else:
            ops.append(Op(kind, role, graph=own[role]))
    return Trace(Setup(frame.types, frame.configs), graphs, tuple(ops))
