"""G3: a buffer type that is listed twice is one set of buffers, and its bytes are reported once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from gallocheck.fuzz.strategies import graphs_for
from gallocheck.model.records import BufferType, Graph, Kind, Op, Setup, Trace
from gallocheck.native.worker import LocalRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.shorthand import bundled, graph, judged, out
from tests.shorthand import given as written

TYPES = (BufferType(32, max_size=256), BufferType(granularity=64))
OPS = tuple(map(Op, (Kind.NEW, Kind.MEASURE, Kind.RESERVE, Kind.ALLOC, Kind.COMPUTE)))
LISTS = [(0, 0), (0, 1, 0), (0, 1, 1), (0, 0, 1, 1, 0)]


@pytest.fixture(scope="module")
def runner() -> Iterator[LocalRunner]:
    with bundled() as one:
        yield one


def test_one_set_of_buffers(runner: LocalRunner) -> None:
    g = graph(written(64, slot=0), written(64, slot=1), out(64, 0, 1, slot=2))
    seen = runner.run(Trace(Setup(TYPES, ((0, 0, 0),)), (g,), OPS)).steps
    assert seen[1].obs.measured[:3] == seen[2].obs.reported[:3] == (192, 0, 0)
    assert seen[2].obs.asked == ((192,), ()) and seen[2].obs.used == (192, 0)
    assert seen[2].obs.allocations == 1


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(g=graphs_for(TYPES, 64, 5), slots=st.sampled_from(LISTS))
def test_a_list_with_duplicates_is_as_the_list_without(
    runner: LocalRunner, g: Graph, slots: tuple[int, ...]
) -> None:
    """The same tensors on the same types: only the slot numbers differ."""
    types = sorted(set(slots))
    plainly = Graph(tuple(replace(t, slot=types.index(slots[t.slot % len(slots)])) for t in g.tensors))
    twice = Trace(Setup(TYPES, (slots,)), (g,), OPS)
    once = Trace(Setup(TYPES, (tuple(types),)), (plainly,), OPS)
    assert judged(runner, twice).failed is None
    for a, b in zip(runner.run(twice).steps, runner.run(once).steps, strict=True):
        assert (a.obs.asked, a.obs.used, a.obs.allocations, a.places) == (
            b.obs.asked, b.obs.used, b.obs.allocations, b.places)  # fmt: skip
        for have, want in ((a.obs.reported, b.obs.reported), (a.obs.measured, b.obs.measured)):
            assert [have[slots.index(t)] for t in types] == list(want[: len(types)])
            assert sum(have) == sum(want)
