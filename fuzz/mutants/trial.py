"""One mutant: compiled, compared with what is known, and checked until it fails or its time is over.

A mutant is killed by a trace that it fails and that the original passes: twice, the second time in
a process that had run nothing before; or where its process grows with every session, and the original's not.

Of a subject that the model predicts, a mutant's run is judged only where it is not the original's run, and
one run in WHOLE: all that can be seen is the same then, so that many more traces are tried.
"""

from __future__ import annotations

import itertools
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from ...model.records import Cap, Trace
from ...native.worker import SubjectError
from ..batch.draw import LANES, STEPS, Batch, draw_batch
from ..batch.engine import Lanes
from ..found import draw, profiles_for
from ..judge import Judge
from ..verdict import Verdict
from .alike import shown
from .detector import Told
from .grows import grows
from .operators import Mutation
from .sources import Source, digest

HANG_S = 2.0  #: an operation of a mutant that takes so long hangs
ROUND_S, ROUND_BATCHES = 2.0, 3  #: batches and drawn traces take turns
FEW = 8  #: traces before the first batches
REPAIRS = 8  #: how often a trace that the original fails is made shorter
OTHERS = (
    6  #: processes in which the original must pass too: a fault of its own may depend on where memory lies
)
OWN = 0.75  #: of the drawn traces are of the kinds that the file is for
WHOLE = 64
BLAME_S = 2.0  #: after a difference that no clause decides, how long a trace is looked for that breaks one

UNCOMPILED, SAME, KILLED, SURVIVED = "uncompiled", "same", "killed", "survived"


@dataclass(frozen=True, slots=True)
class Trial:
    """A mutant to check. `original`: the library of the source as it is. `known`: by digest of what was
    compiled, the mutant that it is ('' for the original). `before_s`, `traces`: how long it was checked
    already, and with how many traces; `seconds`: how long in all. `folder`: where files may be made;
    `headers`: Source.headers; `planted`: the original with planted defects, '' where the source looks for no damage."""

    key: str
    source: Source
    mutation: Mutation
    original: str
    known: dict[str, str]
    seed: int
    seconds: float
    folder: str
    headers: str = ""
    planted: str = ""
    before_s: float = 0.0
    traces: int = 0


@dataclass(slots=True)
class Outcome:
    """What came of a mutant. `state`: uncompiled, same, killed or survived.

    `like`: same as which mutant, '' the original. `checked_s`: seconds of running and judging it in all,
    without compiling it and drawing traces; `traces`: how many were drawn for it.
    `verdict` and `trace` of one that was killed.
    """

    key: str
    state: str
    digest: str = ""
    like: str = ""
    checked_s: float = 0.0
    operations: int = 0
    traces: int = 0
    verdict: Verdict | None = None
    trace: Trace | None = None


