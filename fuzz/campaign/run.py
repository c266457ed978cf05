"""A campaign's loop: hands out batches, stores what they found, has findings made small, saves replay files.

Everything that counts is in the store; what is here is only what is under way, and can be lost.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ...native.worker import SubjectError
from .. import replay
from ..found import replay_of
from ..hands import Ended
from . import corpus
from .findings import Sample, decode
from .pool import Pool
from .state import State
from .store import Store
from .work import BATCH_OPS, BatchResult, Done, Failure, Job, ShrinkTask, Shrunk, Task, share

GRACE_S = 5.0  #: after its time, a campaign waits so long for batches that are under way
POINT_S = 10.0  #: between two points of the campaign's course
SHARE = 24  #: kept traces that a batch gets to mutate
LANES, FIRST_LANES = 1024, 128  #: of a batch that runs short traces in lockstep; and of the first of these;
AT = 1
EVERY = 3  #: and one batch in so many does: what these look at, they see most of; the rest has more kinds


def lanes_of(number: int, most: int = LANES) -> int:
    """How many lanes batch `number` runs, 0: it is no batch in lockstep. The first ones are small, so that
    what falls soon falls sooner."""
    round, at = divmod(number, EVERY)
    return min(most, FIRST_LANES << round) if at == AT else 0


@dataclass(frozen=True, slots=True)
class Plan:
    """What a campaign is to do. Times are seconds, of all its runs together where it is resumed.

    `library`, `defect`: the subject; `describe`: what it says of itself; `version`: of gallocheck.
    `batches`: stop when the batches below this number are in. `out`: the folder of the replay files.
    `known`: the name of the expected failure that a signature is of, '' where it is new.
    `share`: kept traces that a batch gets to mutate. `lanes`: of every so many-th batch, which runs these in
    lockstep; 0: none does.
    """

    library: str
    defect: int
    describe: str
    version: str
    seed: int
    out: Path
    seconds: float
    batches: int | None = None
    until_failure: bool = False
    shrink_s: float = 10.0
    ops: int = BATCH_OPS
    known: Callable[[str], str] = lambda signature: ""
    share: int = SHARE
    lanes: int = LANES


class Campaign:
    """A campaign that `store` knows, done by `pool`."""

    def __init__(self, store: Store, pool: Pool, plan: Plan) -> None:
        self.store, self.pool, self.plan = store, pool, plan
        self.begun = time.monotonic()
        self.before = store.counts.get("spent_ms", 0) / 1000
        self.numbers = store.missing()
        self.next = next(self.numbers)
        self.known = corpus.known(store.db)
        self.flying: set[int] = set()  # batches
        self.shrinking: set[int] = set()  # samples
        self.came = False  # whether any job was done in this run
        self.noted = float("-inf")
        self.operations = store.counts.get("operations", 0)

    @property
    def spent(self) -> float:
        """Seconds that the campaign has taken, all its runs together."""
        return self.before + time.monotonic() - self.begun

    def run(
        self,
        show: Callable[[State], None] = lambda state: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Goes on until it is over, or `stop` says so: then what is under way is given up, to be done by
        the next run. Whether it came to its end. Raises SubjectError where no job can be done at all."""
        self.save_all()
        whole = self.rounds(show, stop)
        self.store.point(self.spent)
        self.save_all()
        show(self.state())
        return whole

    def rounds(self, show: Callable[[State], None], stop: Callable[[], bool]) -> bool:
        shown = float("-inf")
        while not stop():
            self.hand_out()
            if not self.flying and not self.shrinking:
                return True
            if not self.shrinking and self.spent > self.plan.seconds + GRACE_S:
                return True
            for ended in self.pool.ended(0.2):
                self.take(ended)
            if self.spent - self.noted >= POINT_S:
                self.store.point(self.spent)
                self.noted = self.spent
            if self.spent - shown >= 0.5:
                shown = self.spent
                show(self.state())
        return False

    # -- jobs ------------------------------------------------------------------------

    def over(self) -> bool:
        """Whether no more batches are wanted."""
        if self.spent >= self.plan.seconds or (self.plan.until_failure and self.store.is_new()):
            return True
        return self.plan.batches is not None and self.next >= self.plan.batches

    def hand_out(self) -> None:
        while len(self.flying) + len(self.shrinking) < self.pool.size:
            over = self.over()
            job = self.shrink_job(over) or (None if over else self.batch_job())
            if job is None:
                return
            self.pool.begin(job)

    def shrink_job(self, over: bool) -> Job | None:
        """The next finding to make small; at most half of the workers do that while there are batches."""
        most = self.pool.size if over else max(1, self.pool.size // 2)
        if len(self.shrinking) >= most:
            return None
        waiting = self.store.to_shrink(len(self.shrinking) + 1, self.plan.until_failure)
        sample = next((s for s in waiting if s.id not in self.shrinking), None)
        if sample is None:
            return None
        self.shrinking.add(sample.id)
        failure = Failure(0, sample.verdict, sample.trace)
        return ShrinkTask(self.plan.library, self.plan.defect, sample.id, failure, self.plan.shrink_s)

    def batch_job(self) -> Job:
        number, self.next = self.next, next(self.numbers)
        self.flying.add(number)
        rng = random.Random(f"{self.plan.seed}/{number}/corpus")
        traces = tuple(map(decode, corpus.pick(self.store.db, rng, self.plan.share)))
        plan = self.plan
        mutate = share(corpus.size(self.store.db))
        return Task(
            plan.library,
            plan.seed,
            number,
            plan.defect,
            plan.ops,
            corpus=traces,
            mutated=mutate,
            known=frozenset(self.known),
            lanes=lanes_of(number, plan.lanes),
        )

    # -- results ---------------------------------------------------------------------

    def take(self, ended: Ended[Job, Done]) -> None:
        """Stores the end of a job."""
        job, done = ended.job, ended.done
        if done is None and not self.came:
            raise SubjectError(f"No worker can do any job: {ended.why}")
        self.came = True
        if isinstance(job, Task):
            self.flying.discard(job.number)
        else:
            self.shrinking.discard(job.sample)
        if isinstance(done, BatchResult):
            self.store.add_batch(done, self.spent, self.plan.known)
            self.known.update(*(k.features for k in done.kept))
        elif isinstance(done, Shrunk):
            self.small(done)
        elif isinstance(job, Task):
            self.store.skip_batch(job.number, self.spent)
        else:  # it stays as long as it is
            self.small(Shrunk(job.sample, job.failure.verdict, job.failure.trace, confirmed=False))

    def small(self, shrunk: Shrunk) -> None:
        """Stores a finding made small, and saves its replay file unless there is one like it."""
        self.store.add_small(shrunk)
        drop(self.long_path(shrunk.sample, shrunk.verdict.clause))
        found = next((s for s in self.store.findings() if s.id == shrunk.sample), None)
        if found is not None:
            with contextlib.suppress(replay.ReplayError):  # said at the end, where it is still so
                self.save(found)

    # -- replay files ------------------------------------------------------------------

    def path(self, sample: Sample) -> Path:
        """Of its replay file: another one for a trace that is still to be made small."""
        if sample.shape is None:
            return self.long_path(sample.id, sample.verdict.clause)
        return self.plan.out / f"{sample.verdict.clause or 'silent'}-{self.plan.seed}-{sample.id}.json"

    def long_path(self, sample: int, clause: str) -> Path:
        return self.plan.out / f"{clause or 'silent'}-{self.plan.seed}-{sample}-long.json"

    def save(self, sample: Sample) -> None:
        """Writes a finding's replay file, whole or not at all. Raises ReplayError."""
        plan = self.plan
        try:
            plan.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise replay.ReplayError(
                f"{plan.out} cannot be made ({error.strerror}): name another place with --out."
            ) from None
        replay.save(
            replay_of(sample.verdict, sample.trace, plan.describe, plan.seed, plan.version), self.path(sample)
        )

    def save_all(self) -> None:
        """Every finding has its replay file, also where a run was killed before it could write it, or to
        take the one of the long trace away."""
        for sample in self.store.findings():
            for half in self.plan.out.glob(f".{self.path(sample).name}.*"):
                drop(half)
            if not self.path(sample).exists():
                self.save(sample)
            if sample.shape is not None:
                drop(self.long_path(sample.id, sample.verdict.clause))

    # -- what is shown -------------------------------------------------------------------

    def state(self) -> State:
        counts = self.store.counts
        operations = counts.get("operations", 0)
        return State(
            spent_s=self.spent,
            ran_s=self.spent - self.before,
            left_s=max(0.0, self.plan.seconds - self.spent),
            operations=operations,
            done_now=operations - self.operations,
            batches=counts.get("batches", 0),
            left_batches=None
            if self.plan.batches is None
            else max(0, self.plan.batches - counts.get("batches", 0)),
            corpus=corpus.size(self.store.db),
            coverage=corpus.by_family(self.store.db),
            findings=self.store.by_clause(),
            waiting=self.store.waiting(),
            skipped=counts.get("skipped", 0),
            busy=len(self.flying) + len(self.shrinking),
        )


def drop(path: Path) -> None:
    """Takes a file away that nobody needs any more, where that can be done."""
    with contextlib.suppress(OSError):
        path.unlink()
