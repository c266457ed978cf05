"""Ctrl-C and sudden death: the table so far is shown, and no process is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gallocheck.native.library import library_path

from .running import command, environment


def subjects(parent: int) -> set[int]:
    """Processes below `parent`, and theirs, by their numbers."""
    below: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit():
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                below.setdefault(int(fields[1]), []).append(int(entry.name))
        except OSError:
            continue
    found: set[int] = set()
    level = [parent]
    while level:
        level = [child for p in level for child in below.get(p, [])]
        found |= set(level)
    return found


def children_of(parent: int) -> set[int]:
    """Its own processes, without theirs."""
    every = subjects(parent)
    return every - {below for each in every for below in subjects(each)}


def gone(processes: set[int], seconds: float = 10) -> bool:
    """Whether all of them end within so many seconds; a zombie that init has not reaped yet is gone."""

    def alive(number: int) -> bool:
        try:
            return Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
        except OSError:
            return False

    end = time.monotonic() + seconds
    while any(map(alive, processes)):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def record(at: Path) -> dict[str, Any]:
    """What a check has left in its folder, which has nothing else."""
    assert [p.name for p in at.iterdir()] == ["found"]
    assert [p.name for p in (at / "found").iterdir() if not p.name.startswith(".")] == ["check.json"]
    return dict(json.loads((at / "found" / "check.json").read_text()))


def has_checked(file: Path) -> bool:
    return file.exists() and json.loads(file.read_text())["operations"] > 0


@contextmanager
def checking(at: Path) -> Iterator[subprocess.Popen[str]]:
    """A check of ten minutes that has begun to hunt."""
    process = subprocess.Popen(
        command("check", "P1", "R3", "--time", "10m", "--seed", 1, "--out", "found"),
        cwd=at, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("canaries"):
                break
        until = time.monotonic() + 60
        while not has_checked(at / "found" / "check.json") and time.monotonic() < until:
            time.sleep(0.1)
        yield process
    finally:
        process.kill()
        process.wait()


def test_ctrl_c_shows_the_table_so_far(tmp_path: Path) -> None:
    with checking(tmp_path) as process:
        below = subjects(process.pid)
        assert len(below) >= 2, "the subject's process and the one that forks it"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert process.returncode == 0 and "Traceback" not in err, err
    assert "stopped by Ctrl-C" in out and "holds" in out and "P1" in out and "R3" in out
    assert gone(below)
    assert record(tmp_path)["stopped"] and record(tmp_path)["ended"], (
        "what was checked until then is recorded"
    )


def test_a_second_ctrl_c_changes_nothing(tmp_path: Path) -> None:
    """An impatient user: whatever it does then, no traceback and no process is left."""
    with checking(tmp_path) as process:
        below = subjects(process.pid)
        for _ in range(3):
            process.send_signal(signal.SIGINT)
            time.sleep(0.02)
        _, err = process.communicate(timeout=20)
    assert process.returncode in (0, 130, -signal.SIGINT) and "Traceback" not in err, err
    assert gone(below)


def test_sudden_death_leaves_no_subject_behind(tmp_path: Path) -> None:
    with checking(tmp_path) as process:
        below = subjects(process.pid)
        assert len(below) >= 2 and library_path("bundled").exists()
        process.kill()
        process.wait()
        assert gone(below)
    assert not record(tmp_path)["ended"], "what it leaves says that it did not end"


def test_a_killed_zygote_is_one_sentence(tmp_path: Path) -> None:
    """Its socket is a closed pipe, which is not taken for a closed stdout."""
    with checking(tmp_path) as process:
        parents = children_of(process.pid)
        for each in parents:
            os.kill(each, signal.SIGKILL)
        out, err = process.communicate(timeout=20)
    assert process.returncode == 3, (out, err)
    assert "Traceback" not in err and err.startswith("gallocheck: ") and "was killed; start again" in err
