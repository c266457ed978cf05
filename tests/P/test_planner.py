"""The reference planner: every sentence of 'The planner' in docs/choices.md by an example.

What must hold for every graph is in test_planner_properties.py.
"""

from __future__ import annotations

import pytest
from gallocheck.model.planner import LIMIT, OUTSIDE, Plan, plan
from gallocheck.model.records import MAX_CHUNKS, BufferType, Flag, Graph, Place, Tensor

from tests.shorthand import BYTES, given, graph, inplace, leaf, node, out, view, weight

UNIT = (BufferType(alignment=32),)
SMALL = (BufferType(max_size=100),)
KEPT = given(8, output=True)  #: an input that stays where it is, at 0 to 8


def planned(g: Graph, types: tuple[BufferType, ...] = BYTES, slots: tuple[int, ...] = (0,)) -> Plan:
    made = plan(types, slots, g)
    assert made is not None
    return made


def offsets(g: Graph, types: tuple[BufferType, ...] = BYTES) -> list[int]:
    return [p.offset for p in planned(g, types).places]


def where(g: Graph, types: tuple[BufferType, ...]) -> list[tuple[int, int]]:
    return [(p.chunk, p.offset) for p in planned(g, types).places]


# -- types and sizes ---------------------------------------------------------------------


def test_a_slot_goes_to_the_type_at_that_place_of_the_list() -> None:
    types = (BufferType(), BufferType(), BufferType())
    g = graph(*(leaf(8, slot) for slot in range(5)))
    assert [p.type for p in planned(g, types, (0, 2, 1)).places] == [0, 2, 1, 0, 2]


def test_slots_of_one_type_share_one_plan() -> None:
    g = graph(given(8, slot=0), given(8, slot=1))
    assert planned(g, BYTES, (0, 0)) == Plan((Place(0, 0, 0), Place(0, 0, 8)), ((16,),))


def test_a_type_that_nothing_goes_to_needs_no_chunk() -> None:
    assert planned(graph(leaf(8)), (BufferType(), BufferType()), (0, 1)).need == ((8,), ())


def test_the_padding_counts_before_rounding() -> None:
    assert planned(graph(leaf(30, pad=2), leaf(30, pad=3)), UNIT).places == (Place(0, 0, 0), Place(0, 0, 32))
    assert planned(graph(leaf(30, pad=2), leaf(30, pad=3)), UNIT).need == ((96,),)


def test_a_size_up_to_the_limit_is_planned_and_none_above() -> None:
    assert planned(graph(leaf(LIMIT))).need == ((LIMIT,),)
    assert plan(BYTES, (0,), graph(leaf(LIMIT + 1))) is None
    assert plan(BYTES, (0,), graph(leaf(LIMIT, pad=1))) is None
    assert plan(UNIT, (0,), graph(leaf(LIMIT))) is None  # rounded up, it is above
    assert planned(graph(leaf(LIMIT - 31)), UNIT).need == ((LIMIT - 31,),)
    assert plan(BYTES, (0,), graph(leaf(2**64 - 1))) is None


def test_an_end_above_the_limit_makes_the_plan_fail() -> None:
    ones = [leaf(1) for _ in range(MAX_CHUNKS - 1)]
    tiny = (BufferType(max_size=1),)
    half = 2**62
    assert planned(graph(*ones, leaf(half)), tiny).need == ((1,) * 15 + (half,),)
    assert planned(graph(*ones, leaf(half), leaf(half - 16)), tiny).need[0][15] == 2 * half - 16
    assert plan(tiny, (0,), graph(*ones, leaf(half), leaf(half))) is None


def test_a_sum_of_chunks_above_the_limit_makes_the_plan_fail() -> None:
    tiny = (BufferType(max_size=1),)
    assert planned(graph(leaf(LIMIT - 1), leaf(1)), tiny).need == ((LIMIT - 1, 1),)
    assert plan(tiny, (0,), graph(leaf(LIMIT), leaf(1))) is None


# -- place -------------------------------------------------------------------------------


def test_neighbouring_free_blocks_are_one() -> None:
    g = graph(KEPT, node(16, 0), node(16, 0), node(16, 1, 2), node(32, 3))
    assert offsets(g) == [0, 8, 24, 40, 8]  # tensors 1 and 2 are free: 32 bytes in a row


def test_a_block_that_is_used_keeps_what_is_left_of_it() -> None:
    g = graph(KEPT, node(32, 0), node(8, 1), node(16, 2), node(16, 3))
    assert offsets(g) == [0, 8, 40, 8, 24]


def test_least_growth_goes_first() -> None:
    g = graph(given(60, output=True), given(60), node(8, 1), node(20, 2))
    assert where(g, SMALL) == [(0, 0), (1, 0), (0, 60), (1, 0)]  # not (0, 68), which would grow
    assert planned(g, SMALL).need == ((68, 60),)


def test_then_the_tightest_block() -> None:
    g = graph(KEPT, node(64, 0), out(8, 0), node(32, 0), out(8, 0), node(0, 1, 3), node(32, 5))
    assert offsets(g) == [0, 8, 72, 80, 112, 0, 80]  # 64 bytes are free at 8, 32 at 80


