"""The judge of plans: it blames the clause that is broken, and accepts foreign plans that are right.

Every wrong plan is made by hand, as some allocator might make it, and names the clause that the
judge must put first.
"""

from __future__ import annotations

from collections import Counter

import pytest
from gallocheck.fuzz.strategies import graphs_for
from gallocheck.model.planner import round_up
from gallocheck.model.records import MAX_CHUNKS, BufferType, Flag, Graph, Place
from gallocheck.spec.placement import Seen, judge, judge_bound
from hypothesis import HealthCheck, settings
from hypothesis import given as hypothesis_given

from tests.shorthand import BYTES, given, graph, inplace, leaf, node, out, view, weight

OUT = Place(-1, -1, 0)
UNIT = (BufferType(alignment=32),)
SMALL = (BufferType(max_size=100),)
Spot = int | tuple[int, int] | None  #: an offset in chunk 0, (chunk, offset), or not placed; type 0


def plan(
    g: Graph,
    *spots: Spot,
    need: tuple[int, ...],
    types: tuple[BufferType, ...] = BYTES,
    real: tuple[int, ...] | None = None,
    measured: int | None = None,
) -> Seen:
    """A plan of `g` that asks for chunks of `need` bytes and gets `real` (the same if not given)."""
    places = [OUT if s is None else Place(0, 0, s) if isinstance(s, int) else Place(0, *s) for s in spots]
    total = None if measured is None else [measured]
    return Seen(types, (0,), g, places, [need], [need if real is None else real], total)


CHAIN = graph(given(32), node(32, 0), node(32, 1), node(32, 2))
FORK = graph(given(32), node(32, 0), node(32, 0), node(32, 1, 2))
KEEP = graph(given(32), out(32, 0), node(32, 0), node(32, 2))
TWO = graph(given(32), given(32), node(32, 0, 1))
LATE = graph(given(32), given(32), node(32, 0), node(32, 2), node(32, 1, 3))
VIEW = graph(given(32), node(32, 0), view(8, 1, 4), node(32, 0), node(32, 2, 3))
WEIGHT = graph(weight(32), node(32, 0), node(32, 1))
OVER = graph(given(32), node(32, 0), inplace(32, 1), node(32, 2))
SHOWN = graph(given(32), node(32, 0), view(8, 1, 4, output=True), node(32, 0))
VIEWED = graph(given(32), node(32, 0), view(8, 1), inplace(32, 1), node(8, 2, 3))
FULL = graph(*(given(50) for _ in range(3)))

WRONG = [
    # two live tensors share bytes
    ("P1", plan(FORK, 0, 32, 32, 64, need=(96,))),
    ("P1", plan(FORK, 0, 32, 63, 95, need=(127,))),
    ("P1", plan(graph(leaf(32), leaf(32), node(32, 0, 1)), 0, 16, 64, need=(96,))),
    # offsets between the steps of the alignment
    ("P2", plan(CHAIN, 0, 48, 96, 128, need=(160,), types=UNIT)),
    ("P2", plan(graph(given(8), given(8)), 0, 8, need=(40,), types=UNIT)),
    # behind the end of a chunk, of a buffer, or nowhere
    ("P3", plan(CHAIN, 0, 32, 64, 96, need=(96,))),
    ("P3", plan(CHAIN, 0, 32, 64, 96, need=(128,), real=(127,))),
    ("P3", plan(CHAIN, 0, (1, 0), 64, 96, need=(128,))),
    ("P3", plan(CHAIN, 0, None, 64, 96, need=(128,))),
    # larger than the largest buffer
    ("P4", plan(FULL, 0, 50, 100, need=(150,), types=SMALL)),
    ("P4", plan(graph(given(120), given(50)), 0, 120, need=(170,), types=SMALL)),
    ("P4", plan(FULL, 0, (1, 0), (1, 51), need=(50, 101), types=SMALL)),
    # outputs that do not last
    ("P5", plan(KEEP, 0, 32, 64, 32, need=(96,))),
    ("P5", plan(SHOWN, 0, 32, 36, 32, need=(64,))),
    ("P5", plan(graph(given(32, output=True), node(32, 0), node(32, 1)), 0, 32, 16, need=(64,))),
    # inputs that share, or whose place is used before they are read
    ("P6", plan(TWO, 0, 0, 32, need=(64,))),
    ("P6", plan(TWO, 0, 31, 64, need=(96,))),
    ("P6", plan(LATE, 0, 32, 32, 64, 96, need=(128,))),
    # views elsewhere, or over what was freed
    ("P7", plan(VIEW, 0, 32, 32, 64, 96, need=(128,))),
    ("P7", plan(VIEW, 0, 32, (1, 36), 64, 96, need=(128, 44))),
    ("P7", plan(VIEW, 0, 32, 36, 32, 64, need=(96,))),
    # in place, where that is not allowed
    ("P8", plan(graph(given(32), out(32, 0), inplace(32, 1)), 0, 32, 32, need=(64,))),
    ("P8", plan(graph(given(32), node(32, 0), inplace(32, 1), node(32, 1, 2)), 0, 32, 32, 64, need=(96,))),
    ("P8", plan(graph(given(32), node(32, 0), inplace(32, 1, flags=Flag.LAYOUT)), 0, 32, 32, need=(64,))),
    ("P8", plan(graph(given(32), node(64, 0), inplace(32, 1)), 0, 32, 32, need=(96,))),
    ("P8", plan(VIEWED, 0, 32, 32, 32, 64, need=(72,))),
    ("P8", plan(graph(weight(32), inplace(32, 0), node(8, 1)), None, None, 0, need=(8,))),
    ("P8", plan(CHAIN, 0, 0, 32, 64, need=(96,))),
    # requirements that are no highest end
    ("P11", plan(CHAIN, 0, 32, 64, 96, need=(160,))),
    ("P11", plan(CHAIN, 0, 32, 64, 96, need=(128, 8))),
    ("P11", plan(CHAIN, 0, 32, 64, 96, need=(96,), measured=96)),
    # foreign memory that was moved
    ("P14", plan(WEIGHT, 0, 32, 64, need=(96,))),
    ("P14", plan(graph(weight(32), view(8, 0), node(8, 1)), None, 8, 16, need=(24,))),
]


