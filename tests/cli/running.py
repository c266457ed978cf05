"""Runs the command as a user does: a process of its own, in an empty folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

MAIN = "from gallocheck.cli.main import run; run()"


def command(*args: object) -> list[str]:
    return [sys.executable, "-c", MAIN, *map(str, args)]


def environment(**more: str) -> dict[str, str]:
    """Ours, wide enough that no line is folded."""
    return {**os.environ, "COLUMNS": "250", **more}


def gallocheck(*args: object, at: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Runs the command to its end in the folder `at`."""
    return subprocess.run(
        command(*args), cwd=at, env=environment(**env), capture_output=True, text=True, timeout=120
    )
