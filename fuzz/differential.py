"""S between histories: a trace of counted sharing, run again as a pair (R) and with buffers apart.

S6  What two of the three compute from the same bound graph has the same digest; and where buffers apart
    give sound bytes, so does counted sharing.
S1  As long as nobody left or went, nothing failed and all ended alike, counted sharing has in use, on
    every device and after every step, at most what buffers apart have: so its peak is no higher.
S5  As long as that is so, no reservation is refused under counted sharing that works with buffers apart.
    After somebody left this is false of the design (docs/choices.md), and is not asked.
S7  Counts the reservations that work shared, and for which the device has no memory apart.
R3  A pair's entry has at most the bytes that both roles' own buffers had at some step so far. At the same
    step they may have fewer: an allocator alone replaces its entry whole too (R5), and so takes less again
    when one chunk grows and others shrink. Asked as long as nothing failed and no owner was remade.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from ..model.planner import round_up
from ..model.records import Cap, Kind, Observation, Op, OpFlag, PoolKind, Setup, Status, Strategy, Trace, has
from ..native.worker import Run, StepSeen
from .verdict import Verdict

_ASKS = (Kind.RESERVE, Kind.ALLOC, Kind.COMPUTE)  #: may ask the device for memory
NAMES = {Strategy.PAIR: "as a pair", Strategy.COUNTED: "counted", Strategy.APART: "apart"}


def concerns(trace: Trace, caps: Cap) -> bool:
    """Whether the trace is to be run under the other strategies too; not of schedulers, whose waits differ then.

    Contexts have options.py.
    """
    by_sched = any(op.kind == Kind.NEW and has(op.flags, OpFlag.BY_SCHED) for op in trace.ops)
    by_sched |= any(c.config >= 0 for c in trace.setup.contexts)
    return bool(caps & Cap.COUNTED) and trace.setup.strategy == Strategy.COUNTED and not by_sched


@dataclass
class World:
    """One strategy's run of the trace, followed step by step."""

    strategy: Strategy
    run: Run
    bound: dict[int, int] = field(default_factory=dict)  # by allocator: the graph that is bound
    flying: dict[int, int] = field(default_factory=dict)  # the same of work in flight
    sched: set[int] = field(default_factory=set)  # behind a scheduler: a reservation forgets what is bound

    def seen(self, at: int) -> StepSeen | None:
        """What the step showed; None where the subject was dead by then."""
        return self.run.steps[at] if at < len(self.run.steps) else None

    def computed(self, op: Op, obs: Observation) -> int | None:
        """The graph whose digest the step shows."""
        if obs.status != Status.DONE or op.flags & (OpFlag.ASYNC | OpFlag.UNCHECKED):
            return None
        if op.kind == Kind.SYNC:
            return self.flying.get(op.alloc)
        return self.bound.get(op.alloc) if op.kind == Kind.COMPUTE else None

    def note(self, op: Op, obs: Observation) -> None:
        """Which graph is bound after the step."""
        done = obs.status == Status.DONE
        if op.kind == Kind.NEW and done:
            (self.sched.add if op.flags & OpFlag.BY_SCHED else self.sched.discard)(op.alloc)
        if op.kind in (Kind.RESERVE, Kind.ALLOC) and op.alloc in self.sched:
            self.bound.pop(op.alloc, None)
        if done and (op.kind == Kind.ALLOC or (op.kind == Kind.COMPUTE and op.alloc not in self.bound)):
            self.bound[op.alloc] = op.graph
        if obs.status == Status.STALE or (done and op.kind in (Kind.NEW, Kind.FREE, Kind.RESET, Kind.REMAKE)):
            self.bound.pop(op.alloc, None)
        if op.kind == Kind.COMPUTE and done and op.flags & OpFlag.ASYNC:
            self.flying[op.alloc] = self.bound[op.alloc]
        elif done and op.kind in (Kind.SYNC, Kind.NEW, Kind.FREE, Kind.RESERVE, Kind.COMPUTE):
            self.flying.pop(op.alloc, None)


