"""What a legal trace is: the rules of gallocheck.h for setups, graphs and operations.

Generators make only legal traces, the shrinker keeps them so, and a replay file
with another is refused. An operation may still come at a wrong time (a reserve
by an allocator that is not there): the subject then answers MISUSE.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..model.records import (
    MAX_ALLOCS,
    MAX_CONFIGS,
    MAX_CONTEXTS,
    MAX_LANES,
    MAX_SERVER_SLOTS,
    MAX_SLOTS,
    MAX_SRC,
    MAX_STREAMS,
    MAX_TYPES,
    SIZE_MAX,
    VALIDATED,
    BufferType,
    Context,
    Flag,
    Graph,
    Kind,
    Op,
    OpFlag,
    PoolKind,
    Scale,
    Setup,
    Tensor,
    Trace,
)

MAX_ALIGNMENT, MAX_GRANULARITY = 4096, 2 << 20
ORDINARY = 64 << 20  #: bytes; contents up to here are really written and read
SMALL_DEVICE = 256 << 20  #: bytes; a larger tensor is legal only where no device has more than this
MAX_GRAPH_BYTES = 1 << 30  #: of tensors that are not huge
MAX_TENSORS, MAX_GRAPHS, MAX_OPS = 4096, 4096, 1 << 20
MAX_FAIL_NTH = 1 << 16
MAX_BATCH, MAX_CELLS, MAX_POOL_RANGE = 4096, 1 << 20, 1 << 36  #: tokens, cells, bytes
_RUNS = OpFlag.UNCHECKED | OpFlag.ASYNC
_FLAGS_OF = {Kind.NEW: OpFlag.BY_SCHED, Kind.COMPUTE: _RUNS, Kind.LAUNCH: _RUNS, Kind.CTX_DECODE: _RUNS}
POOL_KINDS = frozenset({Kind.POOL_ALLOC, Kind.POOL_FREE})
CONTEXT_KINDS = frozenset(k for k in Kind if k.name.startswith("CTX_"))
SLOT_KINDS = frozenset(k for k in Kind if k.name.startswith("SLOT_"))
#: what `alloc` is, and how many there are; elsewhere an allocator
_WHO = {
    **dict.fromkeys(POOL_KINDS, ("stream", MAX_STREAMS)),
    **dict.fromkeys(CONTEXT_KINDS, ("context", MAX_CONTEXTS)),
    **dict.fromkeys(SLOT_KINDS, ("slot", MAX_SERVER_SLOTS)),
}
#: the largest `value`; 0 elsewhere
_VALUES = {
    Kind.CAPACITY: SIZE_MAX,
    Kind.NEW: MAX_TENSORS,
    Kind.BORROW: VALIDATED,
    Kind.POOL_ALLOC: SIZE_MAX,
    Kind.POOL_FREE: SIZE_MAX,
    Kind.CTX_ATTACH: VALIDATED,
    Kind.CTX_DECODE: MAX_BATCH,
    Kind.CTX_NODES: MAX_TENSORS,
    Kind.SLOT_STEP: MAX_BATCH,
}
_ALL_FLAGS = sum(Flag)  # as an int: `~` on a Flag forgets bits that are no flag
GRAPH_KINDS = frozenset({Kind.RESERVE, Kind.MEASURE, Kind.ALLOC, Kind.COMPUTE})  #: kinds that read `graph`


def legal(trace: Trace) -> bool:
    return why_illegal(trace) is None


def why_illegal(trace: Trace) -> str | None:
    """The first rule that the trace breaks, as a sentence's end; None when it is legal."""
    return next(_faults(trace), None)


def graph_legal(graph: Graph) -> bool:
    return next(_graph_faults(graph), None) is None


def _faults(trace: Trace) -> Iterator[str]:
    yield from _setup_faults(trace.setup)
    for c, context in enumerate(trace.setup.contexts):
        for fault in _context_faults(context, trace):
            yield f"context {c}: {fault}"
    if len(trace.graphs) > MAX_GRAPHS:
        yield f"there are {len(trace.graphs)} graphs, at most {MAX_GRAPHS} are allowed"
    for g, graph in enumerate(trace.graphs):
        for fault in _graph_faults(graph):
            yield f"graph {g}: {fault}"
    if len(trace.ops) > MAX_OPS:
        yield f"there are {len(trace.ops)} operations, at most {MAX_OPS} are allowed"
    for i, op in enumerate(trace.ops):
        for fault in _op_faults(op, trace):
            yield f"operation {i}: {fault}"
    yield from _huge_faults(trace)


def _power(x: int) -> bool:
    return x > 0 and x & (x - 1) == 0


