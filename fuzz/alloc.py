"""P and G, one step at a time: plans as they are reserved, bound and computed in a history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..model import oracle, planner
from ..model.records import Graph, Kind, Observation, Op, OpFlag, Status, Trouble
from ..model.session import Allocator
from ..native.worker import StepSeen
from ..spec import placement
from ..spec.resizable import Step
from .fresh import FreshPlan, huge, see
from .ledger import Ledger

Found = Iterator[tuple[str, str]]  #: (clause, message)


@dataclass
class Past:
    """What was last asked of one allocator."""

    reserved: Graph | None = None  # the graph of the last reserve (or alloc that reserved)
    failed: bool = False  # the last reserve of it, or of its partner, failed
    measured: Graph | None = None  # measured since the last reserve


@dataclass
class History:
    """What each allocator went through; it decides which rule a bad binding breaks."""

    past: dict[int, Past] = field(default_factory=dict)

    def note(self, op: Op, obs: Observation, ledger: Ledger) -> None:
        if op.kind in (Kind.NEW, Kind.REMAKE) and obs.status == Status.DONE:
            self.past[op.alloc] = Past()
        a = ledger.allocs.get(op.alloc)
        if (
            a is None
            or obs.status == Status.MISUSE
            or op.kind not in (Kind.RESERVE, Kind.MEASURE, Kind.ALLOC)
        ):
            return
        past, graph = self.past.setdefault(op.alloc, Past()), ledger.session.graphs[op.graph]
        if op.kind == Kind.MEASURE:
            past.measured = graph
        elif op.kind == Kind.ALLOC and not obs.allocations:
            if obs.status == Status.DONE and past.reserved != graph:
                past.reserved = None  # by the old plan, or by a new one that fits: not known
        else:
            past.reserved, past.measured = graph, None
            for number, other in ledger.allocs.items():
                if other.pair is a.pair:
                    self.past.setdefault(number, Past()).failed = obs.status != Status.DONE

    def reserved_is(self, number: int, graph: Graph) -> bool:
        """The plan in force was made for this very graph, and nothing came between."""
        past = self.past.get(number, Past())
        return past.reserved == graph and not past.failed and past.measured in (None, graph)


def special(graph: Graph) -> bool:
    """Sizes that P13 speaks of: none, or near the largest integer."""
    return not graph.tensors or huge(graph) or any(t.size == 0 for t in graph.tensors)


# -- reserve and measure -------------------------------------------------------------


def plan_rules(op: Op, seen: StepSeen, ledger: Ledger, history: History) -> Found:
    a = ledger.allocs.get(op.alloc)
    if a is None or seen.obs.status == Status.MISUSE:
        return
    yield from reported(seen.obs, ledger.setup.configs[a.config], ledger)
    if op.kind not in (Kind.RESERVE, Kind.MEASURE, Kind.ALLOC):
        return
    graph = ledger.session.graphs[op.graph]
    fresh = ledger.fresh.plan(ledger.setup, a.config, graph)
    if op.kind == Kind.MEASURE:
        yield from measured(seen.obs, a, graph, fresh, ledger)
    elif op.kind == Kind.RESERVE:
        yield from reserved(seen.obs, a, graph, fresh, ledger)
    elif seen.obs.status == Status.DONE and seen.places is not None:
        yield from bound(op, seen, a, graph, fresh, ledger, history)


def reported(obs: Observation, slots: tuple[int, ...], ledger: Ledger) -> Found:
    """G3: of a type that is listed twice, the bytes are reported once; of any type, all that there are."""
    for k, t in enumerate(slots):
        real = sum(planner.round_up(size, ledger.setup.types[t].granularity) for size in obs.asked[t])
        again = sum(obs.reported[j] for j, other in enumerate(slots) if other == t)
        if again > real and slots.index(t) < k:
            yield (
                "G3",
                f"slot {k} (type {t}) reports {obs.reported[k]} bytes: type {t} is listed more than once, its slots"
                f" report {again} bytes together, and its buffers have {real}",
            )
            return
        if slots.index(t) == k and again < sum(obs.asked[t]):
            yield "G3", f"slot {k} (type {t}) reports {again} bytes, but its buffers have {real}"
            return


def measured(obs: Observation, a: Allocator, graph: Graph, fresh: FreshPlan, ledger: Ledger) -> Found:
    """P12: a measure gives what a reserve would give. G3: a type listed twice is counted once."""
    if fresh.need is None:
        return
    if obs.status != Status.DONE:
        yield "P12", "a graph that can be reserved cannot be measured"
        return
    slots = ledger.setup.configs[a.config]
    want = [sum(fresh.need[t]) if slots.index(t) == k else 0 for k, t in enumerate(slots)]
    have = list(obs.measured[: len(slots)])
    if have == want:
        return
    first = [k for k, t in enumerate(slots) if slots.index(t) == k]
    if [have[k] for k in first] == [want[k] for k in first]:
        yield "G3", f"measure reports {have} bytes by slot: a buffer type that is listed twice counts twice"
    else:
        yield "P12", f"measure gives {have} bytes by slot, reserve gives {want}"


def reserved(obs: Observation, a: Allocator, graph: Graph, fresh: FreshPlan, ledger: Ledger) -> Found:
    """What the plan itself breaks, whatever came before it."""
    for broken in fresh.broken:
        yield broken.clause, broken.message
    if fresh.lost:
        yield "P10", fresh.lost
    if fresh.need is None:
        if not fresh.died and plannable(a, graph, ledger):
            clause = "P13" if special(graph) else "G2"
            yield clause, "a graph that fits no limit of the contract is refused on devices without limit"
        return
    if obs.status == Status.DONE and huge(graph):
        yield from wrapped(a, graph, fresh, ledger)


def plannable(a: Allocator, graph: Graph, ledger: Ledger) -> bool:
    """Whether the reference planner can plan it, for buffers that a device could have."""
    plan = planner.plan(ledger.setup.types, ledger.setup.configs[a.config], graph)
    return plan is not None and not huge(graph)


def wrapped(a: Allocator, graph: Graph, fresh: FreshPlan, ledger: Ledger) -> Found:
    """P13: a size near the largest integer wrapped round to a small buffer."""
    assert fresh.need is not None
    slots = ledger.setup.configs[a.config]
    for i, t in enumerate(graph.tensors):
        kind = slots[t.slot % len(slots)]
        if not t.view and not t.prealloc and t.alloc_size > max(fresh.need[kind], default=0):
            yield "P13", f"tensor {i} of {t.alloc_size} bytes was planned into {fresh.need[kind]} bytes"
            return


# -- bound graphs --------------------------------------------------------------------


def bound(
    op: Op, seen: StepSeen, a: Allocator, graph: Graph, fresh: FreshPlan, ledger: Ledger, history: History
) -> Found:
    """Reused against fresh: a binding after any history must be as valid as a new allocator's."""
    assert seen.places is not None
    plan = see(ledger.setup, a.config, graph, seen.places, seen.obs.asked)
    for broken in placement.judge_bound(plan):
        own = any(broken.clause == b.clause for b in fresh.broken)
        clause = broken.clause if own else history_clause(op, broken.clause, graph, history)
        yield clause, broken.message
        return
    if fresh.places is not None and not ledger.blind and history.reserved_is(op.alloc, graph):
        for i, (now, then) in enumerate(zip(seen.places, fresh.places, strict=True)):
            if now != then and now.type >= 0 and graph.tensors[i].size:
                yield (
                    "P9",
                    f"tensor {i} is at {placement.spot(now)}; a new allocator puts it at {placement.spot(then)}",
                )
                return