RIGHT = {
    "nothing is ever reused": plan(CHAIN, 0, 32, 64, 96, need=(128,)),
    "from the top down": plan(CHAIN, 96, 64, 32, 0, need=(128,)),
    "with gaps": plan(CHAIN, 10, 100, 200, 300, need=(332,)),
    "a chunk for each tensor": plan(CHAIN, 0, (1, 0), (2, 0), (3, 0), need=(32, 32, 32, 32)),
    "an input's place after its last read": plan(CHAIN, 0, 32, 0, 32, need=(64,)),
    "the place of a result that nobody reads": plan(
        graph(given(8), node(8, 0), node(8, 0)), 0, 8, 8, need=(16,)
    ),
    "leafs that are read one after the other": plan(
        graph(leaf(8), node(8, 0), leaf(8), node(8, 1, 2)), 0, 8, 0, 16, need=(24,)
    ),
    "touching tensors": plan(FORK, 0, 32, 64, 96, need=(128,)),
    "a requirement without rounding": plan(graph(given(33)), 0, need=(33,), types=UNIT),
    "a requirement with rounding": plan(graph(given(33)), 0, need=(64,), types=UNIT),
    "a buffer that the device rounds up": plan(CHAIN, 0, 32, 64, 96, need=(128,), real=(4096,)),
    "a tensor larger than the largest buffer": plan(graph(given(120)), 0, need=(120,), types=SMALL),
    "beside such a tensor once it is free": plan(
        graph(given(120), node(8, 0), node(60, 1)), 0, (1, 0), 60, need=(120, 8), types=SMALL
    ),
    "a full chunk": plan(FULL, 0, 50, (1, 0), need=(100, 50), types=SMALL),
    "all the rest in the last chunk": plan(
        graph(*(given(100) for _ in range(17))),
        *((c, 0) for c in range(16)),
        (15, 100),
        need=(*(100 for _ in range(MAX_CHUNKS - 1)), 200),
        types=SMALL,
    ),
    "a chunk of no bytes between others": plan(
        graph(given(8), given(0), given(8)), 0, (1, 0), (2, 0), need=(8, 0, 8)
    ),
    "no bytes at an odd place": plan(graph(given(8), given(0)), 0, 5, need=(8,), types=UNIT),
    "an output in a place that was freed": plan(graph(given(8), node(8, 0), out(8, 1)), 0, 8, 0, need=(16,)),
    "an output that is an input": plan(
        graph(given(8, output=True), node(8, 0), node(8, 1)), 0, 8, 16, need=(24,)
    ),
    "an input's place when others are still to be read": plan(LATE, 0, 32, 64, 0, 96, need=(128,)),
    "a viewed tensor's place after the view was read": plan(
        graph(given(32), node(32, 0), view(8, 1, 4), node(8, 2), node(32, 3)), 0, 32, 36, 64, 32, need=(72,)
    ),
    "a view of no bytes elsewhere": plan(graph(given(8), view(0, 0, 8), node(8, 1)), 0, 3, 8, need=(16,)),
    "a view of a weight": plan(graph(weight(8), view(8, 0), node(8, 1)), None, None, 0, need=(8,)),
    "in place": plan(OVER, 0, 32, 32, 0, need=(64,)),
    "in place of an input": plan(graph(given(8), inplace(8, 0), node(8, 1)), 0, 0, 8, need=(16,)),
    "in place of the second source": plan(graph(given(8), node(8, 0), inplace(8, 0, 1)), 0, 8, 8, need=(16,)),
    "in place of a view from the start": plan(
        graph(given(32), node(32, 0), view(32, 1), inplace(32, 2)), 0, 32, 32, 32, need=(64,)
    ),
    "in place twice in a row": plan(graph(given(8), inplace(8, 0), inplace(8, 1)), 0, 0, 0, need=(8,)),
    "a weight beside": plan(WEIGHT, None, 0, 32, need=(64,)),
    "measured what it asks for": plan(CHAIN, 0, 32, 64, 96, need=(128,), measured=128),
}