@dataclass
class Peaks:
    """Bytes of a pair's buffers, and of the same allocators' own ones, by group and type."""

    setup: Setup
    group: dict[int, int] = field(default_factory=dict)  # by living allocator
    asked: dict[tuple[Strategy, int], tuple[tuple[int, ...], ...]] = field(default_factory=dict)
    highest: dict[tuple[int, int], int] = field(default_factory=dict)  # (group, type): apart, so far
    failed: set[int] = field(default_factory=set)  # groups
    groups: int = 0

    def note(self, op: Op, pair: StepSeen, apart: StepSeen) -> None:
        done = pair.obs.status == Status.DONE
        if op.kind == Kind.NEW and done:
            self.groups += 1
            self.group[op.alloc] = self.groups
        elif op.kind == Kind.BORROW and done:
            self.group[op.alloc] = self.group.get(op.other, self.groups)  # of nobody: others see that
        elif op.kind == Kind.FREE and done:
            self.group.pop(op.alloc, None)
        if any(no_memory(op, x.obs) for x in (pair, apart)) and op.alloc in self.group:
            self.failed.add(self.group[op.alloc])
        if op.kind == Kind.REMAKE and done:
            self.failed |= set(self.group.values())
        for strategy, seen in ((Strategy.PAIR, pair), (Strategy.APART, apart)):
            shown = {n: look for n, look in seen.looks.items() if look.status == Status.DONE}
            if op.kind not in (Kind.FREE, Kind.CAPACITY) and seen.obs.status != Status.MISUSE:
                shown[op.alloc] = seen.obs
            for n, look in shown.items():
                self.asked[strategy, n] = look.asked

    def real(self, strategy: Strategy, number: int, t: int) -> int:
        rows = self.asked.get((strategy, number), ())
        unit = self.setup.types[t].granularity
        return sum(round_up(x, unit) for x in rows[t]) if t < len(rows) else 0

    def above(self) -> Iterator[str]:
        """Where a pair has more than its roles ever had apart."""
        for g in set(self.group.values()) - self.failed:
            members = [n for n, its in self.group.items() if its == g]
            for t in range(len(self.setup.types)):
                apart = sum(self.real(Strategy.APART, n, t) for n in members)
                highest = self.highest[g, t] = max(apart, self.highest.get((g, t), 0))
                have = max(self.real(Strategy.PAIR, n, t) for n in members)
                if have > highest:
                    yield f"type {t}: a pair has {have} bytes, the roles' own buffers never had more than {highest}"


def no_memory(op: Op, obs: Observation) -> bool:
    """A reservation that the device, or an injected failure, refused."""
    return op.kind in _ASKS and obs.status == Status.REFUSED and obs.allocations > 0