def _setup_faults(setup: Setup) -> Iterator[str]:
    if not 1 <= len(setup.types) <= MAX_TYPES:
        yield f"there are {len(setup.types)} buffer types, 1 to {MAX_TYPES} are allowed"
    for t, kind in enumerate(setup.types):
        for fault in (*_type_faults(kind), *_meta_faults(kind, setup.types)):
            yield f"buffer type {t}: {fault}"
    if setup.pool != PoolKind.NO_POOL and not 1 <= setup.pool_range <= MAX_POOL_RANGE:
        yield f"a pool's range of {setup.pool_range} bytes is not from 1 to {MAX_POOL_RANGE}"
    if len(setup.contexts) > MAX_CONTEXTS:
        yield f"there are {len(setup.contexts)} contexts, at most {MAX_CONTEXTS} are allowed"
    if not 1 <= len(setup.configs) <= MAX_CONFIGS:
        yield f"there are {len(setup.configs)} configs, 1 to {MAX_CONFIGS} are allowed"
    for k, slots in enumerate(setup.configs):
        if not 1 <= len(slots) <= MAX_SLOTS:
            yield f"config {k} has {len(slots)} slots, 1 to {MAX_SLOTS} are allowed"
        if any(not 0 <= t < len(setup.types) for t in slots):
            yield f"config {k} names a buffer type that is not there"
        if list(dict.fromkeys(slots)) != sorted(set(slots)):
            yield f"config {k}: the first occurrences of its types do not ascend"


def _type_faults(kind: BufferType) -> Iterator[str]:
    if not (_power(kind.alignment) and kind.alignment <= MAX_ALIGNMENT):
        yield f"alignment {kind.alignment} is no power of two from 1 to {MAX_ALIGNMENT}"
    if not (_power(kind.granularity) and kind.granularity <= MAX_GRANULARITY):
        yield f"granularity {kind.granularity} is no power of two from 1 to {MAX_GRANULARITY}"
    if not 1 <= kind.max_size <= SIZE_MAX:
        yield f"largest buffer {kind.max_size} is not from 1 to 2^64 - 1"
    if not 0 <= kind.capacity <= SIZE_MAX:
        yield f"capacity {kind.capacity} is not from 0 to 2^64 - 1"


def _meta_faults(kind: BufferType, types: tuple[BufferType, ...]) -> Iterator[str]:
    if not 0 <= kind.meta < 1 << len(types) or any(types[d].meta for d in _devices(kind.meta)):
        yield f"meta {kind.meta:#x} names what is no simple type"
    elif any(types[d].granularity > kind.granularity for d in _devices(kind.meta)):
        yield f"granularity {kind.granularity} is less than that of one of its devices"


def _devices(mask: int) -> list[int]:
    return [d for d in range(MAX_TYPES) if mask >> d & 1]


def _context_faults(c: Context, trace: Trace) -> Iterator[str]:
    """The rules stated with gc_context."""
    if c.config == -1:
        return
    if not 0 <= c.config < len(trace.setup.configs):
        yield f"config {c.config} is not there"
    if not 0 <= c.graph < len(trace.graphs):
        yield f"graph {c.graph} is not there"
    if not 1 <= c.lanes <= MAX_LANES:
        yield f"{c.lanes} lanes, 1 to {MAX_LANES} are allowed"
    if not 1 <= c.generation <= c.batch <= MAX_BATCH:
        yield f"batches of {c.generation} and {c.batch} tokens are not in order, or above {MAX_BATCH}"
    if not 8 <= c.cells <= MAX_CELLS or c.cells % 8:
        yield f"{c.cells} cells are no multiple of 8 from 8 to {MAX_CELLS}"
    if not 0 <= c.window <= MAX_CELLS:
        yield f"a window of {c.window} cells is not from 0 to {MAX_CELLS}"
    if not 0 <= c.nodes <= MAX_TENSORS:
        yield f"{c.nodes} nodes are not from 0 to {MAX_TENSORS}"
    if 0 <= c.graph < len(trace.graphs):
        yield from _template_faults(c, trace.graphs[c.graph])


def _template_faults(c: Context, graph: Graph) -> Iterator[str]:
    """The largest graph of the context can really be computed."""
    total = 0
    for t in graph.tensors:
        times = c.batch if t.scale else 1
        times *= c.cells if t.scale > Scale.SCALE_TOKENS else 1
        total += 0 if t.view else t.alloc_size * times
    if total > MAX_GRAPH_BYTES:
        yield f"its largest graph has {total} bytes, at most {MAX_GRAPH_BYTES} are allowed"
    for i, t in enumerate(graph.tensors):
        if 0 <= t.view_src < i and graph.tensors[t.view_src].scale > Scale.SCALE_TOKENS:
            yield f"tensor {i} of its graph shows one that is scaled by cells, of which there may be none"


def _graph_faults(graph: Graph) -> Iterator[str]:
    tensors = graph.tensors
    if len(tensors) > MAX_TENSORS:
        yield f"{len(tensors)} tensors, at most {MAX_TENSORS} are allowed"
    for i, t in enumerate(tensors):
        for fault in _tensor_faults(i, t, tensors):
            yield f"tensor {i}: {fault}"
    total = sum(t.alloc_size for t in tensors if not t.view and t.alloc_size <= ORDINARY)
    if total > MAX_GRAPH_BYTES:
        yield f"its tensors have {total} bytes, at most {MAX_GRAPH_BYTES} are allowed"


