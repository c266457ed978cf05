"""Whatever a subject shows, the checker answers with verdicts: it never fails itself.

Runs of the bundled subject are altered at random, in places and observations, and judged as those of
subjects of several capabilities.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from gallocheck.fuzz.checker import Checker
from gallocheck.fuzz.draw import RandomDraw
from gallocheck.fuzz.fresh import Fresh
from gallocheck.fuzz.generate import PROFILES, draw_trace
from gallocheck.model.records import Cap, Observation, OpFlag, Place, Status, Trace, Trouble
from gallocheck.native.worker import LocalRunner, Run, StepSeen

from tests.shorthand import bundled

NUMBERS = (0, 1, 7, 2**32, 2**63, 2**64 - 1)
ROWS = ("used", "reported", "measured", "owned")
COUNTS = ("generation", "shrink_generation", "digest", "allocations", "bad_offset")
SUBJECTS = {
    "exact": None,  # what the bundled subject declares
    "plain": Cap.PLAN,
    "pair": Cap.PLAN | Cap.RESIZABLE | Cap.BREAKDOWN,
    "group behind a scheduler": Cap.PLAN | Cap.GROUP | Cap.SCHED,
}


def other_observation(rng: random.Random, obs: Observation) -> Observation:
    name = rng.choice((*ROWS, *COUNTS, "status", "trouble", "bad_node", "asked"))
    value: Any = rng.choice(NUMBERS)
    if name == "status":
        value = rng.choice(list(Status))
    elif name == "trouble":
        value = Trouble(rng.randrange(1, 32))
    elif name == "bad_node":
        value = rng.choice((-5, 0, 99))
    elif name == "asked":
        value = tuple(tuple(rng.choice(NUMBERS) for _ in range(rng.randrange(17))) for _ in obs.asked)
    elif name in ROWS:
        value = tuple(rng.choice((x, *NUMBERS)) for x in getattr(obs, name))
    return replace(obs, **{name: value})


def other_step(rng: random.Random, step: StepSeen) -> StepSeen:
    obs, looks, places = step.obs, dict(step.looks), step.places
    how = rng.randrange(4)
    if how == 0 and places:
        at = rng.randrange(len(places))
        wrong = Place(rng.choice((-7, -1, 0, 1, 2, 9)), rng.choice((-1, 0, 1, 15, 99)), rng.choice(NUMBERS))
        places = (*places[:at], wrong, *places[at + 1 :])
    elif how == 1 and looks:
        number = rng.choice(sorted(looks))
        looks[number] = other_observation(rng, looks[number])
    else:
        obs = other_observation(rng, obs)
    return StepSeen(obs, looks, places)


def altered(rng: random.Random, run: Run) -> Run:
    """One step at least is another, at times the rest is missing."""
    at = rng.randrange(len(run.steps)) if run.steps else 0
    steps = [other_step(rng, s) if i == at or rng.random() < 0.1 else s for i, s in enumerate(run.steps)]
    return replace(run, steps=steps[:at] if rng.random() < 0.1 else steps)


@pytest.mark.parametrize("what", SUBJECTS)
def test_the_checker_bears_anything(what: str) -> None:
    blamed: set[str] = set()
    with bundled() as runner:
        caps = SUBJECTS[what] or runner.capabilities
        for seed in range(120):
            rng = random.Random(f"{what}/{seed}")
            trace = draw_trace(RandomDraw(rng), rng.choice(PROFILES), caps)
            trace = replace(trace, ops=tuple(o for o in trace.ops if not o.flags & OpFlag.UNCHECKED))
            failed = Checker(trace, caps, Fresh(sometimes(rng, runner))).check(
                altered(rng, runner.run(trace))
            )
            blamed |= {v.clause for v in failed.verdicts}
    assert len(blamed) >= 8, blamed


def sometimes(rng: random.Random, runner: LocalRunner) -> Any:
    """Its fresh plans are nonsense half of the time."""

    def run(trace: Trace) -> Run:
        seen = runner.run(trace)
        return altered(rng, seen) if rng.random() < 0.5 else seen

    return run
