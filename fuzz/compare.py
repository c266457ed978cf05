"""Two allocators over the same graphs: what each needs, in how many chunks, and how often it asks the device again.

A case is a few graphs on the same buffer types. Each graph is reserved by a new allocator: that is its peak, and
its chunks, and whether the plan is right (spec/placement.py). Then one allocator reserves and binds them in turn:
what it allocates on the way are its reallocations.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..model.records import SIZE_MAX, BufferType, Graph, Kind, Op, Setup, Status, Trace
from ..native.worker import SubjectError, Worker
from ..spec.optimum import lower_bound
from ..spec.placement import Broken
from .draw import Draw, RandomDraw
from .dump import lines
from .dump.asked import subject_graph
from .dump.judge import judge as judged
from .graphs import draw_graph
from .judge import Judge
from .replay import load

MEASURES = ("peak", "chunks", "reallocations")


@dataclass(frozen=True, slots=True)
class Case:
    """Graphs in the order in which one allocator has them, for allocators of setup.configs[0]. `origin`: for people."""

    setup: Setup
    graphs: tuple[Graph, ...]
    origin: str


@dataclass(frozen=True, slots=True)
class Need:
    """One graph by a new allocator: bytes and number of chunks, over all types; the clauses of P that its plan
    breaks."""

    peak: int
    chunks: int
    broken: tuple[Broken, ...] = ()


@dataclass(frozen=True, slots=True)
class Pair:
    """One graph, by both; None where it was not reserved. `bound`: bytes that no plan can do without."""

    origin: str
    graph: Graph
    a: Need | None
    b: Need | None
    bound: int

    @property
    def newly_broken(self) -> list[Broken]:
        """What B's plan breaks of a clause that A's does not, one a clause."""
        known = {x.clause for x in self.a.broken} if self.a else set()
        return list({x.clause: x for x in self.b.broken if x.clause not in known}.values()) if self.b else []

    def impossible(self, side: Need | None) -> bool:
        """A peak that no right plan can have."""
        return side is not None and side.peak < self.bound


@dataclass(slots=True)
class Comparison:
    """`a`, `b`: totals of each measure over what both did. `failed`: graphs and sequences that only one did."""

    pairs: list[Pair] = field(default_factory=list)
    a: dict[str, int] = field(default_factory=lambda: dict.fromkeys(MEASURES, 0))
    b: dict[str, int] = field(default_factory=lambda: dict.fromkeys(MEASURES, 0))
    bound: int = 0
    sequences: int = 0
    only_a: list[str] = field(default_factory=list)
    only_b: list[str] = field(default_factory=list)

    @property
    def both(self) -> list[Pair]:
        return [p for p in self.pairs if p.a is not None and p.b is not None]

    def worse(self, tolerance: float) -> list[str]:
        """The measures in which B needs more than A by more than `tolerance` percent."""
        return [m for m in MEASURES if self.b[m] > self.a[m] * (1 + tolerance / 100)]

    def wrong(self) -> bool:
        """Whether B has a plan that is wrong or impossible where A's is not."""
        return any(p.newly_broken or (p.impossible(p.b) and not p.impossible(p.a)) for p in self.pairs)

    def regressions(self, most: int = 5) -> list[Pair]:
        """The graphs in which B's peak is farthest above A's."""
        grown = [p for p in self.both if p.a and p.b and p.b.peak > p.a.peak]
        return sorted(grown, key=lambda p: -(p.b.peak - p.a.peak) if p.a and p.b else 0)[:most]


def compare(
    a: str, b: str, cases: Iterable[Case], progress: Callable[[Comparison], None] = lambda _: None
) -> Comparison:
    """Both subject libraries over the cases. Raises SubjectError where one cannot be used."""
    out = Comparison()
    with Judge(a) as first, Judge(b) as second:
        for case in cases:
            for k, graph in enumerate(dict.fromkeys(case.graphs)):
                bound = least(case.setup, graph)
                pair = Pair(
                    f"{case.origin}, graph {k}",
                    graph,
                    need(first, case, graph),
                    need(second, case, graph),
                    bound,
                )
                add(out, pair)
            sequence(out, case, reallocations(first.worker, case), reallocations(second.worker, case))
            progress(out)
    return out


def least(setup: Setup, graph: Graph) -> int:
    """Bytes over all types that no plan does without. A tree may put what it does in place at its parent's type, so
    what can come to another type than its own counts nothing."""
    astray: set[int] = set()
    for i, t in enumerate(graph.tensors):
        roots = [graph.tensors[s].view_src if graph.tensors[s].view else s for s in t.src]
        if t.inplace and any(r in astray or graph.tensors[r].slot != t.slot for r in roots):
            astray.add(i)
    tensors = (replace(t, size=0, pad=0) if i in astray else t for i, t in enumerate(graph.tensors))
    return sum(lower_bound(setup.types, setup.configs[0], Graph(tuple(tensors))))


def add(out: Comparison, pair: Pair) -> None:
    out.pairs.append(pair)
    if pair.a is None or pair.b is None:
        only = {(True, False): out.only_a, (False, True): out.only_b}
        only.get((pair.a is not None, pair.b is not None), []).append(pair.origin)
        return
    for totals, n in ((out.a, pair.a), (out.b, pair.b)):
        totals["peak"] += n.peak
        totals["chunks"] += n.chunks
    out.bound += pair.bound


