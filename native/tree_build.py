"""Building a tree into a subject.

A subject is the part of a tree that allocates (ggml-base) compiled beside our
adapter (native/ggml/) into one shared library. It is built as a release is:
with NDEBUG. GGML_ASSERT and GGML_ABORT stay, they are what a user meets; plain
assert() would end the process before the memory oracle sees what an error does.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from .tree_files import Progress, Tree, TreeError, cache_dir, first, locked, run, staging

HERE = Path(__file__).resolve().parent
JOBS = 2
DEFINES = ("-D_GNU_SOURCE", "-D_XOPEN_SOURCE=600", "-DNDEBUG", "-fPIC", "-w")
BASE = {"ggml.c", "ggml.cpp", "ggml-alloc.c", "ggml-quants.c", "ggml-threading.cpp"}
NOT_BASE = {"ggml-backend-reg.cpp", "ggml-backend-dl.cpp"}
#: where public headers are: the second in trees of early 2024
INCLUDE = ("include", "include/ggml")
#: large, and never run by a subject: compiled as fast as the compiler can
UNUSED = ("ggml-quants.c", "ggml-opt.cpp", "gguf.cpp")

#: what counts its edges in a covered variant: what allocates, and ours that stands for it
COVERED = ("ggml-alloc.c", "ggml-backend.cpp", "ggml-backend.c", "ggml-backend-meta.cpp")
COUNTS = "-fsanitize-coverage=trace-pc"
LINK = ("-shared", "-Wl,-Bsymbolic", "-Wl,-z,defs")
LIBRARIES = ("-lm", "-lpthread")


@dataclass(frozen=True, slots=True)
class Variant:
    """How a tree is built. `name` is the subject's; `overlay` maps a source of the tree to the file of ours
    that includes it, `extra` is compiled beside them, `header` declares what they add. `planted`: with the
    defects of native/ggml/defects.def, for tests of the check. `covered`: its edges are counted, for campaigns."""

    name: str
    header: str = ""
    overlay: tuple[tuple[str, str], ...] = ()
    extra: tuple[str, ...] = ()
    planted: bool = False
    covered: bool = False


META = {"ggml-backend-meta.cpp": "overlay/meta.cpp"}
_SHARING = (("ggml-alloc.c", "overlay/alloc.c"), ("ggml-backend.cpp", "overlay/sched.cpp"))
_SHIPPED = {
    "plain": Variant("ggml"),
    "resizable": Variant(
        "ggml-resizable", "overlay/resizable.h", _SHARING, ("overlay/roles.c", "overlay/resizable.cpp")
    ),
    "group": Variant("ggml-group", "overlay/group.h", _SHARING, ("overlay/roles.c", "overlay/group.cpp")),
}
_PLANTED = {
    "planted": replace(_SHIPPED["plain"], name="ggml-planted", planted=True),
    "resizable-planted": replace(_SHIPPED["resizable"], name="ggml-resizable-planted", planted=True),
}
_COVERED = {f"{name}-covered": replace(variant, covered=True) for name, variant in _SHIPPED.items()}
VARIANTS = _SHIPPED | _PLANTED | _COVERED


@dataclass(frozen=True, slots=True)
class _Unit:
    """One compilation: a source, and what else its object depends on."""

    source: Path
    command: tuple[str, ...]
    depends: str

    @property
    def key(self) -> str:
        text = "\0".join((*self.command, self.depends))
        return hashlib.sha256(text.encode() + self.source.read_bytes()).hexdigest()[:32]


class Parts(NamedTuple):
    """A library but for one source: `compiles` is how that is compiled (the source comes behind it), as
    `source`; `objects` are all others, `link` makes the library: the objects come behind it, then `libraries` and -o."""

    source: Path
    compiles: tuple[str, ...]
    objects: tuple[Path, ...]
    link: tuple[str, ...]
    libraries: tuple[str, ...]


class Builder:
    """One build: what is compiled, with which compiler, and what it is called in the cache."""

    def __init__(
        self, tree: Tree, variant: Variant, progress: Progress, instead: Mapping[str, Path] | None = None
    ) -> None:
        self.tree, self.variant, self.progress, self.instead = tree, variant, progress, instead or {}
        self.cc = _compiler("CC", ("cc", "gcc", "clang"))
        self.cxx = _compiler("CXX", ("c++", "g++", "clang++"))
        self.adapter = HERE / "ggml"
        self.objects = cache_dir() / "objects"
        folders = [tree.root / name for name in (*INCLUDE, "src", "src/ggml-cpu")]
        self.tree_headers = _digest([p for folder in folders for p in sorted(folder.glob("*.h"))])
        self.own_headers = _digest(
            [
                *sorted(self.adapter.glob("**/*.h")),
                *self.adapter.glob("*.def"),
                *sorted(HERE.glob("include/*.h")),
            ]
        )
        self.generated = self._generate()
        self.compilers = "\n".join(_version(c) for c in (self.cc, self.cxx))

    def library(self) -> Path:
        units = self._units(self._base_sources())
        key = hashlib.sha256("".join(u.key for u in units).encode()).hexdigest()[:32]
        target = cache_dir() / "subjects" / key / f"{self.variant.name}.so"
        if not target.is_file():
            with staging(target.parent.parent) as folder, locked(target.parent.parent / f".lock-{key}"):
                if not target.is_file():
                    self._compile_and_link(units, folder / target.name)
                    target.parent.mkdir(exist_ok=True)
                    os.replace(folder / target.name, target)
        return target

    def parts(self, name: str) -> Parts:
        """The library without `name`, a source of the tree, of the overlay or of the adapter.

        Where an overlay includes it, that is the source: it asks for `name` with an #include, which -I finds.
        Raises TreeError (code 2 where there is no such source).
        """
        units = self._units(self._base_sources())
        overlay = {self.adapter / ours: theirs for theirs, ours in self._overlay().items()}
        of = [u for u in units if name in (u.source.name, overlay.get(u.source, ""))]
        if not of:
            names = ", ".join(sorted(u.source.name for u in units))
            raise TreeError(f"{self.variant.name} has no source {name!r}; name one of {names}.", 2)
        self.progress(f"building {self._what}")
        rest = self._compile([u for u in units if u is not of[0]])
        return Parts(of[0].source, of[0].command, tuple(rest), (self.cxx, *LINK), LIBRARIES)

    def _base_sources(self) -> list[Path]:
        """What ggml-base is made of in this tree: its files at the top, but not its loader of backends."""
        src = self.tree.root / "src"
        backend = {p.name for p in (*src.glob("ggml-backend*.cpp"), *src.glob("ggml-backend*.c"))} - NOT_BASE
        return [src / name for name in sorted(BASE | backend) if (src / name).is_file()]

    def _rest(self) -> list[Path]:
        """For trees in which ggml-base refers to these as well."""
        return [p for p in (self.tree.root / "src" / n for n in ("ggml-opt.cpp", "gguf.cpp")) if p.is_file()]

    def _units(self, sources: list[Path]) -> list[_Unit]:
        declared, overlay = self._declared(), self._overlay()
        units = []
        for source in sources:
            if source.name in overlay:
                units.append(self._ours(self.adapter / overlay[source.name], _digest([source])))
            else:
                units.append(self._theirs(self.instead.get(source.name, source)))
        units += [self._ours(self.adapter / name) for name in self._extra(overlay)]
        units += [self._ours(HERE / "coverage" / "edges.cpp")] if self.variant.covered else []
        units += [
            self._ours(path, " ".join(declared), *declared) for path in sorted(self.adapter.glob("*.cpp"))
        ]
        return units

    def _theirs(self, source: Path) -> _Unit:
        """A source of the tree; variants share its object."""
        speed = ["-O0"] if source.name in UNUSED else ["-O1", "-g"]
        counts = [COUNTS] if self.variant.covered and source.name in COVERED else []
        return _Unit(source, (*self._flags(source), *speed, *counts), self.tree_headers + self.compilers)

    def _ours(self, source: Path, depends: str = "", *defines: str) -> _Unit:
        """A source of the adapter or of an overlay."""
        names = [f'-DGC_TREE_NAME="{self.tree.name}"', *defines]
        names += [f'-DGC_EXTRA_HEADER="{self.variant.header}"'] if self.variant.header else []
        names += ["-DGC_WITH_DEFECTS"] if self.variant.planted else []
        names += [COUNTS] if self.variant.covered and source.is_relative_to(self.adapter / "overlay") else []
        own = [f"-I{HERE / 'include'}", f"-I{self.adapter}", "-O1", "-g"]
        depends += self.own_headers + self.tree_headers + self.compilers
        return _Unit(source, (*self._flags(source), *own, *names), depends)

    def _flags(self, source: Path) -> list[str]:
        root = self.tree.root
        language = [self.cc, "-std=c11"] if source.suffix == ".c" else [self.cxx, "-std=c++17"]
        version = ['-DGGML_COMMIT="-"', f'-DGGML_VERSION="{self.version}"']
        where = [
            *(root / name for name in INCLUDE),
            root / "src",
            *([self.generated] if self.generated else []),
        ]
        return [*language, *DEFINES, *version, *(f"-I{folder}" for folder in where)]

    def _generate(self) -> Path | None:
        """Headers that the tree's own build would write (src/*.h.in); the version is all that matters."""
        texts = {}
        for template in sorted(self.tree.root.glob("src/*.h.in")):
            text = template.read_text(errors="replace").replace("@GGML_VERSION@", self.version)
            texts[template.name.removesuffix(".in")] = re.sub(r"@\w+@", "-", text)
        if not texts:
            return None
        home = cache_dir() / "generated" / hashlib.sha256(repr(texts).encode()).hexdigest()[:32]
        if not home.is_dir():
            with staging(home.parent) as folder, locked(home.parent / ".lock"):
                (folder / "whole").mkdir()
                for name, text in texts.items():
                    (folder / "whole" / name).write_text(text)
                if not home.is_dir():
                    os.replace(folder / "whole", home)
        return home

    @property
    def _what(self) -> str:
        """For people: 'the subject ggml from ggml 0.15.3 in /home/me/llama.cpp/ggml'."""
        return f"the subject {self.variant.name} from {self.tree.name} in {self.tree.root}"

    @property
    def version(self) -> str:
        return self.tree.name.removeprefix("ggml").strip() or "-"

    def _overlay(self) -> dict[str, str]:
        """By source of the tree, the file of ours that includes it; the meta backend only where its insides are known."""
        overlay = dict(self.variant.overlay)
        theirs = [p for p in map(self.tree.root.joinpath, ["src/ggml-backend-meta.cpp"]) if p.is_file()]
        if overlay and theirs and self._probe(self.adapter / "probes" / "alias.cpp", _digest(theirs)):
            overlay |= META
        return overlay

    def _extra(self, overlay: dict[str, str]) -> tuple[str, ...]:
        without = overlay and not META.keys() & overlay.keys()
        return (*self.variant.extra, *(["overlay/no_meta.cpp"] if without else []))

    def _declared(self) -> list[str]:
        """What the headers declare beyond what every tree has, as defines for the adapter."""
        probes = ("meta", "devices", "sched", "gallocr")
        have = [f"-DGC_HAVE_{p.upper()}" for p in probes if self._probe(self.adapter / "probes" / f"{p}.cpp")]
        return [define for define in (self._sharing(), *have) if define]

    def _sharing(self) -> str:
        """Which of the contract's two interfaces for sharing the headers declare; asked of the compiler."""
        for probe, define in (("pair", "-DGC_HAVE_PAIR"), ("group", "-DGC_HAVE_GROUP")):
            if self._probe(self.adapter / "probes" / f"{probe}.cpp"):
                return define
        return ""

    def _probe(self, source: Path, depends: str = "") -> bool:
        unit = self._ours(source, depends)
        known = self.objects / f"{unit.key}.probe"
        if not known.is_file():
            answer = run([*unit.command, "-fsyntax-only", str(source)]).returncode == 0
            with staging(self.objects) as folder:
                (folder / "answer").write_text("yes" if answer else "no")
                os.replace(folder / "answer", known)
        return known.read_text() == "yes"

    def _compile_and_link(self, units: list[_Unit], out: Path) -> None:
        self.progress(f"building {self._what}")
        begin = time.monotonic()
        objects = self._compile(units)
        done = self._link(objects, out)
        if done.returncode and "undefined" in done.stderr and self._rest():
            objects += self._compile([self._theirs(p) for p in self._rest()])
            done = self._link(objects, out)
        if done.returncode:
            reason = first(r"(.*undefined.*)", done.stderr) or first(r"(.*\S)", done.stderr)
            raise TreeError(f"{self.tree.name} in {self.tree.root} does not link: {reason}", 2)
        self.progress(f"built in {time.monotonic() - begin:.0f} s")

    def _link(self, objects: list[Path], out: Path) -> subprocess.CompletedProcess[str]:
        return run([self.cxx, *LINK, *map(str, objects), *LIBRARIES, "-o", str(out)])

    def _compile(self, units: list[_Unit]) -> list[Path]:
        with ThreadPoolExecutor(JOBS) as pool:
            jobs = [pool.submit(self._object, unit) for unit in units]
            try:
                return [job.result() for job in jobs]
            except BaseException:  # also Ctrl-C: what has not begun is not begun
                pool.shutdown(cancel_futures=True)
                raise

    def _object(self, unit: _Unit) -> Path:
        known = self.objects / f"{unit.key}.o"
        if not known.is_file():
            with staging(self.objects) as folder:
                done = run([*unit.command, "-c", str(unit.source), "-o", str(folder / "o")])
                if done.returncode:
                    raise self._broken(unit.source, done.stderr)
                os.replace(folder / "o", known)
        return known

    def _broken(self, source: Path, log: str) -> TreeError:
        error = first(r"(.*\berror\b.*)", log) or first(r"(.*\S)", log) or "the compiler gave no reason"
        if source.is_relative_to(self.adapter / "overlay"):
            return TreeError(
                f"{self.variant.name} is not available on {self.tree.name}, whose insides are not those "
                f"that the overlay knows: {error}",
                3,
            )
        return TreeError(f"{self.tree.name} in {self.tree.root} does not compile: {error}", 2)


def _digest(paths: list[Path]) -> str:
    h = hashlib.sha256()
    for path in paths:
        h.update(path.name.encode() + b"\0" + path.read_bytes())
    return h.hexdigest()


def _compiler(variable: str, names: tuple[str, ...]) -> str:
    for name in [os.environ[variable]] if os.environ.get(variable) else names:
        if path := shutil.which(name):
            return path
    language = "C" if variable == "CC" else "C++"
    raise TreeError(
        f"No {language} compiler was found ({', '.join(names)}); install one, or set {variable}.", 3
    )


def _version(compiler: str) -> str:
    return compiler + run([compiler, "--version"]).stdout
