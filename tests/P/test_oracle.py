"""The memory oracle: model/oracle.py against gc_oracle.h, and against what the bundled subject computes."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from cffi import FFI
from gallocheck.fuzz.strategies import graphs_for
from gallocheck.model import oracle
from gallocheck.model.oracle import DIGESTED, EDGE, PAGE
from gallocheck.model.records import BufferType, Flag, Graph, Kind, Op, Setup, Status, Tensor
from gallocheck.native import layout
from gallocheck.native.binding import Library
from gallocheck.native.header import HEADER, declarations
from gallocheck.native.library import library_path
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.shorthand import given as written
from tests.shorthand import graph, node, out, view

SOME = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
DECLARED = """
void     shim_values(const gc_tensor * t, uint32_t n, uint64_t * v);
void     shim_fill(uint8_t * p, uint64_t size, uint64_t value);
uint64_t shim_verify(const uint8_t * p, const gc_tensor * t, uint32_t i, uint64_t value);
uint64_t shim_digest(uint64_t h, const uint8_t * p, const gc_tensor * t, uint32_t i);
uint64_t shim_mix(uint64_t x);
"""
BODIES = (
    "{ for (uint32_t i = 0; i < n; i++) v[i] = gc_value(t, i, v); }",
    "{ gc_fill(p, size, value); }",
    "{ return gc_verify(p, t, i, value); }",
    "{ return gc_digest(h, p, t, i); }",
    "{ return gc_mix(x); }",
)
SHIM = '#include "gc_oracle.h"\n' + "\n".join(
    head.rstrip(";") + body for head, body in zip(DECLARED.split("\n")[1:-1], BODIES, strict=True)
)
WORDS = st.integers(0, 2**64 - 1)
LARGE = 2 * EDGE + 5 * PAGE + 100  #: bytes of a tensor of which the middle is touched once a page
#: (offset, size) of views: in the edges, across them, in the middle, on and beside a page's first byte
PARTS = [
    (0, 64), (EDGE - 70, 64), (EDGE - 32, 64), (EDGE - 1, 2), (EDGE, 1), (EDGE, 4000), (EDGE + 1, 4000),
    (EDGE + PAGE, 1), (EDGE + PAGE, 4050), (EDGE + PAGE + 1, 3000), (EDGE + PAGE - 1, 4000),
    (EDGE + 2 * PAGE, 0), (LARGE - EDGE - 10, 100), (LARGE - EDGE, 100), (LARGE - EDGE + 1, 100),
    (LARGE - 64, 64), (LARGE, 0),
]  # fmt: skip


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> tuple[FFI, Any]:
    """gc_oracle.h, compiled."""
    folder = tmp_path_factory.mktemp("oracle")
    (folder / "shim.c").write_text(SHIM)
    library = folder / "shim.so"
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    assert compiler, "the tests need a C compiler"
    call = [compiler, "-std=gnu11", "-O1", "-shared", "-fPIC", "-I", str(HEADER.parent)]
    subprocess.run([*call, str(folder / "shim.c"), "-o", str(library)], check=True)
    ffi = FFI()
    ffi.cdef(declarations(HEADER.read_text()))
    ffi.cdef(DECLARED)
    return ffi, ffi.dlopen(str(library))


@pytest.fixture(scope="module")
def bundled() -> Iterator[Library]:
    yield Library(library_path("bundled"))


def packed(ffi: FFI, g: Graph) -> Any:
    return ffi.from_buffer("gc_tensor *", layout.pack_graph(g) or bytes(layout.TENSOR.size))


# -- against gc_oracle.h -------------------------------------------------------------------


@SOME
@given(x=WORDS)
def test_mix(native: tuple[FFI, Any], x: int) -> None:
    assert native[1].shim_mix(x) == oracle.mix(x)


@SOME
@given(g=graphs_for())
def test_values(native: tuple[FFI, Any], g: Graph) -> None:
    ffi, lib = native
    v = ffi.new("uint64_t[]", len(g.tensors) + 1)
    lib.shim_values(packed(ffi, g), len(g.tensors), v)
    assert list(v)[: len(g.tensors)] == oracle.values(g)


@SOME
@given(value=WORDS, size=st.one_of(st.integers(0, 300), st.integers(2 * EDGE - 2, 2 * EDGE + 2 * PAGE)))
def test_streams(native: tuple[FFI, Any], value: int, size: int) -> None:
    """The touched bytes and no others are written, with the stream's bytes."""
    ffi, lib = native
    memory = [ffi.new("uint8_t[]", [rest] * (size + 8)) for rest in (0x00, 0xFF)]
    for buffer in memory:
        lib.shim_fill(buffer, size, value)
    zeros, ones = (bytes(ffi.buffer(buffer)) for buffer in memory)
    touched = list(oracle.touched(size))
    assert [i for i in range(size + 8) if zeros[i] == ones[i]] == touched
    assert bytes(zeros[i] for i in touched) == bytes(oracle.stream(value, 0, size, size))


