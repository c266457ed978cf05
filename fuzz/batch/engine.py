"""Batches, one after the other, on a subject in a process of its own; each lane that differs becomes a trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...model.records import Trace
from ...native.lane_job import Block
from ...native.worker import Worker
from . import compare
from .draw import LANES, STEPS, Batch, draw_batch

MOST_DEATHS = 4  #: in one batch; then the rest of it is not run


class Ran(NamedTuple):
    """A batch as a subject ran it."""

    seen: NDArray[np.int64]  # [step, field, lane]
    left: NDArray[np.int64]  # [lane]: bytes in use after close
    deaths: list[tuple[int, int]]  # (lane, step) that the subject died in
    lanes: int  # only those below it ran


Runner = Callable[[Block], Ran]


@dataclass
class Suspect:
    """A lane in which subject and model part: its trace, at which step and by which field."""

    trace: Trace
    step: int
    field: str


@dataclass
class Checked:
    """One batch: `operations` checked, and the lanes that differ, the earliest step first."""

    seed: str
    operations: int = 0
    suspects: list[Suspect] = field(default_factory=list)


def on_worker(worker: Worker) -> Runner:
    """Runs batches on that worker's subject."""

    def run(block: Block) -> Ran:
        seen, left, deaths = worker.run_job(block, MOST_DEATHS)
        given_up = len(deaths) == MOST_DEATHS or any(d.death.kind == "hang" for d in deaths)
        lanes = deaths[-1].lane + 1 if given_up else len(block.job.ops)
        return Ran(seen, left, [(d.lane, d.step) for d in deaths], lanes)

    return run


def check(run: Runner, batch: Batch, seed: str = "", most: int = 8) -> Checked:
    """Runs and compares one batch; at most so many suspects, those that part first."""
    block = Block(compare.job(batch))
    ran = run(block)
    unseen = np.arange(len(batch.ops)) >= ran.lanes  # there lies what was in the block before
    unseen[[lane for lane, _ in ran.deaths]] = True
    found = [(step, lane, "the subject died") for lane, step in ran.deaths]
    found += [(d.step, d.lane, d.field) for d in compare.differences(batch, ran.seen, ran.left, unseen)]
    out = Checked(seed, ran.lanes * batch.ops.shape[1])
    for step, lane, name in sorted(found)[:most]:
        out.suspects.append(Suspect(compare.trace(batch, lane), step, name))
    return out


def batches(run: Runner, seed: int, lanes: int = LANES, steps: int = STEPS) -> Iterator[Checked]:
    """Endless, from batch 0 of that seed on."""
    number = 0
    while True:
        name = f"{seed}:{number}"
        yield check(run, draw_batch(name, lanes, steps), name)
        number += 1
