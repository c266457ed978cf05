"""ggml trees: the pinned one and any other, found, checked, and built into a subject."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from .tree_build import INCLUDE, VARIANTS, Builder
from .tree_fetch import Release, fetch
from .tree_files import Progress, Tree, TreeError, cache_dir, first, quiet

__all__ = [
    "PINNED",
    "VARIANTS",
    "Release",
    "Tree",
    "TreeError",
    "build",
    "cache_dir",
    "locate",
    "pinned",
    "release",
]

PINNED = Release("ggml-python", "0.0.45", "10aac52075cf3c7ef2b00d6c35b1c23f7b018dbeff8ae8df67339b4be1166f05")


# Releases


def pinned(progress: Progress = quiet) -> Tree:
    """The default tree, fetched once. Raises TreeError(code 3) without network or where the hash is wrong."""
    return release(PINNED, progress)


def release(what: Release, progress: Progress = quiet) -> Tree:
    """The tree of a public release, fetched once. Raises TreeError as `pinned` does."""
    home = fetch(what, progress)
    return Tree(home, _name(home))


# Any other tree


def locate(directory: str | os.PathLike[str]) -> Tree:
    """The ggml tree in a checkout of ggml, llama.cpp, or a package that vendors it.

    Raises TreeError(code 2) where there is none, or several that are equally near the top.
    """
    top = Path(directory)
    if not top.is_dir():
        raise TreeError(
            f"{top} is not a directory; name a checkout of ggml, or of a project that contains it.", 2
        )
    level = [top.resolve()]
    for _ in range(5):
        found = sorted(d for d in level if _is_tree(d))
        if len(found) > 1:
            names = ", ".join(str(d) for d in found)
            raise TreeError(f"{top} contains several ggml trees ({names}); name one of them.", 2)
        if found:
            return Tree(found[0], _name(found[0]))
        level = [child for d in level for child in _children(d)]
    raise TreeError(
        f"{top} contains no ggml tree (include/ggml-alloc.h beside src/ggml-alloc.c); name a checkout of "
        "ggml or of a project that contains it.",
        2,
    )


def _is_tree(d: Path) -> bool:
    headers = any((d / folder / "ggml-alloc.h").is_file() for folder in INCLUDE)
    return headers and (d / "src" / "ggml-alloc.c").is_file()


def _children(d: Path) -> list[Path]:
    skip = {"build", "node_modules", "include", "src", "tests", "docs", "examples"}
    try:
        return [
            c
            for c in d.iterdir()
            if c.is_dir() and not c.is_symlink() and c.name not in skip and c.name[0] != "."
        ]
    except OSError:
        return []


def _name(root: Path) -> str:
    """For people only: nothing depends on a version."""
    try:
        text = (root / "CMakeLists.txt").read_text(errors="replace")
    except OSError:
        text = ""
    parts = [first(rf"set\(GGML_VERSION_{part}\s+(\d+)\)", text) for part in ("MAJOR", "MINOR", "PATCH")]
    return "ggml " + ".".join(parts) if all(parts) else "ggml"


def build(
    tree: Tree, variant: str = "plain", progress: Progress = quiet, instead: Mapping[str, Path] | None = None
) -> Path:
    """The subject library of `tree` (`variant`: a key of VARIANTS); a second call finds it in the cache.
    `instead`: by name of a source of the tree, the file that is compiled for it.

    Raises TreeError: code 3 without a compiler or where the overlay does not fit
    the tree, code 2 where the tree does not compile.
    """
    return Builder(tree, VARIANTS[variant], progress, instead).library()
