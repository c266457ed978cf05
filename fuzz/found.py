"""One failing trace: drawn, made small, told apart from others, written down.

A hunt (`gallocheck check`) and a campaign (`gallocheck fuzz`) do these the same way.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from ..model.records import Cap, Trace
from .deaths import HUNG
from .generate import RandomDraw
from .judge import Judge
from .profiles import SOURCES
from .replay import Replay
from .shrink import shrink
from .verdict import Verdict

SOON_S = 0.2  #: a hang may be told after this, at the soonest


class Small(NamedTuple):
    """A failing trace made small. `confirmed`: it failed twice alike in processes that had run nothing before."""

    verdict: Verdict
    trace: Trace
    confirmed: bool


def profiles_for(caps: Cap) -> list[str]:
    """The kinds of traces that a subject of these capabilities is drawn, each as often as it weighs."""
    return [p for p, x in SOURCES.items() if caps & x.needs for _ in range(x.weight)]


def turn(name: str, index: int, profiles: tuple[str, ...]) -> str:
    """The kind of trace `index` of the batch of that name: by turns, so that none waits long for its own.

    First each kind once, then rounds in which each comes as often as it is in `profiles`, evenly spread.
    """
    kinds = len(set(profiles))
    if index < kinds:
        return _turns(name, tuple(dict.fromkeys(profiles)))[index]
    number, at = divmod(index - kinds, len(profiles))
    return _turns(f"{name}/{number}", profiles)[at]


@lru_cache(maxsize=16)
def _turns(name: str, profiles: tuple[str, ...]) -> tuple[str, ...]:
    rng = random.Random(f"{name}/turns")
    places = []
    for kind, times in Counter(profiles).items():
        begin = rng.random()
        places += [((begin + k) / times, kind) for k in range(times)]
    return tuple(kind for _, kind in sorted(places))


def draw(rng: random.Random, profiles: Sequence[str], caps: Cap) -> Trace:
    """A trace of one of `profiles`; the same state of `rng` gives the same trace."""
    profile = profiles[rng.randrange(len(profiles))]
    return SOURCES[profile].draw(RandomDraw(rng), caps)


def smallest(
    judge: Judge,
    trace: Trace,
    failed: Verdict,
    shrink_s: float,
    also: Callable[[Trace, Verdict], bool] = lambda trace, verdict: True,
) -> Small:
    """Shrinks a trace that fails as `failed` for `shrink_s` seconds, and replays it twice in new processes.

    A smaller trace must fail with the same signature, and `also` must hold of it.
    """
    shown = failed  # how the smallest trace so far fails

    def same(candidate: Trace) -> bool:
        nonlocal shown
        verdict = judge.judge(candidate).failed
        if verdict is None or verdict.signature != failed.signature or not also(candidate, verdict):
            return False
        shown = verdict
        return True

    def both(small: Trace) -> tuple[Verdict | None, bool]:
        """How it fails in a new process, and whether twice alike."""
        again = [judge.judge(small, anew=True).failed for _ in range(2)]
        return again[0], all(v is not None and v.signature == failed.signature for v in again)

    hung = HUNG in failed.message
    with judge.hasty(_soon(judge, trace, failed)) if hung else nullcontext():
        small = shrink(trace, same, shrink_s)
    again, confirmed = both(small)
    if hung and not confirmed:  # what was slow was taken for a hang
        small = shrink(trace, same, shrink_s)
        again, confirmed = both(small)
    # where a new process shows something else, it is still this that was found
    return Small((again if confirmed else None) or shown, small, confirmed)


def _soon(judge: Judge, trace: Trace, failed: Verdict) -> float:
    """Seconds after which an operation of a trace that hangs may be taken to: many times what all before take.
    To wait as long as usual for each smaller trace would leave time for few."""
    begin = time.monotonic()
    judge.run(replace(trace, ops=trace.ops[: failed.step]))
    return max(SOON_S, 20 * (time.monotonic() - begin))


def shape(trace: Trace) -> str:
    """What traces of the same fault have in common when they are small: the kinds of operations in order,
    and how many tensors and devices there are."""
    kinds = " ".join(op.kind.name.lower() for op in trace.ops)
    tensors = sum(len(graph.tensors) for graph in trace.graphs)
    return f"{kinds} / {tensors} tensors / {len(trace.setup.types)} devices"


def replay_of(verdict: Verdict, trace: Trace, subject: str, seed: int, version: str) -> Replay:
    """The replay file's content. `subject`: how it describes itself; `version`: of gallocheck."""
    return Replay(
        clause=verdict.clause,
        verdict=verdict.sort,
        message=verdict.message,
        subject=subject,
        trace=trace,
        step=verdict.step,
        gallocheck=version,
        seed=seed,
        expected=verdict.expected or None,
        seen=verdict.seen or None,
    )
