"""Traces with captured graphs (Q): captures, replays and trims woven into histories of allocators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..model.pool import KEPT
from ..model.records import MAX_ALLOCS, MAX_STREAMS, Cap, Graph, Kind, Op, OpFlag, PoolKind, Setup, Trace, has
from .draw import Draw
from .generate import draw_history
from .legal import GRAPH_KINDS
from .setups import draw_frame, draw_meta_frame

_MORE = ((Kind.ALLOC, 4), (Kind.COMPUTE, 3))
_OF_NOBODY = (Kind.RESERVE, Kind.ALLOC, Kind.COMPUTE, Kind.FREE, Kind.LAUNCH, Kind.DROP, Kind.CAPTURE_END)
_NO_FLAG = OpFlag(0)


def draw_captures(draw: Draw, caps: Cap) -> Trace:
    """Plain allocators or a pair, behind schedulers or not, mostly with pools."""
    pair = bool(caps & (Cap.RESIZABLE | Cap.GROUP)) and draw.boolean(0.6)
    sched = bool(caps & Cap.SCHED) and draw.boolean(0.5)
    meta = bool(caps & Cap.META and caps & Cap.EXACT) and draw.boolean(0.2)
    frame = draw_meta_frame(draw) if meta else draw_frame(draw, pair)
    base = draw_history(draw, frame, caps, pair=pair, sched=sched, more=_MORE, length=14)
    setup = base.setup
    if caps & Cap.POOL and draw.boolean(0.9):
        unit = max(4096, *(t.granularity for t in setup.types))
        kind = PoolKind.LEGACY_POOL if draw.boolean(0.35) else PoolKind.VMM_POOL
        setup = replace(setup, pool=kind, pool_range=unit * draw.choice((1, 2, 4)))
    ops = tuple(_Weaver(draw, setup, base.graphs).weave(base.ops))
    begins = [i for i, op in enumerate(ops) if op.kind == Kind.CAPTURE_BEGIN]
    if begins and draw.boolean(0.08):  # the session ends during a capture
        ops = ops[: draw.choice(begins) + draw.integer(1, 4)]
    return replace(base, setup=setup, ops=ops)


@dataclass
class _Weaver:
    """Puts captures among the operations of a history."""

    draw: Draw
    setup: Setup
    graphs: tuple[Graph, ...]
    sched: dict[int, int] = field(
        default_factory=dict
    )  # allocators behind schedulers: tensors they are made for
    held: set[int] = field(default_factory=set)  # of these, who are to be larger only once they are captured
    alive: set[int] = field(default_factory=set)
    captured: list[int] = field(default_factory=list)  # should have a captured graph
    hoarded: bool = False
    out: list[Op] = field(default_factory=list)  # what gives blocks back that are out

    def weave(self, ops: tuple[Op, ...]) -> Iterator[Op]:
        rest = list(ops)
        while rest:
            op = self.small(rest.pop(0))
            yield op
            self.note(op)
            if op.kind == Kind.ALLOC and op.alloc in self.alive and self.draw.boolean(0.5):
                yield from self.capture(op, rest)
                if len(self.alive) > 1 and self.draw.boolean(0.5):
                    yield from self.another(op)
            yield from self.between()
        last = list(dict.fromkeys(self.captured))[-2:]
        if last and self.draw.boolean(0.5):  # Q2: of all that were captured
            yield from (Op(Kind.LAUNCH, n) for n in last)
            yield self.trim()
        yield from (Op(Kind.LAUNCH, n) for n in last)

    def small(self, op: Op) -> Op:
        """A scheduler is made for few tensors, at times, and gets no more until its graph is captured:
        then it comes to be larger (Q1)."""
        shortest = min(range(len(self.graphs)), key=lambda g: len(self.graphs[g].tensors))
        if op.kind == Kind.NEW:
            self.held.discard(op.alloc)
            if has(op.flags, OpFlag.BY_SCHED) and self.draw.boolean(0.5):
                self.held.add(op.alloc)
                return replace(op, value=max(1, len(self.graphs[shortest].tensors)))
        if op.kind in GRAPH_KINDS and op.alloc in self.held:
            return replace(op, graph=shortest)
        return op

    def note(self, op: Op) -> None:
        if op.kind == Kind.NEW:
            self.alive.add(op.alloc)
            self.sched.pop(op.alloc, None)
            if has(op.flags, OpFlag.BY_SCHED):
                self.sched[op.alloc] = op.value or self.longest
        if op.kind in (Kind.RESERVE, Kind.ALLOC) and op.alloc in self.sched:
            self.sched[op.alloc] = max(self.sched[op.alloc], len(self.graphs[op.graph].tensors))
        if op.kind in (Kind.FREE, Kind.REMAKE):
            self.captured = [n for n in self.captured if n != op.alloc]
        if op.kind == Kind.FREE:
            self.alive.discard(op.alloc)

    def capture(self, bound: Op, rest: list[Op]) -> Iterator[Op]:
        """A capture of what was just bound; others go on meanwhile, at times."""
        draw, n = self.draw, bound.alloc
        if draw.boolean(0.9):
            yield from (Op(Kind.SYNC, m) for m in sorted(self.sched.keys() & self.alive))
        hoards = self.setup.pool == PoolKind.LEGACY_POOL and not self.hoarded and draw.boolean(0.4)
        if hoards and draw.boolean(
            0.3
        ):  # a pool that is full frees what it is given, now or once work has ended
            yield from self.take_many(n, KEPT)
            if draw.boolean(0.5):
                yield Op(Kind.COMPUTE, n, graph=bound.graph, flags=OpFlag.ASYNC)
                yield Op(Kind.SYNC, n)
        elif hoards and draw.boolean(0.5):
            yield from self.take_many(n, 2)  # its computations use one block each
        if len(self.alive) > 1 and draw.boolean(0.08):  # whose work may be on what they share
            yield from self.busy(n)
        yield Op(Kind.CAPTURE_BEGIN, n)
        if draw.boolean(0.4):
            yield from self.meanwhile(bound)
        for _ in range(draw.choice((1, 1, 1, 2, 0) if not hoards else (1, 2, 2))):
            fails = draw.choice((1, 2, 3)) if self.setup.pool and draw.boolean(0.08) else 0
            yield Op(Kind.COMPUTE, n, graph=bound.graph, fail_nth=fails)
        if draw.boolean(0.4):
            yield from self.meanwhile(bound)
        for _ in range(draw.choice((0, 0, 1, 2))):
            if rest:
                op = self.small(rest.pop(0))
                self.note(op)
                yield op
        yield Op(Kind.CAPTURE_END, n)
        self.captured.append(n)
        if hoards:
            self.hoarded = True
            yield from self.take_many(n, KEPT + draw.integer(1, 2))
            yield Op(Kind.LAUNCH, n, flags=OpFlag.UNCHECKED if draw.boolean(0.4) else _NO_FLAG)
        elif draw.boolean(0.7):
            yield self.launch(n)
        if self.setup.pool and draw.boolean(0.35):  # memory that it uses is somebody else's meanwhile
            yield self.take(n)
            if draw.boolean(0.4):  # and another block comes and goes
                yield self.take(n)
                yield self.out.pop()
            yield self.launch(n)
            yield self.out.pop()
        if n in self.held:
            self.held.discard(n)
            if draw.boolean(0.5):
                yield from self.anew(n)
                yield self.launch(n)

    def busy(self, n: int) -> Iterator[Op]:
        """Another allocator has work in flight."""
        other = self.draw.choice(sorted(self.alive - {n}))
        graph = self.draw.integer(0, len(self.graphs) - 1)
        yield Op(Kind.COMPUTE, other, graph=graph, flags=OpFlag.ASYNC)

    def another(self, bound: Op) -> Iterator[Op]:
        """A second allocator is captured too: a trim concerns both (Q2)."""
        n = self.draw.choice(sorted(self.alive - {bound.alloc}))
        yield from (Op(kind, n, graph=bound.graph) for kind in (Kind.RESERVE, Kind.ALLOC))
        yield from (Op(Kind.SYNC, m) for m in sorted(self.sched.keys() & self.alive))
        yield Op(Kind.CAPTURE_BEGIN, n)
        yield from [Op(Kind.COMPUTE, n, graph=bound.graph), Op(Kind.CAPTURE_END, n)]
        self.captured.append(n)
        if self.draw.boolean(0.7):
            yield self.trim()
            yield from (Op(Kind.LAUNCH, m) for m in (bound.alloc, n))

    def take_many(self, n: int, many: int) -> Iterator[Op]:
        """Blocks of one legacy pool are taken, and all given back: beyond what it keeps the first are freed."""
        device = self.draw.choice(self.devices)
        yield from [Op(Kind.POOL_ALLOC, n, device, value=1)] * many
        yield from [Op(Kind.POOL_FREE, n, device)] * many

    def meanwhile(self, bound: Op) -> Iterator[Op]:
        """What a capture must not let through, and a little that it must."""
        draw, n = self.draw, bound.alloc
        graph, other = draw.integer(0, len(self.graphs) - 1), draw.choice(sorted(self.alive))
        if draw.boolean(0.5):  # one that buffers must be replaced for
            graph = self.largest()
        nobody = draw.choice(sorted(set(range(MAX_ALLOCS)) - self.alive) or [n])
        yield from draw.choice((
            [self.trim()], [self.trim()], [Op(Kind.RESERVE, n, graph=graph)], [Op(Kind.RESERVE, other, graph=graph)],
            [Op(Kind.ALLOC, other, graph=graph)], [Op(Kind.ALLOC, n, graph=graph)], [Op(Kind.LAUNCH, n)],
            [Op(Kind.LAUNCH, other)], [self.take(n)], [Op(Kind.MEASURE, n, graph=graph)],
            [Op(Kind.CAPTURE_BEGIN, other)], [Op(Kind.COMPUTE, other, graph=graph)], [Op(Kind.DROP, n)],
            self.out[-1:] or [self.take(n)],
            [Op(Kind.RESET, other), Op(Kind.COMPUTE, other, graph=graph)],
            [Op(Kind.NEW, nobody), Op(Kind.OWN, nobody), Op(Kind.BORROW, other, nobody), Op(Kind.FREE, nobody)],
            [Op(Kind.NEW, nobody), Op(Kind.BORROW, nobody, n), Op(Kind.FREE, nobody)],
            [Op(draw.choice(_OF_NOBODY), nobody, graph=graph)],
            [Op(Kind.SHRINK, n), replace(bound, fail_nth=0, fail_types=0)],  # what is ready needs no other buffers
            [Op(Kind.SHRINK, n), Op(Kind.RESERVE, n, graph=bound.graph)],
        ))  # fmt: skip

    def between(self) -> Iterator[Op]:
        """Replays, trims and blocks of pools after an operation."""
        draw = self.draw
        if self.captured and draw.boolean(0.3):
            n = draw.choice(self.captured)
            if draw.boolean(0.3):  # Q1: what it uses is replaced, mostly
                yield from self.outgrown(n)
                if draw.boolean(0.1):
                    yield Op(Kind.LAUNCH, n, flags=OpFlag.UNCHECKED)
            elif len(self.alive) > 1 and draw.boolean(0.1):  # whoever shares with it is at work
                yield from self.busy(n)
            elif draw.boolean(0.75 if self.sched.get(n, self.longest) < self.longest else 0.25):
                yield from self.anew(n)
            yield self.launch(n)
        if draw.boolean(0.08):
            yield self.trim()
            if self.captured and draw.boolean(0.6):
                yield Op(Kind.LAUNCH, draw.choice(self.captured))
        if self.setup.pool and draw.boolean(0.06):
            yield self.take(draw.integer(0, MAX_STREAMS - 1))
        if self.out and draw.boolean(0.3):
            yield self.out.pop()
        if self.captured and draw.boolean(0.07):
            yield Op(Kind.DROP, self.captured[-1])

    def outgrown(self, n: int) -> Iterator[Op]:
        """The largest graph is reserved for, or buffers shrink; and a graph is bound again, at times."""
        draw = self.draw
        graph = draw.integer(0, len(self.graphs) - 1)
        if draw.boolean(0.5):
            yield Op(Kind.RESERVE, n, graph=self.largest())
        else:
            yield Op(Kind.SHRINK, n)
            yield from (Op(Kind.RESERVE, m, graph=graph) for m in sorted(self.alive))
        if draw.boolean(0.5):
            yield Op(Kind.ALLOC, n, graph=graph)

    def anew(self, n: int) -> Iterator[Op]:
        """Its scheduler comes to be larger, or it is remade: its work may be in flight, a graph may be bound."""
        draw = self.draw
        longest = next(i for i, g in enumerate(self.graphs) if len(g.tensors) == self.longest)
        if draw.boolean(0.3):
            yield Op(Kind.LAUNCH, n, flags=OpFlag.ASYNC)
        kind = draw.choice((Kind.RESERVE, Kind.RESERVE, Kind.ALLOC, Kind.COMPUTE, Kind.REMAKE))
        if kind == Kind.COMPUTE:  # of nothing bound
            yield Op(Kind.RESET, n)
        yield Op(kind, n, graph=0 if kind == Kind.REMAKE else longest)

    def largest(self) -> int:
        return max(range(len(self.graphs)), key=lambda g: sum(t.alloc_size for t in self.graphs[g].tensors))

    def launch(self, n: int) -> Op:
        if self.draw.boolean(0.04):  # without the check memory that is gone is touched (Q1 is load-bearing)
            return Op(Kind.LAUNCH, n, flags=OpFlag.UNCHECKED)
        return Op(Kind.LAUNCH, n, flags=OpFlag.ASYNC if self.draw.boolean(0.3) else _NO_FLAG)

    @property
    def longest(self) -> int:
        """Tensors of the graph that has most."""
        return max(len(g.tensors) for g in self.graphs)

    @property
    def devices(self) -> list[int]:
        return [k for k, kind in enumerate(self.setup.types) if not kind.meta]

    def trim(self) -> Op:
        return Op(Kind.TRIM, other=self.draw.integer(0, len(self.setup.types) - 1))

    def take(self, stream: int) -> Op:
        device = self.draw.choice(self.devices)
        if self.draw.boolean(0.03):  # a meta type may be named, and has no pool
            device = self.draw.integer(0, len(self.setup.types) - 1)
        self.out.append(Op(Kind.POOL_FREE, stream, device))
        return Op(Kind.POOL_ALLOC, stream, device, value=self.draw.choice((1, 500, 5000)))
