"""The whole check as a Hypothesis test, and what a campaign found as an example of it.

    test_whole_check = with_kept(whole_check)          in a test module: pytest, HypoFuzz and fuzz_one_input drive it
    remember(trace)                         Hypothesis replays it first from now on

Hypothesis keeps an example as the choices that its strategy makes. `whole` has a rare first choice which says
that a trace follows as it is, so each trace can be written down as two choices, whoever made it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from hypothesis.database import ExampleDatabase

from ..model.records import Trace
from . import target
from .draw import HypothesisDraw
from .kept import kept, packed, unpacked
from .legal import legal

_KINDS = 255  #: the first choice: this one says that a packed trace follows, below it one is drawn
_MOST_BYTES = 8000  #: Hypothesis takes no more than 8192 bytes of choices


class ExampleError(Exception):
    """A trace cannot become an example. One sentence."""


@st.composite
def whole(draw: Callable[[Any], Any]) -> Trace:
    """Traces of all that the subject of target.py can do, and packed ones."""
    if draw(st.integers(0, _KINDS)) == _KINDS:
        trace = unpacked(draw(st.binary(max_size=_MOST_BYTES)))
        if trace is not None:
            return trace
    trace = target.trace_from(HypothesisDraw(draw), target.subject().caps)
    assume(legal(trace))  # nearly all are
    return trace


# HypoFuzz takes no test that lets tests be nested
@settings(
    deadline=None,
    max_examples=40,
    suppress_health_check=[h for h in HealthCheck if h != HealthCheck.nested_given],
)
@given(trace=whole())
def whole_check(trace: Trace) -> None:
    """The subject keeps the contract on every trace."""
    target.check(trace)


def with_kept(test: Callable[[Trace], None]) -> Callable[[Trace], None]:
    """The Hypothesis test `test` of a trace, with kept traces (kept.py) as its explicit examples: they run first."""
    for trace in reversed(kept()):  # the last one added is the first that runs
        test = example(trace=trace)(test)
    return test


def remember_all(traces: Iterable[Trace]) -> int:
    """Remembers those that can be, and says how many."""
    known = 0
    for trace in traces:
        with suppress(ExampleError, OSError):
            remember(trace)
            known += 1
    return known


def remember(trace: Trace, database: ExampleDatabase | None = None) -> None:
    """Puts a trace into Hypothesis's example database (the default one: .hypothesis/ in the working directory),
    under whole_check. Raises ExampleError where the trace is too long, or this Hypothesis keeps examples otherwise.
    """
    raw = packed(trace)
    if len(raw) > _MOST_BYTES:
        raise ExampleError(f"A trace of {len(raw)} bytes is too long for Hypothesis: make it smaller first.")
    try:
        from hypothesis.database import choices_to_bytes
        from hypothesis.internal.reflection import function_digest

        key = function_digest(whole_check.hypothesis.inner_test)  # type: ignore[attr-defined]
        example = choices_to_bytes((_KINDS, raw))
    except (ImportError, AttributeError) as error:
        raise ExampleError(
            f"This version of Hypothesis keeps its examples in another way ({error})."
        ) from None
    kept_in = database or settings.get_profile(settings.get_current_profile_name()).database
    if kept_in is not None:
        kept_in.save(key, example)
