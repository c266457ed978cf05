"""The shapes inside replay files: records with readable names, and the way there and back.

Fields that have their usual value are left out. Numbers are ints of bytes; no
string is ever looked up in anything but the fixed tables below.
"""

from __future__ import annotations

import sys
from dataclasses import fields
from enum import Enum
from typing import Annotated, Any, Literal, cast

from msgspec import Meta, Struct

from ..model.records import (
    SIZE_MAX,
    UNLIMITED,
    BufferType,
    Context,
    Flag,
    Graph,
    Kind,
    Memory,
    Observation,
    Op,
    OpFlag,
    Option,
    PoolKind,
    Scale,
    Setup,
    Status,
    Strategy,
    Tensor,
    Trace,
    Trouble,
)

Count = Annotated[int, Meta(ge=0)]
KindName = Literal[
    "new", "free", "own", "borrow", "reserve", "measure", "alloc",
    "compute", "shrink", "capacity", "look", "remake", "sync", "reset",
    "pool_alloc", "pool_free", "trim", "capture_begin", "capture_end", "launch", "drop",
    "ctx_open", "ctx_close", "ctx_attach", "ctx_decode", "ctx_sync", "ctx_nodes", "ctx_trim",
    "slot_enter", "slot_step", "slot_leave",
]  # fmt: skip
FlagName = Literal["leaf", "input", "output", "inplace", "prealloc", "layout"]
OpFlagName = Literal["unchecked", "async", "by_sched"]
StatusName = Literal["misuse", "refused", "done", "stale", "failed"]
TroubleName = Literal["bad_source", "bad_output", "bad_prealloc", "freed_busy", "bad_guard", "bad_pool"]
StrategyName = Literal["pair", "counted", "apart"]
PoolName = Literal["no_pool", "vmm_pool", "legacy_pool"]
MemoryName = Literal["kv", "kv_window", "hybrid", "hybrid_window", "hybrid_indexer", "other_memory"]
OptionName = Literal["phase_aware", "live_context"]
ScaleName = Literal["scale_none", "scale_tokens", "scale_attention", "scale_window", "scale_indexer"]


class TypeFile(Struct, forbid_unknown_fields=True, omit_defaults=True):
    alignment: Count = 1
    max_size: Count = SIZE_MAX
    granularity: Count = 1
    capacity: Count = UNLIMITED
    meta: Count = 0


class ContextFile(Struct, forbid_unknown_fields=True, omit_defaults=True):
    config: Annotated[int, Meta(ge=-1)] = -1
    graph: Count = 0
    memory: MemoryName = "kv"
    options: list[OptionName] = []
    lanes: Count = 1
    cells: Count = 8
    window: Count = 8
    generation: Count = 1
    batch: Count = 1
    nodes: Count = 0


class SetupFile(Struct, forbid_unknown_fields=True, omit_defaults=True):
    types: list[TypeFile]
    configs: list[list[Count]]
    strategy: StrategyName = "pair"
    pool: PoolName = "no_pool"
    pool_range: Count = 0
    contexts: list[ContextFile] = []


class TensorFile(Struct, forbid_unknown_fields=True, omit_defaults=True):
    size: Count
    src: list[Count] = []
    flags: list[FlagName] = []
    slot: Count = 0
    pad: Count = 0
    view_src: Count | None = None
    view_offs: Count = 0
    scale: ScaleName = "scale_none"


class GraphFile(Struct, forbid_unknown_fields=True):
    tensors: list[TensorFile]


class OpFile(Struct, forbid_unknown_fields=True, omit_defaults=True):
    kind: KindName
    alloc: Count = 0
    other: Count = 0
    graph: Count = 0
    fail_types: Count = 0
    fail_nth: Count = 0
    flags: list[OpFlagName] = []
    value: Count = 0


class TraceFile(Struct, forbid_unknown_fields=True):
    setup: SetupFile
    graphs: list[GraphFile]
    ops: list[OpFile]


class ObservationFile(Struct, forbid_unknown_fields=True, omit_defaults=True):
    status: StatusName
    trouble: list[TroubleName] = []
    bad_node: Annotated[int, Meta(ge=-1)] = -1
    bad_src: Annotated[int, Meta(ge=-1)] = -1
    bad_offset: Count = 0
    generation: Count = 0
    shrink_generation: Count = 0
    digest: Count = 0
    used: list[Count] = []
    reported: list[Count] = []
    measured: list[Count] = []
    asked: list[list[Count]] = []
    owned: list[Count] = []
    allocations: Count = 0
    sched_generation: Count = 0
    sched_shrink_generation: Count = 0
    nodes: Count = 0
    in_flight: Count = 0
    reason: Count = 0
    pooled: list[Count] = []
    released: Count = 0
    base: Count = 0
    mapped: Count = 0
    out: Count = 0
    address: Count = 0
    captured: Count = 0
    capturing: Count = 0
    tokens: list[Count] = []
    cells: list[Count] = []
    fewer: list[Count] = []
    reserves: Count = 0
    waits: Count = 0
    attached: Count = 0
    busy: Count = 0


def _name(one: Enum) -> str:
    """Its name in files; interned, as msgspec leaves a usual value out where it is the very same object."""
    return sys.intern(str(one.name).lower())


