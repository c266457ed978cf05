"""Things measured side by side on one core, so that whatever else the machine does hits all of them alike."""

from __future__ import annotations

import os
import resource
import statistics
import time
from collections.abc import Callable, Mapping

Round = Callable[[], int]  #: does some work, returns how many operations that was


def one_core() -> int:
    """This process, and those that it starts from now on, run on one core: its number."""
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return core


def side_by_side(rounds: Mapping[str, Round], seconds: float) -> dict[str, list[float]]:
    """Operations a second of each, one value a turn; they take turns until the time is over."""
    rates: dict[str, list[float]] = {name: [] for name in rounds}
    end = time.monotonic() + seconds
    while time.monotonic() < end or any(len(r) < 3 for r in rates.values()):
        for name, work in rounds.items():
            begin = time.perf_counter()
            done = work()
            rates[name].append(done / (time.perf_counter() - begin))
    return rates


def ratio(rates: Mapping[str, list[float]], a: str, b: str) -> float:
    """How many times as fast `a` is as `b`: the median over the turns."""
    return statistics.median(x / y for x, y in zip(rates[a], rates[b], strict=True))


def resident() -> int:
    """Bytes of memory that this process has now."""
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()