@pytest.mark.parametrize(("clause", "seen"), WRONG, ids=[f"{c}-{i}" for i, (c, _) in enumerate(WRONG)])
def test_the_clause_that_is_broken_is_blamed_first(clause: str, seen: Seen) -> None:
    found = judge(seen)
    assert found and found[0].clause == clause, found


@pytest.mark.parametrize("what", RIGHT)
def test_foreign_plans_that_are_right_are_accepted(what: str) -> None:
    assert judge(RIGHT[what]) == []


def test_every_clause_has_two_wrong_plans() -> None:
    counts = Counter(clause for clause, _ in WRONG)
    assert set(counts) == {"P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "P11", "P14"}
    assert min(counts.values()) >= 2


def test_a_binding_may_be_in_larger_buffers_than_its_plan_needs() -> None:
    """After another reservation the buffers are as they are; only the places are judged."""
    seen = plan(CHAIN, 0, 32, 64, 96, need=(500,), types=SMALL)
    assert {b.clause for b in judge(seen)} == {"P11", "P4"} and judge_bound(seen) == []
    assert [b.clause for b in judge_bound(plan(CHAIN, 0, 32, 64, 96, need=(100,)))] == ["P3"]


def test_types_are_kept_apart() -> None:
    """Equal chunks and offsets of two types are no overlap; a chunk of the other type is no room."""
    g, two = graph(given(8), given(8, slot=1), node(8, 0, 1)), (BufferType(), BufferType())
    places = [Place(0, 0, 0), Place(1, 0, 0), Place(0, 0, 8)]
    needs = [(16,), (8,)]
    assert judge(Seen(two, (0, 1), g, places, needs, needs)) == []
    swapped = [(8,), (16,)]
    assert {b.clause for b in judge(Seen(two, (0, 1), g, places, swapped, swapped))} == {"P3", "P11"}


@pytest.mark.parametrize("nowhere", [Place(9, 0, 0), Place(1, 0, 0), Place(0, -1, 0), Place(0, 99, 0)])
def test_memory_that_the_allocator_cannot_have(nowhere: Place) -> None:
    """Two types are there, the allocator has the first alone."""
    two, g = (BufferType(), BufferType()), graph(given(8), node(8, 0))
    seen = Seen(two, (0,), g, [nowhere, Place(0, 0, 0)], [(8,), (8,)], [(8,), (8,)])
    assert judge(seen)[0].clause == judge_bound(seen)[0].clause == "P3"


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@hypothesis_given(graphs_for((BufferType(alignment=32),)))
def test_a_planner_that_never_frees_is_right(g: Graph) -> None:
    at, places = 0, []
    for t in g.tensors:
        root = g.tensors[t.view_src] if t.view else t
        if root.prealloc:
            places.append(OUT)
        elif t.view:
            places.append(Place(0, 0, places[t.view_src].offset + t.view_offs))
        else:
            places.append(Place(0, 0, at))
            at = round_up(at + t.alloc_size, 32)
    assert judge(Seen(UNIT, (0,), g, places, [(at,)], [(at,)])) == []


def test_in_place_over_what_another_reads() -> None:
    """The message names the reader whose bytes are lost."""
    seen = plan(graph(given(32), node(32, 0), inplace(32, 1), node(32, 1, 2)), 0, 32, 32, 64, need=(96,))
    (broken,) = [b for b in judge(seen) if b.clause == "P8"]
    assert broken.message.endswith(
        "tensor 2 reads tensor 1 and was put over it, but tensor 1 has another reader, tensor 3"
    )
