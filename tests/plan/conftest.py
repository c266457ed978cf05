"""A small real program on the pinned tree, with the hook inside or before it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import pytest
from gallocheck.native import trees
from gallocheck.native.tree_build import HERE, VARIANTS, Builder, Parts
from gallocheck.native.tree_files import TreeError, quiet

HOOK = HERE / "hook"
PROGRAM = Path(__file__).parent / "program.c"
Program = Callable[..., Path]  #: (what, fault) -> the dump that it left


def run(*command: object) -> None:
    done = subprocess.run([str(x) for x in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def tree() -> trees.Tree:
    try:
        return trees.pinned()
    except TreeError as e:
        pytest.skip(str(e))


class Kitchen:
    """Objects of the tree, the program and the hook, each compiled once."""

    def __init__(self, tree: trees.Tree, home: Path) -> None:
        self.tree, self.home = tree, home
        self.known: dict[tuple[str, str] | None, Path] = {}
        self.parts: Parts = Builder(tree, VARIANTS["plain"], quiet).parts("ggml-alloc.c")
        self.include = [f"-I{tree.root / name}" for name in ("include", "src")]
        self.cc = shutil.which("cc") or "gcc"
        run(self.cc, "-std=gnu99", "-w", *self.include, "-c", PROGRAM, "-o", home / "program.o")

    def hook(self, *flags: str, out: str) -> Path:
        run(self.cc, "-std=gnu99", "-O1", "-Wall", "-Wno-unused-function", "-Werror", *self.include, *flags,
            HOOK / "gallocheck_hook.c", "-o", self.home / out)  # fmt: skip
        return self.home / out

    def planner(self, fault: tuple[str, str] | None) -> Path:
        """ggml-alloc.c compiled as it is, or with something put into it."""
        text = self.parts.source.read_text()
        if fault:
            assert text.count(fault[0]) == 1, fault
            text = text.replace(*fault)
        name = f"ggml-alloc-{crc32(repr(fault).encode())}"
        (self.home / f"{name}.c").write_text(text)
        run(*self.parts.compiles, "-c", self.home / f"{name}.c", "-o", self.home / f"{name}.o")
        return self.home / f"{name}.o"

    def wrapped(self, fault: tuple[str, str] | None) -> Path:
        """The program with everything inside, the hook by the linker's --wrap."""
        if fault in self.known:
            return self.known[fault]
        hook = self.home / "hook.o"
        if not hook.is_file():
            self.hook("-DGALLOCHECK_HOOK_WRAP", "-c", out=hook.name)
        out = self.home / f"wrapped-{crc32(repr(fault).encode())}"
        run(self.parts.link[0], self.home / "program.o", hook, self.planner(fault), *self.parts.objects,
            f"@{HOOK / 'wrap.args'}", *self.parts.libraries, "-ldl", "-o", out)  # fmt: skip
        self.known[fault] = out
        return out

    def shared(self) -> tuple[Path, Path]:
        """(the program with its ggml as a shared library, the hook as one)."""
        library, out = self.home / "libggml.so", self.home / "with-library"
        run(
            self.parts.link[0],
            "-shared",
            self.planner(None),
            *self.parts.objects,
            *self.parts.libraries,
            "-o",
            library,
        )
        run(self.parts.link[0], self.home / "program.o", library, f"-Wl,-rpath,{self.home}", "-o", out)
        return out, self.hook("-fPIC", "-shared", "-ldl", out="hook.so")


@pytest.fixture(scope="session")
def kitchen(tree: trees.Tree, tmp_path_factory: pytest.TempPathFactory) -> Kitchen:
    return Kitchen(tree, tmp_path_factory.mktemp("kitchen"))


def dump_of(program: Path, what: str, dump: Path, **environment: str) -> Path:
    """Runs the program; what the hook wrote."""
    env = {**os.environ, "GALLOCHECK_PLAN": str(dump), **environment}
    done = subprocess.run([program, what], env=env, capture_output=True, text=True, timeout=20)
    assert done.stdout == "done\n", done.stderr
    return dump
