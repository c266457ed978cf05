"""New traces made of kept ones: operations changed, graphs and setups too, two traces joined (mutate_values.py: by what).

    trace = mutated(random.Random(seed), corpus, caps)

The result is legal (legal.py), and a function of the arguments alone. What a subject can do is not guessed
at: operations, flags and strategies come from the kept traces, which it has run.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from ..model.records import MAX_ALLOCS, MAX_CONFIGS, Cap, Graph, Kind, Op, Trace
from .draw import Draw, RandomDraw, weighted
from .graphs import draw_graph, grown, mutate_lifetimes
from .legal import CONTEXT_KINDS, GRAPH_KINDS, POOL_KINDS, SLOT_KINDS, legal
from .mutate_values import new_setup, new_sizes, new_value
from .simpler import put

MOST_OPS = 48  #: a mutant that would be longer is cut there: what is kept must not grow for ever
MOST_GRAPHS = 8
TRIES = 40

Edit = Callable[
    [Draw, Trace, Trace], "Trace | None"
]  #: (draw, the trace, another one) -> None: it does not apply


def mutated(rng: random.Random, corpus: Sequence[Trace], caps: Cap) -> Trace:
    """A legal trace made of `corpus`, which is not empty: one with 1 to 6 changes. `caps`: of the subject."""
    draw = RandomDraw(rng)
    trace, other = draw.choice(corpus), draw.choice(corpus)
    wanted = weighted(draw, ((1, 4), (2, 3), (3, 2), (6, 1)))
    for _ in range(TRIES):
        changed = weighted(draw, EDITS)(draw, trace, other)
        if changed is None or changed == trace:
            continue
        changed = _cut(changed)
        if changed.ops and legal(changed):
            trace, wanted = changed, wanted - 1
            if not wanted:
                break
    return trace


def _cut(trace: Trace) -> Trace:
    """Its first operations, and the graphs that they use where there are too many."""
    if len(trace.ops) > MOST_OPS:
        trace = replace(trace, ops=trace.ops[:MOST_OPS])
    return _used_graphs(trace) if len(trace.graphs) > MOST_GRAPHS else trace


def _used_graphs(trace: Trace) -> Trace:
    """Without the graphs that nothing reads."""
    contexts = trace.setup.contexts
    used = {op.graph for op in trace.ops if op.kind in GRAPH_KINDS} | {
        c.graph for c in contexts if c.config >= 0
    }
    number = {g: k for k, g in enumerate(sorted(used))}
    ops = tuple(replace(op, graph=number.get(op.graph, 0)) for op in trace.ops)
    contexts = tuple(replace(c, graph=number.get(c.graph, 0)) for c in contexts)
    graphs = tuple(g for k, g in enumerate(trace.graphs) if k in used)
    return Trace(replace(trace.setup, contexts=contexts), graphs, ops)


# -- operations ----------------------------------------------------------------------


def _place(draw: Draw, trace: Trace) -> int:
    return draw.integer(0, len(trace.ops) - 1)


def _block(draw: Draw, trace: Trace) -> tuple[int, int]:
    """Where some operations in a row begin and end."""
    begin = _place(draw, trace)
    return begin, min(len(trace.ops), begin + draw.choice((1, 1, 2, 3, 5)))


def drop(draw: Draw, trace: Trace, other: Trace) -> Trace | None:
    a, b = _block(draw, trace)
    return replace(trace, ops=trace.ops[:a] + trace.ops[b:])


def repeat(draw: Draw, trace: Trace, other: Trace) -> Trace | None:
    """A block comes a second time, right there or elsewhere."""
    a, b = _block(draw, trace)
    at = b if draw.boolean(0.5) else draw.integer(0, len(trace.ops))
    return replace(trace, ops=trace.ops[:at] + trace.ops[a:b] + trace.ops[at:])


def swap(draw: Draw, trace: Trace, other: Trace) -> Trace | None:
    """Two operations change places, mostly neighbours."""
    ops = list(trace.ops)
    i = _place(draw, trace)
    j = (i + 1) % len(ops) if draw.boolean(0.6) else _place(draw, trace)
    ops[i], ops[j] = ops[j], ops[i]
    return replace(trace, ops=tuple(ops))


def insert(draw: Draw, trace: Trace, other: Trace) -> Trace | None:
    """An operation of this trace or of the other one, with another allocator or graph at times."""
    op = _fitted(draw.choice(draw.choice((trace, other)).ops), trace, 0)
    at = draw.integer(0, len(trace.ops))
    if draw.boolean(0.7):
        op = _changed(draw, trace, other, op)
    return replace(trace, ops=(*trace.ops[:at], op, *trace.ops[at:]))


def change(draw: Draw, trace: Trace, other: Trace) -> Trace | None:
    i = _place(draw, trace)
    return replace(trace, ops=put(trace.ops, i, _changed(draw, trace, other, trace.ops[i])))


def rename(draw: Draw, trace: Trace, other: Trace) -> Trace | None:
    """From some operation on, two allocators (contexts, slots, streams) are each other."""
    i = _place(draw, trace)
    a, b = draw.integer(0, MAX_ALLOCS - 1), draw.integer(0, MAX_ALLOCS - 1)
    names = {a: b, b: a}

    def renamed(op: Op) -> Op:
        op = replace(op, alloc=names.get(op.alloc, op.alloc))
        return replace(op, other=names.get(op.other, op.other)) if op.kind == Kind.BORROW else op

    return replace(trace, ops=trace.ops[:i] + tuple(map(renamed, trace.ops[i:])))


def _changed(draw: Draw, trace: Trace, other: Trace, op: Op) -> Op:
    """The operation with one other field."""
    how = draw.integer(0, 7)
    if how == 0:
        return replace(op, alloc=draw.integer(0, MAX_ALLOCS - 1))
    if how == 1 and op.kind in GRAPH_KINDS:
        return replace(op, graph=draw.integer(0, len(trace.graphs) - 1))
    if how == 2:
        return replace(op, fail_nth=0 if op.fail_nth else draw.choice((1, 1, 1, 2, 2, 3, 4)))
    if how == 3:
        return replace(
            op, fail_types=0 if op.fail_types else draw.integer(1, (1 << len(trace.setup.types)) - 1)
        )
    if how == 4:
        return replace(op, other=_other(draw, trace, op))
    if how == 5:  # as some operation of its kind has them
        like = [x for x in (*trace.ops, *other.ops) if x.kind == op.kind]
        return replace(op, flags=draw.choice(like).flags) if like else op
    if how == 6:
        kind = draw.choice(draw.choice((trace, other)).ops).kind
        same = (op.kind in s for s in (CONTEXT_KINDS, SLOT_KINDS, POOL_KINDS))
        if all(a == (kind in s) for a, s in zip(same, (CONTEXT_KINDS, SLOT_KINDS, POOL_KINDS), strict=True)):
            return _fitted(Op(kind, op.alloc, op.other, op.graph, op.fail_types, op.fail_nth), trace, 0)
        return op
    return replace(op, value=new_value(draw, trace, op))


def _other(draw: Draw, trace: Trace, op: Op) -> int:
    if op.kind == Kind.NEW:
        return draw.integer(0, len(trace.setup.configs) - 1)
    if op.kind == Kind.BORROW:
        return draw.integer(0, MAX_ALLOCS - 1)
    if op.kind in (Kind.CAPACITY, Kind.TRIM) or op.kind in POOL_KINDS:
        return draw.integer(0, len(trace.setup.types) - 1)
    if op.kind == Kind.CTX_DECODE:
        return max(0, op.other + draw.choice((-8, -1, 1, 8, op.other, -op.other // 2)))
    return op.other


# -- two traces ----------------------------------------------------------------------


def _fitted(op: Op, trace: Trace, graphs_from: int) -> Op:
    """An operation of another trace, as it can stand in this one; its graphs begin at `graphs_from`."""
    setup = trace.setup
    if op.kind == Kind.NEW:
        op = replace(op, other=op.other % len(setup.configs))
    elif op.kind in (Kind.CAPACITY, Kind.TRIM) or op.kind in POOL_KINDS:
        op = replace(op, other=op.other % len(setup.types))
    op = replace(op, fail_types=op.fail_types & ((1 << len(setup.types)) - 1))
    if op.kind not in GRAPH_KINDS:
        return replace(op, graph=0)
    return replace(op, graph=(graphs_from + op.graph) % max(1, len(trace.graphs)))


def splice(draw: Draw, trace: Trace, other: Trace) -> Trace | None:
    """The beginning of one history and the end of another, on the one's devices."""
    both = replace(trace, graphs=trace.graphs + other.graphs)
    cut, end = draw.integer(1, len(trace.ops)), draw.integer(0, len(other.ops) - 1)
    tail = tuple(_fitted(op, both, len(trace.graphs)) for op in other.ops[end:])
    joined = replace(both, ops=trace.ops[:cut] + tail)
    return _used_graphs(joined) if joined.ops else None


