"""The shapes inside replay files: records with readable names, and the way there and back.

Fields that have their usual value are left out. Numbers are ints of bytes; no
string is ever looked up in anything but the fixed tables below.
"""

from __future__ import annotations

from typing import Annotated, Literal, cast

from msgspec import Meta, Struct

from ..model.records import (
    SIZE_MAX,
    UNLIMITED,
    BufferType,
    Flag,
    Graph,
    Kind,
    Observation,
    Op,
    OpFlag,
    Setup,
    Status,
    Tensor,
    Trace,
    Trouble,
)

Count = Annotated[int, Meta(ge=0)]
KindName = Literal[
    "new", "free", "own", "borrow", "reserve", "measure", "alloc",
    "compute", "shrink", "capacity", "look", "remake", "sync", "reset",
]  # fmt: skip
FlagName = Literal["leaf", "input", "output", "inplace", "prealloc", "layout"]
OpFlagName = Literal["unchecked", "async", "by_sched"]
StatusName = Literal["misuse", "refused", "done", "stale"]
TroubleName = Literal["bad_source", "bad_output", "bad_prealloc", "freed_busy", "bad_guard"]


class TypeFile(Struct, forbid_unknown_fields=True, omit_defaults=True):
    alignment: Count = 1
    max_size: Count = SIZE_MAX
    granularity: Count = 1
    capacity: Count = UNLIMITED


class SetupFile(Struct, forbid_unknown_fields=True):
    types: list[TypeFile]
    configs: list[list[Count]]


class TensorFile(Struct, forbid_unknown_fields=True, omit_defaults=True):
    size: Count
    src: list[Count] = []
    flags: list[FlagName] = []
    slot: Count = 0
    pad: Count = 0
    view_src: Count | None = None
    view_offs: Count = 0


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


def _names(flags: Flag | OpFlag | Trouble) -> list[str]:
    return [str(one.name).lower() for one in type(flags) if one & flags]


def trace_out(trace: Trace) -> TraceFile:
    setup = SetupFile(
        [TypeFile(k.alignment, k.max_size, k.granularity, k.capacity) for k in trace.setup.types],
        [list(slots) for slots in trace.setup.configs],
    )
    graphs = [GraphFile([_tensor_out(t) for t in g.tensors]) for g in trace.graphs]
    return TraceFile(setup, graphs, [_op_out(op) for op in trace.ops])


def _tensor_out(t: Tensor) -> TensorFile:
    flags = cast("list[FlagName]", _names(t.flags))
    view = t.view_src if t.view else None
    return TensorFile(t.size, list(t.src), flags, t.slot, t.pad, view, t.view_offs)


def _op_out(op: Op) -> OpFile:
    kind = cast(KindName, op.kind.name.lower())
    flags = cast("list[OpFlagName]", _names(op.flags))
    return OpFile(kind, op.alloc, op.other, op.graph, op.fail_types, op.fail_nth, flags, op.value)


def trace_in(file: TraceFile) -> Trace:
    """The records. Whether they are legal is for fuzz.legal to say."""
    types = tuple(BufferType(k.alignment, k.max_size, k.granularity, k.capacity) for k in file.setup.types)
    setup = Setup(types, tuple(map(tuple, file.setup.configs)))
    graphs = tuple(Graph(tuple(map(_tensor_in, g.tensors))) for g in file.graphs)
    return Trace(setup, graphs, tuple(map(_op_in, file.ops)))


def _tensor_in(t: TensorFile) -> Tensor:
    flags = Flag(0)
    for name in t.flags:
        flags |= Flag[name.upper()]
    view = -1 if t.view_src is None else t.view_src
    return Tensor(t.size, tuple(t.src), flags, t.slot, t.pad, view, t.view_offs)


def _op_in(op: OpFile) -> Op:
    flags = OpFlag(0)
    for name in op.flags:
        flags |= OpFlag[name.upper()]
    return Op(
        Kind[op.kind.upper()], op.alloc, op.other, op.graph, op.fail_types, op.fail_nth, flags, op.value
    )  # fmt: skip


def observation_out(seen: Observation) -> ObservationFile:
    return ObservationFile(
        cast(StatusName, seen.status.name.lower()),
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
    )
