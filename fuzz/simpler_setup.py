"""Single steps towards a simpler setup, for the shrinker: types, configs, sharing, pools, contexts. See simpler.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..model.records import (
    SIZE_MAX,
    UNLIMITED,
    Context,
    Kind,
    Memory,
    Op,
    Option,
    PoolKind,
    Setup,
    Strategy,
    Trace,
)
from .legal import POOL_KINDS
from .simpler import Change, Edit, Edits, descend, on_op, put


def _on_setup(change: Callable[[Setup], Setup]) -> Edit:
    return lambda trace: replace(trace, setup=change(trace.setup))


def smaller_setup(trace: Trace) -> Edits:
    """Configs, slots, types and parts of meta types go."""
    setup = trace.setup
    for k in reversed(range(len(setup.configs))):
        yield lambda t, k=k: _without_config(t, k)  # type: ignore[misc]
    for k in range(1, len(setup.configs)):
        yield lambda t, k=k: _config_0_for(t, k)  # type: ignore[misc]
    for k, slots in enumerate(setup.configs):
        for s in reversed(range(len(slots))):
            yield lambda t, k=k, s=s: _without_slot(t, k, s)  # type: ignore[misc]
    for t in reversed(range(len(setup.types))):
        yield lambda x, t=t: _without_type(x, t)  # type: ignore[misc]
    for t, kind in enumerate(setup.types):
        for d in reversed(range(kind.meta.bit_length())):
            yield lambda x, t=t, d=d: _without_part(x, t, d)  # type: ignore[misc]


def _config_0_for(trace: Trace, k: int) -> Trace:
    """Who is on config k is on config 0."""
    ops = tuple(replace(op, other=0) if op.kind == Kind.NEW and op.other == k else op for op in trace.ops)
    contexts = tuple(replace(c, config=0) if c.config == k else c for c in trace.setup.contexts)
    return Trace(replace(trace.setup, contexts=contexts), trace.graphs, ops)


def _without_config(trace: Trace, k: int) -> Trace | None:
    setup = trace.setup
    if k >= len(setup.configs) or any(op.kind == Kind.NEW and op.other == k for op in trace.ops):
        return None
    if any(c.config == k for c in setup.contexts):
        return None
    ops = tuple(
        replace(op, other=op.other - 1) if op.kind == Kind.NEW and op.other > k else op for op in trace.ops
    )
    contexts = tuple(replace(c, config=c.config - (c.config > k)) for c in setup.contexts)
    configs = setup.configs[:k] + setup.configs[k + 1 :]
    return Trace(replace(setup, configs=configs, contexts=contexts), trace.graphs, ops)


def _without_slot(trace: Trace, k: int, s: int) -> Trace | None:
    configs = trace.setup.configs
    if k >= len(configs) or s >= len(configs[k]):
        return None
    shorter = configs[k][:s] + configs[k][s + 1 :]
    return replace(trace, setup=replace(trace.setup, configs=put(configs, k, shorter)))


def _without_bit(bits: int, t: int) -> int:
    """Bit t goes, those above it move down."""
    return bits & ((1 << t) - 1) | bits >> (t + 1) << t


_NAME_A_TYPE = {Kind.CAPACITY, Kind.TRIM, *POOL_KINDS}  #: their `other` is a type or its device


def _without_type(trace: Trace, t: int) -> Trace | None:
    """Type t goes, its slots and its parts in meta types too; what names it goes or names another with it."""
    setup = trace.setup
    if t >= len(setup.types):
        return None
    configs = tuple(tuple(x - (x > t) for x in slots if x != t) for slots in setup.configs)
    ops = []
    for op in trace.ops:
        if op.kind in _NAME_A_TYPE and op.other == t:
            continue
        op = replace(op, fail_types=_without_bit(op.fail_types, t))
        ops.append(replace(op, other=op.other - 1) if op.kind in _NAME_A_TYPE and op.other > t else op)
    if any(kind.meta == 1 << t for kind in setup.types):
        return None  # a meta type of nothing else would become a simple one
    types = tuple(replace(kind, meta=_without_bit(kind.meta, t)) for kind in setup.types)
    return Trace(replace(setup, types=types[:t] + types[t + 1 :], configs=configs), trace.graphs, tuple(ops))


def _without_part(trace: Trace, t: int, d: int) -> Trace | None:
    """Meta type t leaves device d; the last part of it makes it a simple type."""
    if t >= len(trace.setup.types) or not trace.setup.types[t].meta >> d & 1:
        return None
    return _on_type(trace, t, "meta", trace.setup.types[t].meta & ~(1 << d))


def plainer_layers(trace: Trace) -> Edits:
    """Owner and borrower in place of other strategies, no pools, no contexts, plain ones."""
    plain: dict[str, Any] = {"strategy": Strategy.PAIR, "pool": PoolKind.NO_POOL, "contexts": ()}
    for name, value in plain.items():
        if getattr(trace.setup, name) != value:
            yield _on_setup(lambda s, n=name, v=value: replace(s, **{n: v}))  # type: ignore[misc]
    for i, context in reversed(tuple(enumerate(trace.setup.contexts))):
        yield _of_context(i, lambda _: Context())
        for name, value in {"memory": Memory.KV, "options": Option(0), "lanes": 1, "nodes": 0}.items():
            if getattr(context, name) != value:
                yield _of_context(i, lambda c, n=name, v=value: replace(c, **{n: v}))  # type: ignore[misc]
        for option in Option:
            if option & context.options:
                yield _of_context(i, lambda c, o=option: replace(c, options=c.options & ~o))  # type: ignore[misc]


def _of_context(i: int, change: Callable[[Context], Context]) -> Edit:
    def edit(trace: Trace) -> Trace | None:
        contexts = trace.setup.contexts
        if i >= len(contexts):
            return None
        changed = put(contexts, i, change(contexts[i]))
        while changed and changed[-1] == Context():
            changed = changed[:-1]
        return replace(trace, setup=replace(trace.setup, contexts=changed))

    return edit


_SIMPLEST = {"alignment": 1, "max_size": SIZE_MAX, "granularity": 1, "capacity": UNLIMITED}


def lower_values(trace: Trace) -> Edits:
    """Capacities, the types' and contexts' numbers become simple."""
    for t, kind in enumerate(trace.setup.types):
        for name, simplest in _SIMPLEST.items():
            if getattr(kind, name) != simplest:
                yield from descend(getattr(kind, name), _of_type(t, name), (simplest,))
    yield from descend(trace.setup.pool_range, lambda _, v: _on_setup(lambda s: replace(s, pool_range=v)))
    for i, context in enumerate(trace.setup.contexts):
        if context.config < 0:
            continue
        for name in ("batch", "generation", "window", "nodes"):
            yield from descend(getattr(context, name), _number_of(i, name))
        yield from descend(context.cells // 8, lambda _, v, i=i: _number_of(i, "cells")(_, 8 * v))  # type: ignore[misc]


def lower_operations(trace: Trace) -> Edits:
    """The numbers that operations are about become simple."""
    for i, op in enumerate(trace.ops):
        if op.kind == Kind.CAPACITY and op.value != UNLIMITED:
            yield from descend(op.value, _of_op(i, "value"), (UNLIMITED,))
        elif op.kind != Kind.CAPACITY:
            yield from descend(op.value, _of_op(i, "value"))
        if op.kind == Kind.CTX_DECODE or op.kind in _NAME_A_TYPE:
            yield from descend(op.other, _of_op(i, "other"))


def _of_type(t: int, name: str) -> Change:
    return lambda _, v: lambda trace: _on_type(trace, t, name, v)


def _number_of(i: int, name: str) -> Change:
    def change(c: Context, v: int) -> Context:
        numbers: dict[str, Any] = {name: v}
        return replace(c, **numbers)

    return lambda _, v: _of_context(i, lambda c: change(c, v))


def _of_op(i: int, name: str) -> Change:
    def change(op: Op, v: int) -> Op:
        return replace(op, value=v) if name == "value" else replace(op, other=v)

    return lambda _, v: on_op(i, lambda op: change(op, v))


def _on_type(trace: Trace, t: int, name: str, value: int) -> Trace | None:
    types = trace.setup.types
    if t >= len(types):
        return None
    changed = replace(types[t], **{name: value})
    return replace(trace, setup=replace(trace.setup, types=put(types, t, changed)))
