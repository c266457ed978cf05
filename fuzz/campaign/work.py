"""The jobs of a campaign, as pure functions: no files, no database, everything handed in and given back.

    result = run(Task(library, seed=1, number=0))

A batch is a function of its task alone: it begins in a new process of the subject, and is measured in
operations, not in seconds. So a batch whose worker was killed is simply run again, here or elsewhere.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from ...model.records import Cap, Trace
from ..batch.engine import Lanes
from ..checker import Report
from ..coverage import Reached
from ..found import draw, profiles_for, smallest, turn
from ..judge import Judge
from ..mutate_trace import mutated
from ..verdict import Verdict
from .features import features

BATCH_OPS = 1000  #: a second or two of checking
IN_FULL = 7  #: one trace in so many is judged in full even where it is all that the model says
SAMPLES = 2  #: failing traces that a batch gives back of each signature
MUTATED = 0.8  #: of the traces of a batch at most are made of kept ones,
ENOUGH = 1000  #: where there are so many of them: drawn ones show more while little is known

# What a judged trace showed, and how a trace is made of kept ones: functions of their arguments alone.
FEATURES: Callable[[Trace, Report, Collection[int]], frozenset[int]] = features
MUTATE: Callable[[random.Random, Sequence[Trace], Cap], Trace] = mutated


@dataclass(frozen=True, slots=True)
class Task:
    """Batch `number` of the campaign of `seed`, on a subject library with a planted defect (0: none).

    `ops`: it ends with the trace that brings it to so many operations, or, where a subject hangs again
    and again, after `limit_s` seconds. `corpus`: kept traces to mutate, which so many of the batch's
    are made of as `mutated` says. `known`: features that are no news. `profiles`: kinds of traces to draw
    (profiles.SOURCES); none: all that the subject can do. `timeout`: seconds after which an operation hangs.
    `lanes`: so many short traces in lockstep instead (lanes.py); 0: none of that.
    """

    library: str
    seed: int
    number: int
    defect: int = 0
    ops: int = BATCH_OPS
    limit_s: float = 60.0
    corpus: tuple[Trace, ...] = ()
    mutated: float = 0.5
    known: frozenset[int] = frozenset()
    profiles: tuple[str, ...] = ()
    timeout: float = 5.0
    lanes: int = 0


#: looks at what a batch found so far, and may end it
Watch = Callable[["BatchResult"], bool]


def to_the_end(_: BatchResult) -> bool:
    """Ends no batch."""
    return False


@dataclass(frozen=True, slots=True)
class Failure:
    """A trace that fails. `index`: which of its batch."""

    index: int
    verdict: Verdict
    trace: Trace


@dataclass(frozen=True, slots=True)
class Kept:
    """A trace that showed what no trace before it had shown: all that it showed."""

    trace: Trace
    features: frozenset[int]


@dataclass(slots=True)
class BatchResult:
    """What a batch found. `failed`: failing traces by signature; `failures`: some of each."""

    number: int
    operations: int = 0
    traces: int = 0
    misuse: int = 0
    tally: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ShrinkTask:
    """Make the failing trace of sample `sample` small, in `seconds`."""

    library: str
    defect: int
    sample: int
    failure: Failure
    seconds: float
    timeout: float = 5.0


@dataclass(frozen=True, slots=True)
class Shrunk:
    """Sample `sample`, made small."""

    sample: int
    verdict: Verdict
    trace: Trace
    confirmed: bool


Job = Task | ShrinkTask
Done = BatchResult | Shrunk


class Bench:
    """Where jobs are done: keeps the subject of the last job in its process. A context manager."""

    def __init__(self) -> None:
        self.judge: Judge | None = None
        self.lanes: Lanes | None = None
        self.what: tuple[str, float] | None = None

    def judge_of(self, job: Job) -> Judge:
        """The job's subject, in a process that has run nothing. Raises SubjectError."""
        what = (job.library, job.timeout)
        if self.judge is None or self.what != what:
            self.close()
            self.judge, self.what = Judge(job.library, timeout=job.timeout), what
        self.judge.plant(job.defect)
        return self.judge

    def run(self, job: Job, over: Watch = to_the_end) -> Done:
        """Does the job; a batch ends early where `over` says so of what it found so far."""
        judge = self.judge_of(job)
        if isinstance(job, ShrinkTask):
            return run_shrink(job, judge)
        if not job.lanes:
            return run_batch(job, judge, over)
        if self.lanes is None:
            self.lanes = Lanes(job.library, timeout=job.timeout)
        return run_lanes(job, judge, self.lanes, over)

    def close(self) -> None:
        for subject in (self.judge, self.lanes):
            if subject is not None:
                subject.close()
        self.judge = self.lanes = None

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def run(job: Job) -> Done:
    """Does one job, in a subject process of its own. Raises SubjectError where the library cannot be used."""
    with Bench() as bench:
        return bench.run(job)


