"""Records: what is described, asked of a subject, and seen of it.

Plain frozen dataclasses over ints and tuples; all sizes are bytes. They mirror
native/include/gallocheck.h field by field (a test compares the two).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from functools import cached_property

MAX_TYPES, MAX_CHUNKS, MAX_SLOTS, MAX_CONFIGS, MAX_ALLOCS, MAX_SRC = 4, 16, 6, 4, 4, 4
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


class OpFlag(IntFlag):
    UNCHECKED = 1
    ASYNC = 2
    BY_SCHED = 4


class Status(IntEnum):
    MISUSE = -1
    REFUSED = 0
    DONE = 1
    STALE = 2


class Trouble(IntFlag):
    """What went wrong in memory while an operation ran."""

    BAD_SOURCE = 1
    BAD_OUTPUT = 2
    BAD_PREALLOC = 4
    FREED_BUSY = 8
    BAD_GUARD = 16


@dataclass(frozen=True, slots=True)
class BufferType:
    """A kind of memory and its device (contract, "Words"). Bytes throughout."""

    alignment: int = 1
    max_size: int = SIZE_MAX
    granularity: int = 1
    capacity: int = UNLIMITED


@dataclass(frozen=True, slots=True)
class Setup:
    """Devices and the slot lists that allocators are made with.

    `configs[k]` is a list of types, duplicates allowed (G3); first occurrences
    ascend, so that allocation order is type order.
    """

    types: tuple[BufferType, ...]
    configs: tuple[tuple[int, ...], ...]


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


@dataclass(frozen=True, slots=True)
class Trace:
    """A whole case: the setup, the graphs it uses, and what is asked, in order."""

    setup: Setup
    graphs: tuple[Graph, ...] = ()
    ops: tuple[Op, ...] = field(default=())
