"""Single steps towards a simpler trace, for the shrinker.

A pass looks at a trace and yields edits, functions from a trace to a simpler one
(None where it no longer applies), and is sent whether each was kept. The shrinker
applies each edit to the best trace so far, so an edit must hold for a trace that
has become smaller meanwhile. Edits may give illegal traces; the shrinker drops those.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import fields, replace
from typing import Any, TypeVar

from ..model.records import (
    SIZE_MAX,
    UNLIMITED,
    BufferType,
    Flag,
    Graph,
    Kind,
    Op,
    OpFlag,
    Setup,
    Tensor,
    Trace,
)
from .legal import GRAPH_KINDS

Edit = Callable[[Trace], "Trace | None"]
Edits = Generator[Edit, "bool | None", None]  #: is sent whether the edit was kept
Pass = Callable[[Trace], Edits]
Change = Callable[[int, int], Edit]  #: (the number now, the new one) -> the edit
Item = TypeVar("Item")


def _put(items: tuple[Item, ...], i: int, item: Item) -> tuple[Item, ...]:
    return (*items[:i], item, *items[i + 1 :])


def without_operations(trace: Trace) -> Edits:
    """Blocks of operations go, large ones first, from the end."""
    size = len(trace.ops)
    while size:
        for end in range(len(trace.ops), 0, -size):
            begin = max(0, end - size)
            yield lambda t, a=begin, b=end: replace(t, ops=t.ops[:a] + t.ops[b:])  # type: ignore[misc]
        size //= 2


def _without_graph(trace: Trace, g: int) -> Trace | None:
    if g >= len(trace.graphs) or any(op.kind in GRAPH_KINDS and op.graph == g for op in trace.ops):
        return None
    ops = tuple(replace(op, graph=op.graph - (op.graph > g)) for op in trace.ops)
    ops = tuple(op if op.kind in GRAPH_KINDS else replace(op, graph=0) for op in ops)
    return replace(trace, graphs=trace.graphs[:g] + trace.graphs[g + 1 :], ops=ops)


def without_graphs(trace: Trace) -> Edits:
    """Graphs that no operation reads go; then one graph does for two."""
    for g in reversed(range(len(trace.graphs))):
        yield lambda t, g=g: _without_graph(t, g)  # type: ignore[misc]
    for g in reversed(range(1, len(trace.graphs))):
        for h in range(g):
            yield lambda t, g=g, h=h: replace(  # type: ignore[misc]
                t, ops=tuple(replace(op, graph=h) if op.graph == g else op for op in t.ops)
            )


def _without_tensor(graph: Graph, i: int, rewire: bool) -> Graph | None:
    """Tensor i goes; who read it reads its first source (`rewire`), or nothing in its place."""
    if i >= len(graph.tensors):
        return None
    gone = graph.tensors[i]
    heir = gone.src[0] if gone.src and rewire else None

    def moved(t: Tensor) -> Tensor:
        kept = [heir if s == i else s for s in t.src]
        src = tuple(s - (s > i) for s in kept if s is not None)
        view, offset = t.view_src, t.view_offs
        if view == i:
            view, offset = (heir, offset) if heir is not None else (-1, 0)
        return replace(t, src=src, view_src=view - (view > i), view_offs=offset)

    return Graph(graph.tensors[:i] + tuple(map(moved, graph.tensors[i + 1 :])))


def without_tensors(trace: Trace) -> Edits:
    """Tensors go one by one, from the end, their readers rewired to a source or not."""
    for g, graph in enumerate(trace.graphs):
        for i in reversed(range(len(graph.tensors))):
            for rewire in (False, True):
                yield _on_graph(g, lambda x, i=i, r=rewire: _without_tensor(x, i, r))  # type: ignore[misc]


def _on_graph(g: int, change: Callable[[Graph], Graph | None]) -> Edit:
    def edit(trace: Trace) -> Trace | None:
        if g >= len(trace.graphs) or (changed := change(trace.graphs[g])) is None:
            return None
        return replace(trace, graphs=_put(trace.graphs, g, changed))

    return edit


def _on_tensor(g: int, i: int, change: Callable[[Tensor], Tensor]) -> Edit:
    def on(graph: Graph) -> Graph | None:
        if i >= len(graph.tensors):
            return None
        return Graph(_put(graph.tensors, i, change(graph.tensors[i])))

    return _on_graph(g, on)


def plainer_tensors(trace: Trace) -> Edits:
    """Sources, views, flags and slots go."""
    for g, graph in enumerate(trace.graphs):
        for i, t in enumerate(graph.tensors):
            yield _on_tensor(g, i, lambda x: replace(x, src=(), view_src=-1, view_offs=0))
            for k in range(len(t.src)):
                yield _on_tensor(g, i, lambda x, k=k: replace(x, src=x.src[:k] + x.src[k + 1 :]))  # type: ignore[misc]
            if t.view:
                yield _on_tensor(g, i, lambda x: replace(x, view_src=-1, view_offs=0))
            for flag in Flag:
                if t.flags & flag:
                    yield _on_tensor(g, i, lambda x, f=flag: replace(x, flags=x.flags & ~f))  # type: ignore[misc]
            if t.slot:
                yield _on_tensor(g, i, lambda x: replace(x, slot=0))
            for s in sorted(set(t.src)):
                yield _on_tensor(g, i, lambda x, s=s: _reads_earlier(x, s))  # type: ignore[misc]


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
                yield _on_op(i, lambda x, n=name, v=value: replace(x, **{n: v}))  # type: ignore[misc]
        if op.fail_nth > 1:
            yield _on_op(i, lambda x: replace(x, fail_nth=1))
        if op.kind == Kind.ALLOC:  # an alloc may do where a reserve came before
            yield _on_op(i, lambda x: replace(x, kind=Kind.RESERVE))
        for low in range(op.alloc):
            yield _on_op(i, lambda x, low=low: replace(x, alloc=low))  # type: ignore[misc]
    for high in range(3, 0, -1):
        for low in range(high):
            yield lambda t, h=high, low=low: _swapped(t, h, low)  # type: ignore[misc]


def _on_op(i: int, change: Callable[[Op], Op]) -> Edit:
    return lambda t: replace(t, ops=_put(t.ops, i, change(t.ops[i]))) if i < len(t.ops) else None


def _swapped(trace: Trace, high: int, low: int) -> Trace | None:
    """Allocators high and low change names, where low is used later than high, or never."""
    order = [op.alloc for op in trace.ops if op.kind == Kind.NEW]
    if high not in order or (low in order and order.index(low) < order.index(high)):
        return None
    names = {high: low, low: high}

    def renamed(op: Op) -> Op:
        op = replace(op, alloc=names.get(op.alloc, op.alloc))
        return replace(op, other=names.get(op.other, op.other)) if op.kind == Kind.BORROW else op

    return replace(trace, ops=tuple(map(renamed, trace.ops)))


def smaller_setup(trace: Trace) -> Edits:
    """Configs, slots and types go."""
    setup = trace.setup
    for k in reversed(range(len(setup.configs))):
        yield lambda t, k=k: _without_config(t, k)  # type: ignore[misc]
    for k in range(1, len(setup.configs)):
        yield lambda t, k=k: replace(  # type: ignore[misc]
            t,
            ops=tuple(replace(op, other=0) if op.kind == Kind.NEW and op.other == k else op for op in t.ops),
        )
    for k, slots in enumerate(setup.configs):
        for s in reversed(range(len(slots))):
            yield lambda t, k=k, s=s: _without_slot(t, k, s)  # type: ignore[misc]
    for t in reversed(range(len(setup.types))):
        yield lambda x, t=t: _without_type(x, t)  # type: ignore[misc]


def _without_config(trace: Trace, k: int) -> Trace | None:
    configs = trace.setup.configs
    if k >= len(configs) or any(op.kind == Kind.NEW and op.other == k for op in trace.ops):
        return None
    ops = tuple(
        replace(op, other=op.other - 1) if op.kind == Kind.NEW and op.other > k else op for op in trace.ops
    )
    return Trace(replace(trace.setup, configs=configs[:k] + configs[k + 1 :]), trace.graphs, ops)


def _without_slot(trace: Trace, k: int, s: int) -> Trace | None:
    configs = trace.setup.configs
    if k >= len(configs) or s >= len(configs[k]):
        return None
    shorter = configs[k][:s] + configs[k][s + 1 :]
    return replace(trace, setup=replace(trace.setup, configs=_put(configs, k, shorter)))


def _without_type(trace: Trace, t: int) -> Trace | None:
    """Type t goes, its slots too; its bit of fail_types and its capacity changes with it."""
    setup = trace.setup
    if t >= len(setup.types):
        return None
    configs = tuple(tuple(x - (x > t) for x in slots if x != t) for slots in setup.configs)
    ops = []
    for op in trace.ops:
        if op.kind == Kind.CAPACITY and op.other == t:
            continue
        low = op.fail_types & ((1 << t) - 1)
        op = replace(op, fail_types=low | op.fail_types >> (t + 1) << t)
        ops.append(replace(op, other=op.other - 1) if op.kind == Kind.CAPACITY and op.other > t else op)
    return Trace(Setup(setup.types[:t] + setup.types[t + 1 :], configs), trace.graphs, tuple(ops))


_SIMPLE = (0, 1, 2, 4, 8, 16, 64, 256, 4096)
_SIMPLEST = {"alignment": 1, "max_size": SIZE_MAX, "granularity": 1, "capacity": UNLIMITED}


def _descend(value: int, change: Change, first: tuple[int, ...] = ()) -> Edits:
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


def _of_type(t: int, name: str) -> Change:
    return lambda _, v: lambda trace: _on_type(trace, t, name, v)


def _of_capacity(i: int) -> Change:
    return lambda _, v: _on_op(i, lambda op: replace(op, value=v))


def _of_tensor(g: int, i: int, name: str) -> Change:
    changes: dict[str, Callable[[Tensor, int], Tensor]] = {
        "size": lambda t, v: replace(t, size=v),
        "pad": lambda t, v: replace(t, pad=v),
        "view_offs": lambda t, v: replace(t, view_offs=v),
    }
    return lambda _, v: _on_tensor(g, i, lambda t: changes[name](t, v))


def lower_values(trace: Trace) -> Edits:
    """Sizes, pads, offsets, capacities and the types' numbers become simple."""
    for t, kind in enumerate(trace.setup.types):
        for name, simplest in _SIMPLEST.items():
            if getattr(kind, name) != simplest:
                yield from _descend(getattr(kind, name), _of_type(t, name), (simplest,))
    for i, op in enumerate(trace.ops):
        if op.kind == Kind.CAPACITY and op.value != UNLIMITED:
            yield from _descend(op.value, _of_capacity(i), (UNLIMITED,))
    for g, graph in enumerate(trace.graphs):
        for i, tensor in enumerate(graph.tensors):
            for name in ("pad", "view_offs", "size"):
                yield from _descend(getattr(tensor, name), _of_tensor(g, i, name))


