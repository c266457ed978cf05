"""One C++ program, compiled against a tree and run: how an emitted program is checked."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from .tree_build import VARIANTS, Builder
from .tree_files import Progress, Tree, TreeError, first, quiet, run

_WORDS: dict[int, str] = {
    signal.SIGSEGV: "segmentation fault",
    signal.SIGBUS: "bus error",
    signal.SIGABRT: "abort",
    signal.SIGALRM: "it hangs",
    signal.SIGFPE: "arithmetic fault",
    signal.SIGILL: "illegal instruction",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a program ended.

    `code` as a shell gives it (128 + signal); `said`: the line that tells why, '' if none does; `errors`: all
    that it wrote to stderr.
    """

    code: int
    said: str = ""
    errors: str = ""

    @property
    def red(self) -> bool:
        return self.code != 0

    def __str__(self) -> str:
        """'exit 139: segmentation fault', 'exit 1: FAILED: out1 is ...'."""
        how = _WORDS.get(self.code - 128, "killed") if self.code > 128 else ""
        return ": ".join(filter(None, (f"exit {self.code}", how, self.said)))


class Bench:
    """A tree of a variant, its allocating part compiled (objects are shared with the subject), ready to link.

    Raises TreeError as trees.build does.
    """

    def __init__(self, tree: Tree, variant: str = "plain", progress: Progress = quiet) -> None:
        self.tree, self.variant = tree, variant
        self.builder = Builder(tree, VARIANTS[variant], progress)
        base = self.builder._base_sources()
        self.units = [u for u in self.builder._units(base) if u.source.parent != self.builder.adapter]
        self.objects = self.builder._compile(self.units)
        self.rest: list[Path] = []

    @property
    def name(self) -> str:
        """'ggml 0.15.3', 'ggml 0.15.3 with the overlay'."""
        overlay = {"resizable": " with the overlay", "group": " with the overlay of a shared group"}
        return self.tree.name + overlay.get(self.variant, "")

    @property
    def sharing(self) -> Literal["pair", "group", ""]:
        """Which of the contract's interfaces the headers declare."""
        define = self.builder._sharing()
        return "pair" if define.endswith("PAIR") else "group" if define.endswith("GROUP") else ""

    def declares(self, name: str) -> bool:
        return any(re.search(rf"\b{name}\b", text) for text in self.headers())

    def parameters(self, function: str) -> int:
        """How many parameters a function of the public headers has."""
        for text in self.headers():
            if found := re.search(rf"GGML_API[^;]*\b{function}\s*\(([^)]*)\)\s*;", text):
                return found.group(1).count(",") + 1
        return 0

    def headers(self) -> list[str]:
        folders = (self.tree.root / "include", self.tree.root / "src")
        return [p.read_text(errors="replace") for f in folders for p in sorted(f.glob("ggml*.h"))]

    def try_out(self, text: str, seconds: float = 20.0) -> Outcome:
        """Compiles, links and runs the program. Raises TreeError(code 3) where it does not compile or link."""
        with tempfile.TemporaryDirectory(prefix="gallocheck-") as folder:
            (Path(folder) / "o").write_bytes(compiled(self.command(text), text, self.tree.name))
            self.link(Path(folder) / "o", Path(folder) / "program")
            return execute(Path(folder) / "program", seconds)

    def by_hand(self, program: str = "program.cpp") -> str:
        """The shell command that makes `program` of a program, without cmake: in the folder of the tree that holds
        include/ and src/, beside the tree's own sources. '' for an overlay, whose sources are not the tree's."""
        if self.variant != "plain":
            return ""
        sources = [*self.builder._base_sources(), *(self.builder._rest() if self.rest else ())]
        made = sorted(self.tree.root.glob("src/*.h.in"))  # the tree's own build would write these headers
        first = [
            f"sed 's/@[A-Za-z_]*@/-/' src/{p.name} > /tmp/{p.name.removesuffix('.in')} && " for p in made
        ]
        return (
            f"{''.join(first)}cc -w -DNDEBUG -D_GNU_SOURCE '-DGGML_VERSION=\"-\"' '-DGGML_COMMIT=\"-\"'"
            f" -I include -I src {'-I /tmp ' if made else ''}{program} {' '.join(f'src/{p.name}' for p in sources)}"
            f" -lstdc++ -lm -lpthread -o {program.removesuffix('.cpp')}"
        )

    def command(self, text: str) -> tuple[str, ...]:
        """The overlay's header is included only where the text uses what it declares: else variants compile alike."""
        root, variant = self.tree.root, self.builder.variant
        command = [self.builder.cxx, "-std=c++17", "-O0", "-w", f"-I{root / 'include'}", f"-I{root / 'src'}"]
        if variant.header and re.search("resizable|shared_buffers", text):
            command += ["-include", str(self.builder.adapter / variant.header)]
        return tuple(command)

    def link(self, program: Path, out: Path) -> None:
        objects = map(str, [program, *self.objects, *self.rest])
        done = run([self.builder.cxx, "-o", str(out), *objects, "-lm", "-lpthread"])
        if done.returncode and "undefined" in done.stderr and not self.rest and self.builder._rest():
            self.rest = self.builder._compile([self.builder._theirs(p) for p in self.builder._rest()])
            self.link(program, out)
        elif done.returncode:
            reason = first(r"(.*undefined.*)", done.stderr) or first(r"(.*\S)", done.stderr)
            raise TreeError(f"The program does not link with {self.name}: {reason}", 3)


@lru_cache(maxsize=8)
def compiled(command: tuple[str, ...], text: str, name: str) -> bytes:
    """The program's object; several variants of one tree link the same. `name`: of the tree, for people."""
    with tempfile.TemporaryDirectory(prefix="gallocheck-") as folder:
        (Path(folder) / "program.cpp").write_text(text)
        done = run([*command, "-c", f"{folder}/program.cpp", "-o", f"{folder}/o"])
        if done.returncode:
            reason = first(r"(.*\berror\b.*)", done.stderr) or first(r"(.*\S)", done.stderr)
            raise TreeError(f"The program does not compile against {name}: {reason}", 3)
        return (Path(folder) / "o").read_bytes()


def execute(program: Path, seconds: float) -> Outcome:
    """Runs it without core dumps and without ggml's debugger; what takes longer than `seconds` hangs."""
    env = {**os.environ, "GGML_NO_BACKTRACE": "1"}

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    try:
        done = subprocess.run(
            [str(program)],
            capture_output=True,
            text=True,
            errors="replace",
            env=env,
            stdin=subprocess.DEVNULL,
            timeout=seconds,
            preexec_fn=limit,
        )
    except subprocess.TimeoutExpired:
        return Outcome(128 + signal.SIGALRM)
    code = done.returncode if done.returncode >= 0 else 128 - done.returncode
    said = first(r"^(FAILED: .*)", done.stderr) or first(r"(GGML_ASSERT\(.*\) failed)", done.stderr)
    return Outcome(code, said, done.stderr)