def graft(draw: Draw, trace: Trace, other: Trace) -> Trace | None:
    """A graph of the other trace stands for one of this, or comes to it."""
    if not other.graphs:
        return None
    graph = draw.choice(other.graphs)
    if trace.graphs and draw.boolean(0.6):
        return replace(trace, graphs=put(trace.graphs, draw.integer(0, len(trace.graphs) - 1), graph))
    return _with_graph(draw, trace, graph)


def configs(draw: Draw, trace: Trace, other: Trace) -> Trace | None:
    """A slot list of the other trace stands for one of this, or comes to it."""
    mine, theirs = trace.setup.configs, draw.choice(other.setup.configs)
    if len(mine) < MAX_CONFIGS and draw.boolean(0.3):
        changed = (*mine, theirs)
    else:
        changed = put(mine, draw.integer(0, len(mine) - 1), theirs)
    return replace(trace, setup=replace(trace.setup, configs=changed))


# -- graphs and setups ---------------------------------------------------------------


def _with_graph(draw: Draw, trace: Trace, graph: Graph) -> Trace:
    """With one more graph, which some operations read."""
    number = len(trace.graphs)
    readers = [i for i, op in enumerate(trace.ops) if op.kind in GRAPH_KINDS]
    ops = trace.ops
    if readers:
        first = draw.choice(readers)
        many = draw.choice((1, 2, len(readers)))
        for i in [i for i in readers if i >= first][:many]:
            ops = put(ops, i, replace(ops[i], graph=number))
    return Trace(trace.setup, (*trace.graphs, graph), ops)


