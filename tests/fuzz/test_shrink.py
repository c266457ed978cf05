"""The shrinker finds small traces, the same each time, and never tries an illegal one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from gallocheck.fuzz.draw import RandomDraw
from gallocheck.fuzz.generate import Profile, draw_trace
from gallocheck.fuzz.legal import legal
from gallocheck.fuzz.shrink import shrink
from gallocheck.model.records import (
    SIZE_MAX,
    UNLIMITED,
    BufferType,
    Context,
    Flag,
    Graph,
    Kind,
    Memory,
    Op,
    OpFlag,
    Option,
    PoolKind,
    Scale,
    Setup,
    Strategy,
    Tensor,
    Trace,
)


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


def everything() -> Trace:
    """A trace that uses every layer."""
    template = Graph((
        Tensor(8, (), Flag.LEAF), Tensor(4, (0,), scale=Scale.SCALE_WINDOW), Tensor(4, (1,), Flag.OUTPUT),
    ))  # fmt: skip
    target = Context(
        1, 1, Memory.HYBRID_WINDOW, Option.PHASE_AWARE | Option.LIVE_CONTEXT, 2, 64, 16, 3, 32, 9
    )
    types = (BufferType(capacity=1 << 20), BufferType(8, capacity=1 << 20), BufferType(16, meta=0b11))
    setup = Setup(types, ((0,), (2,)), Strategy.COUNTED, PoolKind.VMM_POOL, 1 << 20, (target, target))
    ops = (
        Op(Kind.POOL_ALLOC, 3, 1, value=5000), Op(Kind.TRIM, 0, 2), Op(Kind.CTX_OPEN, 0), Op(Kind.CTX_OPEN, 1),
        Op(Kind.CTX_ATTACH, 1, value=15), Op(Kind.CTX_DECODE, 1, 33, value=20, flags=OpFlag.ASYNC),
        Op(Kind.SLOT_ENTER, 2), Op(Kind.SLOT_STEP, 2, value=7),
    )  # fmt: skip
    trace = Trace(setup, (Graph(()), template), ops)
    assert legal(trace)
    return trace


def decodes(trace: Trace, tokens: int, cells: int) -> bool:
    return any(op.kind == Kind.CTX_DECODE and op.value >= tokens and op.other >= cells for op in trace.ops)


def test_layers_that_do_not_matter_go() -> None:
    small = shrink(everything(), guarded(lambda t: decodes(t, 2, 3)))
    assert small.ops == (Op(Kind.CTX_DECODE, 0, 3, value=2),)
    assert small.setup == Setup((BufferType(),), ((0,),)) and small.graphs == ()


def test_what_matters_of_a_context_stays_and_is_plain() -> None:
    def fails(trace: Trace) -> bool:
        contexts = trace.setup.contexts
        return len(contexts) == 2 and contexts[1].cells >= 17 and contexts[1].memory == Memory.HYBRID_WINDOW

    small = shrink(everything(), guarded(fails))
    assert small.setup.contexts == (
        Context(),
        Context(0, 0, Memory.HYBRID_WINDOW, cells=24, window=0),
    )
    assert len(small.graphs) == 1 and small.graphs[0].tensors == ()
    assert small.setup.strategy == Strategy.PAIR and small.setup.pool == PoolKind.NO_POOL


def test_parts_of_a_meta_type_go() -> None:
    small = shrink(everything(), guarded(lambda t: any(k.meta for k in t.setup.types)))
    assert [k.meta for k in small.setup.types] == [0, 1] and small.ops == ()


def test_pools_stay_where_they_matter() -> None:
    def fails(trace: Trace) -> bool:
        pools = trace.setup.pool != PoolKind.NO_POOL and trace.setup.pool_range >= 100
        return pools and any(op.kind == Kind.POOL_ALLOC and op.value >= 300 for op in trace.ops)

    small = shrink(everything(), guarded(fails))
    assert small.ops == (Op(Kind.POOL_ALLOC, value=300),)
    assert small.setup == Setup((BufferType(),), ((0,),), pool=PoolKind.VMM_POOL, pool_range=100)


def test_what_ends_something_goes_with_what_began_it() -> None:
    setup = Setup((BufferType(capacity=1 << 20),), ((0,),), pool=PoolKind.LEGACY_POOL)
    takes = [Op(Kind.POOL_ALLOC, k % 2, value=k) for k in range(7)]
    gives = [Op(Kind.POOL_FREE, k % 2) for k in (6, 5, 3, 4, 2, 0, 1)]

    def fails(trace: Trace) -> bool:
        out = [0, 0]
        for op in trace.ops:
            out[op.alloc] += 1 if op.kind == Kind.POOL_ALLOC else -1
            if min(out) < 0:
                return False
        return out == [0, 0] and len(trace.ops) > 2

    small = shrink(Trace(setup, (), (*takes, *gives)), guarded(fails))
    assert [op.kind for op in small.ops] == 2 * [Kind.POOL_ALLOC] + 2 * [Kind.POOL_FREE]


def test_long_graphs_of_one_length_become_short_together() -> None:
    """In few tries: blocks of tensors go at once."""

    def fails(trace: Trace) -> bool:
        lengths = [len(graph.tensors) for graph in trace.graphs]
        return len(lengths) == 2 and lengths[0] == lengths[1] and lengths[0] >= 3

    graph = Graph(tuple(Tensor(8, (k - 1,) if k else ()) for k in range(200)))
    reserves = tuple(Op(Kind.RESERVE, graph=g) for g in range(2))
    trace = Trace(
        Setup((BufferType(),), ((0,),)),
        (graph, Graph((Tensor(16), *graph.tensors[1:]))),
        (Op(Kind.NEW), *reserves),
    )
    small = shrink(trace, guarded(fails), most_tries=60)
    assert [len(graph.tensors) for graph in small.graphs] == [3, 3]
