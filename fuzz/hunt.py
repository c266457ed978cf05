"""The main job: draw traces, run and judge them, keep, shrink and save what fails.

    with Judge(library) as judge:
        result = Hunt(judge, seed=1).run(seconds=30)

Every trace is a function of the seed and its number, so a hunt can be repeated.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ..model.records import Trace
from .batch.engine import Lanes
from .checker import Report
from .expected import Expected, ExpectedList
from .found import draw, profiles_for, replay_of, smallest, turn
from .judge import Judge
from .replay import Replay, save
from .verdict import Verdict

LANES = 512  #: traces of a batch in lockstep,
EVERY = 50  #: after each so many others


@dataclass
class Finding:
    """One failure: how it shows, the shrunk trace, where it was saved, and how often it was met."""

    verdict: Verdict
    trace: Trace
    number: int
    count: int = 1
    path: Path | None = None
    known: Expected | None = None
    confirmed: bool = True
    like: Expected | None = None  # looks like this expected failure, but the release that has it holds here


@dataclass
class Result:
    """What a hunt did: operations checked, how often each clause was exercised, and the findings.

    `lockstep`: operations of traces that ran in lockstep beside the model (batch/); no clause counts these.
    """

    tally: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    traces: int = 0
    operations: int = 0
    misuse: int = 0
    lockstep: int = 0
    seconds: float = 0.0
    stopped: bool = False

    def by_clause(self) -> dict[str, list[Finding]]:
        out: dict[str, list[Finding]] = {}
        for finding in self.findings:
            out.setdefault(finding.verdict.clause, []).append(finding)
        return out


class Hunt:
    """A hunt on one subject. `folder`: where replay files go (None: nowhere).

    `only`: report these clauses alone, None: all. `shrink_s`: seconds to shrink one finding.
    `base`: the release that `known` describes. A failure that only looks like a known one is new where
    this release does not fail on the same trace: without it, one known fault of a clause would hide
    every later fault of it. `lanes`: the same subject, for thousands of short traces of P, G and R in lockstep
    now and then; what differs there is judged as every trace is.
    """

    def __init__(
        self,
        judge: Judge,
        seed: int,
        *,
        known: ExpectedList | None = None,
        folder: Path | None = None,
        only: frozenset[str] | None = None,
        shrink_s: float = 5.0,
        version: str = "",
        base: Judge | None = None,
        lanes: Lanes | None = None,
    ) -> None:
        self.base, self.lanes = base, lanes
        self.judge, self.seed, self.known, self.folder = judge, seed, known, folder
        self.only, self.shrink_s, self.version = only, shrink_s, version
        self.profiles = profiles_for(judge.caps)
        self.result = Result()
        self.found: dict[tuple[str, bool], Finding] = {}

    def trace(self, number: int) -> Trace:
        """Trace `number` of this hunt."""
        kind = turn(str(self.seed), number, tuple(self.profiles))
        return draw(random.Random(f"{self.seed}/{number}"), (kind,), self.judge.caps)

    def run(
        self,
        seconds: float = float("inf"),
        traces: int | None = None,
        until: Callable[[Result], bool] = lambda _: False,
        progress: Callable[[Result], None] = lambda _: None,
    ) -> Result:
        """Hunts until time, number of traces or `until` says so; Ctrl-C ends it cleanly."""
        begin = time.monotonic()
        try:
            while self.result.seconds < seconds and (traces is None or self.result.traces < traces):
                if self.lanes is not None and self.result.traces % EVERY == 0:
                    self.many(self.lanes, self.result.traces)
                self.one(self.result.traces)
                self.result.traces += 1
                self.result.seconds = time.monotonic() - begin
                progress(self.result)
                if until(self.result):
                    break
        except KeyboardInterrupt:
            self.result.stopped = True
        self.result.seconds = time.monotonic() - begin
        return self.result

    def one(self, number: int) -> None:
        """Draws, runs and judges one trace."""
        trace = self.trace(number)
        report = self.judge.judge(trace)
        self.result.tally += report.tally
        self.result.operations += report.steps
        self.result.misuse += sum(v.sort == "misuse" for v in report.verdicts)
        self.examine(trace, report, number)

    def many(self, lanes: Lanes, number: int) -> None:
        """A batch of traces in lockstep."""
        seed = f"{self.seed}/{number}"
        checked = lanes.check(lanes.batch(seed, LANES), seed)
        self.result.lockstep += checked.operations
        for suspect in checked.suspects:
            report = self.judge.judge(suspect.trace)
            if report.failed is None:
                lanes.clear(suspect)
            self.examine(suspect.trace, report, number)

    def examine(self, trace: Trace, report: Report, number: int) -> None:
        """Keeps the trace where it fails in a way that was not met yet."""
        failed = report.failed
        if failed is None or (self.only is not None and failed.clause not in self.only):
            return
        apart = self.apart(trace, failed)
        found = self.found.get((failed.signature, apart))
        if found is not None:
            found.count += 1
            return
        self.keep(trace, failed, number, apart)

    def expected(self, verdict: Verdict) -> Expected | None:
        return self.known.find(verdict.signature) if self.known else None

    def apart(self, trace: Trace, failed: Verdict, anew: bool = False) -> bool:
        """Whether this looks like a known failure, but the release that is known for it gets past it."""
        if self.base is None or self.expected(failed) is None:
            return False
        before = self.base.judge(trace, anew).failed
        return before is None or before.sort != "broken" or before.step > failed.step

    def keep(self, trace: Trace, failed: Verdict, number: int, apart: bool) -> None:
        """Shrinks, replays twice in new processes, saves. What is known has a replay file already."""
        known = self.expected(failed)
        if known is not None and not apart:
            self.note(failed, apart, Finding(failed, trace, number, known=known))
            return

        verdict, small, confirmed = smallest(
            self.judge, trace, failed, self.shrink_s, lambda t, v: not apart or self.apart(t, v)
        )
        finding = Finding(verdict, small, number, confirmed=confirmed)
        finding.known = self.expected(verdict)
        # what depends on the past of a process is no reason to call a known failure new
        if confirmed and apart and all(self.apart(small, verdict, anew=True) for _ in range(2)):
            finding.known, finding.like = None, finding.known
        self.note(failed, apart, finding)
        if finding.known is not None:
            return
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            finding.path = self.folder / self.name(finding)
            save(self.replay(finding), finding.path)

    def note(self, failed: Verdict, apart: bool, finding: Finding) -> None:
        self.found[failed.signature, apart] = finding
        self.result.findings.append(finding)

    def name(self, finding: Finding) -> str:
        n = sum(f.verdict.clause == finding.verdict.clause for f in self.result.findings)
        return f"{finding.verdict.clause or 'silent'}-{self.seed}-{n}.json"

    def replay(self, finding: Finding) -> Replay:
        return replay_of(finding.verdict, finding.trace, self.judge.describe, self.seed, self.version)
