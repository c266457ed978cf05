"""The shrinker finds small traces, the same each time, and never tries an illegal one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from gallocheck.fuzz.draw import RandomDraw
from gallocheck.fuzz.generate import Profile, draw_trace
from gallocheck.fuzz.legal import legal
from gallocheck.fuzz.shrink import shrink
from gallocheck.model.records import SIZE_MAX, UNLIMITED, Kind, OpFlag, Trace


def first(profile: Profile, fails: Callable[[Trace], bool]) -> Trace:
    return next(t for s in range(10_000) if fails(t := draw_trace(RandomDraw(s), profile)))


def guarded(fails: Callable[[Trace], bool]) -> Callable[[Trace], bool]:
    seen: set[Trace] = set()

    def check(trace: Trace) -> bool:
        assert legal(trace)
        assert trace not in seen, "each trace is tried once"
        seen.add(trace)
        return fails(trace)

    return check


def shrunk(profile: Profile, fails: Callable[[Trace], bool]) -> Trace:
    trace = first(profile, fails)
    small = shrink(trace, guarded(fails))
    assert fails(small) and legal(small)
    assert small == shrink(trace, fails), "deterministic"
    return small


def test_operations_go() -> None:
    def fails(trace: Trace) -> bool:
        kinds = [op.kind for op in trace.ops]
        return Kind.SHRINK in kinds and Kind.RESERVE in kinds[kinds.index(Kind.SHRINK) :]

    small = shrunk("pair", fails)
    assert [op.kind for op in small.ops] == [Kind.SHRINK, Kind.RESERVE]
    assert {(op.alloc, op.other, op.graph, op.fail_nth, op.fail_types) for op in small.ops} == {
        (0, 0, 0, 0, 0)
    }
    assert len(small.graphs) == 1 and small.graphs[0].tensors == ()
    assert len(small.setup.types) == 1 and small.setup.configs == ((0,),)
    kind = small.setup.types[0]
    assert (kind.alignment, kind.max_size, kind.granularity, kind.capacity) == (1, SIZE_MAX, 1, UNLIMITED)


def test_tensors_go_and_sources_are_rewired() -> None:
    def fails(trace: Trace) -> bool:
        """A view that is read by an in-place node."""
        return any(
            t.inplace and any(g.tensors[s].view for s in t.src) for g in trace.graphs for t in g.tensors
        )

    small = shrunk("plan", fails)
    tensors = small.graphs[0].tensors
    assert [t.view for t in tensors] == [False, True, False]
    assert [t.size for t in tensors] == [0, 0, 0] and [t.src for t in tensors] == [(), (0,), (1,)]
    assert small.ops == ()


@pytest.mark.parametrize("least", [1, 100, 777, 4097])
def test_a_size_becomes_the_least_that_fails(least: int) -> None:
    def fails(trace: Trace) -> bool:
        return any(t.size >= least for g in trace.graphs for t in g.tensors)

    small = shrunk("gallocr", fails)
    assert [[t.size for t in g.tensors] for g in small.graphs] == [[least]]


def test_equal_sizes_shrink_together() -> None:
    def fails(trace: Trace) -> bool:
        sizes = [t.size for g in trace.graphs for t in g.tensors if not t.view]
        return any(sizes.count(s) >= 3 and s >= 9 for s in sizes)

    small = shrunk("gallocr", fails)
    assert [t.size for g in small.graphs for t in g.tensors] == [9, 9, 9]


def test_a_sum_stays_just_enough() -> None:
    def fails(trace: Trace) -> bool:
        return any(
            sum(t.alloc_size for t in g.tensors) > k.capacity for g in trace.graphs for k in trace.setup.types
        )

    small = shrunk("pair", fails)
    assert [[t.alloc_size for t in g.tensors] for g in small.graphs] == [[1]]
    assert min(k.capacity for k in small.setup.types) == 0


def test_types_and_configs_go_with_what_names_them() -> None:
    def fails(trace: Trace) -> bool:
        """A failure on a type, and a borrower of another config than its owner's."""
        configs = {op.other for op in trace.ops if op.kind == Kind.NEW}
        return any(op.fail_types for op in trace.ops) and len(configs) > 1 and len(trace.setup.types) > 1

    small = shrunk("pair", fails)
    assert len(small.setup.types) == 2 and len(small.setup.configs) == 2
    assert len(small.ops) == 3 and [op.fail_types for op in small.ops if op.fail_types] != []


def test_flags_of_operations_stay_where_they_matter() -> None:
    def fails(trace: Trace) -> bool:
        return any(op.flags & OpFlag.ASYNC for op in trace.ops)

    small = shrunk("sched", fails)
    assert [(op.kind, op.flags) for op in small.ops] == [(Kind.COMPUTE, OpFlag.ASYNC)]


def test_huge_sizes_shrink_to_the_edge() -> None:
    def fails(trace: Trace) -> bool:
        return any(t.alloc_size > 2**63 for g in trace.graphs for t in g.tensors)

    small = shrunk("huge", fails)
    assert [t.alloc_size for g in small.graphs for t in g.tensors] == [2**63 + 1]


def test_what_cannot_shrink_stays() -> None:
    trace = draw_trace(RandomDraw(1), "pair")
    assert shrink(trace, lambda t: t == trace) == trace


def test_the_budget_ends_it() -> None:
    trace = draw_trace(RandomDraw(1), "pair")
    assert shrink(trace, lambda t: True, budget_s=0) == trace
    calls = []
    shrink(trace, lambda t: bool(calls.append(t)), most_tries=10)
    assert len(calls) == 10
