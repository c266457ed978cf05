"""What machine this is, for a record."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from .record import Machine

PACKAGES = ("gallocheck", "numpy", "msgspec", "z3-solver", "hypothesis")


def machine() -> Machine:
    """This one. No GPU takes part in a check: the driver is emulated (docs/choices.md)."""
    return Machine(cpu(), cores(), system(), platform.python_version(), versions())


def cpu() -> str:
    """The processor's name."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("model name", "Model")):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def system() -> str:
    """As 'Debian GNU/Linux 12, Linux 6.1.0 x86_64'."""
    kernel = f"{platform.system()} {platform.release()} {platform.machine()}"
    try:
        return f"{platform.freedesktop_os_release()['PRETTY_NAME']}, {kernel}"
    except (OSError, KeyError, AttributeError):
        return kernel


def versions() -> dict[str, str]:
    out = {}
    for name in PACKAGES:
        try:
            out[name] = version(name)
        except PackageNotFoundError:
            continue
    return out
