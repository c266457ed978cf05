"""R13 over all allocators: what they say that they own of each device, and the pools' bytes, is what is in use there.

The clauses of a pair count the bytes of its own buffers once (spec/resizable.py); here nothing is left
over that belongs to nobody, and nothing is counted by two pairs.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..model.records import Cap, Kind, Op, OpFlag, Status, Trace, has
from ..native.worker import StepSeen


class Breakdown:
    """Follows what every living allocator owns, by type; a type over several devices counts on each."""

    def __init__(self, trace: Trace, caps: Cap) -> None:
        self.types = trace.setup.types
        by_sched = any(op.kind == Kind.NEW and has(op.flags, OpFlag.BY_SCHED) for op in trace.ops)
        # a foreign scheduler has memory beside its allocator's; contexts make allocators of their own
        exact = bool(caps & Cap.EXACT) or not by_sched
        self.checks = bool(caps & Cap.BREAKDOWN) and exact and not trace.setup.contexts
        self.owned: dict[int, tuple[int, ...]] = {}

    def step(self, op: Op, seen: StepSeen) -> Iterator[tuple[str, str]]:
        if not self.checks:
            return
        self.note(op, seen)
        for k, kind in enumerate(self.types):
            on = [t for t, other in enumerate(self.types) if k in other.devices(t)]
            said = sum(own[t] for own in self.owned.values() for t in on)
            said += seen.obs.pooled[k] if seen.obs.pooled else 0
            if not kind.meta and said != seen.obs.used[k]:
                yield (
                    "R13",
                    f"of device {k} allocators and pools own {said} bytes, in use are {seen.obs.used[k]}",
                )
                return

    def note(self, op: Op, seen: StepSeen) -> None:
        obs = seen.obs
        if op.kind == Kind.FREE and obs.status == Status.DONE:
            self.owned.pop(op.alloc, None)
        new = op.kind == Kind.NEW and obs.status == Status.DONE
        own = (
            op.kind <= Kind.RESET
            and op.kind not in (Kind.NEW, Kind.CAPACITY)  # what a refused NEW shows is nobody's
            and op.alloc in self.owned
            and bool(obs.owned)
        )
        if new or own:
            self.owned[op.alloc] = obs.owned
        self.owned.update((n, look.owned) for n, look in seen.looks.items() if n in self.owned)
