"""Records: what is described, asked of a subject, and seen of it.

Plain frozen dataclasses over ints and tuples; all sizes are bytes. They mirror
native/include/gallocheck.h field by field (a test compares the two).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import IntEnum, IntFlag
from functools import cached_property
from operator import attrgetter
from typing import Any

MAX_TYPES, MAX_CHUNKS, MAX_SLOTS, MAX_CONFIGS, MAX_ALLOCS, MAX_SRC = 5, 16, 6, 4, 4, 4
MAX_STREAMS, MAX_CONTEXTS, MAX_LANES, MAX_SERVER_SLOTS = 4, 2, 2, 4
UNLIMITED = 2**64 - 1  #: a capacity that never runs out
SIZE_MAX = 2**64 - 1  #: largest size_t of a subject


class Cap(IntFlag):
    """What a subject can do; selects the clauses that apply to it."""

    PLAN = 1
    RESIZABLE = 2
    GROUP = 4
    SCHED = 8
    EXACT = 16
    REMAKE = 32
    BREAKDOWN = 64
    CANARY = 128
    EMPTY_CHUNKS = 256
    COUNTED = 512
    META = 1024
    POOL = 2048
    CAPTURE = 4096
    CONTEXTS = 8192
    SERVER = 16384
    NO_MEASURE = 32768


class Strategy(IntEnum):
    """How owner and borrower share: R, S, or not at all."""

    PAIR = 0
    COUNTED = 1
    APART = 2


class PoolKind(IntEnum):
    """Which pool devices have (V)."""

    NO_POOL = 0
    VMM_POOL = 1
    LEGACY_POOL = 2


class Memory(IntEnum):
    """Memory kinds of a context (W7)."""

    KV = 0
    KV_WINDOW = 1
    HYBRID = 2
    HYBRID_WINDOW = 3
    HYBRID_INDEXER = 4
    OTHER_MEMORY = 5


class Option(IntFlag):
    """Options of a context (W)."""

    PHASE_AWARE = 1
    LIVE_CONTEXT = 2


class Scale(IntEnum):
    """What a template's tensor size is multiplied by (W)."""

    SCALE_NONE = 0
    SCALE_TOKENS = 1
    SCALE_ATTENTION = 2
    SCALE_WINDOW = 3
    SCALE_INDEXER = 4


class Shared(IntFlag):
    """What must be so of two allocators for sharing to turn itself on (S4)."""

    ONE_SEQUENCE = 1
    ONE_DEVICE = 2
    ON_CUDA = 4
    NATIVE_MTP = 8


VALIDATED = 15  #: all of `Shared`


class Flag(IntFlag):
    """Tensor flags."""

    LEAF = 1
    INPUT = 2
    OUTPUT = 4
    INPLACE = 8
    PREALLOC = 16
    LAYOUT = 32


class Kind(IntEnum):
    """Operation kinds."""

    NEW = 0
    FREE = 1
    OWN = 2
    BORROW = 3
    RESERVE = 4
    MEASURE = 5
    ALLOC = 6
    COMPUTE = 7
    SHRINK = 8
    CAPACITY = 9
    LOOK = 10
    REMAKE = 11
    SYNC = 12
    RESET = 13
    POOL_ALLOC = 14
    POOL_FREE = 15
    TRIM = 16
    CAPTURE_BEGIN = 17
    CAPTURE_END = 18
    LAUNCH = 19
    DROP = 20
    CTX_OPEN = 21
    CTX_CLOSE = 22
    CTX_ATTACH = 23
    CTX_DECODE = 24
    CTX_SYNC = 25
    CTX_NODES = 26
    CTX_TRIM = 27
    SLOT_ENTER = 28
    SLOT_STEP = 29
    SLOT_LEAVE = 30


class OpFlag(IntFlag):
    UNCHECKED = 1
    ASYNC = 2
    BY_SCHED = 4


class Status(IntEnum):
    MISUSE = -1
    REFUSED = 0
    DONE = 1
    STALE = 2
    FAILED = 3


class Trouble(IntFlag):
    """What went wrong in memory while an operation ran."""

    BAD_SOURCE = 1
    BAD_OUTPUT = 2
    BAD_PREALLOC = 4
    FREED_BUSY = 8
    BAD_GUARD = 16
    BAD_POOL = 32


@dataclass(frozen=True, slots=True)
class BufferType:
    """A kind of memory and its device (contract, "Words"). Bytes throughout.

    `meta`: bit d: each buffer has a part, of the same size, on device d (M); 0: a simple type,
    which lives on the device with its own index.
    """

    alignment: int = 1
    max_size: int = SIZE_MAX
    granularity: int = 1
    capacity: int = UNLIMITED
    meta: int = 0

    def devices(self, index: int) -> tuple[int, ...]:
        """The devices that a buffer of this type, which has this index, has bytes on."""
        return tuple(d for d in range(MAX_TYPES) if self.meta >> d & 1) if self.meta else (index,)