def history_clause(op: Op, clause: str, graph: Graph, history: History) -> str:
    """Which rule let a plan or a buffer be used that is not right for the graph."""
    past = history.past.get(op.alloc, Past())
    if huge(graph):
        return "P13"
    if past.failed:
        return "G2"
    if past.measured not in (None, past.reserved) and clause == "P3":
        return "P12"
    if graph not in (past.reserved, past.measured) or past.measured is not None:
        return "G4"
    return "R3" if clause == "P3" else "P9"


def trouble(op: Op, seen: StepSeen, ledger: Ledger, step: Step | None) -> Found:
    """The memory oracle: wrong bytes, whatever the books say."""
    obs = seen.obs
    if op.flags & OpFlag.UNCHECKED and ledger.stale(op.alloc):
        return  # the caller was told not to look
    if obs.trouble & Trouble.FREED_BUSY:
        yield "C1", "a buffer was freed while work in flight used it"
    if obs.trouble & Trouble.BAD_PREALLOC:
        yield "P14", f"preallocated tensor {obs.bad_node} was overwritten at byte {obs.bad_offset}"
    if obs.trouble & Trouble.BAD_GUARD:
        yield "P3", "bytes behind the end of a buffer were written"
    stale = step is not None and bool(step.out.touched)
    if obs.trouble & Trouble.BAD_SOURCE:
        what = (
            f"source {obs.bad_src} of node {obs.bad_node} holds wrong bytes from offset {obs.bad_offset} on"
        )
        yield ("R12" if stale else "P1"), what
    if obs.trouble & Trouble.BAD_OUTPUT:
        yield (
            ("R12" if stale else "P5"),
            f"output {obs.bad_node} holds wrong bytes from offset {obs.bad_offset} on",
        )
    a = ledger.allocs.get(op.alloc)
    if op.kind == Kind.COMPUTE and obs.status == Status.DONE and a is not None and a.bound is not None:
        want = oracle.digest(a.bound)
        if want is not None and not obs.trouble and obs.digest != want:
            yield "P5", f"the outputs' digest is {obs.digest:#x}, it must be {want:#x}"


# -- how often a clause was really exercised -------------------------------------------


def exercised(op: Op, seen: StepSeen, ledger: Ledger, history: History) -> Counter[str]:
    n: Counter[str] = Counter()
    a = ledger.allocs.get(op.alloc)
    if seen.obs.status == Status.MISUSE:
        return n
    if op.kind == Kind.FREE:
        n["G5"] += 1
    if a is None or op.kind not in (Kind.RESERVE, Kind.MEASURE, Kind.ALLOC):
        return n
    graph, slots = ledger.session.graphs[op.graph], ledger.setup.configs[a.config]
    fresh = ledger.fresh.plan(ledger.setup, a.config, graph)
    if op.kind == Kind.MEASURE:
        n["P12"] += 1
    n["P13"] += special(graph)
    if op.kind == Kind.RESERVE:
        n["G3"] += len(set(slots)) < len(slots)
        if fresh.places is not None and fresh.need is not None:
            n["P10"] += fresh.probed
            n += placement.exercised(see(ledger.setup, a.config, graph, fresh.places, fresh.need))
    if op.kind == Kind.ALLOC:
        n["P9"] += history.reserved_is(op.alloc, graph)
        past = history.past.get(op.alloc, Past())
        n["G4"] += past.reserved not in (None, graph)
        n["G2"] += past.failed
    return n
