"""A known failure does not hide another one of its clause: the release that has it is run beside the subject."""

from __future__ import annotations

import re

import pytest
from gallocheck.fuzz.canary import path_of
from gallocheck.fuzz.catalogue import DEFECTS, Defect
from gallocheck.fuzz.expected import KNOWN, Expected, ExpectedList
from gallocheck.fuzz.hunt import Finding, Hunt
from gallocheck.fuzz.judge import Judge
from gallocheck.fuzz.replay import load
from gallocheck.model.records import Trace
from gallocheck.native.library import library_path

SOME = [next(d for d in DEFECTS if d.clause == clause) for clause in ("P10", "G3", "R6")]


def met(trace: Trace, subject: Judge, base: Judge | None, pattern: str) -> Finding:
    """The finding of a hunt that draws this trace alone, where everything like `pattern` is expected."""
    known = ExpectedList([Expected("K", "", "everything like it", [pattern], "")], KNOWN)
    hunt = Hunt(subject, seed=1, known=known, base=base, shrink_s=0.5)
    hunt.trace = lambda number: trace  # type: ignore[method-assign]
    (found,) = hunt.run(traces=1).findings
    return found


@pytest.mark.parametrize("defect", SOME, ids=lambda d: f"{d.number}-{d.clause}")
def test_a_look_alike_is_new(defect: Defect) -> None:
    planted, trace = str(library_path("planted")), load(path_of(defect)).trace
    with Judge(planted, defect.number) as subject, Judge(planted) as clean:
        failed = subject.judge(trace).failed
        assert failed is not None
        pattern = re.escape(failed.signature)
        alone = met(trace, subject, None, pattern)
        beside_itself = met(trace, subject, subject, pattern)
        beside_clean = met(trace, subject, clean, pattern)
    assert alone.known is not None and alone.like is None
    assert beside_itself.known is not None and beside_itself.like is None
    assert beside_clean.known is None and beside_clean.like is not None and beside_clean.like.id == "K"
