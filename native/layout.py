"""Records <-> C structs. The only place that converts them; formats come from the header's layout."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from ..model.records import (
    MAX_CHUNKS,
    MAX_CONFIGS,
    MAX_CONTEXTS,
    MAX_LANES,
    MAX_SLOTS,
    MAX_SRC,
    MAX_TYPES,
    Context,
    Graph,
    Observation,
    Op,
    Place,
    Setup,
    Status,
    Tensor,
    Trouble,
)
from .header import SubjectError, ffi

_CODES = {
    ("int32_t", 4): "i",
    ("uint32_t", 4): "I",
    ("uint64_t", 8): "Q",
}


def _scalars(ctype: Any, at: int = 0) -> Iterator[tuple[int, str]]:
    """(offset, format code) of every scalar inside a C type, in order."""
    if ctype.kind == "struct":
        for _, part in ctype.fields:
            yield from _scalars(part.type, at + part.offset)
    elif ctype.kind == "array":
        for k in range(ctype.length):
            yield from _scalars(ctype.item, at + k * ffi.sizeof(ctype.item))
    else:
        yield at, _CODES[ctype.cname, ffi.sizeof(ctype)]


def format_of(name: str) -> struct.Struct:
    """The `struct` format of a C struct of the header, padding included."""
    ctype, text, at = ffi.typeof(name), "=", 0
    for offset, code in _scalars(ctype):
        text += "x" * (offset - at) + code
        at = offset + struct.calcsize("=" + code)
    return struct.Struct(text + "x" * (ffi.sizeof(ctype) - at))


SETUP, TENSOR, OP, OBS, PLACE = map(format_of, ("gc_setup", "gc_tensor", "gc_op", "gc_obs", "gc_place"))

_AT = {name: part.offset for name, part in ffi.typeof("gc_obs").fields}
_HEAD = struct.Struct("=iIii4Q")  # status to digest
_SLOTS = struct.Struct(f"={MAX_SLOTS}Q")
_SCHED = struct.Struct("=4Q2I")  # allocations to reason
_POOL = struct.Struct(f"=5Q2I{3 * MAX_LANES}I4I")  # released to busy
_ASKED_ROW = 8 * MAX_CHUNKS
_NO_TROUBLE = Trouble(0)
_NO_ROWS = bytes(MAX_TYPES * _ASKED_ROW)
_STATUS = {int(s): s for s in Status}
_HERE = "gc_obs changed: layout.py reads its parts by these formats"
assert _HEAD.size == _AT["used"], _HERE
assert _AT["allocations"] + _SCHED.size == _AT["pooled"], _HERE
assert _AT["released"] + _POOL.size == OBS.size, _HERE


def pack_setup(setup: Setup) -> bytes:
    """A gc_setup. Raises struct.error where a value does not fit its C field."""
    types: list[int] = []
    for kind in setup.types:
        types += (kind.alignment, kind.max_size, kind.granularity, kind.capacity, kind.meta, 0)
    types += [0] * (6 * (MAX_TYPES - len(setup.types)))
    lengths = [len(slots) for slots in setup.configs] + [0] * (MAX_CONFIGS - len(setup.configs))
    slots = [t for config in setup.configs for t in (*config, *[0] * (MAX_SLOTS - len(config)))]
    slots += [0] * (MAX_SLOTS * MAX_CONFIGS - len(slots))
    contexts: list[int] = []
    for c in (*setup.contexts, *[Context()] * MAX_CONTEXTS)[:MAX_CONTEXTS]:
        contexts += (
            c.config,
            c.graph,
            c.memory,
            c.options,
            c.lanes,
            c.cells,
            c.window,
            c.generation,
            c.batch,
        )
        contexts.append(c.nodes)
    how = (setup.strategy, setup.pool, setup.pool_range)
    return SETUP.pack(len(setup.types), len(setup.configs), *types, *lengths, *slots, *how, *contexts)


_NO_SRC = (-1,) * MAX_SRC


def pack_tensor(t: Tensor) -> bytes:
    """A gc_tensor."""
    src = (t.src + _NO_SRC)[:MAX_SRC]
    return TENSOR.pack(t.size, t.pad, t.view_offs, t.view_src, *src, t.flags, t.slot, t.scale)


def pack_graph(graph: Graph) -> bytes:
    """Its gc_tensors in a row."""
    return b"".join(map(pack_tensor, graph.tensors))


def pack_op(op: Op) -> bytes:
    """A gc_op."""
    return OP.pack(
        op.kind, op.alloc, op.other, op.graph, op.fail_types, op.fail_nth, op.flags, 0, op.value
    )  # fmt: skip


@lru_cache(maxsize=1 << 14)
def observation(raw: bytes, n_types: int) -> Observation:
    """The record of one gc_obs (OBS.size bytes) in a session of `n_types` types.

    Raises SubjectError where the status is none that gallocheck.h knows.
    """
    status, trouble, node, src, offset, generation, shrink, digest = _HEAD.unpack_from(raw)
    if status not in _STATUS:
        raise SubjectError(
            f"the subject answered an operation with status {status}, gallocheck.h knows "
            f"{min(_STATUS)} to {max(_STATUS)}: correct the adapter."
        )
    per_type = f"={n_types}Q"
    pool = _POOL.unpack_from(raw, _AT["released"])
    lanes = pool[7:13]
    values: list[Any] = [
        _STATUS[status],
        Trouble(trouble) if trouble else _NO_TROUBLE,
        node,
        src,
        offset,
        generation,
        shrink,
        digest,
        struct.unpack_from(per_type, raw, _AT["used"]),
        _SLOTS.unpack_from(raw, _AT["reported"]),
        _SLOTS.unpack_from(raw, _AT["measured"]),
        _asked(raw, n_types),
        struct.unpack_from(per_type, raw, _AT["owned"]),
        *_SCHED.unpack_from(raw, _AT["allocations"]),
        struct.unpack_from(per_type, raw, _AT["pooled"]),
        *pool[:7],
        lanes[:2],
        lanes[2:4],
        lanes[4:],
        *pool[13:],
    ]
    return Observation(*values)


def _asked(raw: bytes, n_types: int) -> tuple[tuple[int, ...], ...]:
    """Chunk sizes per type, without trailing zeros."""
    rows = raw[_AT["asked"] : _AT["asked"] + n_types * _ASKED_ROW]
    if rows == _NO_ROWS[: len(rows)]:
        return ((),) * n_types
    out = []
    for t in range(n_types):
        row = rows[t * _ASKED_ROW : (t + 1) * _ASKED_ROW].rstrip(b"\0")
        out.append(struct.unpack_from(f"={-(-len(row) // 8)}Q", rows, t * _ASKED_ROW))
    return tuple(out)


def places(raw: bytes) -> tuple[Place, ...]:
    """The records of gc_places in a row."""
    return tuple(Place(*p) for p in PLACE.iter_unpack(raw))
