"""What the reference planner's plan of every graph must satisfy, on types of every sort."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gallocheck.fuzz.fresh import see
from gallocheck.fuzz.strategies import graphs_for, traces
from gallocheck.model.planner import LIMIT, Plan, Planning, plan, round_up
from gallocheck.model.records import MAX_CHUNKS, SIZE_MAX, BufferType, Graph, Setup, Trace
from gallocheck.spec.placement import judge
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

MANY = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
TYPES = st.builds(
    BufferType,
    alignment=st.sampled_from((1, 2, 32, 64)),
    max_size=st.sampled_from((SIZE_MAX, 1, 64, 100, 333, 1024)),
    granularity=st.sampled_from((1, 64)),
)
LISTS = {1: ((0,), (0, 0)), 2: ((0, 1), (0, 1, 0), (0, 0, 1)), 3: ((0, 1, 2), (0, 1, 2, 1))}


@st.composite
def cases(draw: Callable[[Any], Any]) -> tuple[Setup, Graph]:
    """A setup of 1 to 3 types with one config, and a graph for it."""
    types = tuple(draw(st.lists(TYPES, min_size=1, max_size=3)))
    slots = draw(st.sampled_from(LISTS[len(types)]))
    return Setup(types, (slots,)), draw(graphs_for(types, 64, len(slots)))


def planned(setup: Setup, graph: Graph) -> Plan | None:
    """Not from the cache."""
    return plan.__wrapped__(setup.types, setup.configs[0], graph)


def ends(setup: Setup, graph: Graph, made: Plan) -> dict[tuple[int, int], list[int]]:
    """By type and chunk: the rounded ends of what is placed there. Tensors of no bytes end at 0."""
    out: dict[tuple[int, int], list[int]] = {}
    for t, place in zip(graph.tensors, made.places, strict=True):
        if not t.view and not t.prealloc:
            size = round_up(t.alloc_size, setup.types[place.type].alignment)
            out.setdefault((place.type, place.chunk), []).append(place.offset + size)
    return out


@MANY
@given(cases())
def test_the_judge_finds_nothing_in_it(case: tuple[Setup, Graph]) -> None:
    setup, graph = case
    made = planned(setup, graph)
    assert made is not None, "sizes are small: there is always a plan"
    assert judge(see(setup, 0, graph, made.places, made.need)) == []


@MANY
@given(cases())
def test_the_same_graph_gives_the_same_plan(case: tuple[Setup, Graph]) -> None:
    setup, graph = case
    again = Graph(tuple(replace(t) for t in graph.tensors))
    first = Planning(setup.types, setup.configs[0], graph).run()
    assert Planning(setup.types, setup.configs[0], again).run() == first
    assert plan(setup.types, setup.configs[0], again) == first


@MANY
@given(cases())
def test_a_requirement_is_the_highest_end(case: tuple[Setup, Graph]) -> None:
    setup, graph = case
    made = planned(setup, graph)
    assert made is not None
    tops = {key: max(found) for key, found in ends(setup, graph, made).items()}
    have = {(t, c): size for t, chunks in enumerate(made.need) for c, size in enumerate(chunks)}
    assert have == tops


@MANY
@given(cases())
def test_chunks_keep_to_their_limit(case: tuple[Setup, Graph]) -> None:
    setup, graph = case
    made = planned(setup, graph)
    assert made is not None
    for t, chunks in enumerate(made.need):
        assert len(chunks) <= MAX_CHUNKS
        for c, size in enumerate(chunks[: MAX_CHUNKS - 1]):
            alone = [
                round_up(x.alloc_size, setup.types[t].alignment)
                for x, p in zip(graph.tensors, made.places, strict=True)
                if (p.type, p.chunk) == (t, c) and not x.view
            ]
            assert size <= max(setup.types[t].max_size, *alone)


@MANY
@given(traces("huge"))
def test_sizes_near_the_largest_integer_fail_or_are_planned_whole(trace: Trace) -> None:
    for graph in trace.graphs:
        made = planned(trace.setup, graph)
        sizes = [t.alloc_size for t in graph.tensors if not t.view and not t.prealloc]
        if made is None:
            assert max(sizes) > 2**40  # only such sizes are refused
            continue
        assert all(sum(chunks) <= LIMIT for chunks in made.need)
        for (kind, chunk), found in ends(trace.setup, graph, made).items():
            assert max(found) == made.need[kind][chunk] <= LIMIT
        assert judge(see(trace.setup, 0, graph, made.places, made.need)) == []


@MANY
@given(traces("huge"), st.integers(LIMIT + 1, SIZE_MAX))
def test_a_size_above_the_limit_is_always_refused(trace: Trace, size: int) -> None:
    graph = trace.graphs[0]
    at = next((i for i, t in enumerate(graph.tensors) if not t.view and not t.prealloc), None)
    if at is not None:
        grown = (*graph.tensors[:at], replace(graph.tensors[at], size=size, pad=0), *graph.tensors[at + 1 :])
        assert planned(trace.setup, Graph(grown)) is None
