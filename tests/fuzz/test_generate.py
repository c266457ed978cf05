"""Generators make only legal traces, and every feature that a clause needs does appear."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from gallocheck.fuzz.draw import RandomDraw, weighted
from gallocheck.fuzz.generate import PROFILES, Profile, draw_trace
from gallocheck.fuzz.graphs import draw_graph, mutate_lifetimes
from gallocheck.fuzz.legal import graph_legal, legal, why_illegal
from gallocheck.fuzz.setups import draw_slots
from gallocheck.fuzz.strategies import graphs_for, other_lifetimes, traces
from gallocheck.model.planner import plan
from gallocheck.model.records import (
    MAX_CHUNKS,
    UNLIMITED,
    BufferType,
    Cap,
    Flag,
    Graph,
    Kind,
    Op,
    OpFlag,
    Setup,
    Tensor,
    Trace,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SEEDS = {"plan": 1500, "gallocr": 700, "pair": 700, "sched": 500, "huge": 500}


def drawn(profile: Profile, n: int, caps: Cap | None = None) -> list[Trace]:
    caps = Cap.PLAN | Cap.RESIZABLE | Cap.SCHED | Cap.REMAKE if caps is None else caps
    return [draw_trace(RandomDraw(seed), profile, caps) for seed in range(n)]


@pytest.fixture(scope="module")
def all_traces() -> dict[Profile, list[Trace]]:
    return {profile: drawn(profile, SEEDS[profile]) for profile in PROFILES}


def test_every_trace_is_legal(all_traces: dict[Profile, list[Trace]]) -> None:
    for profile, many in all_traces.items():
        for seed, trace in enumerate(many):
            assert why_illegal(trace) is None, (profile, seed)


def test_the_same_seed_gives_the_same_trace(all_traces: dict[Profile, list[Trace]]) -> None:
    for profile, many in all_traces.items():
        assert draw_trace(RandomDraw(7), profile) == many[7]
        assert len(set(many)) > 0.98 * len(many)


def test_operations_follow_capabilities() -> None:
    for trace in drawn("pair", 100, Cap.PLAN) + drawn("sched", 100, Cap.PLAN):
        assert not {op.kind for op in trace.ops} & {
            Kind.OWN, Kind.BORROW, Kind.SHRINK, Kind.REMAKE, Kind.SYNC, Kind.RESET
        }  # fmt: skip
        assert not any(op.flags & ~OpFlag.UNCHECKED for op in trace.ops)
    for trace in drawn("pair", 100, Cap.PLAN | Cap.RESIZABLE):
        assert Kind.REMAKE not in {op.kind for op in trace.ops}


def graph_features(graph: Graph) -> set[str]:
    ts = graph.tensors
    readers = Counter(s for t in ts for s in t.src)
    found = {flag.name or "" for t in ts for flag in Flag if t.flags & flag}
    found |= {f"{len(t.src)} sources" for t in ts}
    for i, t in enumerate(ts):
        if t.view:
            root = ts[t.view_src]
            of = "prealloc" if root.prealloc else "input" if root.input else "leaf" if root.leaf else "node"
            found |= {f"view of {of}", "view of output" if root.output else "view of no output"}
            found.add("output view" if t.output else "read view" if readers[i] else "unread view")
            found.add("view with offset" if t.view_offs else "view at 0")
        if t.pad:
            found.add("pad")
        if t.slot:
            found.add("slot")
        if not t.size:
            found.add("zero size")
        if t.input and not readers[i]:
            found.add("unread input")
        if t.output and readers[i]:
            found.add("output read again")
        if readers[i] > 3:
            found.add("many readers")
        if len(set(t.src)) < len(t.src):
            found.add("a source twice")
        if t.inplace and any(ts[s].inplace for s in t.src):
            found.add("in-place chain")
        if not t.leaf and not t.src:
            found.add("node without sources")
    sizes = [t.size for t in ts if not t.view]
    if len(set(sizes)) < len(sizes):
        found.add("equal sizes")
    if any(s + 1 in sizes for s in sizes):
        found.add("off by one")
    if not ts:
        found.add("empty")
    return found


GRAPH_FEATURES = {
    "LEAF", "INPUT", "OUTPUT", "INPLACE", "PREALLOC", "LAYOUT", "0 sources", "1 sources", "2 sources",
    "3 sources", "4 sources", "view of prealloc", "view of input", "view of leaf", "view of node",
    "view of output", "output view", "read view", "unread view", "view with offset", "view at 0",
    "pad", "slot", "zero size", "unread input", "output read again", "many readers", "a source twice",
    "in-place chain", "node without sources", "equal sizes", "off by one", "empty",
}  # fmt: skip


def test_every_feature_of_graphs_appears(all_traces: dict[Profile, list[Trace]]) -> None:
    seen = Counter(f for trace in all_traces["plan"] for f in graph_features(trace.graphs[0]))
    assert {f for f in GRAPH_FEATURES if seen[f] < 8} == set(), seen


def test_chunks_alignments_and_limits_are_met(all_traces: dict[Profile, list[Trace]]) -> None:
    chunks: Counter[int] = Counter()
    found: Counter[str] = Counter()
    for trace in all_traces["plan"]:
        planned = plan(trace.setup.types, trace.setup.configs[0], trace.graphs[0])
        for kind, need in zip(trace.setup.types, planned.need if planned else (), strict=False):
            chunks[len(need)] += 1
            found["a tensor larger than the largest buffer"] += any(c > kind.max_size for c in need)
            found["chunk filled exactly"] += kind.max_size in need
        for kind in trace.setup.types:
            found[f"alignment {kind.alignment}"] += 1
            found[f"granularity {kind.granularity}"] += 1
            found["capacity"] += kind.capacity != UNLIMITED
        found[f"{len(trace.setup.types)} types"] += 1
        found["duplicates"] += len(set(trace.setup.configs[0])) < len(trace.setup.configs[0])
    for n in (0, 1, 2, 3, 5, 8, MAX_CHUNKS):
        assert chunks[n] >= 2, chunks
    wanted = [f"alignment {1 << k}" for k in range(9)] + ["alignment 4096", "1 types", "2 types", "3 types"]
    wanted += [f"granularity {g}" for g in (1, 64, 4096, 2 << 20)] + ["capacity", "duplicates"]
    wanted += ["a tensor larger than the largest buffer", "chunk filled exactly"]
    assert {w for w in wanted if found[w] < 5} == set(), found


def pair_features(trace: Trace) -> set[str]:
    """What happens in the trace as far as it can be told without running it."""
    found = {op.kind.name for op in trace.ops}
    found |= {f.name or "" for op in trace.ops for f in OpFlag if op.flags & f}
    role: dict[int, Kind] = {}
    config: dict[int, int] = {}
    reserved: list[int] = []
    borrowed_before = False
    for op, after in zip(trace.ops, (*trace.ops[1:], Op(Kind.LOOK)), strict=True):
        if op.kind == Kind.NEW:
            config.setdefault(op.alloc, op.other)
        elif op.kind == Kind.FREE:
            if op.alloc in role:
                found.add(f"{role[op.alloc].name} goes first" if len(role) > 1 else "last goes")
            role.pop(op.alloc, None)
            config.pop(op.alloc, None)
        elif op.kind == Kind.OWN:
            found.add("own again" if op.alloc in role else "own late" if op.alloc in reserved else "own")
            role.setdefault(op.alloc, op.kind)
        elif op.kind == Kind.BORROW:
            if role.get(op.other) != Kind.OWN:
                found.add("borrow of no owner")
            elif op.alloc in reserved:
                found.add("borrow late")
            elif Kind.BORROW in role.values():
                found.add("second borrower")
            elif op.alloc in config and op.other in config:
                mine, theirs = (set(trace.setup.configs[config[a]]) for a in (op.alloc, op.other))
                found.add(
                    "common only" if mine == theirs else "private too" if mine & theirs else "none common"
                )
                found.add("another borrower" if borrowed_before else "first borrower")
                if mine & theirs:
                    borrowed_before, role[op.alloc] = True, op.kind
        elif op.kind == Kind.RESERVE:
            reserved.append(op.alloc)
            if after.kind == Kind.MEASURE:
                found.add("measure between")
            if op.alloc in role:
                found.add(f"{role[op.alloc].name} reserves")
        if op.fail_nth or op.fail_types:
            found.add(f"{op.kind.name} with failure")
        if op.kind not in (Kind.NEW, Kind.CAPACITY) and op.alloc not in config and op.kind != Kind.FREE:
            found.add("nobody there")
    return found


PAIR_FEATURES = {
    "NEW", "FREE", "OWN", "BORROW", "RESERVE", "MEASURE", "ALLOC", "COMPUTE", "SHRINK", "CAPACITY",
    "REMAKE", "OWN goes first", "BORROW goes first", "last goes", "own again", "own late",
    "borrow of no owner", "borrow late", "second borrower", "common only", "private too",
    "none common", "another borrower", "first borrower", "measure between", "OWN reserves",
    "BORROW reserves", "RESERVE with failure", "ALLOC with failure", "nobody there",
}  # fmt: skip


def test_every_feature_of_pairs_appears(all_traces: dict[Profile, list[Trace]]) -> None:
    seen = Counter(f for trace in all_traces["pair"] for f in pair_features(trace))
    assert {f for f in PAIR_FEATURES if seen[f] < 5} == set(), seen


def test_every_feature_of_schedulers_appears(all_traces: dict[Profile, list[Trace]]) -> None:
    seen = Counter(f for trace in all_traces["sched"] for f in pair_features(trace))
    wanted = {"BY_SCHED", "ASYNC", "SYNC", "RESET", "OWN", "BORROW", "COMPUTE", "RESERVE with failure"}
    assert {f for f in wanted if seen[f] < 20} == set(), seen
    assert not seen["UNCHECKED"]


def test_graphs_of_equal_count_appear(all_traces: dict[Profile, list[Trace]]) -> None:
    twins = 0
    for trace in all_traces["gallocr"]:
        shapes = [tuple(t.size for t in g.tensors) for g in trace.graphs]
        twins += len(set(shapes)) < len(set(trace.graphs))
    assert twins > 50


def test_huge_sizes_are_huge_and_never_fit(all_traces: dict[Profile, list[Trace]]) -> None:
    sizes = [t.alloc_size for trace in all_traces["huge"] for g in trace.graphs for t in g.tensors]
    for edge in (2**62, 2**63, 2**64 - 1):
        assert sum(abs(s - edge) <= 8192 for s in sizes) > 50
    for trace in all_traces["huge"]:
        assert max(kind.capacity for kind in trace.setup.types) <= 256 << 20


def test_other_lifetimes_keep_count_and_sizes() -> None:
    changed: Counter[str] = Counter()
    for seed in range(1500):
        draw = RandomDraw(seed)
        graph = draw_graph(draw, (BufferType(8, 256),), 64, 2)
        other = mutate_lifetimes(draw, graph)
        assert graph_legal(other)
        assert [t.size for t in other.tensors] == [t.size for t in graph.tensors]
        if any(not t.prealloc for t in graph.tensors):
            assert other != graph
        for a, b in zip(graph.tensors, other.tensors, strict=True):
            for name in ("src", "view_src", "view_offs"):
                changed[name] += getattr(a, name) != getattr(b, name)
            for flag in (Flag.OUTPUT, Flag.INPUT, Flag.INPLACE):
                changed[flag.name or ""] += bool((a.flags ^ b.flags) & flag)
    assert min(changed.values()) >= 20 and len(changed) == 6, changed
    assert mutate_lifetimes(RandomDraw(0), Graph(())) == Graph(())


def test_slot_lists_have_ascending_first_occurrences() -> None:
    seen = Counter()
    for seed in range(500):
        slots = draw_slots(RandomDraw(seed), (0, 1))
        assert list(dict.fromkeys(slots)) == [0, 1] and len(slots) <= 6
        seen[slots] += 1
    assert seen[0, 1] > 200 and seen[0, 1, 0] and seen[0, 0, 1] and seen[0, 1, 1]


def test_weighted_never_takes_what_weighs_nothing() -> None:
    draw = RandomDraw(3)
    seen = Counter(weighted(draw, (("a", 0), ("b", 1), ("c", 3), ("d", 0))) for _ in range(4000))
    assert set(seen) == {"b", "c"} and 2700 < seen["c"] < 3300


quick = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), database=None)


@pytest.mark.parametrize("profile", PROFILES)
def test_hypothesis_draws_legal_traces(profile: Profile) -> None:
    @quick
    @given(traces(profile))
    def check(trace: Trace) -> None:
        assert why_illegal(trace) is None

    check()


@quick
@given(st.data())
def test_hypothesis_draws_legal_graphs(data: st.DataObject) -> None:
    graph = data.draw(graphs_for((BufferType(16, 512),), n_slots=2))
    assert graph_legal(graph)
    assert graph_legal(data.draw(other_lifetimes(graph)))


GOOD = Trace(
    Setup((BufferType(8, 100, 1, 1000), BufferType()), ((0, 1, 0), (1,))),
    (
        Graph(
            (Tensor(8, flags=Flag.LEAF), Tensor(8, (0,), Flag.INPLACE), Tensor(4, (1,), Flag(0), 0, 0, 1, 4))
        ),
    ),
    (
        Op(Kind.NEW),
        Op(Kind.RESERVE),
        Op(Kind.CAPACITY, other=1, value=5),
        Op(Kind.COMPUTE, flags=OpFlag.ASYNC),
    ),
)


def with_type(**values: int) -> Trace:
    return replace(GOOD, setup=replace(GOOD.setup, types=(replace(BufferType(), **values), BufferType())))


def with_configs(*configs: tuple[int, ...]) -> Trace:
    return replace(GOOD, setup=replace(GOOD.setup, configs=configs))


def with_tensors(*tensors: Tensor) -> Trace:
    return replace(GOOD, graphs=(Graph(tensors),))


def with_op(op: Op) -> Trace:
    return replace(GOOD, ops=(op,))


LEAF = Tensor(8, flags=Flag.LEAF)
ILLEGAL = [
    (with_type(alignment=0), "buffer type 0: alignment 0 is no power of two from 1 to 4096"),
    (with_type(alignment=24), "alignment 24"),
    (with_type(alignment=8192), "alignment 8192"),
    (with_type(granularity=3), "granularity 3"),
    (with_type(granularity=4 << 20), "granularity"),
    (with_type(max_size=0), "largest buffer 0"),
    (with_type(capacity=2**64), "capacity"),
    (replace(GOOD, setup=Setup((), ())), "0 buffer types"),
    (with_configs(), "0 configs"),
    (with_configs(()), "config 0 has 0 slots"),
    (with_configs((0,) * 7), "config 0 has 7 slots"),
    (with_configs((0, 2)), "names a buffer type that is not there"),
    (with_configs((1, 0)), "do not ascend"),
    (with_tensors(Tensor(-1)), "size -1"),
    (with_tensors(Tensor(2**64 - 1, pad=1)), "size 18446744073709551615 with pad 1"),
    (with_tensors(Tensor(1, flags=Flag(64))), "flags 64"),
    (with_tensors(Tensor(1, slot=-1)), "slot -1"),
    (with_tensors(Tensor(1, (0,))), "graph 0: tensor 0: a source is no earlier tensor"),
    (with_tensors(LEAF, Tensor(1, (0, 0, 0, 0, 0))), "5 sources"),
    (with_tensors(LEAF, Tensor(1, (0,), Flag.LEAF)), "a leaf has sources"),
    (with_tensors(Tensor(1, flags=Flag.INPUT)), "only a leaf is an input"),
    (with_tensors(Tensor(1, flags=Flag.PREALLOC)), "only a leaf is an input or has memory of its own"),
    (with_tensors(Tensor(1, flags=Flag.LEAF | Flag.PREALLOC | Flag.OUTPUT)), "no input and no output"),
    (
        with_tensors(Tensor(1 << 30, flags=Flag.LEAF | Flag.PREALLOC)),
        "memory of its own has 1073741824 bytes",
    ),
    (with_tensors(LEAF, Tensor(8, (0,), Flag.INPLACE, 0, 4)), "has a pad"),
    (with_tensors(Tensor(8, view_offs=4)), "view offset 4 on what is no view"),
    (with_tensors(LEAF, Tensor(8, (0,), view_src=1)), "view source 1"),
    (with_tensors(LEAF, Tensor(8, (), view_src=0)), "the one source of a view"),
    (with_tensors(LEAF, Tensor(8, (0,), view_src=0), Tensor(8, (1,), view_src=1)), "it views a view"),
    (with_tensors(LEAF, Tensor(8, (0,), view_src=0, view_offs=1)), "it views bytes 1 to 9 of 8"),
    (with_tensors(LEAF, Tensor(8, (0,), Flag.INPLACE, view_src=0)), "a view is a leaf"),
    (with_tensors(*[Tensor(60 << 20)] * 20), "its tensors have 1258291200 bytes"),
    (with_tensors(Tensor(2**63)), "allowed only where no device"),
    (with_op(Op(Kind.NEW, 4)), "operation 0: allocator 4"),
    (with_op(Op(Kind.NEW, 0, 2)), "config 2 is not from 0 to 1"),
    (with_op(Op(Kind.CAPACITY, 0, 2)), "type 2 is not from 0 to 1"),
    (with_op(Op(Kind.BORROW, 0, 4)), "allocator 4"),
    (with_op(Op(Kind.RESERVE, graph=1)), "graph 1 is not there"),
    (replace(GOOD, graphs=()), "graph 0 is not there"),
    (with_op(Op(Kind.RESERVE, fail_types=4)), "fail_types 4"),
    (with_op(Op(Kind.RESERVE, fail_nth=-1)), "fail_nth -1"),
    (with_op(Op(Kind.RESERVE, flags=OpFlag.ASYNC)), "RESERVE does not take the flags 2"),
    (with_op(Op(Kind.RESERVE, value=1)), "value 1 makes no sense for RESERVE"),
]


@pytest.mark.parametrize(("trace", "words"), ILLEGAL)
def test_what_is_illegal_is_named(trace: Trace, words: str) -> None:
    assert legal(GOOD)
    assert words in (why_illegal(trace) or "")
