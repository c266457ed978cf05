"""`gallocheck doctor`: what this machine has, and what each missing thing costs."""

from __future__ import annotations

import ctypes.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ..native.library import library_path
from ..native.trees import cache_dir

NVCC = (Path("/usr/local/cuda/bin/nvcc"),)  #: where it lies when it is not on the PATH


def first_line(command: list[str]) -> str:
    """The first line that a command prints, '' where it cannot run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[0] if done.returncode == 0 and lines else ""


def compiler() -> str:
    names = [os.environ.get("CXX", ""), "c++", "g++", "clang++"]
    return next((first_line([n, "--version"]) for n in names if n and shutil.which(n)), "")


def cmake() -> str:
    beside = Path(sys.executable).with_name("cmake")
    found = str(beside) if beside.exists() else shutil.which("cmake")
    return first_line([found, "--version"]) if found else ""


def nvcc() -> str:
    """The compiler's path and release."""
    found = shutil.which("nvcc") or next((str(p) for p in NVCC if p.exists()), "")
    if not found:
        return ""
    done = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=20, check=False)
    release = next((x.strip() for x in done.stdout.splitlines() if "release" in x), "")
    return f"{found}: {release}" if release else found


def gpu() -> str:
    """Name, memory and driver of the first card."""
    if ctypes.util.find_library("cuda") is None:
        return ""
    return first_line(["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"])


def bundled() -> str:
    path = library_path("bundled")
    return str(path) if path.exists() else ""


def planted() -> str:
    path = library_path("planted")
    return str(path) if path.exists() else ""


def cached_trees() -> str:
    cache = cache_dir()
    built = sorted(p.name for p in cache.glob("*") if p.is_dir()) if cache.is_dir() else []
    return f"{cache}: {', '.join(built)}" if built else ""


CHECKS: tuple[tuple[str, Callable[[], str], str], ...] = (
    ("Python", lambda: sys.version.split()[0], ""),
    ("bundled allocator", bundled, "gallocheck check cannot run; reinstall gallocheck"),
    ("planted defects", planted, "no canary: a check cannot prove that it can fail; reinstall gallocheck"),
    (
        "C++ compiler",
        compiler,
        "no ggml subject can be built, no emitted program compiled; install g++ or clang",
    ),
    ("CMake", cmake, "gallocheck itself cannot be rebuilt; pip install cmake"),
    ("cached ggml trees", cached_trees, "the first check of ggml fetches and builds one (about a minute)"),
    ("nvcc", nvcc, "the kernels are not compiled anew; the PTX that comes with gallocheck is used"),
    (
        "GPU",
        gpu,
        "make gpu-check cannot run; everything but the driver itself is checked on the emulated one",
    ),
)


def print_doctor(console: Console) -> None:
    """A table of what is here and what a missing thing costs."""
    table = Table("", "found", "what it costs")
    for name, probe, cost in CHECKS:
        found = probe()
        table.add_row(name, found or "[red]missing[/red]", "" if found else cost)
    console.print(table)
