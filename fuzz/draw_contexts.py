"""Traces of target and draft contexts, and of the server over them (W, T).

Templates and caches are tiny, so that runs of 64 calls that need less cost little: W2 is met at 63, 64
and 65 calls, W3 at batches of 63, 64 and 65 tokens, W1 at cells around every step.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..model.records import (
    MAX_SERVER_SLOTS,
    UNLIMITED,
    VALIDATED,
    Cap,
    Context,
    Kind,
    Op,
    OpFlag,
    PoolKind,
    Setup,
    Trace,
)
from .draw import Draw, weighted
from .draw_beside import draw_beside
from .draw_workspaces import DRAFT, TARGET, draw_setup

_NO_FLAG = OpFlag(0)
_LENGTH = 26
#: how long a run of small calls is: short ones; and around 64, in one trace of four: they cost as much as
#: three others
_RUNS, _LONG_RUNS, _LONG = ((1, 3), (2, 3), (4, 2)), ((62, 1), (63, 3), (64, 4), (65, 2), (70, 1)), 0.25


def draw_contexts(draw: Draw, caps: Cap) -> Trace:
    """Contexts driven directly."""
    setup, graphs = draw_setup(draw, caps)
    return Trace(setup, graphs, _History(draw, setup, len(graphs), caps, server=False).ops())


def draw_server(draw: Draw, caps: Cap) -> Trace:
    """Requests come and go; pools hold memory in between."""
    setup, graphs = draw_setup(draw, caps)
    if caps & Cap.POOL and draw.boolean(0.85):
        kind = PoolKind.LEGACY_POOL if draw.boolean(0.3) else PoolKind.VMM_POOL
        setup = replace(setup, pool=kind, pool_range=4096 * draw.choice((1, 4, 4, 64)))
    return Trace(setup, graphs, _History(draw, setup, len(graphs), caps, server=True).ops())


@dataclass
class _History:
    """Draws operations, and keeps in mind which contexts are open and which slots are busy."""

    draw: Draw
    setup: Setup
    graphs: int  # how many templates there are
    caps: Cap
    server: bool
    out: list[Op] = field(default_factory=list)
    open: set[int] = field(default_factory=set)
    busy: set[int] = field(default_factory=set)
    runs: int = 0

    def ops(self) -> tuple[Op, ...]:
        draw = self.draw
        self.p_fail = draw.choice((0.0, 0.0, 0.08, 0.2))
        self.p_async = draw.choice((0.0, 0.3, 0.6))
        self.p_wrong = draw.choice((0.0, 0.0, 0.05))
        self.lengths = _RUNS + _LONG_RUNS if draw.boolean(_LONG) else _RUNS
        self.weights = tuple((move, w * draw.choice((0, 1, 1, 2))) for move, w in self.moves())
        self.weights += ((self.decode, 1),)
        self.begin()
        while len(self.out) < _LENGTH + 140 * self.runs and len(self.out) < 230:
            if draw.boolean(self.p_wrong):
                self.anything()
            else:
                weighted(draw, self.weights)()
        return tuple(self.out)

    def moves(self):  # type: ignore[no-untyped-def]
        """What may come next, with its weight."""
        moves = [
            (self.decode, 6), (self.prompt, 4), (self.run, 3), (self.sync, 2), (self.attach, 2),
            (self.reopen, 1), (self.nodes, 1), (self.look, 1), (self.capacity, 1), (self.unchecked, 1),
            (self.outgrown, 2),
        ]  # fmt: skip
        if self.setup.pool != PoolKind.NO_POOL:
            moves += [(self.trim, 1), (self.starved, 1)]
        if self.server:
            moves += [(self.enter, 6), (self.step, 8), (self.leave, 5), (self.close_busy, 2)]
            moves.append((self.full_step, 2))
        return [*moves, (self.beside, 2)]

    def begin(self) -> None:
        """Mostly what one would write first: both are opened, the draft attaches."""
        for c in range(len(self.setup.contexts)):
            if c == TARGET or self.draw.boolean(0.9):
                self.add(op := self.failing(Op(Kind.CTX_OPEN, c), 0.3))
                if op.fail_nth or op.fail_types:
                    self.add(Op(Kind.CTX_OPEN, c))
                self.open.add(c)
        if DRAFT in self.open and self.draw.boolean(0.85):
            self.attach()

    def add(self, op: Op) -> None:
        self.out.append(op)

    def failing(self, op: Op, less: float = 1.0) -> Op:
        draw = self.draw
        if not draw.boolean(self.p_fail * less):
            return op
        if draw.boolean(0.6):
            return replace(op, fail_nth=draw.choice((1, 1, 1, 2, 3)))
        return replace(op, fail_types=draw.integer(1, (1 << len(self.setup.types)) - 1))

    def who(self) -> int:
        return self.draw.choice(sorted(self.open)) if self.open else TARGET

    def used(self, c: Context) -> int:
        """Cells in use: around every step, else any."""
        draw, eighth = self.draw, c.cells // 8
        if draw.boolean(0.6):
            near = draw.choice((1, 1, 2, 4, 8)) * eighth + draw.choice((-1, 0, 0, 1))
            return max(0, min(c.cells, near))
        return draw.integer(0, c.cells)

    def flags(self) -> OpFlag:
        return OpFlag.ASYNC if self.draw.boolean(self.p_async) else _NO_FLAG

    def decode(self) -> None:
        n = self.who()
        c = self.setup.contexts[n]
        tokens = self.draw.integer(1, c.generation)
        self.add(self.failing(Op(Kind.CTX_DECODE, n, self.used(c), flags=self.flags(), value=tokens)))

    def prompt(self) -> None:
        """A batch above the generation size; around 64 tokens where there are so many."""
        n, draw = self.who(), self.draw
        c = self.setup.contexts[n]
        tokens = draw.choice((c.generation + 1, 63, 64, 65, c.batch, c.batch, draw.integer(1, c.batch)))
        tokens = max(1, min(c.batch, tokens))
        flags = self.flags()
        self.add(self.failing(Op(Kind.CTX_DECODE, n, self.used(c), flags=flags, value=tokens)))
        if flags and draw.boolean(0.4):
            self.add(Op(Kind.CTX_SYNC, n))

    def run(self) -> None:
        """Small calls in a row, of one context or of both in turn; rarely one in between that needs more."""
        draw = self.draw
        if self.runs >= 2:
            return
        length = weighted(draw, self.lengths)
        self.runs += length > 60
        n = self.who()
        both = len(self.open) > 1 and draw.boolean(0.3)
        if length > 60:
            self.prompt_of(n)
        top = self.setup.contexts[n].cells // draw.choice((8, 8, 4, 2))
        odd = draw.integer(0, 2 * length)
        for k in range(length):
            for c in (n, 1 - n) if both else (n,):
                made = self.setup.contexts[c]
                used = min(made.cells, draw.integer(0, top))
                tokens = draw.integer(1, made.generation)
                if k == odd:
                    tokens, used = draw.choice(
                        ((made.batch, used), (tokens, made.cells), (made.batch, made.cells))
                    )
                self.add(Op(Kind.CTX_DECODE, c, used, value=tokens))

    def prompt_of(self, n: int) -> None:
        """So that there is something to become smaller."""
        c = self.setup.contexts[n]
        self.add(Op(Kind.CTX_DECODE, n, c.cells // self.draw.choice((1, 1, 2)), value=c.batch))

    def sync(self) -> None:
        self.add(Op(Kind.CTX_SYNC, self.who()))

    def attach(self) -> None:
        if DRAFT not in self.open or TARGET not in self.open:
            return
        draw = self.draw
        bits = VALIDATED if draw.boolean(0.85) else draw.integer(0, VALIDATED)
        op = self.failing(Op(Kind.CTX_ATTACH, DRAFT, value=bits))
        if draw.boolean(0.35):  # the draft has more, so that the shared buffers must grow: that may fail (W6)
            self.prompt_of(DRAFT)
            op = replace(op, fail_nth=1) if draw.boolean(0.5) else op
        flying = draw.boolean(0.25)  # W4: both lanes are waited for
        if flying:
            target = self.setup.contexts[TARGET]
            self.add(Op(Kind.CTX_DECODE, TARGET, self.used(target), flags=OpFlag.ASYNC, value=target.batch))
        self.add(op)
        if flying:
            self.add(Op(Kind.CTX_SYNC, TARGET))
        if op.fail_nth or op.fail_types:  # without a scheduler a decode is refused
            if self.draw.boolean(0.5):
                self.decode()
            if self.draw.boolean(0.2):  # it is open all the same
                self.add(Op(Kind.CTX_OPEN, DRAFT))
            self.add(Op(Kind.CTX_ATTACH, DRAFT, value=VALIDATED))

    def reopen(self) -> None:
        """A context goes, and mostly comes back; a draft that stays decodes on what it has (R11)."""
        draw = self.draw
        closed = [c for c in range(len(self.setup.contexts)) if c not in self.open]
        if closed and draw.boolean(0.7):
            self.add(self.failing(Op(Kind.CTX_OPEN, closed[0]), 0.5))
            self.open.add(closed[0])
        else:
            n = self.who()
            self.add(Op(Kind.CTX_CLOSE, n))
            if not (self.busy and n == TARGET):
                self.open.discard(n)
            if n == TARGET and self.draw.boolean(0.4):  # there is nobody to attach to
                self.add(Op(Kind.CTX_ATTACH, DRAFT, value=VALIDATED))

    def nodes(self) -> None:
        n = self.who()
        self.add(Op(Kind.CTX_NODES, n, value=self.draw.integer(1, 16)))

    def look(self) -> None:
        self.add(Op(Kind.LOOK, self.draw.integer(0, 3)))

    def capacity(self) -> None:
        """A device has less for a while; what is in use stays."""
        device = self.draw.integer(0, len(self.setup.types) - 1)
        kind = self.setup.types[device]
        self.add(Op(Kind.CAPACITY, other=device, value=self.draw.choice((0, 256, 4096, 1 << 15))))
        steps = 3 if self.busy else 0
        weighted(self.draw, ((self.prompt, 3), (self.attach, 1), (self.decode, 1), (self.step, steps)))()
        if self.draw.boolean(0.8):
            self.add(Op(Kind.CAPACITY, other=device, value=self.draw.choice((kind.capacity, UNLIMITED))))

    def unchecked(self) -> None:
        """R12's counter-test: the other replaces the buffers, and the comparison is left out."""
        if len(self.open) < 2 or not self.draw.boolean(0.4):
            return
        n = self.who()
        mine, others = self.setup.contexts[n], self.setup.contexts[1 - n]
        op = Op(Kind.CTX_DECODE, n, self.used(mine), value=self.draw.integer(1, mine.generation))
        self.add(op)
        self.add(Op(Kind.CTX_DECODE, 1 - n, others.cells, value=others.batch))
        self.add(replace(op, flags=OpFlag.UNCHECKED))

    def outgrown(self) -> None:
        """W5: the other replaces the buffers; then a call that needs less than is reserved, or as much."""
        if len(self.open) > 1:
            n = self.who()
            c = self.setup.contexts[n]
            small = Op(Kind.CTX_DECODE, n, self.used(c), value=self.draw.integer(1, c.generation))
            self.add(small)
            self.prompt_of(1 - n)
            self.add(small if self.draw.boolean(0.5) else replace(small, other=0, value=1))

    def trim(self) -> None:
        self.add(Op(Kind.CTX_TRIM, self.who()))

    def starved(self) -> None:
        """A batch in flight, and one that its plan is right for but that has no scratch: nobody is waited for."""
        n = self.who()
        c = self.setup.contexts[n]
        self.add(op := Op(Kind.CTX_DECODE, n, self.used(c), flags=OpFlag.ASYNC, value=1))
        self.out += [Op(Kind.TRIM, other=t) for t in range(len(self.setup.types))]
        self.add(replace(op, other=max(0, op.other - 1), fail_nth=1))

    def beside(self) -> None:
        """An allocator that no context drives, for a while."""
        n = self.who()
        used = self.used(self.setup.contexts[n])
        closed = [c for c in range(len(self.setup.contexts)) if c not in self.open]
        meanwhile = [[Op(Kind.CTX_SYNC, n)], [Op(Kind.CTX_OPEN, self.draw.choice([n, *closed]))]]
        meanwhile.append([Op(Kind.CTX_DECODE, n, used, value=1)])
        if self.server and not self.busy:
            meanwhile.append([Op(Kind.SLOT_ENTER, 0), Op(Kind.SLOT_STEP, 0, value=1), Op(Kind.SLOT_LEAVE, 0)])
        self.out += draw_beside(self.draw, self.setup, self.graphs, self.draw.choice(meanwhile))

    def enter(self) -> None:
        free = [k for k in range(MAX_SERVER_SLOTS) if k not in self.busy]
        if free and TARGET in self.open:
            slot = self.draw.choice(free)
            self.busy.add(slot)
            self.add(Op(Kind.SLOT_ENTER, slot))

    def step(self) -> None:
        if self.busy:
            c = self.setup.contexts[TARGET]
            tokens = self.draw.choice((1, 1, c.generation, c.batch, self.draw.integer(1, c.batch)))
            slot = self.draw.choice(sorted(self.busy))
            self.add(self.failing(Op(Kind.SLOT_STEP, slot, value=tokens), 0.5))

    def full_step(self) -> None:
        """A step that nothing can be had for, then others: what a refused step leaves shows in them (W1)."""
        if self.busy:
            c, slot = self.setup.contexts[TARGET], self.draw.choice(sorted(self.busy))
            op = Op(Kind.SLOT_STEP, slot, value=self.draw.choice((c.generation, c.batch, c.batch)))
            self.add(replace(op, fail_types=(1 << len(self.setup.types)) - 1))
            for _ in range(self.draw.integer(1, 2)):
                self.add(replace(op, value=self.draw.choice((1, op.value))))

    def leave(self) -> None:
        if self.busy:
            slot = self.draw.choice(sorted(self.busy))
            self.busy.discard(slot)
            self.add(Op(Kind.SLOT_LEAVE, slot))

    def close_busy(self) -> None:
        """The target may not go while a slot is busy (T1)."""
        if self.busy:
            self.add(Op(Kind.CTX_CLOSE, TARGET))

    def anything(self) -> None:
        """Any operation of a context or slot, most of them at a wrong time."""
        draw = self.draw
        kinds = [Kind.CTX_OPEN, Kind.CTX_CLOSE, Kind.CTX_ATTACH, Kind.CTX_DECODE, Kind.CTX_SYNC, Kind.RESERVE,
                 Kind.NEW, Kind.FREE, Kind.CTX_TRIM]  # fmt: skip
        kinds += [Kind.SLOT_ENTER, Kind.SLOT_STEP, Kind.SLOT_LEAVE] if self.server else []
        kind = draw.choice(kinds)
        if kind == Kind.CTX_DECODE:
            c = self.setup.contexts[0]
            used = draw.choice((0, c.cells, c.cells + 1))
            self.add(Op(kind, draw.integer(0, 1), used, value=draw.choice((0, 1, c.batch, c.batch + 1))))
        elif kind == Kind.SLOT_STEP:
            self.add(Op(kind, draw.integer(0, 3), value=draw.choice((0, 1))))
        else:
            n = draw.integer(0, 1)
            self.add(Op(kind, n))
            if kind == Kind.CTX_OPEN and n < len(self.setup.contexts):
                self.open.add(n)
            if kind == Kind.CTX_CLOSE and not (self.busy and n == TARGET):
                self.open.discard(n)