def another_graph(draw: Draw, trace: Trace, other: Trace) -> Trace | None:
    """A graph of other lifetimes (G4), of twice the size, of other sizes, or a new one: in place of it or beside it."""
    setup = trace.setup
    if not trace.graphs:
        return None
    at = draw.integer(0, len(trace.graphs) - 1)
    graph, how = trace.graphs[at], draw.integer(0, 9)
    if how <= 2:
        changed = mutate_lifetimes(draw, graph)
    elif how == 3:
        changed = grown(graph)
    elif how <= 7:
        changed = new_sizes(draw, trace, graph)
    else:
        scale = max([1, *(t.size for t in graph.tensors if t.size <= 1 << 16)])
        changed = draw_graph(draw, setup.types, scale, max(map(len, setup.configs)))
    if draw.boolean(0.6):
        return replace(trace, graphs=put(trace.graphs, at, changed))
    return _with_graph(draw, trace, changed)


def another_setup(draw: Draw, trace: Trace, other: Trace) -> Trace | None:
    return replace(trace, setup=new_setup(draw, trace, other.setup))


EDITS: tuple[tuple[Edit, int], ...] = (
    (drop, 3),
    (repeat, 3),
    (swap, 2),
    (insert, 5),
    (change, 8),
    (rename, 1),
    (splice, 3),
    (graft, 2),
    (configs, 1),
    (another_graph, 4),
    (another_setup, 3),
)