def test_what_lies_above_the_highest_end_is_no_rest() -> None:
    g = graph(KEPT, node(64, 0), out(8, 0), node(32, 0), node(0, 1, 3), node(32, 4))
    # 64 bytes are free at 8; at 80 all is free, but only 32 bytes of it below the highest end
    assert offsets(g) == [0, 8, 72, 80, 0, 80]


def test_equal_blocks_are_taken_from_the_lowest_chunk_and_offset() -> None:
    twins = graph(KEPT, node(32, 0), out(8, 0), node(32, 0), out(8, 0), node(0, 1, 3), node(32, 5))
    assert offsets(twins)[6] == 8
    chunks = graph(given(100), given(100), node(0, 0, 1), node(100, 2))
    assert where(chunks, SMALL)[3] == (0, 0)


def test_where_no_block_is_large_enough_a_chunk_is_opened() -> None:
    assert where(graph(given(60), given(60)), SMALL) == [(0, 0), (1, 0)]
    assert planned(graph(given(60), given(60)), SMALL).need == ((60, 60),)


def test_a_new_chunk_is_as_large_as_the_largest_buffer_or_as_its_tensor() -> None:
    assert where(graph(given(150), given(1)), SMALL) == [(0, 0), (1, 0)]  # 150 bytes, and no room beside
    assert where(graph(given(100), given(0), given(1)), SMALL) == [(0, 0), (0, 0), (1, 0)]
    assert where(graph(given(99), given(1)), SMALL) == [(0, 0), (0, 99)]


def test_the_last_chunk_holds_all_the_rest() -> None:
    g = graph(*(given(100) for _ in range(MAX_CHUNKS + 3)))
    assert where(g, SMALL)[-4:] == [(15, 0), (15, 100), (15, 200), (15, 300)]
    assert planned(g, SMALL).need == ((100,) * 15 + (400,),)


def test_a_tensor_of_no_bytes_is_at_the_start_of_chunk_0() -> None:
    assert planned(graph(leaf(0))) == Plan((Place(0, 0, 0),), ((0,),))
    assert planned(graph(leaf(8), leaf(0), leaf(8))).places[1] == Place(0, 0, 0)
    first = (BufferType(), BufferType(max_size=4))
    assert planned(graph(leaf(8, 0), leaf(0, 1)), first, (0, 1)).need == ((8,), (0,))


def test_a_chunk_that_was_made_for_no_bytes_is_used_like_any_other() -> None:
    assert where(graph(leaf(0), leaf(100), leaf(100)), SMALL) == [(0, 0), (0, 0), (1, 0)]


def test_the_empty_graph_needs_nothing() -> None:
    assert planned(graph(), (BufferType(), BufferType()), (0, 1)) == Plan((), ((), ()))


# -- order -------------------------------------------------------------------------------


def test_inputs_come_first_then_leafs_then_nodes() -> None:
    g = graph(leaf(1), given(2), node(4, 0), leaf(8), given(16), node(32, 3, 1, 4, 2))
    assert offsets(g) == [18, 0, 27, 19, 2, 31]


def test_preallocated_leafs_are_never_placed() -> None:
    made = planned(graph(weight(64), node(8, 0)))
    assert made == Plan((OUTSIDE, Place(0, 0, 0)), ((8,),))


def test_a_view_is_at_its_source_and_its_offset() -> None:
    g = graph(given(8), node(64, 0), view(16, 1, 24), view(0, 1, 64), node(4, 2, 3))
    assert planned(g).places[2:4] == (Place(0, 0, 32), Place(0, 0, 72))
    assert planned(graph(weight(64), view(8, 0, 8), node(4, 1))).places[1] == OUTSIDE


# -- in place ----------------------------------------------------------------------------

X = Tensor(32, (0,))  # a parent: node 1 of graphs that begin with an input


def reuses(*tensors: Tensor, at: int = -1, types: tuple[BufferType, ...] = BYTES) -> bool:
    """Whether the tensor `at` is put over its first source."""
    made = planned(graph(given(8), *tensors), types, tuple(range(len(types))))
    reader = tensors[at]
    return made.places[1 + at if at >= 0 else at] == made.places[reader.src[0]]


def test_a_node_takes_over_the_first_parent_that_qualifies() -> None:
    assert reuses(X, inplace(32, 1))
    g = graph(given(8), out(32, 0), node(32, 0), node(32, 0), inplace(32, 1, 2, 3))
    assert offsets(g) == [0, 8, 40, 72, 40]


def test_an_input_may_be_taken_over() -> None:
    assert offsets(graph(given(32), inplace(32, 0))) == [0, 0]


