"""The bundled library but for one source, for whoever compiles that one in another way (fuzz/mutants/)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .tree_build import HERE, JOBS, Parts, _compiler, _digest, _Unit, _version
from .tree_files import Progress, TreeError, cache_dir, quiet, run, staging

#: as in CMakeLists.txt, but for warnings, which a changed source may deserve
SETTINGS = ("-std=c++20", "-fPIC", "-fvisibility=hidden", "-fvisibility-inlines-hidden", "-O2", "-w")
LIBRARIES = ("-ldl", "-lpthread")


def sources() -> list[Path]:
    """What the library is made of. Raises TreeError (code 3) where the sources are not installed."""
    found = [p for folder in ("driver", "bundled") for p in sorted((HERE / folder).glob("*.cpp"))]
    if not found:
        raise TreeError(f"{HERE} has no sources of the bundled allocator; install gallocheck again.", 3)
    return found


def parts(name: str, progress: Progress = quiet, planted: bool = False) -> Parts:
    """The library without bundled/`name`, with planted defects or without. Raises TreeError: code 2 where
    there is no such file or one does not compile, code 3 without a compiler."""
    source = HERE / "bundled" / name
    if source not in sources():
        names = ", ".join(p.name for p in sources() if p.parent == source.parent)
        raise TreeError(f"The bundled allocator has no source {name!r}; name one of {names}.", 2)
    compiler = _compiler("CXX", ("c++", "g++", "clang++"))
    folders = ["-iquote", str(HERE / "bundled"), f"-I{HERE / 'include'}", f"-I{HERE / 'driver'}"]
    command = (compiler, *SETTINGS, *folders, *(("-DGC_WITH_DEFECTS",) if planted else ()))
    headers = _digest(
        [p for f in ("include", "driver", "bundled") for p in sorted((HERE / f).rglob("*.[hid]*"))]
    )
    units = [_Unit(p, command, headers + _version(compiler)) for p in sources() if p != source]
    progress("building the bundled allocator")
    return Parts(source, command, tuple(objects(units)), (compiler, "-shared"), LIBRARIES)


def objects(units: Iterable[_Unit]) -> list[Path]:
    """Compiles what is not in the cache."""
    with ThreadPoolExecutor(JOBS) as pool:
        jobs = [pool.submit(_object, unit) for unit in units]
        try:
            return [job.result() for job in jobs]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _object(unit: _Unit) -> Path:
    known = cache_dir() / "objects" / f"{unit.key}.o"
    if not known.is_file():
        with staging(known.parent) as folder:
            done = run([*unit.command, "-c", str(unit.source), "-o", str(folder / "o")])
            if done.returncode:
                raise TreeError(f"{unit.source} does not compile: {done.stderr.strip().splitlines()[:1]}", 2)
            os.replace(folder / "o", known)
    return known
