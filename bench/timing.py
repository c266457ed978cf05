"""Things measured side by side: they take turns, and what counts is the processor time that each takes.

Machines here are shared: time by the clock depends on what others do. Processor time includes
that of the subject's process.
"""

from __future__ import annotations

import os
import resource
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

Round = Callable[[], int]  #: does some work, returns how many operations that was
_TICK = os.sysconf("SC_CLK_TCK")


def spent() -> float:
    """Seconds of processor time that this process and all below it have taken, ended ones too."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    alive = sum(_spent(pid) for pid in _below(os.getpid()))
    return alive + ended.ru_utime + ended.ru_stime + time.process_time()


def _below(process: int) -> list[int]:
    children = Path(f"/proc/{process}/task/{process}/children")
    found = [int(pid) for pid in children.read_text().split()] if children.exists() else []
    return found + [grandchild for pid in found for grandchild in _below(pid)]


def _spent(process: int) -> float:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / _TICK


def side_by_side(rounds: Mapping[str, Round], seconds: float) -> dict[str, list[float]]:
    """Operations a second of processor time of each, one value a turn, until the time by the clock is over."""
    rates: dict[str, list[float]] = {name: [] for name in rounds}
    end = time.monotonic() + seconds
    while time.monotonic() < end or any(len(r) < 3 for r in rates.values()):
        for name, work in rounds.items():
            rates[name].append(rate(work, 1.0))
    return rates


def rate(work: Round, seconds: float) -> float:
    """Operations a second of processor time, over at least so many of these."""
    begin, done = spent(), 0
    while True:
        done += work()
        taken = spent() - begin
        if taken >= seconds:
            return done / taken


def ratio(rates: Mapping[str, list[float]], a: str, b: str) -> float:
    """How many times as fast `a` is as `b`: the median over the turns."""
    return statistics.median(x / y for x, y in zip(rates[a], rates[b], strict=True))


def resident() -> int:
    """Bytes of memory that this process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
