"""G4: a plan is used only for a graph that it is right for, however alike another one looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from gallocheck.fuzz.fresh import see
from gallocheck.fuzz.strategies import graphs_for, other_lifetimes
from gallocheck.model import oracle
from gallocheck.model.records import BufferType, Graph, Kind, Op, Setup, Status, Trace
from gallocheck.native.worker import LocalRunner
from gallocheck.spec.placement import judge_bound
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.shorthand import bundled, graph, judged, node, out, view
from tests.shorthand import given as written

MANY = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
ONE, TWO = (BufferType(32),), (BufferType(32), BufferType())
RESERVE, OTHER, AS_OTHER = Op(Kind.RESERVE), Op(Kind.ALLOC, graph=1), Op(Kind.COMPUTE, graph=1)


@pytest.fixture(scope="module")
def runner() -> Iterator[LocalRunner]:
    with bundled() as one:
        yield one


@st.composite
def twins(draw: Callable[[Any], Any], types: tuple[BufferType, ...]) -> tuple[Graph, Graph]:
    """Two graphs of as many tensors of the same sizes, and other lifetimes."""
    first = draw(graphs_for(types, 64, len(types)))
    second = draw(other_lifetimes(first))
    assume(first != second)
    return first, second


@MANY
@given(pair=twins(ONE))
def test_one_type_plans_the_other_graph_again(runner: LocalRunner, pair: tuple[Graph, Graph]) -> None:
    trace = Trace(Setup(ONE, ((0,),)), pair, (Op(Kind.NEW), RESERVE, Op(Kind.ALLOC), OTHER, AS_OTHER))
    assert judged(runner, trace).failed is None
    bound, computed = runner.run(trace).steps[3:]
    assert bound.obs.status == Status.DONE and bound.places is not None
    assert judge_bound(see(trace.setup, 0, pair[1], bound.places, bound.obs.asked)) == []
    assert computed.obs.status == Status.DONE and not computed.obs.trouble
    assert oracle.digest(pair[1]) in (None, computed.obs.digest)


@MANY
@given(pair=twins(TWO))
def test_several_types_refuse_the_other_graph(runner: LocalRunner, pair: tuple[Graph, Graph]) -> None:
    """Nothing has changed then: the first graph is bound as it was, and computes."""
    ops = (Op(Kind.NEW), RESERVE, Op(Kind.ALLOC), OTHER, Op(Kind.COMPUTE))
    trace = Trace(Setup(TWO, ((0, 1),)), pair, ops)
    assert judged(runner, trace).failed is None
    bound, refused, computed = runner.run(trace).steps[2:]
    assert refused.obs.status == Status.REFUSED and refused.obs.allocations == 0
    assert (refused.obs.asked, refused.obs.generation, refused.obs.used) == (
        bound.obs.asked, bound.obs.generation, bound.obs.used)  # fmt: skip
    assert computed.obs.status == Status.DONE and oracle.digest(pair[0]) in (None, computed.obs.digest)


BASE = graph(written(64), node(64, 0), node(64, 0), view(32, 1), node(64, 2), out(64, 4, 3))
OTHERS = {
    "another source": graph(written(64), node(64, 0), node(64, 1), view(32, 1), node(64, 2), out(64, 4, 3)),
    "a longer life": graph(written(64), node(64, 0), node(64, 0), view(32, 1), node(64, 2), out(64, 4, 3, 2)),
    "another view": graph(written(64), node(64, 0), node(64, 0), view(32, 2), node(64, 2), out(64, 4, 3)),
    "another offset": graph(
        written(64), node(64, 0), node(64, 0), view(32, 1, 32), node(64, 2), out(64, 4, 3)
    ),
    "another output": graph(written(64), node(64, 0), out(64, 0), view(32, 1), node(64, 2), out(64, 4, 3)),
    "no input": graph(node(64), node(64, 0), node(64, 0), view(32, 1), node(64, 2), out(64, 4, 3)),
}


@pytest.mark.parametrize("types", [ONE, TWO], ids=["one type", "several"])
@pytest.mark.parametrize("what", OTHERS)
def test_what_looks_alike(runner: LocalRunner, what: str, types: tuple[BufferType, ...]) -> None:
    setup = Setup(types, (tuple(range(len(types))),))
    trace = Trace(setup, (BASE, OTHERS[what]), (Op(Kind.NEW), RESERVE, OTHER, AS_OTHER))
    assert judged(runner, trace).failed is None
    bound, computed = runner.run(trace).steps[2:]
    if len(types) == 1:
        assert bound.obs.status == Status.DONE and computed.obs.digest == oracle.digest(OTHERS[what])
    else:
        assert bound.obs.status == Status.REFUSED and computed.obs.status == Status.MISUSE
