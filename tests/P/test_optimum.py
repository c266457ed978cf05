"""The least memory that a graph can do with: by hand, against every plan there is, and against the planner's."""

from __future__ import annotations

from itertools import product

import pytest
from gallocheck.fuzz.draw import HypothesisDraw, RandomDraw
from gallocheck.fuzz.graphs import draw_graph
from gallocheck.model import planner
from gallocheck.model.planner import round_up
from gallocheck.model.records import BufferType, Flag, Graph, Place, Tensor
from gallocheck.spec import placement
from gallocheck.spec.optimum import lower_bound, pieces, true_minimum
from hypothesis import given, settings
from hypothesis import strategies as st

LEAF, INPUT, OUTPUT, INPLACE = Flag.LEAF, Flag.LEAF | Flag.INPUT, Flag.OUTPUT, Flag.INPLACE
ONE = (BufferType(16),)


def both(
    *tensors: Tensor, types: tuple[BufferType, ...] = ONE
) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    graph, slots = Graph(tensors), tuple(range(len(types)))
    return lower_bound(types, slots, graph), true_minimum(types, slots, graph, 10)


def test_a_chain_needs_two_at_a_time() -> None:
    chain = [Tensor(32, (), INPUT), *(Tensor(32, (k,)) for k in range(3))]
    assert both(*chain) == ((64,), (64,))


def test_sizes_are_rounded_up() -> None:
    assert both(Tensor(1, (), INPUT), Tensor(17, (0,))) == ((48,), (48,))


def test_in_place_needs_one() -> None:
    assert both(Tensor(32, (), INPUT), Tensor(32, (0,), INPLACE)) == ((32,), (32,))
    kept = Tensor(32, (), INPUT | OUTPUT)  # an output may not be written over
    assert both(kept, Tensor(32, (0,), INPLACE)) == ((64,), (64,))


def test_a_view_keeps_its_source_and_needs_nothing() -> None:
    tensors = [
        Tensor(64, (), INPUT),
        Tensor(32, (0,), view_src=0, view_offs=32),
        Tensor(16),
        Tensor(16, (1, 2)),
    ]
    assert both(*tensors) == ((96,), (96,))


def test_nothing_is_needed_for_nothing() -> None:
    assert both() == ((0,), (0,))
    assert both(Tensor(0, (), LEAF), Tensor(64, (), LEAF | Flag.PREALLOC)) == ((0,), (0,))


def test_types_are_apart() -> None:
    types = (BufferType(1), BufferType(8))
    tensors = [Tensor(5, (), INPUT), Tensor(5, (0,), slot=1), Tensor(3, (1,))]
    assert both(*tensors, types=types) == ((5, 8), (5, 8))


def test_the_minimum_may_be_above_the_largest_live_set() -> None:
    """Never more than 4 bytes are live, but no plan does with 4: a hole of two that are apart is no hole for two."""
    sizes, ends = (2, 2, 1, 1, 1, 2, 2, 1, 3), (1, 3, 5, 4, 5, 6, 7, 8, 8)
    tensors = [Tensor(size, tuple(k for k in range(i) if ends[k] == i)) for i, size in enumerate(sizes)]
    assert both(*tensors, types=(BufferType(1),)) == ((4,), (5,))


def tiny(draw: RandomDraw) -> Graph:
    """Up to 5 tensors of 1 or 2 bytes; sources, views, outputs and in place at random."""
    out: list[Tensor] = []
    for i in range(draw.integer(2, 5)):
        src = tuple(sorted({draw.integer(0, i - 1) for _ in range(draw.integer(0, 2))})) if i else ()
        roots = [s for s in src if not out[s].view]
        if roots and draw.boolean(0.2):
            out.append(Tensor(out[roots[0]].size, (roots[0],), view_src=roots[0]))
            continue
        flags = INPLACE if src and draw.boolean(0.4) else INPUT if not src and draw.boolean(0.5) else Flag(0)
        out.append(Tensor(draw.integer(1, 2), src, flags | (OUTPUT if draw.boolean(0.15) else Flag(0))))
    return Graph(tuple(out))


def brute(graph: Graph, most: int) -> int:
    """The smallest peak of all plans with offsets up to `most`, judged by placement itself."""
    kind = BufferType(1)
    alive = [p.tensor for p in pieces((kind,), (0,), graph, 0)]
    best = most + 1
    for offsets in product(range(most), repeat=len(alive)):
        at = dict(zip(alive, offsets, strict=True))
        top = max((at[i] + graph.tensors[i].alloc_size for i in alive), default=0)
        if top >= best:
            continue
        places = tuple(
            Place(0, 0, at[t.view_src] + t.view_offs if t.view else at.get(i, 0))
            for i, t in enumerate(graph.tensors)
        )
        if not list(
            placement.conflicts(placement.Seen((kind,), (0,), graph, places, ((most,),), ((most,),)))
        ):
            best = top
    return best


@pytest.mark.parametrize("seed", range(40))
def test_against_every_plan(seed: int) -> None:
    graph = tiny(RandomDraw(seed))
    most = sum(t.size for t in graph.tensors if not t.view)
    assert true_minimum((BufferType(1),), (0,), graph, 10) == (brute(graph, most),)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_no_plan_is_below_the_minimum(data: st.DataObject) -> None:
    draw = HypothesisDraw(data.draw)
    types = (
        BufferType(draw.choice((1, 8, 32))),
        BufferType(draw.choice((1, 16)), draw.choice((2**64 - 1, 256))),
    )
    graph = draw_graph(draw, types, 64, 2, 10)
    plan = planner.plan(types, (0, 1), graph)
    assert plan is not None
    low, best = lower_bound(types, (0, 1), graph), true_minimum(types, (0, 1), graph, 1.0)
    peak = [sum(chunks) for chunks in plan.need]
    assert all(a <= c for a, c in zip(low, peak, strict=True))
    if best is not None:
        assert all(a <= b <= c for a, b, c in zip(low, best, peak, strict=True))
        assert all(b == round_up(b, t.alignment) for b, t in zip(best, types, strict=True))
