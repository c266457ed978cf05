"""Reads gallocheck.h as it stands, and loads subject libraries that keep to it.

No NumPy here: the subject's own process imports this and must start fast.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from cffi import FFI

HEADER = Path(__file__).parent / "include" / "gallocheck.h"


class SubjectError(Exception):
    """A subject library cannot be used. The text is one sentence for people; exit code 3."""

    exit_code = 3


def declarations(text: str) -> str:
    """The header without what only a C preprocessor understands."""
    text = re.sub(r"^#ifdef __cplusplus\n.*?^#endif\n", "", text, flags=re.S | re.M)
    return re.sub(r"^#.*\n", "", text, flags=re.M)


def _function_names(text: str) -> list[str]:
    without_comments = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return re.findall(r"\b(gc_\w+)\s*\(", without_comments)


_text = declarations(HEADER.read_text())
FUNCTIONS = _function_names(_text)  #: what every subject exports
ffi = FFI()
ffi.cdef(_text)
constants: Any = ffi.dlopen(None)  #: the header's enums: constants.GC_ABI and so on
ABI = int(constants.GC_ABI)


def load(path: str | os.PathLike[str]) -> Any:
    """The subject library at `path`, checked: it exports every function of gallocheck.h
    and was built for this version of it.

    Raises SubjectError where it is missing, no library, or of another interface.
    """
    path = os.path.abspath(os.fspath(path))
    if not os.path.isfile(path):
        raise SubjectError(f"no subject library at {path}: build it, or name another one.")
    try:
        lib = ffi.dlopen(path, ffi.RTLD_NOW | ffi.RTLD_LOCAL)
    except OSError as error:
        reason = str(error).removeprefix(f"cannot load library '{path}': ").split(".  Additionally,")[0]
        raise SubjectError(
            f"{path} cannot be loaded as a subject library ({reason}): build it again."
        ) from None
    for name in FUNCTIONS:
        if not hasattr(lib, name):
            raise SubjectError(
                f"{path} lacks the function {name} of gallocheck.h: export it, and build the library again."
            )
    abi = int(lib.gc_abi())
    if abi != ABI:
        raise SubjectError(
            f"{path} has version {abi} of the subject interface (gc_abi), this gallocheck needs {ABI}: "
            "build the library again with this gallocheck's gallocheck.h."
        )
    return lib


def plant(lib: Any, path: str | os.PathLike[str], defect: int) -> None:
    """Switches planted defect `defect` on (0: none). Raises SubjectError where there is no such defect."""
    if not lib.gc_plant(defect) and defect:
        raise SubjectError(
            f"{os.fspath(path)} has no planted defect {defect}: "
            "use the test build with planted defects, or another number."
        )
