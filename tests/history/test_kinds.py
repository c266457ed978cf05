"""What a fault was missed for at first is drawn now, and seen."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

import pytest
from gallocheck.fuzz.fresh import FreshPlan, astray
from gallocheck.fuzz.generate import RandomDraw
from gallocheck.fuzz.graphs import draw_graph, moved
from gallocheck.fuzz.profiles import SOURCES
from gallocheck.model.records import BufferType, Cap, Flag, Graph, Kind, OpFlag, Place, Tensor

TYPES = (BufferType(alignment=64), BufferType(alignment=64))


def graphs(n: int, slots: int = 2) -> list[Graph]:
    return [draw_graph(RandomDraw(random.Random(k)), TYPES, 64, slots) for k in range(n)]


def given_elsewhere(graph: Graph) -> bool:
    """One place is given more than 30 tensors of another."""
    near = {s for t in graph.tensors if not t.leaf and t.slot % 2 == 0 for s in t.src}
    return sum(graph.tensors[s].slot % 2 for s in near) > 30


def reuse_across_types(graph: Graph) -> bool:
    def parent(t: Tensor) -> Tensor:
        return graph.tensors[t.src[0]]

    return any(t.inplace and t.size == parent(t).size and t.slot != parent(t).slot for t in graph.tensors)


def padded_parent(graph: Graph) -> bool:
    return any(t.inplace and any(graph.tensors[s].pad for s in t.src) for t in graph.tensors)


def empty(graph: Graph) -> bool:
    return len(graph.tensors) > 0 and all(t.size == 0 for t in graph.tensors)


@pytest.mark.parametrize("kind", [given_elsewhere, reuse_across_types, padded_parent, empty])
def test_it_is_drawn(kind: Callable[[Graph], bool]) -> None:
    assert sum(map(kind, graphs(600))) >= 3


def test_a_larger_reserve_follows_work_in_flight() -> None:
    n = 0
    for k in range(60):
        ops = SOURCES["sched"].draw(RandomDraw(random.Random(k)), Cap.PLAN | Cap.SCHED).ops
        for first, then in pairwise(ops):
            launched = first.kind == Kind.COMPUTE and first.flags & OpFlag.ASYNC
            n += bool(launched and then.kind == Kind.RESERVE and then.alloc == first.alloc)
    assert n >= 5


def test_a_plan_for_other_places_shows() -> None:
    graph = Graph((Tensor(8, (), Flag.LEAF, 0), Tensor(8, (0,), Flag(0), 1)))
    here, there = (Place(0, 0, 0), Place(1, 0, 0)), (Place(1, 0, 0), Place(0, 0, 0))
    assert not astray(here, (0, 1), graph, FreshPlan((), here, ()))
    assert "tensor 0 is at type 0" in astray(here, (0, 1), moved(graph), FreshPlan((), there, ()))
    assert not astray(here, (0, 1), moved(graph), FreshPlan((), here, ())), "a new allocator does the same"
