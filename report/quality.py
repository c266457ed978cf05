"""The plans of a failure's graphs, and how good each is: its peak beside the least that any plan needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..fuzz.judge import Judge
from ..model import planner
from ..model.records import Graph, Kind, Place, Trace
from ..spec.optimum import lower_bound, true_minimum
from .placed import Bound

MOST_PLANS = 3  #: of one failure
SMALL = 14  #: tensors of a graph whose true minimum is asked of Z3,
SECONDS = 1.0  #: for so long
LARGEST = 1 << 62  #: bytes; nothing is drawn of sizes near the largest integer


@dataclass(frozen=True, slots=True)
class Peak:
    """Of one type: bytes that the plan needs, that any plan needs, that the best needs (None: not known)."""

    type: int
    peak: int
    least: int
    best: int | None


@dataclass(frozen=True, slots=True)
class PlanOf:
    """The plan of one graph for an allocator of config `config`; `step`: the operation that asked for it."""

    step: int
    graph: int
    config: int
    allocator: int
    tensors: Graph
    places: tuple[Place, ...]
    need: tuple[tuple[int, ...], ...]
    peaks: tuple[Peak, ...]
    whose: str

    def bound(self, slots: tuple[int, ...]) -> Bound:
        return Bound(self.allocator, self.tensors, self.graph, self.places, slots, 0)


def plans_of(trace: Trace, step: int, judge: Judge | None) -> tuple[PlanOf, ...]:
    """The plans that were asked for up to operation `step`, the latest first, each once; the subject's where it
    runs, else the model's."""
    out: dict[tuple[int, int], PlanOf] = {}
    for at, graph, config, allocator in wanted(trace, step):
        if (graph, config) not in out and len(out) < MOST_PLANS:
            plan = plan_of(trace, at, graph, config, allocator, judge)
            if plan is not None:
                out[graph, config] = plan
    return tuple(out.values())


def wanted(trace: Trace, step: int) -> Iterator[tuple[int, int, int, int]]:
    """(operation, graph, config, allocator), the latest first."""
    made: dict[int, int] = {}
    asked = []
    for at, op in enumerate(trace.ops[: step + 1]):
        if op.kind == Kind.NEW:
            made[op.alloc] = op.other
        elif op.kind in (Kind.RESERVE, Kind.MEASURE, Kind.ALLOC) and op.alloc in made:
            config = made[op.alloc]
            if 0 <= op.graph < len(trace.graphs) and 0 <= config < len(trace.setup.configs):
                asked.append((at, op.graph, config, op.alloc))
    yield from reversed(asked)


def plan_of(
    trace: Trace, at: int, graph: int, config: int, allocator: int, judge: Judge | None
) -> PlanOf | None:
    """None where it cannot be planned, or its sizes are beyond what can be drawn, or it has no tensors."""
    setup, tensors = trace.setup, trace.graphs[graph]
    slots = setup.configs[config]
    if not any(t.alloc_size for t in tensors.tensors) or any(t.alloc_size > LARGEST for t in tensors.tensors):
        return None
    if judge is not None:
        fresh = judge.fresh.plan(setup, config, tensors)
        places, need, whose = fresh.places, fresh.need, "the subject's"
    else:
        plan = planner.plan(setup.types, slots, tensors)
        places, need, whose = (plan.places, plan.need, "the model's") if plan else (None, None, "")
    if places is None or need is None or len(places) != len(tensors.tensors):
        return None
    least = lower_bound(setup.types, slots, tensors)
    best = true_minimum(setup.types, slots, tensors, SECONDS) if len(tensors.tensors) <= SMALL else None
    peaks = tuple(
        Peak(t, sum(need[t]), least[t], best[t] if best else None)
        for t in sorted(set(slots))
        if sum(need[t]) or least[t]
    )
    return PlanOf(at, graph, config, allocator, tensors, places, need, peaks, whose)
