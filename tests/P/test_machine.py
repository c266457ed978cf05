"""P: traces of one allocator and one graph, and of sizes near the largest integer, on the bundled subject."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from gallocheck.fuzz.draw import RandomDraw
from gallocheck.fuzz.generate import draw_trace
from gallocheck.fuzz.strategies import traces
from gallocheck.model.records import Trace
from gallocheck.native.worker import LocalRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.shorthand import bundled, judged

P = tuple(f"P{n}" for n in range(1, 15))


@pytest.fixture(scope="module")
def runner() -> Iterator[LocalRunner]:
    with bundled() as one:
        yield one


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(trace=st.one_of(traces("plan"), traces("huge")))
def test_planning_keeps_the_contract(runner: LocalRunner, trace: Trace) -> None:
    report = judged(runner, trace)
    assert report.failed is None, report.failed
    assert report.steps == len(trace.ops)


def test_every_clause_of_p_is_exercised(runner: LocalRunner) -> None:
    tally: Counter[str] = Counter()
    for seed in range(150):
        report = judged(runner, draw_trace(RandomDraw(seed), "huge" if seed % 5 == 0 else "plan"))
        assert report.failed is None, (seed, report.failed)
        tally += report.tally
    assert [clause for clause in P if not tally[clause]] == []