@pytest.mark.parametrize(
    ("why", "tensors"),
    [
        ("the operation does not allow it", (X, node(32, 1))),
        ("the parent is an output", (out(32, 0), inplace(32, 1))),
        ("a view of the parent is an output", (X, view(8, 1, 0, output=True), inplace(32, 1))),
        ("the parent is larger", (node(33, 0), inplace(32, 1))),
        ("the parent is smaller", (node(31, 0), inplace(32, 1))),
        ("the parent has another layout", (node(32, 0, flags=Flag.LAYOUT), inplace(32, 1))),
        ("the node has another layout", (X, inplace(32, 1, flags=Flag.LAYOUT))),
        ("it reads the parent twice", (X, inplace(32, 1, 1))),
    ],
)
def test_when_a_parent_does_not_qualify(why: str, tensors: tuple[Tensor, ...]) -> None:
    assert not reuses(*tensors), why


def test_a_parent_with_another_reader_left_does_not_qualify() -> None:
    assert not reuses(X, inplace(32, 1), node(8, 1, 2), at=1)
    assert reuses(X, node(8, 1), inplace(32, 1))  # the other reader has run


def test_a_parent_with_a_view_in_use_does_not_qualify() -> None:
    assert not reuses(X, view(8, 1), inplace(32, 1), node(8, 2, 3), at=2)
    assert reuses(X, view(8, 1), node(8, 2), inplace(32, 1))  # the view has been read
    assert reuses(X, view(8, 1), inplace(32, 1))  # nobody reads the view


def test_a_view_and_a_preallocated_parent_do_not_qualify() -> None:
    g = graph(given(8), X, view(32, 1), inplace(32, 2))
    assert offsets(g) == [0, 8, 8, 40]
    assert planned(graph(weight(32), inplace(32, 0))).places == (OUTSIDE, Place(0, 0, 0))


def test_a_parent_of_another_type_does_not_qualify() -> None:
    two = (BufferType(), BufferType())
    made = planned(graph(given(32, slot=1), inplace(32, 0)), two, (0, 1))
    assert [p.type for p in made.places] == [1, 0]


def test_a_parent_must_be_as_large_with_padding() -> None:
    node_with_pad = Tensor(32, (1,), Flag.INPLACE, pad=1)
    assert offsets(graph(given(8), X, node_with_pad)) == [0, 8, 40]
    assert offsets(graph(given(8), node(32, 0, pad=1), node_with_pad)) == [0, 8, 8]


def test_what_the_node_does_not_need_is_given_back_at_once() -> None:
    g = graph(given(32), node(32, 0, pad=40), inplace(32, 1), out(40, 2), node(8, 3))
    assert offsets(g, UNIT)[1:4] == [32, 32, 64]  # 96 bytes were held, 64 of them are free
    assert planned(g, UNIT).need == ((128,),)


# -- free --------------------------------------------------------------------------------


def test_each_source_entry_is_a_read() -> None:
    assert offsets(graph(KEPT, node(32, 0), node(16, 1, 1), node(32, 2))) == [0, 8, 40, 8]
    again = graph(KEPT, node(32, 0), node(16, 1, 1), node(32, 1, 2), node(32, 3))
    assert offsets(again) == [0, 8, 40, 56, 8]


def test_a_tensor_is_freed_after_its_last_reader_has_run() -> None:
    assert offsets(graph(KEPT, node(32, 0), node(32, 1), node(32, 2))) == [0, 8, 40, 8]


def test_a_view_holds_its_source_until_it_is_read() -> None:
    g = graph(KEPT, node(32, 0), view(8, 1, 4), node(32, 1), node(16, 2, 3), node(32, 4))
    assert offsets(g)[3:] == [40, 72, 8]  # both 1 and 3 are free then
    assert planned(g).need == ((88,),)


def test_a_source_is_not_freed_before_a_view_that_comes_later() -> None:
    g = graph(KEPT, node(32, 0), node(4, 1), view(8, 1, 4), node(32, 3))
    assert offsets(g) == [0, 8, 40, 12, 40]


def test_a_view_that_nobody_reads_holds_nothing() -> None:
    assert offsets(graph(KEPT, node(32, 0), view(8, 1), node(32, 0))) == [0, 8, 8, 8]


@pytest.mark.parametrize("last", [out(32, 0), node(32, 0)])
def test_outputs_stay_and_all_else_is_freed(last: Tensor) -> None:
    g = graph(KEPT, last, node(32, 1), node(32, 2))
    assert offsets(g)[3] == (72 if last.output else 8)


def test_a_source_of_an_output_view_stays() -> None:
    g = graph(KEPT, node(32, 0), view(8, 1, 4, output=True), node(32, 2), node(32, 3))
    assert offsets(g)[3:] == [40, 72]


def test_a_node_that_nobody_reads_is_freed_as_soon_as_it_has_run() -> None:
    assert offsets(graph(KEPT, node(32, 0), node(32, 0))) == [0, 8, 8]


def test_a_leaf_that_nobody_reads_stays_to_the_end() -> None:
    assert offsets(graph(KEPT, leaf(32), node(32, 0), node(32, 0))) == [0, 8, 40, 40]


def test_the_requirement_is_the_highest_end_of_rounded_sizes() -> None:
    g = graph(given(1, output=True), node(33, 0), node(1, 1))
    assert planned(g, UNIT).need == ((128,),)
    assert planned(g).need == ((35,),)
