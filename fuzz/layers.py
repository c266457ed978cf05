"""The layers whose operations are judged by books of their own, not as plain allocators or pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Protocol

from ..model.records import Cap, Op, PoolKind, Strategy, Trace
from ..native.worker import StepSeen
from . import captures, contexts, counted, meta, pools, scheduled, schedulers, server
from .fresh import Fresh


class Layer(Protocol):
    """One layer's books on a session: follows what a subject showed, and says what it breaks."""

    def takes(self, op: Op, seen: StepSeen) -> bool:
        """Whether the operation is this layer's."""

    def step(self, op: Op, seen: StepSeen) -> Iterator[tuple[str, str]]:
        """(clause, message) of everything that the step breaks, the most telling first."""

    def watch(self, op: Op, seen: StepSeen) -> Iterator[tuple[str, str]]:
        """The same for what an operation of another layer shows of this one."""

    def tally(self, op: Op, seen: StepSeen) -> Counter[str]:
        """How often the step exercised each clause; asked before `step`."""

    def drives(self, op: Op) -> bool:
        """Whether the operation would be this layer's: asked of one that the subject died in."""

    def blame(self, op: Op) -> str:
        """The clause that a death during `op` breaks; '' where the death is what must happen."""


def layers(trace: Trace, caps: Cap, fresh: Fresh) -> list[Layer]:
    """The books of a session; the first layer that takes an operation judges it."""
    behind = schedulers.Books if caps & Cap.EXACT else scheduled.Books
    found: list[Layer] = [behind(trace, caps, fresh)]
    if trace.setup.strategy != Strategy.PAIR:
        found.append(counted.Books(trace, caps, fresh))
    if trace.setup.pool != PoolKind.NO_POOL:
        found.append(pools.Books(trace, caps, fresh))
    if any(op.kind in captures.CAPTURE_OPS for op in trace.ops):
        found = [captures.Aside(trace, caps, fresh), *found]
    if any(c.config >= 0 for c in trace.setup.contexts):  # before all others: their allocators are their own
        found = [contexts.Books(trace, caps, fresh), server.Books(trace, caps, fresh), *found]
    return found


def watches(trace: Trace, caps: Cap, fresh: Fresh) -> list[Layer]:
    """Books that take no operation, and are told of every one; what they find is told first."""
    found: list[Layer] = []
    if any(kind.meta for kind in trace.setup.types):
        found.append(meta.Books(trace, caps, fresh))
    if any(op.kind in captures.CAPTURE_OPS for op in trace.ops):
        found.append(captures.Books(trace, caps, fresh))
    return found
