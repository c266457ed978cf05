"""What finding and building trees share: the tree, its error, and the cache.

Everything lives in `GALLOCHECK_CACHE` (default ~/.cache/gallocheck) and appears
there by rename, so that what is there is whole.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

Progress = Callable[[str], None]  #: told in a few words what takes time


class TreeError(Exception):
    """One sentence for the user. `code`: 2 for bad input, 3 where the check could not run."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Tree:
    """A ggml source tree: `root` holds include/ and src/; `name` is for people ("ggml 0.15.3")."""

    root: Path
    name: str

    def __str__(self) -> str:
        return str(self.root)


def cache_dir() -> Path:
    """Where trees and built subjects are kept."""
    return Path(os.environ.get("GALLOCHECK_CACHE") or Path.home() / ".cache" / "gallocheck")


def quiet(_: str) -> None: ...


@contextmanager
def staging(parent: Path) -> Iterator[Path]:
    """A fresh folder beside the target, gone afterwards."""
    try:
        parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".new-", dir=parent))
    except OSError as e:
        raise TreeError(
            f"The cache folder {parent} cannot be written ({e.strerror}); set GALLOCHECK_CACHE.", 3
        ) from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time does what belongs to `path`; the lock goes with its holder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def first(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    return match.group(1).strip() if match else ""


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(
        command, capture_output=True, text=True, errors="replace", env=env, stdin=subprocess.DEVNULL
    )
