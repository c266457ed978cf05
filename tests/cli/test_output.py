"""Output that cannot be written is one sentence and exit 3; text from files moves no cursor and begins no line."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from gallocheck.fuzz import canary, replay

from tests.plan.dumps import good

RUN = [sys.executable, "-c", "from gallocheck.cli.main import run; run()"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_full_disk(more: list[str], tmp_path: Path) -> None:
    dump = str(good().write(tmp_path / "d"))
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*RUN, "plan", dump, *more], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert done.returncode == 3
    assert done.stderr == "gallocheck: the output cannot be written: No space left on device.\n"


def test_a_replay_files_texts_cannot_act() -> None:
    saved = replay.load(next(canary.FOLDER.glob("051-*.json")))
    bad = saved.message + "\x1b[2J\n::error::x"
    hostile = replay.encode(replace(saved, message=bad, seen=bad))
    for text in (replay.decode(hostile, "x").message, replay.decode(hostile, "x").seen):
        assert text == saved.message + "\\x1b[2J\\n::error::x"


def test_a_name_that_no_file_has() -> None:
    with pytest.raises(replay.ReplayError, match="no name of a file"):
        replay.load("a\0b")
