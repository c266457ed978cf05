"""Thousands of short traces, packed for the runner of include/gc_lanes.h, and what was seen of them.

A lane is one trace. Arrays that count lanes come first: [lane] or [lane, step]; what is seen is
[step, field, lane], as int64, so that a step's field is one row to compare.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..model.records import Graph, Setup
from . import lanes, layout, zygote
from .binding import OP_DTYPE
from .header import ffi
from .packet import Death

Field = tuple[str, int, int]  #: (name, type or slot, chunk)
_OBS = ffi.typeof("gc_obs")
_FIELD = np.dtype([("offset", np.uint32), ("size", np.uint16), ("sign", np.uint16)])
_HEAD = ffi.sizeof("gl_job")
PLACES: Field = ("places", 0, 0)


def _described(field: Field) -> tuple[int, int, int]:
    """(offset in gc_obs, size, signed) of a field."""
    name, row, column = field
    if field == PLACES:
        return 0, 0, 0
    part = dict(_OBS.fields)[name]
    at, ctype = part.offset, part.type
    for index in (row, column):
        if ctype.kind == "array":
            ctype = ctype.item
            at += index * ffi.sizeof(ctype)
    return at, ffi.sizeof(ctype), int(ctype.cname == "int32_t")


@dataclass(frozen=True)
class Job:
    """What lanes run. `which` [lane, number]: the index in `graphs` of each graph of a lane's session.

    `capacity` [lane, device]: bytes, in place of what the setup says. `ops`: OP_DTYPE [lane, step].
    """

    setup: Setup
    capacity: NDArray[np.int64]
    graphs: Sequence[Graph]
    which: NDArray[np.uint32]
    ops: NDArray[np.void]
    fields: tuple[Field, ...]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Steps, fields, lanes."""
        return self.ops.shape[1], len(self.fields), self.ops.shape[0]


class Block:
    """A job in one block of memory: `parts` to write at offsets, `size` bytes in all."""

    def __init__(self, job: Job) -> None:
        self.job, self.size = job, _HEAD
        self.parts: list[tuple[int, NDArray[np.uint8]]] = []
        head = ffi.new("gl_job *")
        head.steps, head.fields, head.lanes = job.shape
        head.graphs = job.which.shape[1]
        spans = np.cumsum([0, *(len(g.tensors) for g in job.graphs)])
        table = np.stack([spans[:-1], np.diff(spans)], axis=1)
        head.setups = self._put(self._setups())
        head.tensors = self._put(
            np.frombuffer(b"".join(map(layout.pack_graph, job.graphs)) or bytes(8), np.uint8)
        )
        head.spans = self._put(table.astype(np.uint32))
        head.graphs_of = self._put(job.which.astype(np.uint32))
        head.ops = self._put(job.ops)
        head.field = self._put(np.array([_described(f) for f in job.fields], _FIELD))
        self.seen_at = head.seen = self._room(8 * int(np.prod(job.shape)))
        self.left_at = head.left = self._room(8 * len(job.ops))
        head.progress.lane = lanes.IDLE
        self.parts.insert(0, (0, np.frombuffer(bytes(ffi.buffer(head)), np.uint8)))

    def _setups(self) -> NDArray[np.uint8]:
        one = np.frombuffer(layout.pack_setup(self.job.setup), np.uint8)
        all_of_them = np.tile(one, (len(self.job.ops), 1))
        types = dict(ffi.typeof("gc_setup").fields)["types"]
        for t in range(len(self.job.setup.types)):
            at = (
                types.offset
                + t * ffi.sizeof("gc_type")
                + dict(ffi.typeof("gc_type").fields)["capacity"].offset
            )
            all_of_them[:, at : at + 8] = (
                np.ascontiguousarray(self.job.capacity[:, t]).view(np.uint8).reshape(-1, 8)
            )
        return all_of_them

    def _put(self, what: NDArray[Any]) -> int:
        raw = np.ascontiguousarray(what).reshape(-1).view(np.uint8)
        at = self._room(len(raw))
        self.parts.append((at, raw))
        return at

    def _room(self, size: int) -> int:
        at = self.size
        self.size += -(-size // 64) * 64
        return at

    def write(self, memory: Any) -> None:
        """Puts the job at the start of `memory`, a writable buffer."""
        block = np.frombuffer(memory, np.uint8)
        for at, raw in self.parts:
            block[at : at + len(raw)] = raw

    def seen(self, memory: Any) -> NDArray[np.int64]:
        """[step, field, lane] in that memory, not copied."""
        return np.frombuffer(memory, np.int64, int(np.prod(self.job.shape)), self.seen_at).reshape(
            self.job.shape
        )

    def left(self, memory: Any) -> NDArray[np.int64]:
        """[lane]: bytes that stayed in use after close; -1 where the subject refused the setup or a graph."""
        return np.frombuffer(memory, np.int64, len(self.job.ops), self.left_at)


class LaneDeath(NamedTuple):
    """The subject died in this lane, at its operation `step` (as many as there are: at close)."""

    lane: int
    step: int
    death: Death


class JobFlight:
    """A job from lane `first` on, for a Worker (native/flight.py)."""

    what = zygote.LANES

    def __init__(self, block: Block, first: int) -> None:
        self.size, self.parts, self.first = block.size, block.parts, first
        self.death: LaneDeath | None = None

    def where(self, block: Any) -> tuple[int, int]:
        return lanes.where(block)

    def idle(self, block: Any) -> bool:
        return lanes.where(block)[0] == lanes.IDLE

    def land(self, block: Any, death: Death | None) -> None:
        if death is not None:
            self.death = LaneDeath(*lanes.where(block), death)


def run_here(subject: Any, block: Block) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Runs the job in this process on a loaded library: (seen, left). A subject that dies takes us with it."""
    memory = bytearray(block.size)
    block.write(memory)
    lanes.execute(subject, ffi.from_buffer("char[]", memory, require_writable=True), 0)
    return block.seen(memory), block.left(memory)


def operations(lanes_: int, steps: int) -> NDArray[np.void]:
    """Empty operations, [lane, step] of OP_DTYPE."""
    return np.zeros((lanes_, steps), OP_DTYPE)