@pytest.mark.parametrize(("offset", "size"), PARTS)
def test_views_of_large_tensors(native: tuple[FFI, Any], offset: int, size: int) -> None:
    """A view is verified and digested where its root was written."""
    ffi, lib = native
    g = graph(written(LARGE), view(size, 0, offset, output=True))
    raw, value = packed(ffi, g), oracle.values(g)[0]
    memory = ffi.new("uint8_t[]", LARGE)
    lib.shim_fill(memory, LARGE, value)
    assert lib.shim_verify(memory + offset, raw, 1, value) == size
    assert lib.shim_digest(0, memory + offset, raw, 1) == oracle.digest(g)
    wanted = [at for at in oracle.touched(LARGE) if offset <= at < offset + size]
    for at in {*wanted[:1], *wanted[-1:]}:
        memory[at] ^= 1
        assert lib.shim_verify(memory + offset, raw, 1, value) == at - offset
        assert lib.shim_digest(0, memory + offset, raw, 1) != oracle.digest(g)
        memory[at] ^= 1


# -- against the bundled subject -------------------------------------------------------------


def computed(library: Library, g: Graph, types: tuple[BufferType, ...] = (BufferType(),)) -> int:
    with library.open(Setup(types, ((0,),))) as session:
        assert session.define(g) == 0
        seen = session.run([Op(Kind.NEW), Op(Kind.ALLOC), Op(Kind.COMPUTE)])
        assert seen[-1].status == Status.DONE and not seen[-1].trouble, seen[-1]
        return seen[-1].digest


@SOME
@given(g=graphs_for((BufferType(alignment=32),)))
def test_a_computed_digest(bundled: Library, g: Graph) -> None:
    have, want = computed(bundled, g, (BufferType(alignment=32),)), oracle.digest(g)
    assert want is None or have == want


@pytest.mark.parametrize(("offset", "size"), PARTS)
def test_a_computed_view_of_a_large_tensor(bundled: Library, offset: int, size: int) -> None:
    g = graph(written(64), node(LARGE, 0), view(size, 1, offset, output=True), out(32, 2), node(LARGE, 0))
    want = oracle.digest(g)
    assert want is not None and computed(bundled, g) == want


def test_the_digest_tells_graphs_apart() -> None:
    """Sources, their order, view offsets, sizes and positions all count."""
    base = graph(written(32), written(32), view(8, 0, 8), out(32, 0, 1, 2))
    others = [
        graph(written(32), written(32), view(8, 0, 8), out(32, 1, 0, 2)),
        graph(written(32), written(32), view(8, 0, 9), out(32, 0, 1, 2)),
        graph(written(32), written(32), view(8, 1, 8), out(32, 0, 1, 2)),
        graph(written(32), written(32), view(8, 0, 8), out(33, 0, 1, 2)),
        graph(written(32), written(32), view(8, 0, 8), out(32, 0, 1)),
        graph(written(32), written(32), view(8, 0, 8), node(32, 0, 1, 2), out(32, 0, 1, 2)),
    ]
    digests = [oracle.digest(g) for g in (base, *others)]
    assert None not in digests and len(set(digests)) == len(digests)


def test_outputs_above_the_limit_are_left_to_the_subject() -> None:
    def of(size: int) -> Graph:
        return Graph((Tensor(size, (), Flag.LEAF | Flag.OUTPUT),))

    assert oracle.digest(of(DIGESTED)) is not None and oracle.digest(of(DIGESTED + 1)) is None
    assert oracle.digest(graph(written(8))) == 0  # no outputs
