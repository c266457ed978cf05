"""A subject library in this process. What it does wrong, it does to us: see worker.py for another way."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..model.records import Cap, Graph, Observation, Op, Place, Setup
from . import layout
from .header import SubjectError, ffi, load, plant


def _dtype(ctype: Any) -> Any:
    """The NumPy type of a C type of the header, offsets and padding included."""
    if ctype.kind == "array":
        inner, shape = _dtype(ctype.item), (ctype.length,)
        if isinstance(inner, tuple):  # an array of arrays
            return inner[0], shape + inner[1]
        return inner, shape
    if ctype.kind == "primitive":
        return np.dtype(ctype.cname.removesuffix("_t"))
    names = [name for name, _ in ctype.fields]
    parts = [part for _, part in ctype.fields]
    return np.dtype(
        {
            "names": names,
            "formats": [_dtype(part.type) for part in parts],
            "offsets": [part.offset for part in parts],
            "itemsize": ffi.sizeof(ctype),
        }
    )


TENSOR_DTYPE, OP_DTYPE, OBS_DTYPE, PLACE_DTYPE = (
    _dtype(ffi.typeof(name)) for name in ("gc_tensor", "gc_op", "gc_obs", "gc_place")
)


class Library:
    """A subject library, loaded and checked.

    Raises SubjectError where it cannot be loaded, lacks a function, has another
    interface version, or has no planted defect `defect` (0: none).
    """

    def __init__(self, path: str | os.PathLike[str], defect: int = 0) -> None:
        self.path = os.fspath(path)
        self.lib = load(path)
        plant(self.lib, path, defect)

    @property
    def capabilities(self) -> Cap:
        return Cap(self.lib.gc_capabilities())

    @property
    def describe(self) -> str:
        text: bytes = ffi.string(self.lib.gc_describe())
        return text.decode(errors="replace")

    def open(self, setup: Setup) -> Session:
        """A new session. Raises SubjectError where the subject takes no such setup."""
        return Session(self, setup)


class Session:
    """One session of a subject: its devices, its allocators, the graphs defined so far."""

    def __init__(self, library: Library, setup: Setup) -> None:
        self._lib = library.lib
        self._n_types = len(setup.types)
        self._progress = ffi.new("uint64_t *")
        self._handle = self._lib.gc_open(ffi.from_buffer("gc_setup *", layout.pack_setup(setup)))
        if not self._handle:
            raise SubjectError(f"{library.path} does not open a session for this setup: {setup}.")

    def define(self, graph: Graph) -> int:
        """The graph's number in the session; -1 where the subject does not take it."""
        raw = layout.pack_graph(graph) or bytes(layout.TENSOR.size)
        return int(self._lib.gc_define(self._handle, ffi.from_buffer("gc_tensor *", raw), len(graph.tensors)))

    def run(self, ops: Sequence[Op]) -> list[Observation]:
        """Runs the operations as one batch; an observation each."""
        raw = np.frombuffer(b"".join(map(layout.pack_op, ops)), dtype=OP_DTYPE)
        seen = self.run_raw(raw).tobytes()
        size = layout.OBS.size
        return [layout.observation(seen[at : at + size], self._n_types) for at in range(0, len(seen), size)]

    def run_raw(self, ops: NDArray[np.void], out: NDArray[np.void] | None = None) -> NDArray[np.void]:
        """Runs ops, an array (n,) of OP_DTYPE; returns the observations, an array (n,) of OBS_DTYPE:
        `out` where it is given, so that a loop allocates nothing."""
        if ops.dtype != OP_DTYPE or (out is not None and (out.dtype != OBS_DTYPE or out.shape != ops.shape)):
            raise ValueError("run_raw takes operations of OP_DTYPE, and as many observations of OBS_DTYPE")
        ops = np.ascontiguousarray(ops)
        seen = np.zeros(len(ops), dtype=OBS_DTYPE) if out is None else out
        if len(ops):
            self._lib.gc_run(
                self._handle,
                ffi.cast("gc_op *", ops.ctypes.data),
                ffi.cast("gc_obs *", seen.ctypes.data),
                len(ops),
                self._progress,
            )
        return seen

    def places(self, alloc: int, n: int) -> tuple[Place, ...]:
        """Placements of allocator `alloc`'s bound graph, at most `n`; empty where nothing is bound."""
        raw = ffi.new("gc_place[]", max(n, 1))
        count = min(int(self._lib.gc_places(self._handle, alloc, raw, n)), n)
        return layout.places(bytes(ffi.buffer(raw, count * layout.PLACE.size)))

    def close(self) -> int:
        """Frees all; returns the bytes of devices and address ranges still taken (G5: 0). Again: does nothing, 0."""
        if not self._handle:
            return 0
        handle, self._handle = self._handle, None
        return int(self._lib.gc_close(handle))

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
