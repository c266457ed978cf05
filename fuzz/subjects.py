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
#: how a shared library begins: of Linux, of macOS for one machine and for several
LIBRARY = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")


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


def own(subject: str, source: Path | None) -> bool:
    """Whether it is the user's: a library or a tree, which no file makes us run, only a command line does."""
    return source is not None or subject not in ("bundled", *VARIANT)


def how_to_report(folder: Path, subject: str, source: Path | None) -> str:
    """The command that makes a page of what a check of this subject has left in `folder`."""
    named = how_to_name(subject, source, 0) if own(subject, source) else ""
    return f"gallocheck report {folder}{named}"


def resolve(name: str, source: str | None, say: Callable[[str], None], covered: bool = False) -> Subject:
    """Finds or builds the subject. `say` is told what takes time. `covered`: the build that counts edges
    (native/include/gc_coverage.h), of subjects that gallocheck builds.

    Raises UnknownSubject, or trees.TreeError where a tree cannot be fetched, read or compiled.
    """
    check_name(name)
    if name in VARIANT:
        tree = locate(Path(source)) if source else pinned(say)
        variant = VARIANT[name] + ("-covered" if covered else "")
        return Subject(name, str(build(tree, variant, say)), str(tree))
    if source:
        raise UnknownSubject(
            f"--source {source} goes with --subject ggml, not with {name!r}; add --subject ggml."
        )
    if name == "bundled":
        return Subject(name, bundled("bundled", covered))
    return Subject(Path(name).name, name)


def check_name(name: str) -> None:
    """The name is one of NAMES, or a file that can be a subject library; nothing is loaded or built.
    Raises UnknownSubject."""
    if name in NAMES:
        return
    file = Path(name)
    if name.startswith("ggml") or not (file.is_file() or name.endswith((".so", ".dylib"))):
        raise UnknownSubject(unknown(name))
    try:
        content = file.read_bytes()
    except OSError as error:
        raise UnknownSubject(
            f"There is no subject library at {name} ({error.strerror}): build it, or name another one."
        ) from None
    if not content.startswith(LIBRARY) or b"gc_abi" not in content:
        why = "it exports none of it" if content.startswith(LIBRARY) else "it is no shared library"
        raise UnknownSubject(
            f"{name} is no subject library ({why}); name one that exports native/include/gallocheck.h,"
            f" or {', '.join(NAMES)}."
        )


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
