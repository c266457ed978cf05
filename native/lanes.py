"""The runner of thousands of short traces in one call (include/gc_lanes.h), as cffi reads it.

No NumPy here: the subject's own process imports this and must start fast.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any

from .header import HEADER, SubjectError, declarations, ffi
from .library import library_path

_HEADER = HEADER.with_name("gc_lanes.h")
ffi.cdef(declarations(_HEADER.read_text()))
_PROGRESS, _PROGRESS_AT = struct.Struct("=3Q"), ffi.offsetof("gl_job", "progress")
FINISHED, IDLE = 0xFFFFFFFF, 0xFFFFFFFE  # of gl_progress.lane: all are done; nothing was run yet


@lru_cache(maxsize=1)
def runner() -> Any:
    """libgallocheck_lanes. Raises SubjectError where it is missing."""
    path = library_path("lanes")
    try:
        return ffi.dlopen(str(path))
    except OSError:
        raise SubjectError(f"{path} is missing or cannot be loaded: build gallocheck again.") from None


def execute(subject: Any, block: Any, first: int) -> None:
    """Runs the gl_job at `block` (a char pointer) on a loaded subject library, from lane `first` on."""
    functions = ffi.new("gl_subject *")
    for name in ("open", "close", "define", "run", "places"):
        address = ffi.addressof(subject, f"gc_{name}")
        setattr(functions, name, ffi.cast("void *", address))
    runner().gl_run(functions, ffi.cast("gl_job *", block), first)


def where(block: Any) -> tuple[int, int]:
    """(lane, operation of it) that runs in the gl_job at the start of `block`, a buffer."""
    lane, operation, base = _PROGRESS.unpack_from(block, _PROGRESS_AT)
    return lane, base + operation
