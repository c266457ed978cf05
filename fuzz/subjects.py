"""Subjects by name: bundled, ggml, ggml-resizable, ggml-group, or the path of a subject library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..native.library import library_path
from ..native.trees import build, locate, pinned
from .catalogue import DEFECTS

#: subjects made from a ggml tree, and the variant that each is (native/tree_build.py)
VARIANT = {"ggml": "plain", "ggml-resizable": "resizable", "ggml-group": "group"}
NAMES = ("bundled", *VARIANT)


class UnknownSubject(ValueError):
    """A subject that does not exist; one sentence; exit code 2."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A subject library and where its source is ('' where it has none of its own)."""

    name: str
    library: str
    source: str = ""


def find(
    name: str, source: Path | None, defect: int, say: Callable[[str], None], covered: bool = False
) -> Subject:
    """As `resolve`, or the bundled allocator with a planted defect. Raises as `resolve` does."""
    if not defect:
        return resolve(name, str(source) if source else None, say, covered)
    if name != "bundled" or source:
        raise UnknownSubject(
            f"--defect {defect} is planted in the bundled allocator alone; leave --subject and --source out."
        )
    if defect not in {d.number for d in DEFECTS}:
        raise UnknownSubject(f"There is no planted defect {defect}; `gallocheck defects` lists them.")
    return Subject("planted", bundled("planted", covered))


def how_to_name(subject: str, source: Path | None, defect: int) -> str:
    """The options that name this subject to a command; a space before each."""
    if defect:
        return f" --defect {defect}"
    return f" --subject {subject}" + (f" --source {source}" if source else "")


def resolve(name: str, source: str | None, say: Callable[[str], None], covered: bool = False) -> Subject:
    """Finds or builds the subject. `say` is told what takes time. `covered`: the build that counts edges
    (native/include/gc_coverage.h), of subjects that gallocheck builds.

    Raises UnknownSubject, or trees.TreeError where a tree cannot be fetched, read or compiled.
    """
    if name.startswith("ggml"):
        if name not in NAMES:
            raise UnknownSubject(unknown(name))
        tree = locate(Path(source)) if source else pinned(say)
        variant = VARIANT[name] + ("-covered" if covered else "")
        return Subject(name, str(build(tree, variant, say)), str(tree))
    if source:
        raise UnknownSubject(
            f"--source {source} goes with --subject ggml, not with {name!r}; add --subject ggml."
        )
    if name == "bundled":
        return Subject(name, bundled("bundled", covered))
    if name.endswith((".so", ".dylib")) or Path(name).is_file():
        return Subject(Path(name).name, name)
    raise UnknownSubject(unknown(name))


def bundled(name: str, covered: bool = False) -> str:
    """The library of the bundled subject ('planted': with planted defects). Where no build counts edges
    (-DGALLOCHECK_COVERAGE=OFF), a campaign has the other one."""
    counting = library_path(f"{name}_covered")
    return str(counting if covered and counting.is_file() else library_path(name))


def unknown(name: str) -> str:
    return (
        f"There is no subject {name!r}; name {', '.join(NAMES)},"
        " or the path of a shared library that exports native/include/gallocheck.h."
    )
