"""What a session is set up with, in words: buffer types, how they are shared, pools, contexts."""

from __future__ import annotations

from ..model.records import (
    SIZE_MAX,
    UNLIMITED,
    BufferType,
    Context,
    Memory,
    Option,
    PoolKind,
    Setup,
    Strategy,
)
from .words_seen import numbers

CONTEXTS = ("target", "draft")
MEMORY = {
    Memory.KV: "a plain KV cache",
    Memory.KV_WINDOW: "a KV cache with a sliding window",
    Memory.HYBRID: "hybrid memory",
    Memory.HYBRID_WINDOW: "hybrid memory with a sliding window",
    Memory.HYBRID_INDEXER: "hybrid memory with an indexer",
    Memory.OTHER_MEMORY: "memory without a bounded reservation",
}
STRATEGY = {Strategy.COUNTED: "shared by reference count", Strategy.APART: "nothing is shared"}
POOL = {PoolKind.VMM_POOL: "VMM", PoolKind.LEGACY_POOL: "legacy"}


def count(n: int, what: str) -> str:
    """'1 tensor', '3 tensors', '2 bytes'."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def size(n: int) -> str:
    """'4096 bytes', 'no limit'."""
    return "no limit" if n == UNLIMITED else count(n, "byte")


def slots_of(setup: Setup, config: int) -> str:
    """'type 0' or 'types 0, 1, 0'."""
    if not 0 <= config < len(setup.configs):
        return f"config {config}"
    slots = setup.configs[config]
    return f"type{'s' * (len(slots) > 1)} " + ", ".join(map(str, slots))


def describe_type(kind: BufferType) -> str:
    """'alignment 32, largest buffer 256 bytes, device of 1024 bytes in units of 64'."""
    parts = [f"alignment {kind.alignment}"]
    if kind.max_size != SIZE_MAX:
        parts.append(f"largest buffer {count(kind.max_size, 'byte')}")
    if kind.meta:
        parts.append(f"a part on device {numbers(kind.meta)}")
    elif kind.capacity == UNLIMITED:
        parts.append("device without limit")
    else:
        parts.append(f"device of {size(kind.capacity)}")
    return ", ".join(parts) + (f" in units of {kind.granularity}" if kind.granularity != 1 else "")


def describe_context(context: Context, setup: Setup) -> str:
    """'on type 0, graph 2 for 1 or 32 tokens, hybrid memory of 64 cells, 2 lanes; phase aware'."""
    parts = [
        f"on {slots_of(setup, context.config)}",
        f"graph {context.graph} for {context.generation} or {count(context.batch, 'token')}",
        f"{MEMORY[context.memory]} of {count(context.cells, 'cell')}",
    ]
    if context.memory in (Memory.KV_WINDOW, Memory.HYBRID_WINDOW):
        parts.append(f"a window of {context.window}")
    if context.lanes > 1:
        parts.append(f"{context.lanes} lanes")
    if context.nodes:
        parts.append(f"schedulers for {count(context.nodes, 'tensor')}")
    options = [str(o.name).lower().replace("_", " ") for o in Option if o & context.options]
    return ", ".join(parts) + ("; " + ", ".join(options) if options else "")


def describe_setup(setup: Setup) -> str:
    """One line a type, then what differs from a plain pair."""
    lines = [f"type {t}: {describe_type(kind)}" for t, kind in enumerate(setup.types)]
    if setup.strategy in STRATEGY:
        lines.append(f"buffers: {STRATEGY[setup.strategy]}")
    if setup.pool in POOL:
        lines.append(f"pools: {POOL[setup.pool]}, {size(setup.pool_range)} of addresses each")
    for name, context in zip(CONTEXTS, setup.contexts, strict=False):
        if context.config >= 0:
            lines.append(f"{name}: {describe_context(context, setup)}")
    return "\n".join(lines)
