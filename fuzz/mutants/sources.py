"""Which files of a subject are changed, and how one that is changed becomes a subject."""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ...native import own_build, trees
from ...native.tree_build import VARIANTS, Builder, Parts
from ...native.trees import TreeError
from ..subjects import VARIANT
from .errors import MutantsError

#: of the bundled allocator, by file, the kinds of traces (profiles.SOURCES) that it serves; others: all
LOWER = ("plan", "gallocr", "huge", "pair")
SERVES = {
    "planner.cpp": LOWER, "gallocr.cpp": LOWER, "pair.cpp": (*LOWER, "counted", "captures"),
    "buffer.cpp": (*LOWER, "counted"), "graph.cpp": LOWER,
    "counted.cpp": ("counted",), "sched.cpp": ("sched", "captures"), "capture.cpp": ("captures", "contexts"),
    "meta.cpp": ("meta",),
    "pools.cpp": ("pools", "captures"), "legacy_pool.cpp": ("pools", "captures"), "vmm_pool.cpp": ("pools", "captures"),
    "context.cpp": ("contexts", "server"), "server.cpp": ("server",),
}  # fmt: skip
#: files of which thousands of traces in lockstep (fuzz/batch) show what is wrong
LOCKSTEP = ("planner.cpp", "gallocr.cpp", "pair.cpp", "buffer.cpp")
#: of the bundled allocator, the file that looks for damage, and how lines elsewhere show that they tell of it: a slip
#: there shows where there is some (detector.py)
DETECTOR = "compute.cpp"
TELLS = re.compile(
    r"\b(trouble|bad_node|bad_src|bad_offset|digest|guard_trouble|hazards|findings|left|intact|memcpy_dtoh|each_edge)\b"
)
#: of a subject made from a tree
OF_A_TREE = {
    "ggml": ("ggml-alloc.c",),
    "ggml-resizable": ("ggml-alloc.c", "alloc.c", "roles.c", "resizable.cpp"),
    "ggml-group": ("ggml-alloc.c", "alloc.c", "roles.c", "group.cpp"),
}
LIMIT_S = 120.0  #: for a compiler
FLAGS = ("-O2", "-g0", "-w", "-fno-ident", "-D_GLIBCXX_ASSERTIONS")  # an index past the end ends the process
NOWHERE = Parts(Path(), (), (), (), ())  #: of a source that is only read


@dataclass(frozen=True, slots=True)
class Source:
    """A file whose slips are checked. `path`: where it lies; `parts`: how it becomes a library.

    `serves`: the kinds of traces that it is for (none: all); `lockstep`: whether batches check it too.
    `planted_parts`: how it becomes a library with planted defects, where there are such.
    """

    name: str
    path: Path
    text: str
    parts: Parts
    serves: tuple[str, ...] = ()
    lockstep: bool = False
    planted_parts: Parts | None = None

    @property
    def cpp(self) -> bool:
        return self.path.suffix != ".c"

    def detects(self, line: str) -> bool:
        """Whether a line of it looks for damage or tells of it."""
        return (self.name == DETECTOR or bool(TELLS.search(line))) and "GC_PLANTED" not in line

    def headers(self, folder: Path) -> str:
        """Compiles the headers that the file begins with, for `assembly`; '' where that does not pay."""
        includes = re.findall(r"^#include.*", self.text, re.M)
        if not self.cpp or not includes:
            return ""
        (folder / "headers.h").write_text("\n".join(includes) + "\n")
        head, *rest = self.parts.compiles
        made = _ran([head, *self.near, *rest, *FLAGS, "-x", "c++-header", "headers.h"], folder)
        return str((folder / "headers.h").absolute()) if made else ""

    @property
    def near(self) -> list[str]:
        """Where the file looks for headers beside itself."""
        return ["-I", ".", "-iquote", str(self.path.parent), "-iquote", str(self.parts.source.parent)]

    def assembly(self, text: str, folder: Path, headers: str = "") -> str | None:
        """What the compiler makes of the file with that content, labels numbered anew; None: an error.

        Equal assembly is equal behaviour: such mutants are no mutants. `folder` is for this call's files.
        """
        (folder / self.name).write_text(text)
        whole = self.name if self.parts.source.name == self.name else str(self.parts.source)
        head, *rest = self.parts.compiles
        before = ["-include", headers] if headers else []
        if not _ran([head, *self.near, *rest, *FLAGS, *before, "-S", "-o", "out.s", whole], folder):
            return None
        return _renumbered((folder / "out.s").read_text(errors="replace"))

    def planted(self, text: str, folder: Path, library: Path) -> bool:
        """Makes a library with planted defects of the file with that content; whether that went well."""
        if self.planted_parts is None:
            return False
        source = replace(self, parts=self.planted_parts)
        return source.assembly(text, folder) is not None and source.link(folder, library)

    def link(self, folder: Path, library: Path) -> bool:
        """Makes a library of what was compiled last in `folder`; whether that went well."""
        assembled = _ran([self.parts.compiles[0], "-c", "out.s", "-o", "out.o"], folder)
        objects = ["out.o", *map(str, self.parts.objects)]
        rest = [*self.parts.libraries, "-o", str(library.absolute())]
        return assembled and _ran([*self.parts.link, *objects, *rest], folder)


