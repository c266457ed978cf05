"""W: target and draft contexts, each with the schedulers of its lanes.

What is decided is in model/workspace.py; here is only which schedulers a context has, and in which
order it asks them. docs/choices.md, "Contexts".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import oracle, records
from ..domain import Ints
from ..records import (
    MAX_LANES,
    MAX_SLOTS,
    VALIDATED,
    Graph,
    Kind,
    Observation,
    Op,
    OpFlag,
    Option,
    Scale,
    Status,
    Strategy,
    has,
)
from ..template import scaled
from ..workspace import NOTHING, Frame, Lane, Need, Pair, Policy, frame, halves

if TYPE_CHECKING:
    from . import Stack

TARGET, DRAFT = 0, 1
Batch = tuple[int, int]  #: tokens of a lane, cells in use


@dataclass
class Context:
    """One open context. Lists are [lane]."""

    number: int
    made: records.Context
    frame: Frame
    template: Graph
    lanes: list[Lane]
    nodes: int  # tensors that its graphs may have
    known: list[tuple[int, int]]  # readings after the lane's last reservation
    bound: list[Batch | None]  # what the lane's graph is for
    able: bool = True  # lane 0 has a scheduler (W6)

    def living(self) -> Iterator[int]:
        """Its lanes that have a scheduler."""
        return (lane for lane in range(self.made.lanes) if lane or self.able)

    def alloc(self, lane: int) -> int:
        """Number of the lane's allocator."""
        return self.number * MAX_LANES + lane


