"""Judges a dump by P, G and R12, without the program: what each bind shows, and what each computation touches.

P's rules are spec/placement.py's. What a single line can't show is left alone: P10 needs another plan, generations
are not asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ...spec import placement
from . import lines
from .books import Allocator, Books, Held, runs, sharing, what
from .found import Plan, Verdicts
from .translate import (
    Chunks,
    Key,
    Unclear,
    describe,
    empty,
    key_of,
    named,
    places,
    records,
    roots_of,
    same,
    seen,
    some,
)

CLAUSES = ("P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "P9", "P11", "P12", "P13", "P14",
           "G1", "G2", "G3", "G4", "G5", "R12")  # fmt: skip


def judge(dump: lines.Dump) -> Verdicts:
    """Everything that the dump breaks, and what it exercised."""
    out = Verdicts()
    for run in runs(dump):
        reader = Reader(out, run)
        for at, line in run:
            reader.step(at, line)
        reader.end()
    return out


class Reader:
    """Goes through the lines of a run."""

    def __init__(self, out: Verdicts, run: Sequence[tuple[int, lines.Line]]) -> None:
        self.out, self.books = out, Books()
        self.sharing = sharing(run)
        # computations that bind their graph themselves
        self.inside = {line.during for _, line in run if isinstance(line, lines.Bind)} - {0}
        self.known: dict[Key, tuple[list[placement.Broken], Counter[str]]] = {}
        self.under_way: tuple[int, lines.Call] | None = None

    def step(self, at: int, line: lines.Line) -> None:
        if isinstance(line, lines.Reserve | lines.Measure | lines.Bind):
            self.under_way = None
        match line:
            case lines.Call():
                self.under_way = at, line
            case lines.Reserve():
                self.reserve(at, line)
            case lines.Measure():
                self.measure(at, line)
            case lines.Bind():
                self.bind(at, line)
            case lines.Compute():
                self.compute(at, line)
            case lines.Freed():
                self.freed(at, line)
            case _:
                self.books.note(at, line)

    # -- reserve and measure -----------------------------------------------------------------

    def reserve(self, at: int, line: lines.Reserve) -> None:
        a = self.books.allocators[line.allocator]
        key = self.plain_key(line.graph, line.slots)
        self.fits(at, a, key, line.graph)
        self.out.exercised["G2"] += a.failed
        if line.ok:
            self.as_measured(at, a, key, line.graph)
        self.follow(a, key, line.ok, bool(a.moved))
        self.reported(at, a, line.sizes)
        a.moved.clear()

    def plain_key(self, graph: int, slots: Sequence[int]) -> Key:
        return key_of(self.books.graphs[graph], (), slots)

    def fits(self, at: int, a: Allocator, key: Key, graph: int) -> None:
        """G1: what was reserved before fits, as long as no buffer was replaced since. Of an allocator of one type:
        where leafs are to go is not seen."""
        if key not in a.fitting or a.failed or a.number in self.sharing or len(set(a.types)) != 1:
            return
        self.out.exercised["G1"] += 1
        if a.moved:
            self.out.add(
                "G1",
                f"allocator {a.number} reserves graph {graph} again, which fits its buffers, but"
                f" {'buffers' if len(a.moved) > 1 else 'a buffer'} moved: {self.books.words(a.moved)}",
                at,
                graph,
            )

    def follow(self, a: Allocator, key: Key, ok: bool, moved: bool) -> None:
        """What the allocator's plan is now, and what its buffers fit."""
        if moved:
            a.fitting.clear()
            a.exact = key if ok and self.all_moved(a) else None
        if ok:
            a.fitting.add(key)
        a.planned, a.failed, a.bound = (key if ok else None), not ok, None

    def all_moved(self, a: Allocator) -> bool:
        """Whether every buffer that it has was made in this call."""
        return {b.number for b in self.books.own(a)} <= set(a.moved)

    def measure(self, at: int, line: lines.Measure) -> None:
        a = self.books.allocators[line.allocator]
        self.out.exercised["P12"] += 1
        if a.moved:
            words = f"allocator {a.number} measures graph {line.graph}, and buffers move: {self.books.words(a.moved)}"
            self.out.add("P12", words, at, line.graph)
        first = [t not in a.types[:k] for k, t in enumerate(a.types)]
        self.out.exercised["G3"] += not all(first)
        if any(size for size, new in zip(line.sizes, first, strict=False) if not new):
            words = (
                f"measure reports {line.sizes} bytes by slot: a buffer type that is listed twice counts twice"
            )
            self.out.add("G3", words, at, line.graph)
        a.measured = self.plain_key(line.graph, line.slots), tuple(line.sizes)
        a.planned = None  # a measure may put another plan in force
        if a.moved:
            a.fitting.clear()
            a.exact = None
        a.moved.clear()

    def as_measured(self, at: int, a: Allocator, key: Key, graph: int) -> None:
        """P12: a measure said what this reservation takes, as far as all its buffers are made for it."""
        same_call = a.measured is not None and a.measured[0][:1] + a.measured[0][2:] == key[:1] + key[2:]
        alone = a.number not in self.sharing and len(set(a.types)) == 1
        if a.measured is None or not same_call or not alone or not a.moved or not self.all_moved(a):
            return
        self.out.exercised["P12"] += 1
        said, took = a.measured[1][0], sum(b.asked for b in self.books.own(a))
        if said != took:
            words = f"allocator {a.number} was told by a measure that graph {graph} takes {said} bytes; it takes {took}"
            self.out.add("P12", words, at, graph)

    def reported(self, at: int, a: Allocator, sizes: Sequence[int]) -> None:
        """G3: a type that is listed twice is one set of buffers, reported once; of any, no more than there is."""
        own = self.books.own(a)
        self.out.exercised["G3"] += len(set(a.types)) < len(a.types)
        if a.number in self.sharing:
            return  # whose bytes they are is not to be seen here
        for t in dict.fromkeys(a.types):
            said = sum(size for size, kind in zip(sizes, a.types, strict=False) if kind == t)
            have = sum(b.size for b in own if b.type == t)
            if said > have:
                name = self.books.types[t].name
                words = (
                    f"allocator {a.number} reports {said} bytes of type {name!r}, of {have} that there are"
                )
                self.out.add("G3", words, at)

    # -- bind --------------------------------------------------------------------------------

    def bind(self, at: int, line: lines.Bind) -> None:
        a, moved = self.books.allocators[line.allocator], self.books.allocators[line.allocator].moved
        graph = self.books.graphs[line.graph]
        before = {i: (b, offset) for i, b, offset in line.before}
        key = key_of(graph, sorted(before), ())
        self.out.exercised["G2"] += a.failed
        self.out.exercised["G4"] += a.planned is not None and not same(a.planned, key)
        if line.ok:
            self.out.binds += 1
            self.out.exercised["P13"] += empty(graph)
            try:
                self.bound(at, line, a, graph, before, key)
            except Unclear as e:
                self.out.unclear.append(f"line {at}: graph {line.graph}: {e}")
        if moved:  # it reserved by itself
            a.fitting.clear()
            a.exact = key if line.ok and self.all_moved(a) else None
            a.planned = key if line.ok else None
        if line.ok:
            a.failed = False
        self.reported(at, a, line.sizes)
        a.bound = (key, tuple(line.places)) if line.ok else None
        moved.clear()

    def bound(
        self, at: int, line: lines.Bind, a: Allocator, graph: lines.Graph,
        before: dict[int, tuple[int, int]], key: Key,
    ) -> None:  # fmt: skip
        spots = line.places
        for t, spot in zip(graph.tensors, spots, strict=True):
            if spot[0] >= 0:
                self.books.held[t.at] = Held(spot[0], at, what(t))
        gone = self.gone(graph, spots, before)
        if gone:
            self.out.exercised["G2"] += 1
            self.out.add(
                "G2",
                f"allocator {a.number} binds graph {line.graph} to memory that is gone: {gone}",
                at,
                line.graph,
            )
            return
        plan = self.plan(at, line, a, graph, before)
        self.placed(plan, a, key, line, self.exactly(a, key))
        self.again(at, a, key, line, graph)

    def exactly(self, a: Allocator, key: Key) -> bool:
        """Whether all its buffers were asked for by a plan for this graph, so that they are as large as that needs."""
        if a.number in self.sharing:
            return False
        if a.moved:
            return self.all_moved(a)
        plan = a.planned is not None and same(a.planned, key)  # no measure came between
        return plan and a.exact is not None and same(a.exact, key) and a.exact[3] == key[3]

    def gone(
        self, graph: lines.Graph, spots: Sequence[lines.Spot], before: dict[int, tuple[int, int]]
    ) -> str:
        """Tensors that were put into memory that does not exist any more; '' where there are none."""
        roots = roots_of(graph)
        lost = [
            i
            for i, (b, _, size) in enumerate(spots)
            if roots[i][0] not in before
            and size
            and (b == lines.GONE or (b >= 0 and not self.books.alive(b)))
        ]
        return some(graph, lost)

    def plan(
        self, at: int, line: lines.Bind, a: Allocator, graph: lines.Graph, before: dict[int, tuple[int, int]]
    ) -> Plan:
        chunks = self.chunks(a, line.places, graph, before)
        kinds = [self.books.types[t] for t in chunks.types]
        sizes = [
            [(self.books.buffers[b].asked, self.books.buffers[b].size) for b in row] for row in chunks.buffers
        ]
        measured = None
        if a.measured is not None and same(a.measured[0], key_of(graph, (), ())):
            by_slot = a.measured[1]
            measured = [
                next((s for s, kind in zip(by_slot, a.types, strict=False) if kind == t), 0)
                for t in chunks.types
            ]
        model = records(graph, line.places, set(before), [chunks.slot(s) for s in line.places])
        view = seen(model, places(graph, line.places, before, chunks), chunks, kinds, sizes, measured)
        names = tuple(t.name for t in graph.tensors)
        return Plan(at, a.number, line.graph, view, names, tuple(k.name for k in kinds))

    def chunks(
        self,
        a: Allocator,
        spots: Sequence[lines.Spot],
        graph: lines.Graph,
        before: dict[int, tuple[int, int]],
    ) -> Chunks:
        """Its own buffers, then those of other allocators that it shares (R)."""
        roots = roots_of(graph)
        used = dict.fromkeys(s[0] for i, s in enumerate(spots) if s[0] >= 0 and roots[i][0] not in before)
        others = [b for b in map(self.books.buffers.__getitem__, used) if b.allocator != a.number]
        types = a.types or tuple(self.books.buffers[b].type for b in used)
        types = tuple(dict.fromkeys(types))
        own = self.books.own(a)
        if a.types:
            others = [b for b in others if b.allocator >= 0]
        rows = tuple(tuple(b.number for b in [*own, *others] if b.type == t) for t in types)
        return Chunks(types, rows)

    def placed(self, plan: Plan, a: Allocator, key: Key, line: lines.Bind, exact: bool) -> None:
        """P by spec/placement.py, and the clause that lets the plan be used where it is not right."""
        cached = (plan.view.graph, plan.view.places, exact, plan.view.chunks, plan.view.real)
        if cached not in self.known:
            found = placement.judge(plan.view) if exact else placement.judge_bound(plan.view)
            first = [b for b in found if b.clause == found[0].clause]  # the rest follows from it
            self.known[cached] = first, placement.exercised(plan.view)
            self.out.plans.append(plan)
        telling, exercised = self.known[cached]
        self.out.exercised += exercised
        for broken in telling:
            blamed = self.blame(a, key, line, broken.clause)
            self.out.add(
                blamed,
                f"graph {line.graph}: {named(broken.message, self.books.graphs[line.graph])}",
                plan.line,
                line.graph,
            )

    def blame(self, a: Allocator, key: Key, line: lines.Bind, clause: str) -> str:
        """G2 after a failed reservation; G4 where a plan for another graph was used; else the plan's own clause."""
        if a.failed:
            return "G2"
        if a.moved or (a.planned is not None and same(a.planned, key)):
            return clause
        if a.bound is not None:
            old = [spot[:2] for spot in a.bound[1]]
            other = not same(a.bound[0], key)
            return "G4" if other and old == [spot[:2] for spot in line.places] else clause
        return "G4" if a.planned is not None else clause

    def again(self, at: int, a: Allocator, key: Key, line: lines.Bind, graph: lines.Graph) -> None:
        """P9: a plan for this very graph puts it where the last one did, as long as no buffer moved."""
        if a.moved or a.planned is None or not same(a.planned, key):
            a.places.clear()
            return
        if a.planned[3] != key[3]:
            return  # other names: what their buffer type asks for may be another size
        whole = (key, a.planned)
        then, a.places[whole] = a.places.get(whole), tuple(line.places)
        if then is None or [b for b, _, _ in then] != [b for b, _, _ in line.places]:
            return  # in another buffer: it was asked for there, which is not seen of leafs
        self.out.exercised["P9"] += 1
        given, roots = {i for i, _, _ in line.before}, roots_of(graph)
        for i, (now, old) in enumerate(zip(line.places, then, strict=True)):
            if now[1] != old[1] and now[0] >= 0 and now[2] and roots[i][0] not in given:
                words = f"{describe(graph, i)} is at offset {now[1]}; the same plan put it at {old[1]}"
                self.out.add("P9", f"graph {line.graph}: {words}", at, line.graph)
                return

    # -- compute and the end -------------------------------------------------------------------

    def compute(self, at: int, line: lines.Compute) -> None:
        """R12: what a graph is bound to must still be there when it is computed."""
        self.out.computes += 1
        if line.compute in self.inside:
            self.out.exercised["R12"] += 1
            return  # it binds the graph itself before it computes
        graph = self.books.graphs[line.graph]
        lost: dict[int, list[int]] = {}
        bound = 0
        for i, (t, (buffer, _, size)) in enumerate(zip(graph.tensors, line.places, strict=True)):
            held = self.books.held.get(t.at)
            mine = held if held is not None and held.what == what(t) else None
            bound += mine is not None
            if mine is not None and not self.books.alive(mine.buffer):
                lost.setdefault(mine.buffer, []).append(i)
            elif mine is None and buffer == lines.GONE and size:
                lost.setdefault(lines.GONE, []).append(i)
        self.out.exercised["R12"] += bound > 0
        for buffer, tensors in lost.items():
            self.out.add(
                "R12",
                f"graph {line.graph} is computed, but {self.lost(graph, buffer, tensors)}",
                at,
                line.graph,
            )

    def lost(self, graph: lines.Graph, buffer: int, tensors: list[int]) -> str:
        if buffer == lines.GONE:
            return f"the memory of {some(graph, tensors)} was freed"
        b, held = self.books.buffers[buffer], self.books.held[graph.tensors[tensors[0]].at]
        return (
            f"the buffer of {b.size} bytes that {some(graph, tensors)} {'was' if len(tensors) == 1 else 'were'} bound to"
            f" at line {held.line} was freed at line {b.freed}"
        )

    def freed(self, at: int, line: lines.Freed) -> None:
        """G5: nothing of it is left, but for what others share."""
        a = self.books.allocators.pop(line.allocator)
        self.out.exercised["G5"] += 1
        left = self.books.own(a) if a.number not in self.sharing else []
        if left:
            words = f"allocator {a.number} is freed, and {sum(b.size for b in left)} bytes of it stay"
            self.out.add("G5", f"{words}: {self.books.words([b.number for b in left])}", at)

    def end(self) -> None:
        """A call that never came back: G2 after a failed reservation, P12 after a measure, P13 with empty tensors."""
        if self.under_way is None:
            return
        at, line = self.under_way
        a = self.books.allocators[line.allocator]
        words = f"the program ends while allocator {line.allocator} has to {line.call} graph {line.graph}"
        if a.failed:
            self.out.add("G2", f"{words}, after a reservation that failed", at, line.graph)
        elif line.call == "bind" and a.measured is not None and a.planned is None:
            self.out.add("P12", f"{words}, after a measure", at, line.graph)
        elif empty(self.books.graphs[line.graph]):
            self.out.add("P13", f"{words}, which has tensors of no bytes", at, line.graph)
        else:
            self.out.unclear.append(f"line {at}: {words}")
