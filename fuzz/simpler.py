"""Single steps towards a simpler trace, for the shrinker: operations, graphs and tensors (the setup: simpler_setup.py).

A pass looks at a trace and yields edits, functions from a trace to a simpler one
(None where it no longer applies), and is sent whether each was kept. The shrinker
applies each edit to the best trace so far, so an edit must hold for a trace that
has become smaller meanwhile. Edits may give illegal traces; the shrinker drops those.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from ..model.records import (
    MAX_ALLOCS,
    SIZE_MAX,
    BufferType,
    Flag,
    Graph,
    Kind,
    Op,
    OpFlag,
    Scale,
    Tensor,
    Trace,
)
from .legal import CONTEXT_KINDS, GRAPH_KINDS, POOL_KINDS, SLOT_KINDS

Edit = Callable[[Trace], "Trace | None"]
Edits = Generator[Edit, "bool | None", None]  #: is sent whether the edit was kept
Pass = Callable[[Trace], Edits]
Change = Callable[[int, int], Edit]  #: (the number now, the new one) -> the edit
Item = TypeVar("Item")


def put(items: tuple[Item, ...], i: int, item: Item) -> tuple[Item, ...]:
    return (*items[:i], item, *items[i + 1 :])


def _blocks(n: int) -> Iterator[tuple[int, int]]:
    """(begin, end) of blocks of n things: large ones first, from the end."""
    size = n
    while size:
        for end in range(n, 0, -size):
            yield max(0, end - size), end
        size //= 2


def without_operations(trace: Trace) -> Edits:
    """Blocks of operations go, large ones first, from the end."""
    for begin, end in _blocks(len(trace.ops)):
        yield lambda t, a=begin, b=end: replace(t, ops=t.ops[:a] + t.ops[b:])  # type: ignore[misc]


#: what one operation begins another ends: where one goes alone, the other is misuse
_ENDS = {
    Kind.FREE: Kind.NEW,
    Kind.POOL_FREE: Kind.POOL_ALLOC,
    Kind.CAPTURE_END: Kind.CAPTURE_BEGIN,
    Kind.CTX_CLOSE: Kind.CTX_OPEN,
    Kind.SLOT_LEAVE: Kind.SLOT_ENTER,
}


def _pairs(trace: Trace) -> list[tuple[int, int]]:
    """(where it begins, where it ends), of what the operations begin and end again, the last to end last."""
    begun: dict[tuple[Kind, int, int], list[int]] = {}
    pairs = []
    for at, op in enumerate(trace.ops):
        place = op.other if op.kind in POOL_KINDS else 0
        if op.kind in _ENDS:
            before = begun.get((_ENDS[op.kind], op.alloc, place))
            if before:
                pairs.append((before.pop(), at))
        else:
            begun.setdefault((op.kind, op.alloc, place), []).append(at)
    return pairs


def without_pairs(trace: Trace) -> Edits:
    """Operations go together with those that end them."""

    def edit(t: Trace, begin: int, end: int) -> Trace | None:
        pairs = _pairs(t)
        gone = {at for pair in pairs[begin:end] for at in pair}
        if end > len(pairs):
            return None
        return replace(t, ops=tuple(op for at, op in enumerate(t.ops) if at not in gone))

    for begin, end in _blocks(len(_pairs(trace))):
        yield lambda t, a=begin, b=end: edit(t, a, b)  # type: ignore[misc]


def _without_graph(trace: Trace, g: int) -> Trace | None:
    contexts = trace.setup.contexts
    if g >= len(trace.graphs) or any(op.kind in GRAPH_KINDS and op.graph == g for op in trace.ops):
        return None
    if any(c.config >= 0 and c.graph == g for c in contexts):
        return None
    contexts = tuple(replace(c, graph=c.graph - (c.graph > g)) for c in contexts)
    ops = tuple(replace(op, graph=op.graph - (op.graph > g)) for op in trace.ops)
    ops = tuple(op if op.kind in GRAPH_KINDS else replace(op, graph=0) for op in ops)
    return Trace(replace(trace.setup, contexts=contexts), trace.graphs[:g] + trace.graphs[g + 1 :], ops)


def without_graphs(trace: Trace) -> Edits:
    """Graphs that no operation reads go; then one graph does for two."""
    for g in reversed(range(len(trace.graphs))):
        yield lambda t, g=g: _without_graph(t, g)  # type: ignore[misc]
    for g in reversed(range(1, len(trace.graphs))):
        for h in range(g):
            yield lambda t, g=g, h=h: replace(  # type: ignore[misc]
                t, ops=tuple(replace(op, graph=h) if op.graph == g else op for op in t.ops)
            )


def _without_tensors(graph: Graph, begin: int, end: int, rewire: bool) -> Graph | None:
    """Tensors begin to end - 1 go; who read one reads what it read first (`rewire`), or nothing in its place."""
    tensors = graph.tensors
    if end > len(tensors):
        return None

    def heir(s: int) -> int | None:
        """What is read in place of s, by its new number."""
        while begin <= s < end:
            if not (rewire and tensors[s].src):
                return None
            s = tensors[s].src[0]
        return s if s < begin else s - (end - begin)

    def moved(t: Tensor) -> Tensor:
        src = tuple(h for s in t.src if (h := heir(s)) is not None)
        view = heir(t.view_src) if t.view else None
        return replace(
            t, src=src, view_src=-1 if view is None else view, view_offs=0 if view is None else t.view_offs
        )

    return Graph(tensors[:begin] + tuple(map(moved, tensors[end:])))


def without_tensors(trace: Trace) -> Edits:
    """Blocks of tensors go, in all graphs at once, then in each; their readers are rewired to a source or not."""
    longest = max((len(graph.tensors) for graph in trace.graphs), default=0)
    if len(trace.graphs) > 1:
        for edit in _fewer(longest):
            yield lambda t, e=edit: replace(t, graphs=tuple(e(g) or g for g in t.graphs))  # type: ignore[misc]
    for g, graph in enumerate(trace.graphs):
        for edit in _fewer(len(graph.tensors)):
            yield _on_graph(g, edit)


def _fewer(n: int) -> Iterator[Callable[[Graph], Graph | None]]:
    """Edits of a graph of n tensors that take some of them away."""
    for begin, end in _blocks(n):
        for rewire in (False, True):
            yield lambda graph, a=begin, b=end, r=rewire: _without_tensors(graph, a, b, r)  # type: ignore[misc]


def _on_graph(g: int, change: Callable[[Graph], Graph | None]) -> Edit:
    def edit(trace: Trace) -> Trace | None:
        if g >= len(trace.graphs) or (changed := change(trace.graphs[g])) is None:
            return None
        return replace(trace, graphs=put(trace.graphs, g, changed))

    return edit


def on_tensor(g: int, i: int, change: Callable[[Tensor], Tensor]) -> Edit:
    def on(graph: Graph) -> Graph | None:
        if i >= len(graph.tensors):
            return None
        return Graph(put(graph.tensors, i, change(graph.tensors[i])))

    return _on_graph(g, on)


def plainer_tensors(trace: Trace) -> Edits:
    """Sources, views, flags and slots go."""
    for g, graph in enumerate(trace.graphs):
        for i, t in enumerate(graph.tensors):
            yield on_tensor(g, i, lambda x: replace(x, src=(), view_src=-1, view_offs=0))
            for k in range(len(t.src)):
                yield on_tensor(g, i, lambda x, k=k: replace(x, src=x.src[:k] + x.src[k + 1 :]))  # type: ignore[misc]
            if t.view:
                yield on_tensor(g, i, lambda x: replace(x, view_src=-1, view_offs=0))
            for flag in Flag:
                if t.flags & flag:
                    yield on_tensor(g, i, lambda x, f=flag: replace(x, flags=x.flags & ~f))  # type: ignore[misc]
            if t.scale:
                yield on_tensor(g, i, lambda x: replace(x, scale=Scale.SCALE_NONE))
            if t.slot:
                yield on_tensor(g, i, lambda x: replace(x, slot=0))
            for s in sorted(set(t.src)):
                yield on_tensor(g, i, lambda x, s=s: _reads_earlier(x, s))  # type: ignore[misc]


def _reads_earlier(t: Tensor, s: int) -> Tensor:
    """What reads s reads tensor 0 in its place."""
    src = tuple(0 if x == s else x for x in t.src)
    return replace(t, src=src, view_src=0 if t.view_src == s else t.view_src)


def plainer_operations(trace: Trace) -> Edits:
    """No injected failures, no flags, low numbers of allocators."""
    plain: dict[str, Any] = {"fail_types": 0, "fail_nth": 0, "flags": OpFlag(0)}
    for i, op in enumerate(trace.ops):
        for name, value in plain.items():
            if getattr(op, name) != value:
                yield on_op(i, lambda x, n=name, v=value: replace(x, **{n: v}))  # type: ignore[misc]
        if op.fail_nth > 1:
            yield on_op(i, lambda x: replace(x, fail_nth=1))
        if op.kind == Kind.ALLOC:  # an alloc may do where a reserve came before
            yield on_op(i, lambda x: replace(x, kind=Kind.RESERVE))
        for low in range(op.alloc):
            if (yield on_op(i, lambda x, low=low: replace(x, alloc=low))):  # type: ignore[misc]
                break
    for high in range(MAX_ALLOCS - 1, 0, -1):
        for low in range(high):
            yield lambda t, h=high, low=low: _swapped(t, h, low)  # type: ignore[misc]


def on_op(i: int, change: Callable[[Op], Op]) -> Edit:
    return lambda t: replace(t, ops=put(t.ops, i, change(t.ops[i]))) if i < len(t.ops) else None


def _swapped(trace: Trace, high: int, low: int) -> Trace | None:
    """Allocators high and low change names, where low is used later than high, or never."""
    order = [op.alloc for op in trace.ops if op.kind == Kind.NEW]
    if high not in order or (low in order and order.index(low) < order.index(high)):
        return None
    names = {high: low, low: high}

    def renamed(op: Op) -> Op:
        if op.kind in CONTEXT_KINDS or op.kind in SLOT_KINDS:
            return op
        op = replace(op, alloc=names.get(op.alloc, op.alloc))
        return replace(op, other=names.get(op.other, op.other)) if op.kind == Kind.BORROW else op

    return replace(trace, ops=tuple(map(renamed, trace.ops)))


_SIMPLE = (0, 1, 2, 4, 8, 16, 64, 256, 4096)


def descend(value: int, change: Change, first: tuple[int, ...] = ()) -> Edits:
    """Brings one number down: simple ones first, then by steps that halve while they do not help.
    `change(now, v)` is the edit that makes it v where it is `now`."""
    for v in (*first, *_SIMPLE):
        if v != value and (v < value or v in first) and (yield change(value, v)):
            return
    power = 1 << max(0, value.bit_length() - 1)
    if power < value and (yield change(value, power)):
        value = power
    step = value // 2
    while step:
        if step <= value and (yield change(value, value - step)):
            value -= step
        else:
            step //= 2


def _of_tensor(g: int, i: int, name: str) -> Change:
    changes: dict[str, Callable[[Tensor, int], Tensor]] = {
        "size": lambda t, v: replace(t, size=v),
        "pad": lambda t, v: replace(t, pad=v),
        "view_offs": lambda t, v: replace(t, view_offs=v),
    }
    return lambda _, v: on_tensor(g, i, lambda t: changes[name](t, v))


def lower_tensors(trace: Trace) -> Edits:
    """Sizes, pads and offsets become simple."""
    for g, graph in enumerate(trace.graphs):
        for i, tensor in enumerate(graph.tensors):
            for name in ("pad", "view_offs", "size"):
                yield from descend(getattr(tensor, name), _of_tensor(g, i, name))


def lower_together(trace: Trace) -> Edits:
    """Equal sizes change together in all graphs, and all numbers are halved at once."""
    for divisor in (4096, 256, 16, 4, 2):
        yield lambda t, d=divisor: _scaled(t, d)  # type: ignore[misc]
    for size in sorted({t.size for g in trace.graphs for t in g.tensors}, reverse=True):
        yield from descend(size, lambda now, v: lambda x: _resized(x, now, v))


def _resized(trace: Trace, size: int, value: int) -> Trace:
    def changed(t: Tensor) -> Tensor:
        return replace(t, size=value) if t.size == size else t

    return replace(trace, graphs=tuple(Graph(tuple(map(changed, g.tensors))) for g in trace.graphs))


def _scaled(trace: Trace, d: int) -> Trace:
    """Every number of bytes divided by d; what means 'no limit' stays."""

    def part(value: int) -> int:
        return value if value == SIZE_MAX else value // d

    def tensor(t: Tensor) -> Tensor:
        return replace(t, size=t.size // d, pad=t.pad // d, view_offs=t.view_offs // d)

    def kind(k: BufferType) -> BufferType:
        names = ("alignment", "max_size", "granularity")
        return replace(k, capacity=part(k.capacity), **{n: max(1, part(getattr(k, n))) for n in names})

    def operation(op: Op) -> Op:
        return replace(op, value=part(op.value)) if op.kind in (Kind.CAPACITY, Kind.POOL_ALLOC) else op

    setup = replace(
        trace.setup, types=tuple(map(kind, trace.setup.types)), pool_range=part(trace.setup.pool_range)
    )
    graphs = tuple(Graph(tuple(map(tensor, g.tensors))) for g in trace.graphs)
    return Trace(setup, graphs, tuple(map(operation, trace.ops)))
