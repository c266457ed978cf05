"""C: allocators that are driven through a tree's scheduler (C1, C2, C5).

The scheduler splits a graph and adds copies of its own, so requirements are its
business; what is judged is statuses, work in flight, readings and content.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from ..model import oracle
from ..model.records import Cap, Graph, Kind, Observation, Op, OpFlag, Status, Trace, Trouble
from ..native.worker import StepSeen
from .fresh import Fresh


@dataclass
class Behind:
    """One allocator behind a scheduler."""

    config: int
    shares: bool = False  # it became an owner or borrower: only then it has readings on every tree
    in_flight: bool = False
    failed: bool = False
    bound: Graph | None = None
    last: Observation | None = None


class Books:
    """Which allocators are behind a scheduler, and what was asked of them."""

    def __init__(self, trace: Trace, caps: Cap, fresh: Fresh) -> None:
        self.trace, self.caps, self.fresh = trace, caps, fresh
        self.known: dict[int, Behind] = {}

    def drives(self, op: Op) -> bool:
        if op.kind == Kind.NEW:
            return bool(op.flags & OpFlag.BY_SCHED)
        return op.kind <= Kind.RESET and op.kind != Kind.CAPACITY and op.alloc in self.known

    def takes(self, op: Op, seen: StepSeen) -> bool:
        return self.drives(op) and (op.kind != Kind.NEW or seen.obs.status == Status.DONE)

    def watch(self, op: Op, seen: StepSeen) -> Iterator[tuple[str, str]]:
        """Nothing that others do is seen of a scheduler."""
        yield from ()

    def step(self, op: Op, seen: StepSeen) -> Iterator[tuple[str, str]]:
        """(clause, message) of what the step breaks."""
        obs = seen.obs
        if op.kind == Kind.NEW and obs.status == Status.DONE:
            self.known[op.alloc] = Behind(op.other, last=obs)
        b = self.known.get(op.alloc)
        if b is None or obs.status == Status.MISUSE:
            return
        yield from self.memory(op, obs, b)
        yield from self.statuses(op, obs, b)
        if op.kind == Kind.MEASURE and obs.status == Status.DONE:
            yield from self.measured(op, obs, b)
        if op.kind not in (Kind.FREE, Kind.OWN, Kind.BORROW):  # who attaches reads the pair's counters
            yield from self.readings(obs, b)
        self.note(op, obs, b)

    def memory(self, op: Op, obs: Observation, b: Behind) -> Iterator[tuple[str, str]]:
        if obs.trouble & Trouble.FREED_BUSY:
            yield "C1", "a buffer was freed while work in flight used it"
        if obs.trouble & Trouble.BAD_PREALLOC:
            yield "P14", f"preallocated tensor {obs.bad_node} was overwritten at byte {obs.bad_offset}"
        if obs.trouble & Trouble.BAD_GUARD:
            yield "P3", "bytes behind the end of a buffer were written"
        if obs.trouble & Trouble.BAD_SOURCE:
            yield "P1", f"source {obs.bad_src} of node {obs.bad_node} holds wrong bytes"
        elif obs.trouble & Trouble.BAD_OUTPUT:
            yield "P5", f"output {obs.bad_node} holds wrong bytes"
        done = op.kind == Kind.COMPUTE and obs.status == Status.DONE and not op.flags & OpFlag.ASYNC
        want = oracle.digest(b.bound) if done and b.bound is not None and not obs.trouble else None
        if want is not None and obs.digest != want:
            yield "P5", f"the outputs' digest is {obs.digest:#x}, it must be {want:#x}"

    def statuses(self, op: Op, obs: Observation, b: Behind) -> Iterator[tuple[str, str]]:
        """C2: a reservation that failed for good is told to the caller; a graph of no bytes needs none."""
        everywhere = op.fail_types == (1 << len(self.trace.setup.types)) - 1
        if (
            everywhere
            and obs.allocations
            and obs.status == Status.DONE
            and op.kind in (Kind.RESERVE, Kind.ALLOC)
            and any(map(sum, self.need(op, b) or ()))
        ):
            yield "C2", "every allocation failed, but the caller was told that it succeeded"

    def need(self, op: Op, b: Behind) -> tuple[tuple[int, ...], ...] | None:
        """What a new scheduler asks for to reserve the graph: bytes by type and chunk."""
        return self.fresh.plan(self.trace.setup, b.config, self.trace.graphs[op.graph], by_sched=True).need

    def measured(self, op: Op, obs: Observation, b: Behind) -> Iterator[tuple[str, str]]:
        """P12: a measure gives what reserving the same graph through a new scheduler gives."""
        need = self.need(op, b)
        slots = self.trace.setup.configs[b.config]
        first = [k for k, t in enumerate(slots) if slots.index(t) == k]
        have = [obs.measured[k] for k in first]
        want = [sum(need[slots[k]]) for k in first] if need is not None else have
        if have != want:
            yield "P12", f"measure gives {have} bytes by slot, reserve gives {want}"

    def readings(self, obs: Observation, b: Behind) -> Iterator[tuple[str, str]]:
        """C5: what the scheduler reads goes up with every change of its allocator's buffers."""
        if not self.caps & (Cap.RESIZABLE | Cap.GROUP) or b.last is None or not b.shares:
            return
        if obs.generation < b.last.generation or obs.shrink_generation < b.last.shrink_generation:
            yield "C5", "a generation that the scheduler reads went down"
        if any(b.last.asked) and obs.asked != b.last.asked and obs.generation == b.last.generation:
            yield "C5", "buffers were replaced, but the generation that the scheduler reads stayed"

    def note(self, op: Op, obs: Observation, b: Behind) -> None:
        b.last = obs
        done = obs.status == Status.DONE
        if op.kind in (Kind.RESERVE, Kind.ALLOC):
            b.failed = not done
            b.bound = self.trace.graphs[op.graph] if op.kind == Kind.ALLOC and done else None
        if op.kind == Kind.COMPUTE and done:
            b.in_flight = bool(op.flags & OpFlag.ASYNC)
        if op.kind in (Kind.SYNC, Kind.RESERVE):
            b.in_flight = False
        if op.kind in (Kind.OWN, Kind.BORROW) and done:
            b.shares = True
        if op.kind == Kind.RESET:
            b.bound = None
        if op.kind == Kind.FREE:
            del self.known[op.alloc]

    def tally(self, op: Op, seen: StepSeen) -> Counter[str]:
        """How often each clause was exercised; asked after `step`."""
        n: Counter[str] = Counter()
        b = self.known.get(op.alloc)
        if op.kind in (Kind.RESERVE, Kind.ALLOC):
            n["C1"] += bool(seen.obs.allocations)
            n["C2"] += seen.obs.status == Status.REFUSED
        if b is not None and self.caps & (Cap.RESIZABLE | Cap.GROUP):
            n["C5"] += bool(seen.obs.allocations)
        return n

    def blame(self, op: Op) -> str:
        """The clause that a death during `op` breaks: a failure must be a status (C2)."""
        return {Kind.SYNC: "C1", Kind.RESET: "C4", Kind.MEASURE: "P12"}.get(op.kind, "C2")
