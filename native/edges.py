"""Edge coverage of a subject, where its library has it (include/gc_coverage.h).

No NumPy here: the subject's own process imports this and must start fast.
"""

from __future__ import annotations

from typing import Any

from .header import HEADER, declarations, ffi

ffi.cdef(declarations(HEADER.with_name("gc_coverage.h").read_text()))


class Edges:
    """The counters of a loaded subject library; `size` is 0 where it has none."""

    def __init__(self, lib: Any) -> None:
        self._lib = lib
        self._out, self._n = ffi.new("uint8_t **"), ffi.new("uint32_t *")
        self.size = self._find() if hasattr(lib, "gc_coverage") else 0
        self._none = bytes(self.size)

    def _find(self) -> int:
        self._lib.gc_coverage(self._out, self._n)
        return int(self._n[0])

    def reset(self) -> None:
        """What runs next is counted from 0, as a path of its own."""
        if self.size:
            self._find()
            ffi.buffer(self._out[0], self.size)[:] = self._none

    def copy(self, to: Any) -> None:
        """Writes the counters into a buffer of `size` bytes."""
        to[:] = ffi.buffer(self._out[0], self.size)[:]
