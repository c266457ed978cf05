"""Values for mutants: mostly at an edge of what the trace has already.

Edges are: equal to another, one off, at an alignment, at the largest buffer, at a capacity, at what the graphs need.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..model.records import (
    SIZE_MAX,
    UNLIMITED,
    VALIDATED,
    Context,
    Graph,
    Kind,
    Memory,
    Op,
    Option,
    Setup,
    Trace,
)
from .draw import Draw
from .legal import CONTEXT_KINDS, ORDINARY, POOL_KINDS
from .setups import Frame, device_bytes, near_need
from .simpler import put

_POWERS = (1, 2, 8, 32, 64, 256, 4096)
_GRANULARITIES = (1, 1, 64, 4096, 2 << 20)


def edges(trace: Trace) -> list[int]:
    """The numbers of bytes that a trace has: sizes, alignments, largest buffers, capacities."""
    sizes = {t.size for g in trace.graphs for t in g.tensors}
    types = trace.setup.types
    limits = {n for k in types for n in (k.alignment, k.granularity, k.max_size, k.capacity)}
    limits |= {op.value for op in trace.ops if op.kind in (Kind.CAPACITY, Kind.POOL_ALLOC)}
    return sorted(n for n in sizes | limits if n <= ORDINARY)


def near_edge(draw: Draw, trace: Trace, now: int) -> int:
    """A number of bytes at an edge, or near the one that is there now; at most ORDINARY where that is."""
    kind = draw.choice(trace.setup.types)
    known = edges(trace) or [now]
    how = draw.integer(0, 11)
    value = draw.choice(known)
    if how <= 1:  # equal to another
        pass
    elif how == 2:
        value += draw.choice((-1, 1))
    elif how == 3:  # one off
        value = now + draw.choice((-1, 1))
    elif how == 4:
        value = now + draw.choice((-kind.alignment, kind.alignment, kind.granularity))
    elif how == 5:  # at an alignment
        value = now // kind.alignment * kind.alignment + draw.choice((0, kind.alignment))
    elif how == 6 and kind.max_size <= ORDINARY:  # at the largest buffer
        value = kind.max_size + draw.choice((0, -1, 1, -kind.alignment, kind.alignment))
    elif how == 7 and kind.capacity <= ORDINARY:
        value = kind.capacity + draw.choice((0, -1, 1))
    elif how == 8:
        value = now * 2
    elif how == 9:
        value = now // 2
    elif how == 10:
        value += draw.choice(known)
    else:
        value = draw.choice((0, 1, draw.integer(0, 4096)))
    return min(max(0, value), max(now, ORDINARY))


def new_value(draw: Draw, trace: Trace, op: Op) -> int:
    """Another value of an operation, of the meaning that it has there."""
    if op.kind == Kind.CAPACITY:
        return _capacity(draw, trace, op.other)
    if op.kind == Kind.POOL_ALLOC:
        return near_edge(draw, trace, op.value)
    if op.kind in (Kind.BORROW, Kind.CTX_ATTACH):
        return draw.choice((VALIDATED, VALIDATED ^ 1 << draw.integer(0, 3), draw.integer(0, VALIDATED)))
    if op.kind == Kind.NEW and op.flags:
        graphs = [len(g.tensors) for g in trace.graphs]
        return max(0, draw.choice([0, *graphs]) + draw.choice((-1, 0, 0, 1)))
    if op.kind in CONTEXT_KINDS or op.kind in POOL_KINDS or op.value:
        return max(0, op.value + draw.choice((-8, -1, 1, 8, op.value, -op.value // 2)))
    return op.value


def _capacity(draw: Draw, trace: Trace, device: int) -> int:
    """Near what the graphs need of a device."""
    setup = trace.setup
    if draw.boolean(0.2) or device >= len(setup.types):
        return UNLIMITED
    needs = device_bytes(Frame(setup.types, setup.configs, 1), trace.graphs)
    return min(SIZE_MAX, near_need(draw, needs[device], setup.types[device].granularity))


def new_sizes(draw: Draw, trace: Trace, graph: Graph) -> Graph:
    """One tensor, or all of its size, has another; or another pad."""
    if not graph.tensors:
        return graph
    i = draw.integer(0, len(graph.tensors) - 1)
    old = graph.tensors[i]
    if draw.boolean(0.15) and old.size and not (old.view or old.inplace):
        return Graph(put(graph.tensors, i, replace(old, pad=draw.choice((0, 1, 8, 64, 256)))))
    size = near_edge(draw, trace, old.size)
    together = draw.boolean(0.4)
    return Graph(
        tuple(
            replace(t, size=size, pad=t.pad if size else 0)
            if k == i or (together and t.size == old.size)
            else t
            for k, t in enumerate(graph.tensors)
        )
    )


def new_setup(draw: Draw, trace: Trace, other: Setup) -> Setup:
    """One value of a type, of a context or of all is another; how they share and pools come from `other`."""
    setup, how = trace.setup, draw.integer(0, 9)
    if how == 0:
        return replace(setup, strategy=other.strategy)
    if how == 1:
        return replace(setup, pool=other.pool, pool_range=other.pool_range)
    if how == 2 and setup.pool_range:
        return replace(setup, pool_range=max(1, near_edge(draw, trace, setup.pool_range)))
    if how <= 4 and setup.contexts:
        i = draw.integer(0, len(setup.contexts) - 1)
        return replace(setup, contexts=put(setup.contexts, i, _new_context(draw, setup.contexts[i])))
    t = draw.integer(0, len(setup.types) - 1)
    return replace(setup, types=put(setup.types, t, replace(setup.types[t], **_new_type(draw, trace, t))))


def _new_type(draw: Draw, trace: Trace, t: int) -> dict[str, Any]:
    """The field of type t that changes, and how."""
    kind, how = trace.setup.types[t], draw.integer(0, 7)
    if how == 0:
        return {"alignment": draw.choice((*_POWERS, kind.alignment * 2, max(1, kind.alignment // 2)))}
    if how == 1:
        return {"granularity": draw.choice(_GRANULARITIES)}
    if how <= 4:
        return {"max_size": SIZE_MAX if draw.boolean(0.2) else max(1, near_edge(draw, trace, kind.max_size))}
    return {"capacity": _capacity(draw, trace, t)}


def _new_context(draw: Draw, c: Context) -> Context:
    how = draw.integer(0, 7)
    if how == 0:
        return replace(c, memory=draw.choice(tuple(Memory)))
    if how == 1:
        return replace(c, options=c.options ^ draw.choice(tuple(Option)))
    if how == 2:
        return replace(c, lanes=3 - c.lanes)
    if how == 3:
        return replace(c, cells=max(8, c.cells + 8 * draw.choice((-1, 1, c.cells // 8, -(c.cells // 16)))))
    name = ("window", "generation", "batch", "nodes")[how - 4]
    now = getattr(c, name)
    changes: dict[str, Any] = {name: max(0, now + draw.choice((-1, 1, -8, 8, now, -(now // 2))))}
    return replace(c, **changes)
