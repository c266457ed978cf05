"""Run a trace on a subject and judge it: the one function that everything else calls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from ..model.records import Cap, Trace
from ..native.worker import Run, Worker
from . import counted, differential, options, quick
from .checker import Checker, Report
from .fresh import Fresh


class Judge:
    """A subject in its process, and the fresh plans that are known of it.

    `library`: path of a subject library. `defect`: number of a planted defect (0: none).
    Raises SubjectError where the library cannot be used. A context manager.
    """

    def __init__(self, library: str, defect: int = 0, timeout: float = 5.0) -> None:
        self.worker = Worker(library, defect=defect, timeout=timeout)
        self.caps: Cap = self.worker.capabilities
        self.describe: str = self.worker.describe
        self.forget()

    def forget(self) -> None:
        """Nothing is known of the subject's plans any more."""
        self.fresh = Fresh(self.worker.run, compact=not self.caps & Cap.EMPTY_CHUNKS)

    def plant(self, defect: int) -> None:
        """Goes on with another planted defect, in a new process. Raises SubjectError where there is none such."""
        self.worker.plant(defect)
        self.forget()

    def run(self, trace: Trace, anew: bool = False) -> Run:
        """What the subject shows; `anew`: in a process that has run nothing before."""
        return self.worker.run(trace, fresh=anew)

    @contextmanager
    def hasty(self, seconds: float) -> Iterator[None]:
        """Meanwhile an operation hangs after so many seconds, where it does not sooner."""
        before = self.worker.timeout
        self.worker.timeout = min(seconds, before)
        try:
            yield
        finally:
            self.worker.timeout = before

    def judge(self, trace: Trace, anew: bool = False) -> Report:
        """Runs and judges; the report's verdicts are in the order of the trace."""
        return self.judged(trace, self.run(trace, anew), anew)

    def judged(self, trace: Trace, run: Run, anew: bool = False) -> Report:
        """Judges a run of the trace; `anew`: its variants run in processes that have run nothing before."""
        checker = Checker(trace, self.caps, self.fresh)
        report = checker.check(run)
        if differential.concerns(trace, self.caps):
            self.beside(trace, run, anew, checker, report)
        if options.concerns(trace, self.caps):  # W8
            more, tally = options.compare(trace, run, lambda t: self.run(t, anew), self.caps, checker.at + 1)
            report.verdicts = differential.merged(report.verdicts, more)
            report.tally += tally
        return report

    def quickly(self, trace: Trace) -> Report:
        """As `judge`, but where a run is all that the model says nothing is counted (quick.py)."""
        if not self.caps & Cap.EXACT:
            return self.judge(trace)
        run = self.run(trace)
        if quick.agrees(trace, run):
            return Report(statuses=[seen.obs.status for seen in run.steps])
        return self.judged(trace, run)

    def beside(self, trace: Trace, run: Run, anew: bool, checker: Checker, report: Report) -> None:
        """S: adds what only the other strategies' runs of the trace show."""
        left_at = next((x.left_at for x in checker.layers if isinstance(x, counted.Books)), None)
        more, tally = differential.compare(
            trace, run, lambda t: self.run(t, anew), self.caps, left_at, checker.at + 1
        )
        report.verdicts = differential.merged(report.verdicts, more)
        report.tally += tally

    def close(self) -> None:
        self.worker.close()

    def __enter__(self) -> Judge:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()
