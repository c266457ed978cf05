"""Which clauses a subject is held to."""

from __future__ import annotations

from gallocheck.fuzz.applies import applies, declared
from gallocheck.model.records import Cap
from gallocheck.spec.clauses import CLAUSES

PLAIN = Cap.PLAN | Cap.SCHED


def test_without_a_measure_p12_alone_does_not_apply() -> None:
    """It could never be exercised, and the check could never be green."""
    with_it = {c.id for c in CLAUSES if applies(c.id, PLAIN)}
    without = {c.id for c in CLAUSES if applies(c.id, PLAIN | Cap.NO_MEASURE)}
    assert with_it - without == {"P12"} and without < with_it


def test_what_is_lacking_is_said() -> None:
    assert declared(PLAIN | Cap.NO_MEASURE) == "plan sched no-measure"