def sequence(out: Comparison, case: Case, a: int | None, b: int | None) -> None:
    if a is not None and b is not None:
        out.a["reallocations"] += a
        out.b["reallocations"] += b
        out.sequences += 1
    elif a is not None:
        out.only_a.append(f"{case.origin}, in turn")
    elif b is not None:
        out.only_b.append(f"{case.origin}, in turn")


def need(judge: Judge, case: Case, graph: Graph) -> Need | None:
    """What a new allocator reserves for a graph, and what is wrong with its plan."""
    plan = judge.fresh.plan_once(case.setup, graph, False)
    if plan.need is None:
        return None
    asked = [size for chunks in plan.need for size in chunks if size]
    return Need(sum(asked), len(asked), plan.broken)


def reallocations(worker: Worker, case: Case) -> int | None:
    """Device allocations while one allocator reserves and binds the graphs in turn, the first reserve left out."""
    ops = [Op(Kind.NEW)]
    for k in range(len(case.graphs)):
        ops += [Op(Kind.RESERVE, graph=k), Op(Kind.ALLOC, graph=k)]
    run = worker.run(Trace(case.setup, case.graphs, tuple(ops)))
    seen = [step.obs for step in run.steps]
    if len(seen) < len(ops) or any(obs.status != Status.DONE for obs in seen):
        return None
    return sum(obs.allocations for obs in seen[2:])


# -- cases -------------------------------------------------------------------------------------


def drawn(seed: int, number: int) -> Iterator[Case]:
    """So many cases; the same seed gives the same."""
    for n in range(number):
        draw = RandomDraw(random.Random(f"{seed}/{n}"))
        setup = draw_setup(draw)
        scale = draw.choice((64, 256, 1024, 8192))
        most = draw.choice((12, 24, 48))
        graphs = [one_graph(draw, setup, scale, most) for _ in range(draw.integer(2, 4))]
        order = [*range(len(graphs)), draw.integer(0, len(graphs) - 1)]  # one comes again
        yield Case(setup, tuple(graphs[k] for k in order), f"seed {seed}, case {n}")


def draw_setup(draw: Draw) -> Setup:
    """One or two types of devices without limit, at times in small buffers."""
    count = 1 if draw.boolean(0.7) else 2
    types = []
    for _ in range(count):
        alignment = draw.choice((16, 32, 64, 128))
        largest = alignment * draw.choice((8, 64, 512)) if draw.boolean(0.3) else SIZE_MAX
        types.append(BufferType(alignment, largest))
    return Setup(tuple(types), (tuple(range(count)),))


def one_graph(draw: Draw, setup: Setup, scale: int, most: int) -> Graph:
    """A graph without empty tensors: trees differ in whether they bear those, not in how they plan them."""
    graph = draw_graph(draw, setup.types, scale, len(setup.types), most)
    tensors = [t if t.size or t.view else replace(t, size=1) for t in graph.tensors]
    while any(t.view and not t.size for t in tensors):
        k = next(k for k, t in enumerate(tensors) if t.view and not t.size)
        root = tensors[tensors[k].view_src]
        tensors[k] = replace(tensors[k], size=1, view_offs=min(tensors[k].view_offs, root.size - 1))
    return Graph(tuple(tensors))


def of_file(path: Path) -> list[Case]:
    """The graphs of a replay file, or of a dump: one case an allocator. Raises ReplayError, DumpError."""
    try:
        with open(path, "rb") as file:
            begins = file.read(64)
    except OSError as e:
        raise lines.DumpError(f"{path} cannot be read: {e.strerror}.") from None
    if b'"line"' in begins:
        return list(of_dump(path))
    trace = load(path).trace
    free = tuple(replace(kind, capacity=SIZE_MAX, granularity=1, meta=0) for kind in trace.setup.types)
    setup = Setup(free, (trace.setup.configs[0],))
    graphs = tuple(g for g in trace.graphs if g.tensors)
    if not graphs:
        raise lines.DumpError(f"{path} has no graph to compare by; name another file.")
    return [Case(setup, graphs, str(path))]


def of_dump(path: Path) -> Iterator[Case]:
    """An allocator's plans, in the order in which they were bound."""
    by_types: dict[tuple[int, tuple[BufferType, ...]], list[Graph]] = {}
    for plan in judged(lines.read(path)).plans:
        graph = subject_graph(plan.view.graph)
        types = tuple(replace(t, alignment=min(t.alignment, 4096)) for t in plan.view.types)
        if graph is not None and graph.tensors and len(types) <= 5:
            by_types.setdefault((plan.allocator, types), []).append(graph)
    if not by_types:
        raise lines.DumpError(f"{path} has no graph to compare by; name another file.")
    for (allocator, types), graphs in by_types.items():
        setup = Setup(types, (tuple(range(len(types))),))
        yield Case(setup, tuple(graphs), f"{path}, allocator {allocator}")


__all__ = ["MEASURES", "Case", "Comparison", "Need", "Pair", "SubjectError", "compare", "drawn", "of_file"]