class Contexts:
    """The contexts of a session, by number: those that are open."""

    def __init__(self, stack: Stack) -> None:
        self.stack, self.sched, self.session = stack, stack.sched, stack.session
        self.policy, self.pair = Policy(Ints), Pair(Ints)
        self.known: dict[int, Context] = {}
        self.attached = False
        self.reserves = self.waits = self.reason = 0  # of the operation that runs

    def has(self, number: int) -> bool:
        """Whether allocator `number` is this layer's."""
        c = self.known.get(number // MAX_LANES)
        return c is not None and number % MAX_LANES < c.made.lanes

    def busy(self, c: Context) -> bool:
        return any(self.sched.busy(c.alloc(lane)) for lane in c.living())

    # -- one operation -----------------------------------------------------------------------

    def step(self, op: Op) -> Observation:
        self.reserves = self.waits = self.reason = 0
        if op.kind == Kind.CTX_OPEN:
            return self.shown(self.opening(op.alloc))
        c = self.known.get(op.alloc)
        if c is None:
            return self.stack.misuse()
        if op.kind == Kind.CTX_CLOSE:
            return self.shown(self.closing(c))
        if op.kind == Kind.CTX_ATTACH:
            return self.shown(self.attach(c, op.value))
        if op.kind == Kind.CTX_DECODE:
            return self.shown(*self.decode(c, op.value, op.other, op.flags))
        if op.kind == Kind.CTX_SYNC:
            return self.shown(Status.DONE, oracle.of_lanes(self.sync(c)) or 0)
        if op.kind == Kind.CTX_NODES:
            c.nodes = max(c.nodes, op.value)
            return self.shown(Status.DONE)
        return self.trim(c)

    def shown(self, status: Status, digest: int = 0, released: int = 0) -> Observation:
        """What an operation of a context or a slot shows of itself."""
        types = len(self.stack.setup.types)
        return Observation(
            status, digest=digest, released=released, reported=(0,) * MAX_SLOTS, asked=((),) * types,
            owned=(0,) * types, allocations=self.session.attempts.tried, reserves=self.reserves,
            waits=self.waits, reason=self.reason,
        )  # fmt: skip

    def adds(self, op: Op) -> dict[str, Any]:
        """What is seen of a context after its own operation; after one of a slot, of the target."""
        if op.kind < Kind.CTX_OPEN:
            return {}
        c = self.known.get(op.alloc if op.kind < Kind.SLOT_ENTER else TARGET)
        attached = {"attached": int(self.attached)}
        if c is None:
            return attached
        lanes = [lane if n < c.made.lanes else Lane(NOTHING, NOTHING, 0) for n, lane in enumerate(c.lanes)]
        return {
            **attached,
            "tokens": tuple(x.reserved.tokens for x in lanes),
            "cells": tuple(x.reserved.cells for x in lanes),
            "fewer": tuple(x.fewer for x in lanes),
            "in_flight": int(self.busy(c)),
        }

    # -- coming, going -------------------------------------------------------------------------

    def opening(self, number: int) -> Status:
        contexts = self.stack.setup.contexts
        made = contexts[number] if 0 <= number < len(contexts) else records.Context()
        template = self.session.graph(made.graph)
        taken = any(number * MAX_LANES + lane in self.session.allocs for lane in range(made.lanes))
        if number in self.known or made.config < 0 or template is None or taken:
            return Status.MISUSE
        if any(t.view and template.tensors[t.view_src].scale > Scale.SCALE_TOKENS for t in template.tensors):
            return Status.MISUSE
        seen = frame(made)
        first = self.policy.start(seen)
        nodes = made.nodes or len(template.tensors)
        lanes = range(MAX_LANES)
        c = Context(
            number,
            made,
            seen,
            template,
            [first for _ in lanes],
            nodes,
            [(0, 0) for _ in lanes],
            [None for _ in lanes],
        )
        self.known[number] = c
        for lane in range(made.lanes):
            self.sched.new(c.alloc(lane), made.config, nodes)
            if made.options:
                self.sched.own(c.alloc(lane))
        good = all(self.reserve(c, lane, c.lanes[lane].reserved) == Status.DONE for lane in range(made.lanes))
        self.reserves = 0  # a new context's own
        if not good:
            self.leave(c)
        return Status.DONE if good else Status.REFUSED

    def leave(self, c: Context) -> None:
        for lane in c.living():
            self.sched.free(c.alloc(lane))
        del self.known[c.number]

    def closing(self, c: Context) -> Status:
        """Whoever stays keeps the buffers (R11), alone."""
        if c.number == TARGET and self.stack.server.serving:
            return Status.MISUSE
        self.sync(c)
        self.leave(c)
        self.attached = False
        return Status.DONE

    def sync(self, c: Context) -> list[int | None]:
        """Waits for all lanes: the digests of those that had work in flight."""
        results = [self.sched.wait(c.alloc(lane)) for lane in c.living()]
        return [oracle.digest(r.ran) for r in results if r.ran is not None]

    def wait_for(self, other: Context) -> None:
        """W4."""
        self.waits += 1
        self.sync(other)

    # -- reservations ----------------------------------------------------------------------------

    def graph(self, c: Context, need: Need) -> Graph:
        return scaled(c.template, need.tokens, self.policy.parts(c.frame, need.cells))

    def reserve(self, c: Context, lane: int, need: Need) -> Status:
        """Reserves the template, and notes what the lane reads then. What it had bound is forgotten."""
        number = c.alloc(lane)
        self.reserves += 1
        c.bound[lane] = None
        status = self.sched.reserve(number, self.graph(c, need)).status
        c.known[lane] = self.readings(number)
        return status

    def readings(self, number: int) -> tuple[int, int]:
        """Generation and shrink generation."""
        a = self.session.allocs[number]
        return a.pair.state.gen[a.role], a.pair.state.shrink_gen[a.role]

    def attach(self, c: Context, bits: int) -> Status:
        """W6. What the draft's lane 0 had is let go of before it borrows."""
        target = self.known.get(TARGET)
        present = c.number == DRAFT and target is not None
        if not present or self.attached:
            return Status.MISUSE
        assert target is not None
        if not self.places(target, c):
            return Status.REFUSED
        if self.stack.setup.strategy != Strategy.PAIR:
            self.reason = VALIDATED & ~bits
            if self.reason or self.stack.setup.strategy == Strategy.APART:
                return Status.REFUSED
        if self.pair.waits(True, self.busy(target)):
            self.wait_for(target)
        self.sync(c)
        fails = self.borrow(c, target, bits) != Status.DONE
        self.attached = c.able = not fails
        return Status(self.pair.attach(True, False, True, fails))

    def places(self, target: Context, draft: Context) -> bool:
        """Both may share, and have the same buffer types."""
        phase = all(has(x.made.options, Option.PHASE_AWARE) for x in (target, draft))
        one, other = (set(self.stack.setup.configs[x.made.config]) for x in (target, draft))
        return phase and one == other

    def borrow(self, c: Context, target: Context, bits: int) -> Status:
        """A new scheduler of lane 0 that borrows, and reserves what the old one had; none where that fails."""
        number = c.alloc(0)
        if c.able:
            self.sched.free(number)
        if c.lanes[0].reserved == NOTHING:
            c.lanes[0] = self.policy.start(c.frame)
        self.sched.new(number, c.made.config, c.nodes)
        self.sched.borrow(number, target.alloc(0), bits)
        status = self.reserve(c, 0, c.lanes[0].reserved)
        if status != Status.DONE:
            self.sched.free(number)
            c.lanes[0] = self.policy.failed(c.lanes[0])
        return status

    # -- decode ------------------------------------------------------------------------------------

    def decode(self, c: Context, tokens: int, used: int, flags: int) -> tuple[Status, int]:
        """The status, and the digest of what ran and was waited for."""
        if not self.policy.lawful(c.frame, tokens, used):
            return Status.MISUSE, 0
        if not c.able:
            return Status.REFUSED, 0
        other = self.known.get(1 - c.number)
        if other is not None and self.pair.waits(self.attached, self.busy(other)):
            self.wait_for(other)
        unchecked = bool(flags & OpFlag.UNCHECKED)
        after = self.policy.decode(c.frame, c.lanes, tokens, used)
        running = [lane for lane, runs in enumerate(self.policy.runs(c.frame, tokens)) if runs]
        for lane in running:
            if self.follow(c, lane, after[lane], unchecked) != Status.DONE:
                return Status.REFUSED, 0
        shares = halves(tokens) if len(running) == MAX_LANES else (tokens,)
        return self.run(c, list(zip(running, shares, strict=True)), used, flags)

    def follow(self, c: Context, lane: int, after: Lane, unchecked: bool) -> Status:
        """W2, W5, C3: the lane's reservation is what it is to be from now on."""
        number, before = c.alloc(lane), c.lanes[lane].reserved
        due = self.sched.larger(number, c.nodes)
        changed = after.reserved != before
        c.lanes[lane] = after
        if not self.pair.reserves(changed, due, self.readings(number) != c.known[lane], unchecked):
            return Status.DONE
        if due:
            self.sched.enlarge(number, c.nodes)
        if changed and before.tokens >= after.reserved.tokens and before.cells >= after.reserved.cells:
            self.sched.shrink(number)  # MISUSE, and nothing done, where buffers never become smaller
        status = self.reserve(c, lane, after.reserved)
        if status != Status.DONE:
            c.lanes[lane] = self.policy.failed(after)
        return status

    def run(self, c: Context, parts: list[tuple[int, int]], used: int, flags: int) -> tuple[Status, int]:
        """Binds and computes the lanes' parts of a batch: (lane, tokens)."""
        status = Status.DONE
        for lane, tokens in parts:
            status = self.launch(c, lane, (tokens, used), flags)
            if status != Status.DONE:
                break
        if flags & OpFlag.ASYNC:
            return status, 0
        results = [self.sched.wait(c.alloc(lane)) for lane, _ in parts]
        digests = [oracle.digest(r.ran) for r in results if r.ran is not None]
        return status, oracle.of_lanes(digests) or 0 if status == Status.DONE else 0

    def launch(self, c: Context, lane: int, batch: Batch, flags: int) -> Status:
        """A graph that is bound already is used again."""
        number = c.alloc(lane)
        if c.bound[lane] != batch or self.session.allocs[number].bound is None:
            c.bound[lane] = None
            graph = self.graph(c, Need(*batch))
            bound = self.sched.bind(number, graph, self.graph(c, c.lanes[lane].reserved))
            if bound.status != Status.DONE:
                return bound.status
            c.bound[lane] = batch
        return self.sched.compute(number, None, flags | OpFlag.ASYNC).status

    def trim(self, c: Context) -> Observation:
        """The pools of all devices of its config; refused while a slot is busy (T1)."""
        if self.stack.server.serving:
            return self.shown(Status.REFUSED)
        return self.trimmed(tuple(sorted(set(self.stack.setup.configs[c.made.config]))))

    def trimmed(self, types: tuple[int, ...]) -> Observation:
        if not self.stack.pools.there:
            return self.shown(Status.MISUSE)
        obs = self.stack.pools.trim(types)
        return self.shown(obs.status, released=obs.released)
