"""Checked operations a second, R on the bundled subject: lanes beside the peers and the subject alone."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from gallocheck.fuzz.batch import compare, engine
from gallocheck.fuzz.batch.draw import Batch, draw_batch
from gallocheck.native.header import load
from gallocheck.native.lane_job import Block, run_here
from gallocheck.native.library import library_path
from timing import Round

HERE = Path(__file__).parent
LANES, STEPS = 4096, 48
PEER_SECONDS = 3.0


def _batches() -> Iterator[Batch]:
    return (draw_batch(f"bench {n}", LANES, STEPS) for n in itertools.count())


def isolated() -> Round:
    """Drawn, run in a process of the subject's own, compared."""
    lanes, number = engine.Lanes(library_path("bundled")), itertools.count()

    def work() -> int:
        checked = lanes.check(lanes.batch(f"bench {next(number)}", LANES, STEPS))
        assert not checked.suspects, checked.suspects[0]
        return checked.operations

    return work


def in_process() -> Round:
    """The same with the subject in this process."""
    library, batches = load(library_path("bundled")), _batches()

    def work() -> int:
        batch = next(batches)
        seen, left = run_here(library, Block(compare.job(batch)))
        assert not list(compare.differences(batch, seen, left))
        return int(batch.ops.size)

    return work


def alone() -> Round:
    """The subject alone, unchecked: the same calls."""
    library = load(library_path("bundled"))
    blocks = [Block(compare.job(batch)) for batch in itertools.islice(_batches(), 4)]
    turn = itertools.cycle(blocks)

    def work() -> int:
        block = next(turn)
        run_here(library, block)
        return int(block.job.ops.size)

    return work


def hypothesis_machine() -> Round:
    """peers/hypothesis_machine.py; its own time, without the start of a process."""
    return _Peer([sys.executable, str(HERE / "peers" / "hypothesis_machine.py"), str(PEER_SECONDS)])


class _Peer:
    """A program that prints operations and seconds."""

    def __init__(self, command: list[str]) -> None:
        self.command, self.operations, self.seconds = command, 0, 0.0

    def __call__(self) -> int:
        env = {**os.environ, "GALLOCHECK_DRIVER": "light"}
        out = subprocess.run(self.command, env=env, check=True, capture_output=True, text=True).stdout
        said = json.loads(out.splitlines()[-1])
        self.operations += said["operations"]
        self.seconds += said["seconds"]
        return int(said["operations"])
