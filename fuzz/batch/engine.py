"""Batches, one after the other, on a subject in a process of its own; each lane that differs becomes a trace.

The model is proven to keep R and G, so a lane that does all that the model does, keeps them too. A lane that
parts from it is only suspected: the judge says whether that breaks a clause. Of a subject that plans in its own
way, the model follows the plans that it makes for new allocators, and these are judged by P.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...model.records import Cap, Kind, Op, Status, Trace
from ...native.lane_job import Block
from ...native.worker import Worker
from ..fresh import Fresh, boundless
from ..ledger import READINGS
from . import compare
from .draw import LANES, STEPS, Batch, draw_batch
from .table import Planner, by_reference, by_subject

IN_LOCKSTEP = "PGR"  #: the letters that lanes are about
MOST_DEATHS = 16  #: in one batch; then the rest of it is not run
MOST_SUSPECTS = 12  #: of one batch
OF_A_KIND = 3  #: of one batch, of those that part alike
FAMILIAR = 12  #: what was cleared so often, again and again, is looked at once a batch, then ever more rarely


class Ran(NamedTuple):
    """A batch as a subject ran it."""

    seen: NDArray[np.int64]  # [step, field, lane]
    left: NDArray[np.int64]  # [lane]: bytes in use after close
    unseen: NDArray[np.bool_]  # [lane]: it died, or did not run
    deaths: list[tuple[int, int]]  # (lane, step) that the subject died in
    lanes: int  # only those below it ran


How = tuple[str, str]  #: the kind of operation at which a lane parts ("close": after the last), and the field


@dataclass
class Suspect:
    """A lane in which subject and model part: its trace, and by what."""

    trace: Trace
    how: How


@dataclass
class Checked:
    """One batch: `operations` checked, `misuse` of them misuse, and of the lanes that differ some, the
    earliest step first."""

    seed: str
    operations: int = 0
    misuse: int = 0
    differing: int = 0
    suspects: list[Suspect] = field(default_factory=list)


class Lanes:
    """A subject that batches run on. Close it, or use it as a context manager.

    `driver`: GALLOCHECK_DRIVER of its process; "light" is the fastest. Raises SubjectError as Worker does.
    """

    def __init__(
        self, library: str | os.PathLike[str], defect: int = 0, timeout: float = 5.0, driver: str = "light"
    ) -> None:
        self.worker = Worker(library, defect, timeout, driver=driver)
        self.caps = self.worker.capabilities
        self.defect = defect
        self.forget()
        self.cleared: Counter[How] = Counter()
        self.batches = 0

    def batch(self, seed: str, lanes: int = LANES, steps: int = STEPS) -> Batch:
        """The batch of that seed, of operations that the subject has."""
        return draw_batch(seed, lanes, steps, self.caps)

    def check(self, batch: Batch, seed: str = "") -> Checked:
        """Runs and compares one batch."""
        whole = compare.model(batch, self.planner(batch))
        out = Checked(seed, suspects=list(self.plans(batch)))
        ran = self.run(batch)
        out.operations = ran.lanes * batch.ops.shape[1]
        out.misuse = int(np.count_nonzero(ran.seen[:, 0, : ran.lanes] == int(Status.MISUSE)))
        found = [(step, lane, "death") for lane, step in ran.deaths]
        differ = compare.differences(batch, ran.seen, ran.left, ran.unseen, whole, self.hidden())
        found += [(d.step, d.lane, d.field) for d in differ]
        out.differing = len(found)
        out.suspects += chosen(batch, sorted(found), self.quota)
        self.batches += 1
        return out

    def begin(self, defect: int) -> None:
        """A new process of the subject, with that planted defect; nothing was cleared."""
        self.worker.plant(defect)
        if defect != self.defect:
            self.defect = defect
            self.forget()
        self.cleared.clear()
        self.batches = 0

    def forget(self) -> None:
        """Nothing is known of the subject's plans any more."""
        self.fresh = Fresh(self.worker.run, compact=not self.caps & Cap.EMPTY_CHUNKS)

    def clear(self, suspect: Suspect) -> None:
        """The judge found nothing in it: the subject may do so."""
        self.cleared[suspect.how] += 1

    def quota(self, how: How) -> int:
        """How many of this batch's lanes that part like this the judge is to see."""
        rounds = self.cleared[how] // FAMILIAR
        return OF_A_KIND if rounds == 0 else int(self.batches % rounds == 0)

    def planner(self, batch: Batch) -> Planner:
        """Whose plans the model follows."""
        return by_reference(batch.setup) if self.caps & Cap.EXACT else by_subject(batch.setup, self.fresh)

    def hidden(self) -> set[str]:
        """What the subject need not show as the model does."""
        hidden = set() if self.caps & Cap.EXACT else {"allocations"}
        if not self.caps & Cap.BREAKDOWN:
            hidden.add("owned")
        return hidden if self.caps & READINGS else hidden | {"generation", "shrink_generation"}

    def plans(self, batch: Batch) -> Iterator[Suspect]:
        """Of a subject that plans in its own way: a graph whose new plan breaks P."""
        if self.caps & Cap.EXACT:
            return
        for config, slots in enumerate(batch.setup.configs):
            for graph in batch.graphs:
                plan = self.fresh.plan(batch.setup, config, graph)
                if plan.broken or plan.lost or plan.died:
                    kinds = (Kind.MEASURE, Kind.RESERVE, Kind.ALLOC, Kind.COMPUTE)
                    ops = (Op(Kind.NEW, other=config), *map(Op, kinds))
                    yield Suspect(
                        Trace(boundless(batch.setup), (graph,), ops), ("RESERVE", f"plan for {slots}")
                    )
                    return  # one is enough: what else its plans break, other batches show

    def run(self, batch: Batch) -> Ran:
        """As the subject runs it."""
        seen, left, deaths = self.worker.run_job(Block(compare.job(batch)), MOST_DEATHS)
        given_up = len(deaths) == MOST_DEATHS or any(d.death.kind == "hang" for d in deaths)
        lanes = deaths[-1].lane + 1 if given_up else len(batch.ops)
        unseen = np.arange(len(batch.ops)) >= lanes  # there lies what was in the block before
        unseen[[d.lane for d in deaths]] = True
        return Ran(seen, left, unseen, [(d.lane, d.step) for d in deaths], lanes)

    def close(self) -> None:
        self.worker.close()

    def __enter__(self) -> Lanes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def chosen(batch: Batch, found: list[tuple[int, int, str]], quota: Callable[[How], int]) -> Iterator[Suspect]:
    """Of (step, lane, field), sorted, the traces that go to the judge: the earliest, and of each kind some."""
    kinds: Counter[How] = Counter()
    for step, lane, name in found:
        how = (batch.orders[step].kind.name if step < len(batch.orders) else "close", name)
        if kinds[how] < quota(how) and kinds.total() < MOST_SUSPECTS:
            kinds[how] += 1
            yield Suspect(compare.trace(batch, lane), how)


def batches(lanes: Lanes, seed: int, width: int = LANES, steps: int = STEPS) -> Iterator[Checked]:
    """Endless, from batch 0 of that seed on."""
    number = 0
    while True:
        name = f"{seed}:{number}"
        yield lanes.check(lanes.batch(name, width, steps), name)
        number += 1
