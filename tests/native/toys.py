"""Compiles toy.c, once for each set of macros, and names the orders it takes."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from gallocheck.model.records import BufferType, Graph, Kind, Op, Setup, Tensor, Trace
from gallocheck.native.header import HEADER

SOURCE = Path(__file__).with_name("toy.c")
ABORT, FAULT, HANG, EXIT, LEAK, SLOW, ABORT_AT_CLOSE, STATUS, ABORT_AT_LOOK, ABORT_AT_PLACES = range(
    666001, 666011
)
HANG_AT_CLOSE, CLOSE_FILES, FORK, CHATTER = range(666011, 666015)

SETUP = Setup((BufferType(),), ((0,),))
PAIR_OF_TENSORS = Graph((Tensor(5), Tensor(6, (0,))))


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="gallocheck-toys-")


@functools.cache
def toy(*macros: str) -> str:
    """Path of the toy subject compiled with these macros."""
    out = Path(_folder().name) / f"libtoy-{len(os.listdir(_folder().name))}.so"
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    assert compiler, "the tests need a C compiler"
    call = [compiler, "-std=gnu11", "-O1", "-shared", "-fPIC", "-I", str(HEADER.parent)]
    subprocess.run([*call, *macros, str(SOURCE), "-o", str(out)], check=True)
    return str(out)


def order(value: int, *after: Op) -> Trace:
    """Two allocators live, then the toy is told to misbehave, then `after`."""
    ops = (Op(Kind.NEW), Op(Kind.NEW, 1), Op(Kind.CAPACITY, value=value), *after)
    return Trace(SETUP, (PAIR_OF_TENSORS,), ops)
