"""Checked operations a second: lanes beside the same check by others, and beside the subject alone."""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from gallocheck.fuzz.batch import compare
from gallocheck.fuzz.batch.draw import Batch, batch_of
from gallocheck.fuzz.batch.engine import Lanes
from gallocheck.fuzz.draw import RandomDraw
from gallocheck.fuzz.generate import ALL_CAPS
from gallocheck.fuzz.judge import Judge
from gallocheck.fuzz.setups import Frame
from gallocheck.model.records import SIZE_MAX, BufferType, Flag, Graph, Status, Tensor
from gallocheck.native.header import load
from gallocheck.native.lane_job import Block, run_here
from gallocheck.native.library import library_path
from numpy.typing import NDArray

HERE = Path(__file__).parent
LANES, STEPS = 8000, 48  # no power of two: rows that far apart would share lines of the cache
PEER_SECONDS = 3.0
Round = Callable[[], int]  #: does some work, returns how many operations that was


def isolated(library: str, width: int = LANES, judged: bool = False) -> Round:
    """Drawn, run in a process of the subject's own, compared; `judged`: and lanes that differ are judged."""
    lanes, number = Lanes(library), itertools.count()
    judge = Judge(library) if judged else None

    def work() -> int:
        checked = lanes.check(lanes.batch(f"bench {next(number)}", width, STEPS))
        for suspect in checked.suspects:
            assert judge is not None, suspect
            if judge.judge(suspect.trace).failed is None:
                lanes.clear(suspect)
        return checked.operations - checked.misuse

    return work


def simple_batch(seed: str) -> Batch:
    """What peers/rapidcheck.cpp does: two types of one chunk, graphs of a tensor each."""
    draw = RandomDraw(random.Random(seed))
    types = (BufferType(32, SIZE_MAX, 64), BufferType(32, SIZE_MAX, 64))
    flags = Flag.LEAF | Flag.INPUT | Flag.OUTPUT
    graphs = tuple(
        Graph(tuple(Tensor(draw.integer(1, 999), (), flags, slot) for slot in range(2))) for _ in range(24)
    )
    return batch_of(draw, Frame(types, ((0, 1), (0,), (1,)), 1000), graphs, 1, LANES, STEPS, ALL_CAPS)


def simple() -> Round:
    """The check of `simple_batch`."""
    lanes, number = Lanes(library_path("bundled")), itertools.count()

    def work() -> int:
        checked = lanes.check(simple_batch(f"bench {next(number)}"))
        assert not checked.suspects
        return checked.operations - checked.misuse

    return work


def in_process() -> Round:
    """As `isolated`, with the subject in this process."""
    library, lanes, number = load(library_path("bundled")), Lanes(library_path("bundled")), itertools.count()

    def work() -> int:
        batch = lanes.batch(f"bench {next(number)}", LANES, STEPS)
        seen, left = run_here(library, Block(compare.job(batch)))
        assert not list(compare.differences(batch, seen, left))
        return used(seen)

    return work


def alone(library: str, width: int = LANES, drawn: Callable[[str], Batch] | None = None) -> Round:
    """The subject alone, unchecked: the same calls, in a process of its own where it may die."""
    lanes = Lanes(library)
    draw = drawn or (lambda seed: lanes.batch(seed, width, STEPS))
    blocks = [Block(compare.job(draw(f"bench {n}"))) for n in range(6)]
    turn: Iterator[Block] = itertools.cycle(blocks)

    def work() -> int:
        seen, _, deaths = lanes.worker.run_job(next(turn))
        assert not deaths, deaths[0]
        return used(seen)

    return work


def used(seen: NDArray[np.int64]) -> int:
    """Operations but for misuse: what counts, here and with the peers."""
    return int(np.count_nonzero(seen[:, 0] != int(Status.MISUSE)))


class Peer:
    """A program that prints operations and seconds of its own."""

    def __init__(self, command: list[str], more: dict[str, str] | None = None) -> None:
        self.command, self.env = command, {**os.environ, "GALLOCHECK_DRIVER": "light", **(more or {})}

    def rate(self) -> float:
        done = subprocess.run(self.command, env=self.env, check=True, capture_output=True, text=True)
        said = json.loads(done.stdout.splitlines()[-1])
        return float(said["operations"] / said["seconds"])


def hypothesis_machine() -> Peer:
    """The check as a Hypothesis state machine."""
    return Peer([sys.executable, str(HERE / "peers" / "hypothesis_machine.py"), str(PEER_SECONDS)])


def rapidcheck(folder: Path) -> Peer | None:
    """The check of `simple_batch` with RapidCheck's state testing; None where that library is not installed."""
    if not Path("/usr/include/rapidcheck.h").exists():
        return None
    program, library = folder / "rapidcheck", library_path("bundled")
    include = Path(str(library)).parents[1] / "include"
    subprocess.run(
        ["g++", "-std=c++20", "-O2", f"-I{include}", f"-I{HERE / 'peers'}", str(HERE / "peers" / "rapidcheck.cpp"),
         "-o", str(program), "-lrapidcheck", str(library), f"-Wl,-rpath,{library.parent}"],
        check=True,
    )  # fmt: skip
    return Peer([str(program), str(PEER_SECONDS)], {"RC_PARAMS": f"max_success=200 max_size={STEPS}"})