def _on_type(trace: Trace, t: int, name: str, value: int) -> Trace | None:
    types = trace.setup.types
    if t >= len(types):
        return None
    changed = replace(types[t], **{name: value})
    return replace(trace, setup=replace(trace.setup, types=_put(types, t, changed)))


def lower_together(trace: Trace) -> Edits:
    """Equal sizes change together in all graphs, and all numbers are halved at once."""
    for divisor in (4096, 256, 16, 4, 2):
        yield lambda t, d=divisor: _scaled(t, d)  # type: ignore[misc]
    for size in sorted({t.size for g in trace.graphs for t in g.tensors}, reverse=True):
        yield from _descend(size, lambda now, v: lambda x: _resized(x, now, v))


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
        ones = {f.name: max(1, part(getattr(k, f.name))) for f in fields(k)}
        return BufferType(**ones | {"capacity": part(k.capacity)})

    types = tuple(map(kind, trace.setup.types))
    graphs = tuple(Graph(tuple(map(tensor, g.tensors))) for g in trace.graphs)
    ops = tuple(replace(op, value=part(op.value)) if op.value else op for op in trace.ops)
    return Trace(replace(trace.setup, types=types), graphs, ops)


PASSES: tuple[Pass, ...] = (
    without_operations,
    without_graphs,
    without_tensors,
    smaller_setup,
    plainer_operations,
    plainer_tensors,
    lower_together,
    lower_values,
)
