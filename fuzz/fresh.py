"""What a new allocator of the subject does with a graph, on devices without limit.

This is the measure for every later use of the graph: the requirement that a
reserve publishes (R), the places that any reserve must give again (P9), and
the fault that is the plan's own, not the history's (reused against fresh).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ..model import planner
from ..model.planner import round_up
from ..model.records import (
    MAX_SRC,
    UNLIMITED,
    Flag,
    Graph,
    Kind,
    Observation,
    Op,
    OpFlag,
    Place,
    Setup,
    Status,
    Tensor,
    Trace,
)
from ..spec.placement import Broken, Seen, judge

HUGE = 2**40  #: bytes from which on a graph is only planned, never bound or computed


class StepLike(Protocol):
    @property
    def obs(self) -> Observation: ...
    @property
    def places(self) -> tuple[Place, ...] | None: ...


class RunLike(Protocol):
    @property
    def steps(self) -> list: ...  # of StepLike
    @property
    def death(self) -> object | None: ...


@dataclass(frozen=True, slots=True)
class FreshPlan:
    """`need[type]`: bytes asked for each chunk, None where the graph is refused or the subject died.

    `beyond`: a requirement like the one of a refused graph of sizes near the largest integer, which no
    device has. `broken` is what the plan itself breaks; `lost` says which bytes are not free after the last node (P10).
    """

    need: tuple[tuple[int, ...], ...] | None
    places: tuple[Place, ...] | None
    measured: tuple[int, ...] | None
    broken: tuple[Broken, ...] = ()
    beyond: tuple[tuple[int, ...], ...] | None = None
    lost: str = ""
    probed: bool = False
    died: bool = False


def huge(graph: Graph) -> bool:
    """Whether the graph is of sizes near the largest integer, which no machine can bind (P13)."""
    return any(t.alloc_size >= HUGE for t in graph.tensors)


def boundless(setup: Setup) -> Setup:
    return replace(setup, types=tuple(replace(t, capacity=UNLIMITED) for t in setup.types))


def beyond(setup: Setup, graph: Graph) -> tuple[tuple[int, ...], ...] | None:
    """The reference plan of the graph with its largest sizes cut to 2^58 bytes."""
    cut = tuple(
        t if t.alloc_size < HUGE else replace(t, size=min(t.size, 2**58), pad=0, view_offs=0)
        for t in graph.tensors
    )
    plan = planner.plan(setup.types, setup.configs[0], Graph(cut))
    return plan.need if plan else None


def astray(places: Sequence[Place], slots: tuple[int, ...], graph: Graph, fresh: FreshPlan) -> str:
    """Says which tensor is at another type than asked for, where a new allocator does not put it; '' if none is."""
    for i, (t, now, then) in enumerate(zip(graph.tensors, places, fresh.places or (), strict=False)):
        meant = slots[t.slot % len(slots)]
        if t.size and not t.view and now.type >= 0 and now.type not in (meant, then.type):
            return f"tensor {i} is at type {now.type}; it was asked for at type {meant}"
    return ""


class Fresh:
    """Asks the subject for fresh plans; remembers the answers.

    `run` runs a trace on the subject in a process of its own and returns its steps. `compact`: chunks of
    no bytes are not shown.
    """

    def __init__(self, run: Callable[[Trace], RunLike], compact: bool = False, limit: int = 20_000) -> None:
        self.run, self.compact, self.limit = run, compact, limit
        self.known: dict[tuple[object, ...], FreshPlan] = {}

    def plan(self, setup: Setup, config: int, graph: Graph, by_sched: bool = False) -> FreshPlan:
        """The fresh plan of `graph` for an allocator of `setup.configs[config]`."""
        alone = replace(boundless(setup), configs=(setup.configs[config],))
        key = (alone, graph, by_sched)
        if key not in self.known:
            if len(self.known) >= self.limit:
                self.known.clear()
            self.known[key] = self.ask(alone, graph, by_sched)
        return self.known[key]

    def ask(self, setup: Setup, graph: Graph, by_sched: bool) -> FreshPlan:
        plan = self.plan_once(setup, graph, by_sched)
        if plan.places is None or plan.broken or by_sched:
            return plan
        lost = self.lost_bytes(setup, graph, plan)
        return replace(plan, lost=lost or "", probed=lost is not None)

    def plan_once(self, setup: Setup, graph: Graph, by_sched: bool) -> FreshPlan:
        new = OpFlag.BY_SCHED if by_sched else OpFlag(0)
        ops = [Op(Kind.NEW, 0, 0, flags=new), Op(Kind.RESERVE, 0)]
        if not huge(graph):
            ops.append(Op(Kind.ALLOC, 0))
        ops += [Op(Kind.NEW, 1, 0, flags=new), Op(Kind.MEASURE, 1)]
        run = self.run(Trace(setup, (graph,), tuple(ops)))
        steps = run.steps
        if len(steps) < 2:
            return FreshPlan(None, None, None, died=True)
        reserved = steps[1].obs
        measured = None
        if len(steps) == len(ops) and steps[-1].obs.status == Status.DONE:
            measured = steps[-1].obs.measured
        if reserved.status != Status.DONE:
            return FreshPlan(None, None, measured, beyond=beyond(setup, graph) if huge(graph) else None)
        need = reserved.asked
        if huge(graph) or len(steps) < 3 or steps[2].obs.status != Status.DONE:
            return FreshPlan(need, None, measured, died=len(steps) < 3)
        places = steps[2].places
        broken = () if by_sched else tuple(judge(see(setup, 0, graph, places, need, measured, self.compact)))
        return FreshPlan(need, places, measured, broken)

    def lost_bytes(self, setup: Setup, graph: Graph, plan: FreshPlan) -> str | None:
        """P10, from outside: after the last node, a tensor as large as the largest gap between the
        outputs of a chunk must find room without the requirement growing. '' where it does, None where
        the graph cannot be probed.

        A result that nobody reads may be kept or not: it is first read by a small output.
        """
        longer = with_readers(graph)
        if longer is not graph:
            plan = self.plan_once(setup, longer, False)
        if plan.need is None or plan.places is None:
            return None
        kind, size = largest_gap(setup, longer, plan)
        if size <= 0:
            return None
        slot = setup.configs[0].index(kind)
        probed = self.plan_once(setup, Graph((*longer.tensors, Tensor(size, slot=slot))), False)
        if probed.need is None or probed.places is None or probed.places[:-1] != plan.places:
            return None  # a planner that looks ahead plans another graph otherwise
        before, after = sum(plan.need[kind]), sum(probed.need[kind])
        if after <= before:
            return ""
        return (
            f"after the last node {size} bytes of type {kind} must be free in a row, but another node"
            f" of that size raises the requirement from {before} to {after} bytes"
        )


def with_readers(graph: Graph) -> Graph:
    """The graph with outputs of one byte that read, after the last node, what nobody reads yet."""
    read = {s for t in graph.tensors for s in t.src}
    idle = [i for i, t in enumerate(graph.tensors) if i not in read and not t.output and not t.prealloc]
    if not idle:
        return graph
    groups = (tuple(idle[k : k + MAX_SRC]) for k in range(0, len(idle), MAX_SRC))
    readers = (Tensor(1, sources, Flag.OUTPUT) for sources in groups)
    return Graph((*graph.tensors, *readers))


def largest_gap(setup: Setup, graph: Graph, plan: FreshPlan) -> tuple[int, int]:
    """(type, bytes) of the largest gap that the outputs leave in any chunk after the last node."""
    assert plan.need is not None and plan.places is not None
    best = (0, 0)
    for kind in sorted(set(setup.configs[0])):
        chunks = plan.need[kind]
        unit = setup.types[kind].alignment
        for c, top in enumerate(chunks):
            held = sorted(
                (p.offset, p.offset + round_up(t.alloc_size, unit))
                for i, (t, p) in enumerate(zip(graph.tensors, plan.places, strict=True))
                if not t.view and (p.type, p.chunk) == (kind, c) and held_to_the_end(graph, i)
            )
            at = 0
            for begin, end in [*held, (top, top)]:
                best = max(best, (begin - at, kind))
                at = max(at, end)
    size, kind = best
    return kind, size


def held_to_the_end(graph: Graph, root: int) -> bool:
    """An output or shown by a view that is one, even one of no bytes."""
    return any(t.output and root in (i, t.view_src) for i, t in enumerate(graph.tensors))


def see(
    setup: Setup,
    config: int,
    graph: Graph,
    places: tuple[Place, ...],
    asked: tuple[tuple[int, ...], ...],
    measured: tuple[int, ...] | None = None,
    compact: bool = False,
) -> Seen:
    """The judge's view of a plan: per-slot figures become per-type figures."""
    slots = setup.configs[config]
    real = tuple(
        tuple(round_up(size, kind.granularity) for size in chunks)
        for kind, chunks in zip(setup.types, asked, strict=True)
    )
    by_type = None
    if measured is not None:
        by_type = tuple(measured[slots.index(k)] if k in slots else 0 for k in range(len(setup.types)))
    return Seen(setup.types, slots, graph, places, asked, real, by_type, compact)