def _ran(command: list[str], folder: Path) -> bool:
    try:
        done = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def _renumbered(assembly: str) -> str:
    """Local labels by the order in which they appear: a slip may shift the compiler's count alone."""
    known: dict[str, str] = {}
    return re.sub(r"\.L[A-Z]*\d+", lambda m: known.setdefault(m[0], f".L{len(known)}"), assembly)


def digest(assembly: str) -> str:
    return hashlib.sha256(assembly.encode()).hexdigest()[:32]


def names(subject: str) -> tuple[str, ...]:
    """The files of a subject that are changed where none is named. Raises MutantsError."""
    if subject == "bundled":
        return tuple(p.name for p in own_build.sources() if p.parent.name == "bundled")
    if subject in OF_A_TREE:
        return OF_A_TREE[subject]
    raise MutantsError(
        f"The subject {subject!r} has no source to change; name bundled, {', '.join(OF_A_TREE)}."
    )


def path_of(subject: str, tree: trees.Tree | None, name: str) -> Path:
    """Where a source lies. Raises MutantsError where there is none such."""
    own = own_build.HERE
    places = [tree.root / "src", own / "ggml" / "overlay"] if tree else [own / "bundled"]
    known = names(subject)
    for folder in places if "/" not in name else []:
        if (folder / name).is_file() and (folder / name).suffix in {".c", ".cpp"}:
            return folder / name
    raise MutantsError(f"The subject {subject!r} has no source {name!r}; name one of {', '.join(known)}.")


def tree_of(subject: str, source: Path | None, say: Callable[[str], None]) -> trees.Tree | None:
    """The tree of a subject, None for the bundled one. Raises MutantsError, TreeError."""
    names(subject)
    if subject == "bundled":
        if source is not None:
            raise MutantsError(
                f"--source {source} goes with --subject ggml, not with 'bundled'; add --subject ggml."
            )
        return None
    return trees.locate(source) if source else trees.pinned(say)


def unbuilt(subject: str, tree: trees.Tree | None, name: str) -> Source:
    """A file of the subject, to read. Raises MutantsError."""
    path = path_of(subject, tree, name)
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise MutantsError(f"{path} cannot be read ({error}); name another with --file.") from None
    if tree is None:
        return Source(name, path, text, NOWHERE, SERVES.get(name, ()), name in LOCKSTEP)
    return Source(name, path, text, NOWHERE, LOWER)


def read(subject: str, tree: trees.Tree | None, name: str, say: Callable[[str], None]) -> Source:
    """A file of the subject, and everything else of it compiled. Raises MutantsError, TreeError."""
    found = unbuilt(subject, tree, name)
    if tree is None:
        planted = own_build.parts(name, say, planted=True)
        return replace(found, parts=own_build.parts(name, say), planted_parts=planted)
    return replace(found, parts=Builder(tree, VARIANTS[VARIANT[subject]], say).parts(name))


def original(source: Source, folder: Path, library: Path, headers: str = "") -> str:
    """Builds the source as it is; the digest of what it compiles to. Raises TreeError (code 3)."""
    assembly = source.assembly(source.text, folder, headers)
    if assembly is None or not source.link(folder, library):
        raise TreeError(
            f"{source.path} does not compile as it is, so that nothing can be said of mutants.", 3
        )
    return digest(assembly)