def _tensor_faults(i: int, t: Tensor, tensors: tuple[Tensor, ...]) -> Iterator[str]:
    if t.size < 0 or t.pad < 0 or t.alloc_size > SIZE_MAX:
        yield f"size {t.size} with pad {t.pad} is not from 0 to 2^64 - 1"
    if int(t.flags) & ~_ALL_FLAGS:
        yield f"flags {int(t.flags)} are unknown"
    if not 0 <= t.slot < 2**31:
        yield f"slot {t.slot} is not from 0 to 2^31 - 1"
    if len(t.src) > MAX_SRC:
        yield f"{len(t.src)} sources, at most {MAX_SRC} are allowed"
    if any(not 0 <= s < i for s in t.src):
        yield "a source is no earlier tensor"
    if t.leaf and t.src:
        yield "a leaf has sources"
    if (t.input or t.prealloc) and not t.leaf:
        yield "only a leaf is an input or has memory of its own"
    if t.prealloc and (t.input or t.output):
        yield "a tensor with memory of its own is no input and no output"
    if t.prealloc and t.alloc_size > ORDINARY:
        yield f"a tensor with memory of its own has {t.alloc_size} bytes, at most {ORDINARY} are allowed"
    if t.pad and not t.size:
        yield "a tensor without bytes has a pad"
    if t.inplace and (t.leaf or t.pad):
        yield "an in-place operation is on a leaf, or has a pad"
    if t.scale and (t.view or t.prealloc):
        yield "a view, or a tensor with memory of its own, has a scale"
    yield from _view_faults(i, t, tensors)


def _view_faults(i: int, t: Tensor, tensors: tuple[Tensor, ...]) -> Iterator[str]:
    if t.view_src == -1:
        if t.view_offs:
            yield f"view offset {t.view_offs} on what is no view"
        return
    if not 0 <= t.view_src < i:
        yield f"view source {t.view_src} is no earlier tensor"
        return
    root = tensors[t.view_src]
    if root.view:
        yield "it views a view"
    if t.src != (t.view_src,):
        yield "the one source of a view is what it views"
    if t.flags & ~(Flag.OUTPUT | Flag.LAYOUT) or t.pad:
        yield "a view is a leaf, an input, in place or padded"
    if t.view_offs < 0 or t.view_offs + t.size > root.size:
        yield f"it views bytes {t.view_offs} to {t.view_offs + t.size} of {root.size}"


def _op_faults(op: Op, trace: Trace) -> Iterator[str]:
    setup = trace.setup
    who, many = _WHO.get(op.kind, ("allocator", MAX_ALLOCS))
    if not 0 <= op.alloc < many:
        yield f"{who} {op.alloc} is not from 0 to {many - 1}"
    limit, what = MAX_ALLOCS, "allocator"
    if op.kind == Kind.NEW:
        limit, what = len(setup.configs), "config"
    elif op.kind in (Kind.CAPACITY, Kind.TRIM) or op.kind in POOL_KINDS:
        limit, what = len(setup.types), "type"
    elif op.kind == Kind.CTX_DECODE:
        limit, what = MAX_CELLS + 1, "number of cells"
    if not 0 <= op.other < limit:
        yield f"{what} {op.other} is not from 0 to {limit - 1}"
    if op.graph < 0 or op.graph >= max(1, len(trace.graphs)) or (op.kind in GRAPH_KINDS and not trace.graphs):
        yield f"graph {op.graph} is not there"
    if not 0 <= op.fail_types < 1 << len(setup.types):
        yield f"fail_types {op.fail_types} names a device that is not there"
    if not 0 <= op.fail_nth <= MAX_FAIL_NTH:
        yield f"fail_nth {op.fail_nth} is not from 0 to {MAX_FAIL_NTH}"
    if int(op.flags) & ~int(_FLAGS_OF.get(op.kind, OpFlag(0))):
        yield f"{op.kind.name} does not take the flags {int(op.flags)}"
    if not 0 <= op.value <= _VALUES.get(op.kind, 0):
        yield f"value {op.value} makes no sense for {op.kind.name}"


def _huge_faults(trace: Trace) -> Iterator[str]:
    """Contents are really written, so what is too large to write must be too large for every device."""
    blocks = [op.value for op in trace.ops if op.kind == Kind.POOL_ALLOC]
    sizes = [t.alloc_size for g in trace.graphs for t in g.tensors]
    if max(sizes, default=0) <= ORDINARY and max(blocks, default=0) <= ORDINARY:
        return
    capacities = [
        kind.capacity for kind in trace.setup.types if not kind.meta
    ]  # a meta type has its devices'
    capacities += [op.value for op in trace.ops if op.kind == Kind.CAPACITY]
    if max(capacities) > SMALL_DEVICE:
        yield (
            f"a tensor or a pool's block is larger than {ORDINARY} bytes, which is allowed only where no device "
            f"has more than {SMALL_DEVICE}"
        )
