"""Trees of public releases, by the user's own pip; a hash is checked before anything of them is used."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

from .tree_files import Progress, TreeError, cache_dir, first, locked, quiet, staging

_MARK = "src/ggml-alloc.c"
_WANTED = re.compile(r"(include/(ggml/)?[\w.-]+|src/[\w.-]+|src/ggml-cpu/[\w.-]+\.h|CMakeLists\.txt|LICENSE)")


@dataclass(frozen=True, slots=True)
class Release:
    """A source package of the registry that carries a ggml tree, and the SHA-256 of its archive."""

    project: str
    version: str
    sha256: str

    def __str__(self) -> str:
        return f"{self.project} {self.version}"


def folder_of(release: Release) -> Path:
    """Where its tree is kept, once it was fetched."""
    return cache_dir() / "trees" / f"{release.project}-{release.version}-{release.sha256[:8]}"


def is_there(release: Release) -> bool:
    return (folder_of(release) / _MARK).is_file()


def fetch(release: Release, progress: Progress = quiet) -> Path:
    """The root of its tree, fetched once. Raises TreeError(code 3) without network or where the hash is wrong."""
    home = folder_of(release)
    if not is_there(release):
        with staging(home.parent) as folder, locked(home.parent / ".lock"):
            if not is_there(release):
                progress(f"fetching {release}")
                unpack(_download(release, folder), release.sha256, folder / "tree")
                shutil.rmtree(home, ignore_errors=True)
                os.replace(folder / "tree", home)
    return home


def _download(release: Release, into: Path) -> Path:
    """The source archive; the hash is checked before anything of it runs."""
    listing = into / "requirements.txt"
    listing.write_text(f"{release.project}=={release.version} --hash=sha256:{release.sha256}\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--no-deps"]
    command += [
        "--require-hashes",
        "--no-binary",
        ":all:",
        "--dest",
        str(into),
        "--requirement",
        str(listing),
    ]
    # pip reads the archive's metadata by its build backend: quick where that is installed already
    if importlib.util.find_spec("scikit_build_core"):
        command.append("--no-build-isolation")
    what = f"The source {release}"
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise TreeError(
            f"{what} did not arrive in 5 minutes; name a ggml checkout with --source DIR.", 3
        ) from None
    archives = list(into.glob("*.tar.gz"))
    if done.returncode or not archives:
        if "DO NOT MATCH THE HASHES" in done.stderr:
            raise TreeError(f"{what} has another SHA-256 than {release.sha256}, so it was not used.", 3)
        reason = (
            first(r"^(?:ERROR:\s*)(.*)", done.stderr) or first(r"(.*\S)", done.stderr) or "no reason given"
        )
        raise TreeError(
            f"{what} could not be fetched by pip ({reason}); name a ggml checkout with --source DIR.", 3
        )
    return archives[0]


def unpack(archive: Path, sha256: str, into: Path) -> None:
    """Only plain files of the vendored tree that a subject needs; no name leaves `into`."""
    seen = hashlib.sha256(archive.read_bytes()).hexdigest()
    if seen != sha256:
        raise TreeError(f"{archive.name} has SHA-256 {seen}, not {sha256}, so it was not used.", 3)
    with tarfile.open(archive) as tar:
        members = tar.getmembers()
        marks = [m.name for m in members if m.isfile() and m.name.endswith("/" + _MARK)]
        prefix = min(marks, key=len, default="?")[: -len(_MARK)]
        for member in members:
            name = member.name.removeprefix(prefix)
            if member.isfile() and name != member.name and _WANTED.fullmatch(name):
                target = into / name
                target.parent.mkdir(parents=True, exist_ok=True)
                source = tar.extractfile(member)
                assert source is not None  # a plain file
                target.write_bytes(source.read())
