"""A walk of one machine, brought about by a subject's operations; and whether it is the same walk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...model.domain import Ints
from ...model.records import Observation, Trace
from ...model.stack import Stack
from ...spec import bounded
from ...spec.branches import Covered, Way
from ...spec.machine import Machine
from ..legal import why_illegal


class Unlike(Exception):
    """The walk cannot be brought about this way. The text says why."""


@dataclass(frozen=True)
class Draft:
    """`at[i]`: number of the trace's operation that is operation i of the walk."""

    trace: Trace
    at: tuple[int, ...]


@dataclass(frozen=True)
class Made:
    """A trace that goes as the walk does. `ways`: what the reference takes at the walk's last operation."""

    trace: Trace
    step: int
    ways: frozenset[Way]


def outs(m: Machine, walk: bounded.Trace) -> list[Any]:
    """What each operation of the walk gives, by the machine over ints."""
    model, s, found = m.model(Ints, *walk.config), walk.start, []
    for op in walk.ops:
        s, out = model.step(s, op)
        found.append(out)
    return found


def same_status(op: Any, out: Any, seen: Observation) -> bool:
    return bool(int(out.status) == seen.status)


def made(
    m: Machine,
    walk: bounded.Trace,
    draft: Draft,
    same: Callable[[Any, Any, Observation], bool] = same_status,
) -> Made:
    """The draft, where the reference stack shows after each of its operations what the machine says.

    Raises Unlike where it does not, or where the trace is no legal one.
    """
    if fault := why_illegal(draft.trace):
        raise Unlike(fault)
    expected = dict(zip(draft.at, zip(walk.ops, outs(m, walk), strict=True), strict=True))
    stack, ways = Stack(draft.trace.setup, list(draft.trace.graphs)), frozenset[Way]()
    for n, op in enumerate(draft.trace.ops):
        if n == draft.at[-1]:
            with Covered() as covered:
                seen = stack.step(op)
                for number in stack.session.allocs:  # as a run looks at all of them
                    stack.look(number)
                ways = frozenset(covered.ways())
        else:
            seen = stack.step(op)
        if n in expected and not same(*expected[n], seen):
            raise Unlike(f"operation {n}, {op.kind.name}: {expected[n][1]} and {seen}")
    return Made(draft.trace, draft.at[-1], ways)