@dataclass(frozen=True, slots=True)
class Context:
    """An inference context (W); the fields mean what gc_context says. config -1: there is none."""

    config: int = -1
    graph: int = 0
    memory: Memory = Memory.KV
    options: Option = Option(0)
    lanes: int = 1
    cells: int = 8
    window: int = 8
    generation: int = 1
    batch: int = 1
    nodes: int = 0


@dataclass(frozen=True, slots=True)
class Setup:
    """Devices and the slot lists that allocators are made with; how they share, pools, contexts.

    `configs[k]` is a list of types, duplicates allowed (G3); first occurrences
    ascend, so that allocation order is type order. `contexts`: the target, then the draft.
    """

    types: tuple[BufferType, ...]
    configs: tuple[tuple[int, ...], ...]
    strategy: Strategy = Strategy.PAIR
    pool: PoolKind = PoolKind.NO_POOL
    pool_range: int = 0
    contexts: tuple[Context, ...] = ()


def has(flags: int, flag: int) -> bool:
    """Whether a flag is set; as plain ints, which is much faster than the enums' own `&`."""
    return int.__and__(flags, flag) != 0


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor; `src` and `view_src` index earlier tensors of its graph.

    A view has exactly one source, which is `view_src`, itself no view. `pad` is
    what the buffer type asks for beyond the content (the alloc size is
    size + pad). `slot` modulo the allocator's slot count is where it should go.
    """

    size: int
    src: tuple[int, ...] = ()
    flags: Flag = Flag(0)
    slot: int = 0
    pad: int = 0
    view_src: int = -1
    view_offs: int = 0
    scale: Scale = Scale.SCALE_NONE

    @property
    def leaf(self) -> bool:
        return has(self.flags, Flag.LEAF)

    @property
    def input(self) -> bool:
        return has(self.flags, Flag.INPUT)

    @property
    def output(self) -> bool:
        return has(self.flags, Flag.OUTPUT)

    @property
    def inplace(self) -> bool:
        return has(self.flags, Flag.INPLACE)

    @property
    def prealloc(self) -> bool:
        return has(self.flags, Flag.PREALLOC)

    @property
    def view(self) -> bool:
        return self.view_src >= 0

    @property
    def layout(self) -> tuple[int, bool]:
        return self.size, has(self.flags, Flag.LAYOUT)

    @property
    def alloc_size(self) -> int:
        return self.size + self.pad


@dataclass(frozen=True)
class Graph:
    """Tensors in execution order. Graphs are keys of many caches, so the hash is kept."""

    tensors: tuple[Tensor, ...]

    @cached_property
    def _hash(self) -> int:
        return hash(self.tensors)

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True)
class Op:
    """One operation; the fields mean what gc_op says."""

    kind: Kind
    alloc: int = 0
    other: int = 0
    graph: int = 0
    fail_types: int = 0
    fail_nth: int = 0
    flags: OpFlag = OpFlag(0)
    value: int = 0


@dataclass(frozen=True, slots=True)
class Place:
    """Where a tensor is: type -1 when it is not in the allocator's memory."""

    type: int
    chunk: int
    offset: int


@dataclass(frozen=True, slots=True)
class Observation:
    """What a subject showed after one operation; the fields mean what gc_obs says.

    `asked` is indexed [type][chunk] without trailing zeros per type.
    """

    status: Status
    trouble: Trouble = Trouble(0)
    bad_node: int = -1
    bad_src: int = -1
    bad_offset: int = 0
    generation: int = 0
    shrink_generation: int = 0
    digest: int = 0
    used: tuple[int, ...] = ()
    reported: tuple[int, ...] = ()
    measured: tuple[int, ...] = ()
    asked: tuple[tuple[int, ...], ...] = ()
    owned: tuple[int, ...] = ()
    allocations: int = 0
    sched_generation: int = 0
    sched_shrink_generation: int = 0
    nodes: int = 0
    in_flight: int = 0
    reason: int = 0
    pooled: tuple[int, ...] = ()
    released: int = 0
    base: int = 0
    mapped: int = 0
    out: int = 0
    address: int = 0
    captured: int = 0
    capturing: int = 0
    tokens: tuple[int, ...] = (0, 0)
    cells: tuple[int, ...] = (0, 0)
    fewer: tuple[int, ...] = (0, 0)
    reserves: int = 0
    waits: int = 0
    attached: int = 0
    busy: int = 0


_FIELDS = {f.name: k for k, f in enumerate(fields(Observation))}
_values = attrgetter(*_FIELDS)


def changed(obs: Observation, new: Mapping[str, Any]) -> Observation:
    """As dataclasses.replace, at half the cost: the reference makes several for each operation."""
    values = list(_values(obs))
    for name, value in new.items():
        values[_FIELDS[name]] = value
    return Observation(*values)


@dataclass(frozen=True, slots=True)
class Trace:
    """A whole case: the setup, the graphs it uses, and what is asked, in order."""

    setup: Setup
    graphs: tuple[Graph, ...] = ()
    ops: tuple[Op, ...] = field(default=())