def _names(flags: Flag | OpFlag | Trouble | Option) -> list[str]:
    return [_name(one) for one in type(flags) if one & flags]


def trace_out(trace: Trace) -> TraceFile:
    s = trace.setup
    setup = SetupFile(
        [TypeFile(k.alignment, k.max_size, k.granularity, k.capacity, k.meta) for k in s.types],
        [list(slots) for slots in s.configs],
        cast(StrategyName, _name(s.strategy)),
        cast(PoolName, _name(s.pool)),
        s.pool_range,
        [_context_out(c) for c in s.contexts],
    )
    graphs = [GraphFile([_tensor_out(t) for t in g.tensors]) for g in trace.graphs]
    return TraceFile(setup, graphs, [_op_out(op) for op in trace.ops])


def _context_out(c: Context) -> ContextFile:
    memory, options = cast(MemoryName, _name(c.memory)), cast("list[OptionName]", _names(c.options))
    return ContextFile(
        c.config, c.graph, memory, options, c.lanes, c.cells, c.window, c.generation, c.batch, c.nodes
    )  # fmt: skip


def _tensor_out(t: Tensor) -> TensorFile:
    flags = cast("list[FlagName]", _names(t.flags))
    view = t.view_src if t.view else None
    scale = cast(ScaleName, _name(t.scale))
    return TensorFile(t.size, list(t.src), flags, t.slot, t.pad, view, t.view_offs, scale)


def _op_out(op: Op) -> OpFile:
    kind = cast(KindName, _name(op.kind))
    flags = cast("list[OpFlagName]", _names(op.flags))
    return OpFile(kind, op.alloc, op.other, op.graph, op.fail_types, op.fail_nth, flags, op.value)


def trace_in(file: TraceFile) -> Trace:
    """The records. Whether they are legal is for fuzz.legal to say."""
    s = file.setup
    types = tuple(BufferType(k.alignment, k.max_size, k.granularity, k.capacity, k.meta) for k in s.types)
    setup = Setup(
        types,
        tuple(map(tuple, s.configs)),
        Strategy[s.strategy.upper()],
        PoolKind[s.pool.upper()],
        s.pool_range,
        tuple(map(_context_in, s.contexts)),
    )
    graphs = tuple(Graph(tuple(map(_tensor_in, g.tensors))) for g in file.graphs)
    return Trace(setup, graphs, tuple(map(_op_in, file.ops)))


def _context_in(c: ContextFile) -> Context:
    options = Option(0)
    for name in c.options:
        options |= Option[name.upper()]
    memory = Memory[c.memory.upper()]
    return Context(
        c.config, c.graph, memory, options, c.lanes, c.cells, c.window, c.generation, c.batch, c.nodes
    )  # fmt: skip


def _tensor_in(t: TensorFile) -> Tensor:
    flags = Flag(0)
    for name in t.flags:
        flags |= Flag[name.upper()]
    view = -1 if t.view_src is None else t.view_src
    return Tensor(t.size, tuple(t.src), flags, t.slot, t.pad, view, t.view_offs, Scale[t.scale.upper()])


def _op_in(op: OpFile) -> Op:
    flags = OpFlag(0)
    for name in op.flags:
        flags |= OpFlag[name.upper()]
    return Op(
        Kind[op.kind.upper()], op.alloc, op.other, op.graph, op.fail_types, op.fail_nth, flags, op.value
    )  # fmt: skip


#: fields of Observation from the scheduler on, with their usual values: ints, and tuples of ints
LATER: dict[str, Any] = {f.name: f.default for f in fields(Observation)[14:]}


def _plain(value: int | tuple[int, ...], usual: Any) -> Any:
    """As it is in a file; a list of the usual numbers is left out."""
    return value if isinstance(value, int) else list(value) if value != usual else []


def _record(value: int | list[int], usual: Any) -> Any:
    return value if isinstance(value, int) else tuple(value) or usual


def observation_out(seen: Observation) -> ObservationFile:
    return ObservationFile(
        cast(StatusName, _name(seen.status)),
        cast("list[TroubleName]", _names(seen.trouble)),
        seen.bad_node,
        seen.bad_src,
        seen.bad_offset,
        seen.generation,
        seen.shrink_generation,
        seen.digest,
        list(seen.used),
        list(seen.reported),
        list(seen.measured),
        [list(chunks) for chunks in seen.asked],
        list(seen.owned),
        seen.allocations,
        **{name: _plain(getattr(seen, name), usual) for name, usual in LATER.items()},
    )


def observation_in(file: ObservationFile) -> Observation:
    trouble = Trouble(0)
    for name in file.trouble:
        trouble |= Trouble[name.upper()]
    return Observation(
        Status[file.status.upper()],
        trouble,
        file.bad_node,
        file.bad_src,
        file.bad_offset,
        file.generation,
        file.shrink_generation,
        file.digest,
        tuple(file.used),
        tuple(file.reported),
        tuple(file.measured),
        tuple(map(tuple, file.asked)),
        tuple(file.owned),
        file.allocations,
        **{name: _record(getattr(file, name), usual) for name, usual in LATER.items()},
    )
