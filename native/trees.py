"""ggml trees: the pinned one and any other, found, checked, and built into a subject."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from .tree_build import INCLUDE, VARIANTS, Builder
from .tree_files import Progress, Tree, TreeError, cache_dir, first, locked, quiet, staging

__all__ = ["PINNED_SHA256", "VARIANTS", "Tree", "TreeError", "build", "cache_dir", "locate", "pinned"]

PINNED_PROJECT, PINNED_VERSION = "ggml-python", "0.0.45"
PINNED_SHA256 = "10aac52075cf3c7ef2b00d6c35b1c23f7b018dbeff8ae8df67339b4be1166f05"
PINNED_PREFIX = "ggml_python-0.0.45/vendor/ggml/"


# The pinned tree


def pinned(progress: Progress = quiet) -> Tree:
    """The default tree, fetched once. Raises TreeError(code 3) without network or where the hash is wrong."""
    home = cache_dir() / "trees" / f"{PINNED_PROJECT}-{PINNED_VERSION}-{PINNED_SHA256[:8]}"
    if not _is_tree(home):
        with staging(home.parent) as folder, locked(home.parent / ".lock"):
            if not _is_tree(home):
                progress(f"fetching {PINNED_PROJECT} {PINNED_VERSION}")
                _unpack(_fetch(folder), folder / "tree")
                shutil.rmtree(home, ignore_errors=True)
                os.replace(folder / "tree", home)
    return Tree(home, _name(home))


def _fetch(into: Path) -> Path:
    """The source archive, by the user's own pip; the hash is checked before anything of it runs."""
    listing = into / "requirements.txt"
    listing.write_text(f"{PINNED_PROJECT}=={PINNED_VERSION} --hash=sha256:{PINNED_SHA256}\n")
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-input",
        "--no-deps",
        "--require-hashes",
    ]
    command += ["--no-binary", ":all:", "--dest", str(into), "--requirement", str(listing)]
    # pip reads the archive's metadata by its build backend: quick where that is installed already
    if importlib.util.find_spec("scikit_build_core"):
        command.append("--no-build-isolation")
    what = f"The pinned source {PINNED_PROJECT} {PINNED_VERSION}"
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise TreeError(
            f"{what} did not arrive in 5 minutes; name a ggml checkout with --source DIR.", 3
        ) from None
    archives = list(into.glob("*.tar.gz"))
    if done.returncode or not archives:
        if "DO NOT MATCH THE HASHES" in done.stderr:
            raise TreeError(f"{what} has another SHA-256 than {PINNED_SHA256}, so it was not used.", 3)
        reason = (
            first(r"^(?:ERROR:\s*)(.*)", done.stderr) or first(r"(.*\S)", done.stderr) or "no reason given"
        )
        raise TreeError(
            f"{what} could not be fetched by pip ({reason}); name a ggml checkout with --source DIR.", 3
        )
    return archives[0]


def _unpack(archive: Path, into: Path) -> None:
    """Only plain files of the vendored tree that a subject needs; no name leaves `into`."""
    seen = hashlib.sha256(archive.read_bytes()).hexdigest()
    if seen != PINNED_SHA256:
        raise TreeError(f"{archive.name} has SHA-256 {seen}, not {PINNED_SHA256}, so it was not used.", 3)
    wanted = re.compile(r"(include/[\w.-]+|src/[\w.-]+|src/ggml-cpu/[\w.-]+\.h|CMakeLists\.txt|LICENSE)")
    with tarfile.open(archive) as tar:
        for member in tar:
            name = member.name.removeprefix(PINNED_PREFIX)
            if member.isfile() and name != member.name and wanted.fullmatch(name):
                target = into / name
                target.parent.mkdir(parents=True, exist_ok=True)
                source = tar.extractfile(member)
                assert source is not None  # a plain file
                target.write_bytes(source.read())


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


def build(tree: Tree, variant: str = "plain", progress: Progress = quiet) -> Path:
    """The subject library of `tree` (`variant`: a key of VARIANTS); a second call finds it in the cache.

    Raises TreeError: code 3 without a compiler or where the overlay does not fit
    the tree, code 2 where the tree does not compile.
    """
    return Builder(tree, VARIANTS[variant], progress).library()
