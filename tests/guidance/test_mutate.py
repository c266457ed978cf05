"""Mutants of kept traces: legal, repeatable, at the edges of what the traces have; and no false alarm."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from gallocheck.fuzz import mutate_trace, mutate_values
from gallocheck.fuzz.draw import RandomDraw
from gallocheck.fuzz.found import draw, profiles_for
from gallocheck.fuzz.judge import Judge
from gallocheck.fuzz.legal import legal, why_illegal
from gallocheck.fuzz.mutate_trace import EDITS, MOST_GRAPHS, MOST_OPS, mutated
from gallocheck.fuzz.subjects import bundled
from gallocheck.model.records import (
    SIZE_MAX,
    BufferType,
    Cap,
    Context,
    Flag,
    Graph,
    Kind,
    Op,
    OpFlag,
    PoolKind,
    Setup,
    Status,
    Strategy,
    Tensor,
    Trace,
)
from gallocheck.native.worker import Worker


@pytest.fixture(scope="module")
def caps() -> Cap:
    with Worker(bundled("bundled")) as worker:
        return worker.capabilities


@pytest.fixture(scope="module")
def corpus(caps: Cap) -> list[Trace]:
    rng = random.Random(11)
    return [draw(rng, profiles_for(caps), caps) for _ in range(40)]


def test_mutants_are_legal_and_new(corpus: list[Trace], caps: Cap) -> None:
    """So they are of a hundred generations, which do not grow without end."""
    rng, pool = random.Random(5), list(corpus)
    for _ in range(400):
        made = mutated(rng, pool, caps)
        assert why_illegal(made) is None and len(made.ops) <= MOST_OPS
        pool[rng.randrange(len(pool))] = made
    assert not set(pool) & set(corpus) or len(set(pool) - set(corpus)) > 30
    assert all(len(t.graphs) <= max(MOST_GRAPHS, len(t.ops)) for t in pool), "those that nothing reads go"


def test_the_same_seed_and_corpus_make_the_same(corpus: list[Trace], caps: Cap) -> None:
    first = [mutated(random.Random(k), corpus, caps) for k in range(60)]
    assert first == [mutated(random.Random(k), list(corpus), caps) for k in range(60)]
    assert len(set(first)) > 55 and sum(t in corpus for t in first) <= 1


def test_every_edit_changes_something(corpus: list[Trace]) -> None:
    done: Counter[str] = Counter()
    rng = RandomDraw(4)
    for edit, _ in EDITS:
        for _ in range(60):
            trace, other = rng.choice(corpus), rng.choice(corpus)
            changed = edit(rng, trace, other)
            done[edit.__name__] += changed is not None and changed != trace and legal(changed)
    assert min(done[edit.__name__] for edit, _ in EDITS) >= 5, done


def test_operations_come_from_the_corpus(corpus: list[Trace], caps: Cap) -> None:
    """What no kept trace does, the subject may not be able to do."""
    few = [t for t in corpus if all(op.kind < Kind.POOL_ALLOC for op in t.ops)][:4]
    known = {(op.kind, op.flags) for t in few for op in t.ops} | {(op.kind, 0) for t in few for op in t.ops}
    rng = random.Random(8)
    for _ in range(200):
        assert {(op.kind, op.flags) for op in mutated(rng, few, caps).ops} <= known


def test_splices_keep_both_histories() -> None:
    """The end of the other trace works on its own graphs, on the first one's devices."""
    graphs = [Graph((Tensor(n, flags=Flag.LEAF),)) for n in (8, 16)]
    one = Trace(
        Setup((BufferType(),), ((0,),)), (graphs[0],), (Op(Kind.NEW), Op(Kind.RESERVE), Op(Kind.ALLOC))
    )
    two = Trace(
        Setup((BufferType(), BufferType()), ((0, 1), (1,))),
        (graphs[1],),
        (Op(Kind.NEW, 1, 1), Op(Kind.RESERVE, 1, fail_types=3), Op(Kind.FREE, 1)),
    )
    rng, ends = RandomDraw(2), set()
    for _ in range(60):
        joined = mutate_trace.splice(rng, one, two)
        assert joined is not None and legal(joined) and joined.setup == one.setup
        sizes = [
            (op.alloc, joined.graphs[op.graph].tensors[0].size)
            for op in joined.ops
            if op.kind in (Kind.RESERVE, Kind.ALLOC)
        ]
        assert all(size == (8, 16)[alloc] for alloc, size in sizes)
        ends.add((joined.ops[0], joined.ops[-1]))
    assert ends == {(Op(Kind.NEW), Op(Kind.FREE, 1))}