class Comparison:
    """The walk through all runs of one trace. `left_at`: the first step in which somebody left or went."""

    def __init__(self, trace: Trace, runs: dict[Strategy, Run], left_at: int | None) -> None:
        self.trace = trace
        self.left_at = len(trace.ops) if left_at is None else left_at
        self.worlds = {s: World(s, run) for s, run in runs.items()}
        self.peaks = Peaks(trace.setup)
        # nobody left, nothing failed, all ended alike; blocks of pools are not compared
        self.calm = trace.setup.pool == PoolKind.NO_POOL
        self.tally: Counter[str] = Counter()

    def verdicts(self, steps: int) -> Iterator[Verdict]:
        """What breaks within the first `steps` operations, each in the order of the trace."""
        for at, op in enumerate(self.trace.ops[:steps]):
            seen = {s: x for s, w in self.worlds.items() if (x := w.seen(at)) is not None}
            for clause, message in self.step(at, op, seen):
                yield Verdict("broken", clause, message, at, op.kind.name)
        if steps > len(self.trace.ops):
            yield from self.end(self.worlds[Strategy.COUNTED].run, self.worlds[Strategy.APART].run)

    def end(self, counted: Run, apart: Run) -> Iterator[Verdict]:
        """S3: what does not come back in the end, where it does with buffers apart."""
        if apart.leaked == 0 and counted.leaked != 0:
            how = "not all bytes come back" if counted.leaked else "the subject dies of it"
            message = (
                f"when everything is freed, {how} where buffers are counted; they do where they are apart"
            )
            yield Verdict("broken", "S3", message, len(self.trace.ops), "close")

    def step(self, at: int, op: Op, seen: dict[Strategy, StepSeen]) -> Iterator[tuple[str, str]]:
        counted, apart = seen.get(Strategy.COUNTED), seen.get(Strategy.APART)
        yield from self.outputs(op, seen)
        if counted is None:
            if apart is not None and op.kind in _ASKS and not has(op.flags, OpFlag.UNCHECKED):
                clause = "S5" if op.kind == Kind.RESERVE else "S6"
                yield clause, "the subject dies of it where buffers are counted, and not where they are apart"
            return
        if apart is not None:
            yield from self.memory(at, op, counted.obs, apart.obs)
            if Strategy.PAIR in seen:
                self.peaks.note(op, seen[Strategy.PAIR], apart)
                yield from (("R3", message) for message in self.peaks.above())
        for strategy, x in seen.items():
            self.worlds[strategy].note(op, x.obs)

    def outputs(self, op: Op, seen: dict[Strategy, StepSeen]) -> Iterator[tuple[str, str]]:
        """S6."""
        done = [(s, x.obs) for s, x in seen.items() if self.worlds[s].computed(op, x.obs) is not None]
        apart = next((obs for s, obs in done if s == Strategy.APART), None)
        for s, obs in done:
            graph = self.worlds[s].computed(op, obs)
            if (
                s == Strategy.APART
                or apart is None
                or graph != self.worlds[Strategy.APART].computed(op, apart)
            ):
                continue
            self.tally["S6"] += s == Strategy.COUNTED
            if s == Strategy.COUNTED and obs.trouble and not apart.trouble:
                yield "S6", "bytes are wrong where buffers are counted, and right where they are apart"
            elif not obs.trouble and not apart.trouble and obs.digest != apart.digest:
                yield (
                    "S6",
                    f"the outputs' digest {NAMES[s]} is {obs.digest:#x}, apart it is {apart.digest:#x}",
                )

    def memory(self, at: int, op: Op, counted: Observation, apart: Observation) -> Iterator[tuple[str, str]]:
        """S1, S5, S7."""
        self.calm &= at < self.left_at
        failed, rival = no_memory(op, counted), no_memory(op, apart)
        self.tally["S7"] += rival and counted.status == Status.DONE
        if self.calm and failed and apart.status == Status.DONE:
            yield "S5", "refused where buffers are counted, though it works with buffers apart"
        alike = counted.status == apart.status or op.kind in (Kind.OWN, Kind.BORROW)
        self.calm &= not failed and not rival and alike
        if not self.calm:
            return
        self.tally["S5"] += op.kind in _ASKS and counted.allocations < apart.allocations
        for t, (have, limit) in enumerate(zip(counted.used, apart.used, strict=True)):
            self.tally["S1"] += have < limit
            if have > limit:
                yield (
                    "S1",
                    f"device {t}: {have} bytes in use where buffers are counted, {limit} where they are apart",
                )


def compare(
    trace: Trace, counted: Run, run: Callable[[Trace], Run], caps: Cap, left_at: int | None, steps: int
) -> tuple[list[Verdict], Counter[str]]:
    """What a trace of counted sharing breaks beside its rivals, and how often each clause was exercised.

    `counted`: its run; `run` runs a trace on the same subject. Judged are the first `steps` operations.
    """
    runs = {Strategy.COUNTED: counted}
    for strategy in (Strategy.PAIR, Strategy.APART):
        if strategy == Strategy.APART or caps & Cap.RESIZABLE:
            runs[strategy] = run(replace(trace, setup=replace(trace.setup, strategy=strategy)))
    walk = Comparison(trace, runs, left_at)
    return list(walk.verdicts(steps)), walk.tally


def merged(found: list[Verdict], more: list[Verdict]) -> list[Verdict]:
    """The verdicts of the checker and of the comparison, so that what says most of a fault comes first."""
    first = next((v.step for v in found if v.sort == "broken"), None)
    front = [
        v
        for v in more
        if first is None or v.step < first or (v.step == first and (v.clause == "S6" or v.op == "close"))
    ]
    return [*front, *found, *(v for v in more if v not in front)]