def run_batch(task: Task, judge: Judge, over: Watch = to_the_end) -> BatchResult:
    """Draws, runs and judges the traces of a batch. `judge` must not have run anything yet."""
    result = BatchResult(task.number)
    profiles, known = task.profiles or profiles_for(judge.caps), set(task.known)
    end = time.monotonic() + task.limit_s
    with Reached() as reached:
        reached.take(judge)
        while result.operations < task.ops and time.monotonic() < end:
            trace = trace_of(task, result.traces, profiles, judge.caps)
            whole = (result.traces + task.number) % IN_FULL == IN_FULL - 1
            report = judge.judge(trace) if whole else judge.quickly(trace)
            note(result, trace, report, reached.take(judge), known)
            result.traces += 1
            if over(result):
                break
    return result


def trace_of(task: Task, index: int, profiles: Sequence[str], caps: Cap) -> Trace:
    """Trace `index` of a batch: drawn, or made of kept ones."""
    rng = random.Random(f"{task.seed}/{task.number}/{index}")
    if task.corpus and rng.random() < task.mutated:
        return MUTATE(rng, task.corpus, caps)
    return draw(rng, (turn(f"{task.seed}/{task.number}", index, tuple(profiles)),), caps)


def share(corpus: int) -> float:
    """How many of a batch's traces are made of kept ones, where `corpus` traces are kept."""
    return MUTATED * min(1.0, corpus / ENOUGH)


def note(
    result: BatchResult, trace: Trace, report: Report, coverage: Collection[int], known: set[int]
) -> None:
    """Adds one judged trace to the result of its batch, and what it showed to `known`."""
    result.tally += report.tally
    # a trace of which nothing was judged (it died at once) costs as much as an operation
    result.operations += max(1, report.steps)
    result.misuse += sum(v.sort == "misuse" for v in report.verdicts)
    if note_failure(result, result.traces, trace, report):
        return  # what is made of a failing trace would mostly fail the same way
    shown = FEATURES(trace, report, coverage)
    if not shown <= known:
        known |= shown
        result.kept.append(Kept(trace, shown))


def note_failure(result: BatchResult, index: int, trace: Trace, report: Report) -> bool:
    """Adds trace `index` to the failures of its batch; whether it failed."""
    failed = report.failed
    if failed is None:
        return False
    result.failed[failed.signature] += 1
    if result.failed[failed.signature] <= SAMPLES:
        result.failures.append(Failure(index, failed, trace))
    return True


def run_lanes(task: Task, judge: Judge, lanes: Lanes, over: Watch = to_the_end) -> BatchResult:
    """`task.lanes` lanes in lockstep; the judge decides about those that part from the model. As every batch it
    is a function of its task alone: the subject begins in a new process, and what was cleared counts for nothing."""
    lanes.begin(task.defect)
    result = BatchResult(task.number)
    name = f"{task.seed}/{task.number}"
    checked = lanes.check(lanes.batch(name, task.lanes), name)
    result.operations, result.misuse, result.traces = checked.operations, checked.misuse, task.lanes
    for index, suspect in enumerate(checked.suspects):
        note_failure(result, index, suspect.trace, judge.judge(suspect.trace))
        if over(result):
            break
    return result


def run_shrink(task: ShrinkTask, judge: Judge) -> Shrunk:
    """Makes a failing trace small, and confirms it in new processes."""
    failure = task.failure
    small = smallest(judge, failure.trace, failure.verdict, task.seconds)
    return Shrunk(task.sample, small.verdict, small.trace, small.confirmed)