def test_values_lie_at_edges() -> None:
    """Equal to another, one off, at the alignment, at the largest buffer, at the capacity."""
    kind = BufferType(alignment=32, max_size=1000, granularity=1, capacity=5000)
    graph = Graph((Tensor(100, flags=Flag.LEAF), Tensor(333, (0,))))
    trace = Trace(Setup((kind,), ((0,),)), (graph,), (Op(Kind.NEW),))
    rng = RandomDraw(1)
    seen = Counter(mutate_values.near_edge(rng, trace, 100) for _ in range(3000))
    for value in (
        333,
        99,
        101,
        332,
        334,
        96,
        128,
        132,
        68,
        1000,
        999,
        1001,
        1032,
        968,
        5000,
        4999,
        5001,
        200,
        50,
        0,
    ):
        assert seen[value] >= 5, (value, seen)
    capacities = {
        mutate_values.new_value(rng, trace, Op(Kind.CAPACITY, other=0, value=1)) for _ in range(300)
    }
    need = 128 + 352  # both are needed at once; the second ends at a multiple of the alignment
    assert {SIZE_MAX} < capacities and any(abs(c - need) <= 64 for c in capacities - {SIZE_MAX})


def test_a_context_lends_no_memory_by_itself() -> None:
    """Found by a mutant: a scheduler borrowed from a context's own, which is misuse (docs/choices.md)."""
    context = Context(config=0, lanes=1)
    trace = Trace(
        Setup((BufferType(),), ((0,),), contexts=(context,)),
        (Graph(()),),
        (Op(Kind.CTX_OPEN), Op(Kind.NEW, 1, flags=OpFlag.BY_SCHED), Op(Kind.BORROW, 1, 0)),
    )
    with Judge(bundled("bundled")) as judge:
        report = judge.judge(trace)
    assert report.failed is None and report.statuses[-1] == Status.MISUSE


@pytest.mark.parametrize("flags", [OpFlag(0), OpFlag.BY_SCHED])
def test_a_number_that_is_taken_is_not_given_twice(flags: OpFlag) -> None:
    """Found by a mutant: a plain allocator that is refused, its number being a scheduler's, stayed in the books."""
    graph = Graph((Tensor(1, flags=Flag.LEAF),))
    ops = (
        Op(Kind.NEW, flags=flags),
        Op(Kind.NEW),
        Op(Kind.FREE),
        Op(Kind.NEW, other=1),
        Op(Kind.MEASURE),
        Op(Kind.ALLOC),
    )
    trace = Trace(Setup((BufferType(2), BufferType()), ((0,), (1,))), (graph,), ops)
    with Judge(bundled("bundled")) as judge:
        report = judge.judge(trace)
    assert report.failed is None, report.failed
    assert [s == Status.MISUSE for s in report.statuses] == [False, True, False, False, False, False]


def test_no_scratch_for_who_counts_buffers() -> None:
    """Found by a mutant: a computation that pools refuse was said to break the sharing of buffers."""
    setup = Setup((BufferType(),), ((0,),), Strategy.COUNTED, PoolKind.VMM_POOL, 1)
    ops = (Op(Kind.NEW), Op(Kind.ALLOC), Op(Kind.COMPUTE, fail_types=1))
    with Judge(bundled("bundled")) as judge:
        report = judge.judge(Trace(setup, (Graph((Tensor(0, flags=Flag.LEAF),)),), ops))
    assert report.failed is None and report.statuses[-1] == Status.REFUSED, report.failed


def test_no_false_alarm(corpus: list[Trace], caps: Cap) -> None:
    """The bundled allocator keeps the contract on what generators would not draw, too."""
    rng, steps = random.Random(21), 0
    with Judge(bundled("bundled")) as judge:
        for _ in range(60):
            report = judge.judge(mutated(rng, corpus, caps))
            assert report.failed is None, report.failed
            steps += report.steps
    assert steps > 600
