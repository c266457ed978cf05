"""The quick look at a run lets nothing pass that the judge does not."""

from __future__ import annotations

import random

import pytest
from gallocheck.fuzz.canary import path_of
from gallocheck.fuzz.catalogue import DEFECTS
from gallocheck.fuzz.found import draw, profiles_for
from gallocheck.fuzz.judge import Judge
from gallocheck.fuzz.quick import agrees
from gallocheck.fuzz.replay import load
from gallocheck.native.library import library_path


def test_no_planted_defect_passes_on_its_kept_trace() -> None:
    """But for some of P: the judge compares with a new allocator's plan of the graph, too."""
    passed = []
    with Judge(str(library_path("planted")), timeout=2.0) as judge:
        for defect in DEFECTS:
            judge.plant(defect.number)
            trace = load(path_of(defect)).trace
            failed = judge.quickly(trace).failed
            if failed is None and defect.clause[0] == "P":
                passed.append(defect.number)
                continue
            assert failed is not None and failed.clause == defect.clause, defect
    assert len(passed) < 12, passed


@pytest.mark.parametrize("seed", range(3))
def test_the_bundled_subject_passes(seed: int) -> None:
    with Judge(str(library_path("bundled"))) as judge:
        profiles, passed = profiles_for(judge.caps), 0
        for i in range(40):
            trace = draw(random.Random(f"quick {seed}/{i}"), profiles, judge.caps)
            run = judge.run(trace)
            if run.death is None:  # without the generation check memory that is gone is touched (R12)
                assert agrees(trace, run), i
                passed += 1
        assert passed > 20