class Bench:
    """Where mutants are checked: keeps the original in its process, and traces that it passes. A context manager."""

    def __init__(self) -> None:
        self.base: Judge | None = None
        self.others: list[Judge] = []
        self.of: tuple[str, int] = ("", 0)
        self.drawn: dict[int, Trace] = {}
        self.told: Told | None = None  # of planted defects, where it looks for damage
        self.shown: dict[int, int] = {}  # what the original showed of them, where the model predicts it
        self.aside = 0.0  #: seconds in which it was not a mutant that ran or was judged

    def begin(self, trial: Trial) -> Judge:
        """The original. Raises SubjectError."""
        if self.base is None or self.of != (trial.original, trial.seed):
            self.close()
            self.base, self.of = Judge(trial.original), (trial.original, trial.seed)
            self.drawn, self.shown, self.told = {}, {}, None
            if not self.base.caps & Cap.EXACT:
                self.others = [Judge(trial.original) for _ in range(OTHERS)]
        return self.base

    def run(self, trial: Trial) -> Outcome:
        """Raises SubjectError where the original cannot be used."""
        base = self.begin(trial)
        with tempfile.TemporaryDirectory(prefix="mutant-", dir=trial.folder) as made:
            folder = Path(made)
            assembly = trial.source.assembly(trial.mutation.of(trial.source.text), folder, trial.headers)
            if assembly is None:
                return Outcome(trial.key, UNCOMPILED)
            what = digest(assembly)
            if what in trial.known and trial.known[what] != trial.key:
                return Outcome(trial.key, SAME, what, trial.known[what])
            library = folder / "mutant.so"
            if not trial.source.link(folder, library):
                return Outcome(trial.key, UNCOMPILED, what)
            out = Outcome(trial.key, SURVIVED, what, traces=trial.traces)
            self.check(trial, str(library), base, out)
            if out.state == SURVIVED and trial.planted:
                self.tells(trial, folder, out)
            return out

    def tells(self, trial: Trial, folder: Path, out: Outcome) -> None:
        """Checks a slip in what looks for damage where there is some."""
        library = folder / "planted.so"
        if not trial.source.planted(trial.mutation.of(trial.source.text), folder, library):
            return
        self.told = self.told or Told(trial.planted)
        begin = time.monotonic()
        out.verdict = self.told.otherwise(str(library))
        out.checked_s += time.monotonic() - begin
        out.state = KILLED if out.verdict else SURVIVED

    def check(self, trial: Trial, library: str, base: Judge, out: Outcome) -> None:
        try:
            judge = Judge(library, timeout=HANG_S)
        except SubjectError as error:
            out.state, out.verdict = KILLED, Verdict("silent", "", str(error), 0, "open")
            return
        self.aside, begin = 0.0, time.monotonic()
        with judge:
            judge.caps = base.caps  # a mutant may declare less
            killed = False
            for number, trace in self.traces(trial, library, base, begin, out):
                alike = self.alike(number, trace, judge)
                failed = None if alike else self.fails(judge, base, trace, out)
                if alike:
                    out.operations += len(trace.ops)
                now = trial.before_s + self.spent(begin)
                if failed is not None and (not killed or failed.clause):
                    out.state, out.verdict, out.trace = KILLED, failed, trace
                if not killed:
                    out.checked_s, killed = now, failed is not None
                if killed and (out.verdict is None or out.verdict.clause or now > out.checked_s + BLAME_S):
                    return
            if killed:
                return
            out.verdict = grows(judge, base, list(self.drawn.values()))
            out.state = KILLED if out.verdict else SURVIVED
        out.checked_s = trial.before_s + self.spent(begin)

    def fails(self, judge: Judge, base: Judge, trace: Trace, out: Outcome) -> Verdict | None:
        """How the mutant fails at a trace where the original does not."""
        failed, steps = _judged(judge, trace)
        if failed is None and not steps and _judged(base, trace)[1]:
            failed = Verdict("silent", "", "a session that the original takes is refused", 0, "open")
        out.operations += steps
        return self.kills(judge, base, trace, failed) if failed is not None else None

    def alike(self, number: int, trace: Trace, judge: Judge) -> bool:
        """Whether the mutant shows of drawn trace `number` (-1: of another) what the original does."""
        if number % WHOLE == WHOLE - 1 or number not in self.shown:
            return False
        try:
            return shown(trace, judge.run(trace)) == self.shown[number]
        except SubjectError:
            return False

    def kills(self, judge: Judge, base: Judge, trace: Trace, failed: Verdict) -> Verdict | None:
        """How the mutant fails in a new process, where the original gets past that; else None."""
        if not _passes(base, trace, failed, anew=False):
            return None
        if failed.op == "open":
            return failed
        for _ in range(1 if base.caps & Cap.EXACT else 2):
            again, _steps = _judged(judge, trace, anew=True)
            if again is None or not all(_passes(b, trace, again, anew=True) for b in (base, *self.others)):
                return None
        return again

    def spent(self, begin: float) -> float:
        return time.monotonic() - begin - self.aside

    def traces(
        self, trial: Trial, library: str, base: Judge, begin: float, out: Outcome
    ) -> Iterator[tuple[int, Trace]]:
        """Traces to judge, until the mutant's time is over: suspects of batches (-1), and drawn ones by number."""
        left = trial.seconds - trial.before_s
        batches = suspects(trial, library, out) if trial.source.lockstep else None
        until = 0.0  # what is easily seen needs no batches
        while self.spent(begin) < left:
            few = itertools.count(1)
            while out.traces == trial.traces or (
                self.spent(begin) < left and (next(few) <= FEW or self.spent(begin) < until)
            ):
                yield out.traces, self.trace(out.traces, trial, base)
                out.traces += 1
            if batches is not None:
                yield from ((-1, trace) for trace in iter(lambda: next(batches, None), None))
            until = self.spent(begin) + ROUND_S

    def trace(self, number: int, trial: Trial, base: Judge) -> Trace:
        """Trace `number`: the same for all mutants, so that it is drawn once."""
        begin = time.monotonic()
        if number not in self.drawn:
            drawn = passing(f"{trial.seed}/{number}", trial.source.serves, base)
            self.drawn[number] = drawn
            if base.caps & Cap.EXACT and (seen := shown(drawn, base.run(drawn))):
                self.shown[number] = seen
        self.aside += time.monotonic() - begin
        return self.drawn[number]

    def close(self) -> None:
        for judge in ([self.base] if self.base else []) + self.others:
            judge.close()
        self.base, self.others = None, []

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def passing(seed: str, serves: tuple[str, ...], base: Judge) -> Trace:
    """A drawn trace that the original passes: operations at which it fails are left out, else its end."""
    rng = random.Random(seed)
    kinds = profiles_for(base.caps)
    own = list(dict.fromkeys(k for k in kinds if k in serves)) or kinds  # each as often as the others
    trace = draw(rng, own if rng.random() < OWN else kinds, base.caps)
    for left in range(REPAIRS, -1, -1):
        failed = base.quickly(trace).failed
        if failed is None:
            return trace
        rest = trace.ops[failed.step + 1 :] if left > 1 else ()
        trace = replace(trace, ops=trace.ops[: failed.step] + rest if left else ())
    return trace


def _judged(judge: Judge, trace: Trace, anew: bool = False) -> tuple[Verdict | None, int]:
    """How a mutant fails, and how many operations were judged."""
    try:
        report = judge.judge(trace, anew)
    except SubjectError as error:  # it answers what gallocheck.h does not know
        return Verdict("silent", "", str(error), 0, "run"), 0
    return report.failed, report.steps


def _passes(base: Judge, trace: Trace, failed: Verdict, anew: bool) -> bool:
    before = (base.quickly(trace) if base.caps & Cap.EXACT else base.judge(trace, anew)).failed
    return before is None or before.step > failed.step


def suspects(trial: Trial, library: str, out: Outcome) -> Iterator[Trace | None]:
    """Traces of lanes that part from the model; None after so many batches. No more where they cannot run."""
    seed = f"{trial.seed}/{trial.traces}"
    with suppress(SubjectError), Lanes(library, timeout=HANG_S) as lanes:
        for i in itertools.count():
            checked = lanes.check(batch(lanes.caps, f"{seed}/{i}"))
            out.operations += checked.operations
            yield from (suspect.trace for suspect in checked.suspects)
            if i % ROUND_BATCHES == ROUND_BATCHES - 1:
                yield None


@lru_cache(maxsize=256)
def batch(caps: Cap, seed: str) -> Batch:
    return draw_batch(seed, LANES, STEPS, caps)
