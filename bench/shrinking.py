"""Our shrinker beside Hypothesis's own: `python bench/shrinking.py [--every 12] [--seed 1] [--cap 60] [DEFECT...]`.

For each planted defect Hypothesis draws traces until one breaks the defect's clause. From this one trace both
go on, with the same condition (the failure has the same signature: clause, operation, words): Hypothesis with
its default budget, which `--cap` seconds may cut short; ours with what `gallocheck fuzz` gives one finding.
Seconds are processor time, the subject's too.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import hypothesis
from gallocheck.fuzz.canary import SHOWS, layer_of
from gallocheck.fuzz.catalogue import DEFECTS, Defect
from gallocheck.fuzz.draw import HypothesisDraw
from gallocheck.fuzz.found import smallest
from gallocheck.fuzz.judge import Judge
from gallocheck.fuzz.legal import legal
from gallocheck.fuzz.profiles import SOURCES
from gallocheck.fuzz.verdict import Verdict
from gallocheck.fuzz.words import describe_trace
from gallocheck.model.records import Cap, Trace
from gallocheck.native.library import library_path
from hypothesis import HealthCheck, Phase, strategies
from timing import spent

SHRINK_S = 10.0  #: --shrink-time of gallocheck fuzz


class Size(NamedTuple):
    """Of a trace: operations, tensors, devices; and seconds that it took to come to it."""

    operations: int
    tensors: int
    devices: int
    seconds: float

    @classmethod
    def of(cls, trace: Trace, seconds: float) -> Size:
        tensors = sum(len(graph.tensors) for graph in trace.graphs)
        return cls(len(trace.ops), tensors, len(trace.setup.types), seconds)

    def __str__(self) -> str:
        return f"{self.operations:3} {self.tensors:3} {self.devices:2} {self.seconds:6.1f} s"


class Found(NamedTuple):
    """The first trace that fails, how it does, and when it was found."""

    trace: Trace
    failed: Verdict
    at: float


@strategies.composite
def traces(draw: Callable[[Any], Any], kinds: tuple[str, ...], caps: Cap) -> Trace:
    hypothesis_draw = HypothesisDraw(draw)
    return SOURCES[hypothesis_draw.choice(kinds)].draw(hypothesis_draw, caps)


class TimeIsUp(BaseException):
    """No Exception: Hypothesis would take it for a failure of the test."""


class Condition:
    """Whether a trace fails as the first one that broke `clause` did. Raises TimeIsUp after `cap` seconds
    without one, and `cap` seconds after it. `small`: the last that failed, which is the smallest so far."""

    def __init__(self, judge: Judge, clause: str, cap: float) -> None:
        self.judge, self.clause, self.cap = judge, clause, cap
        self.found: Found | None = None
        self.small: Trace | None = None
        self.until = spent() + cap

    def __call__(self, trace: Trace) -> bool:
        if spent() >= self.until:
            raise TimeIsUp
        failed = self.judge.judge(trace).failed if legal(trace) else None
        if failed is None:
            return False
        if self.found is None and failed.clause == self.clause:
            self.found = Found(trace, failed, spent())
            self.until = self.found.at + self.cap
        if self.found is None or failed.signature != self.found.failed.signature:
            return False
        self.small = trace
        return True


def by_hypothesis(judge: Judge, defect: Defect, seed: int, cap: float) -> tuple[Found, Trace] | None:
    """What it found first, and what it made of it; None where it found nothing within `cap` seconds."""
    condition = Condition(judge, defect.clause, cap)
    settings = hypothesis.settings(
        max_examples=10_000_000,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],  # the others explain, at ten times the cost
        suppress_health_check=list(HealthCheck),
    )
    kinds = tuple(p for p in SHOWS[layer_of(defect)] if judge.caps & SOURCES[p].needs)
    with contextlib.suppress(TimeIsUp):
        condition.small = hypothesis.find(
            traces(kinds, judge.caps), condition, settings=settings, random=Random(seed)
        )
    if condition.found is None or condition.small is None:
        return None
    return condition.found, condition.small


def compare(judge: Judge, defect: Defect, seed: int, cap: float, show: bool) -> tuple[Size, Size] | None:
    """(ours, Hypothesis's); None where it found nothing."""
    judge.plant(defect.number)
    came = by_hypothesis(judge, defect, seed, cap)
    if came is None:
        print(f"{defect.number:3} {defect.clause:4} Hypothesis finds nothing in {cap:.0f} s", flush=True)
        return None
    found, by_them = came
    theirs = Size.of(by_them, spent() - found.at)
    begin = spent()
    small = smallest(judge, found.trace, found.failed, SHRINK_S)
    ours = Size.of(small.trace, spent() - begin)
    note = "" if ours[:2] <= theirs[:2] else "  longer"
    before = Size.of(found.trace, 0.0)
    print(f"{defect.number:3} {defect.clause:4} {before.operations:4} {before.tensors:4}  |"
          f" {ours}  | {theirs}{note}", flush=True)  # fmt: skip
    if show:
        print(found.failed.signature, describe_trace(small.trace), describe_trace(by_them), sep="\n\n")
    return ours, theirs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("defects", type=int, nargs="*", help="numbers of planted defects; none: all")
    parser.add_argument("--every", type=int, default=1, help="look at every so many-th of them")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--cap", type=float, default=60.0, help="seconds for Hypothesis to find, and to shrink"
    )
    parser.add_argument("--show", action="store_true", help="print what both come to")
    asked = parser.parse_args()
    print("operations, tensors, devices and seconds: of what was found | ours | Hypothesis's")
    with Judge(str(library_path("planted")), timeout=2.0) as judge:
        chosen = [d for d in DEFECTS if not asked.defects or d.number in asked.defects]
        pairs = [compare(judge, d, asked.seed, asked.cap, asked.show) for d in chosen[:: asked.every]]
    both = [pair for pair in pairs if pair is not None]
    if not both:
        return 1
    ours, theirs = ([pair[side] for pair in both] for side in (0, 1))
    for name, values in (("ours", ours), ("Hypothesis", theirs)):
        at = {field: [getattr(size, field) for size in values] for field in Size._fields}
        print(f"{name:10} of {len(both)}: median " + ", ".join(
            f"{statistics.median(v):.3g} {field}" for field, v in at.items()
        ) + f"; at most {max(at['operations'])} operations, {max(at['seconds']):.0f} s")  # fmt: skip
    longer = sum(o.operations > t.operations for o, t in both)
    shorter = sum(o.operations < t.operations for o, t in both)
    print(f"operations: ours fewer in {shorter}, more in {longer} of {len(both)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
