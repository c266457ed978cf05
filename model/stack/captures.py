"""Q: captured graphs, one an allocator."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .. import oracle
from ..capture import NOBODY, CaptureOp, Model, Out, State
from ..domain import Ints
from ..records import MAX_ALLOCS, Graph, Kind, Observation, Op, OpFlag, Status, has

if TYPE_CHECKING:
    from . import Stack
    from .pools import Block

#: what the captured allocator and who shares with it may not do during a capture
_APART = (Kind.SYNC, Kind.RESET, Kind.FREE, Kind.REMAKE, Kind.OWN, Kind.BORROW)


@dataclass
class Record:
    """What a stream was given while it was captured."""

    graphs: list[Graph] = field(default_factory=list)
    scratch: list[tuple[int, Block]] = field(default_factory=list)  # pool memory that it uses
    generation: int = 0
    nodes: int = 0  # what its scheduler was made for


class Captures:
    """Which allocators have a captured graph, and who is being captured."""

    def __init__(self, stack: Stack) -> None:
        self.stack, self.session = stack, stack.session
        self.model = Model(Ints, MAX_ALLOCS)
        self.at = NOBODY
        self.taking = Record()
        self.kept: dict[int, Record] = {}

    # -- operations ----------------------------------------------------------------

    def step(self, op: Op) -> Observation:
        """CAPTURE_BEGIN, CAPTURE_END, LAUNCH, DROP."""
        if op.alloc not in self.session.allocs or self.stack.contexts.has(op.alloc):
            return self.stack.misuse()
        a = self.session.allocs[op.alloc]
        out = self.play(op)
        digest = 0
        if op.kind == Kind.CAPTURE_BEGIN and out.status == Status.DONE:
            self.at, self.taking = op.alloc, Record()
        elif op.kind == Kind.CAPTURE_BEGIN and out.status == Status.STALE:
            self.unbind(op.alloc)
        elif op.kind == Kind.CAPTURE_END and out.status != Status.MISUSE:
            self.end(op.alloc, out.status == Status.DONE, a.pair.state.gen[a.role])
        elif op.kind == Kind.LAUNCH and out.status == Status.DONE:
            digest = self.launched(op)
        elif op.kind in (Kind.LAUNCH, Kind.DROP) and out.status != Status.MISUSE:
            del self.kept[op.alloc]
        return replace(self.session.look(op.alloc), status=Status(out.status), digest=digest)

    def play(self, op: Op) -> Out:
        """One step of the machine, with everything as it is now."""
        ask = CaptureOp(
            int(op.kind), op.alloc, has(op.flags, OpFlag.UNCHECKED), has(op.flags, OpFlag.ASYNC),
            lent=any(self.lent(*where) for where in self.record(op.alloc).scratch),
        )  # fmt: skip
        return self.model.step(self.state(), ask)[1]

    def record(self, number: int) -> Record:
        return self.kept.get(number, Record())

    def state(self) -> State:
        """The machine's state; of history it needs none here."""
        session, all_ = self.session, range(MAX_ALLOCS)
        there = [session.allocs.get(n) for n in all_]
        gen = tuple(a.pair.state.gen[a.role] if a else 0 for a in there)
        return self.model.init()._replace(
            at=self.at,
            taken=len(self.taking.graphs),
            has=tuple(n in self.kept for n in all_),
            has_gen=tuple(self.record(n).generation for n in all_),
            bound=tuple(a is not None and a.bound is not None for a in there),
            bound_gen=tuple(a.pair.state.bound_gen[a.role] if a else 0 for a in there),
            gen=gen,
            busy=tuple(self.stack.sched.busy(n) for n in all_),
            mates=tuple(tuple(self.mates(m, n) for n in all_) for m in all_),
            mapped=tuple(not any(self.gone(*where) for where in self.record(n).scratch) for n in all_),
        )

    def mates(self, m: int, n: int) -> bool:
        """Whether two allocators share buffers."""
        a, b = self.session.allocs.get(m), self.session.allocs.get(n)
        return m != n and a is not None and b is not None and a.pair is b.pair

    def unbind(self, number: int) -> None:
        """The bound graph is forgotten, as by a computation that finds it outdated."""
        a = self.session.allocs[number]
        bound = tuple(x and r != a.role for r, x in enumerate(a.pair.state.bound))
        a.bound, a.pair.state = None, a.pair.state._replace(bound=bound)

    def end(self, number: int, keep: bool, generation: int) -> None:
        self.taking.generation, self.taking.nodes = generation, self.nodes(number)
        if keep:
            self.kept[number] = self.taking
        self.at, self.taking = NOBODY, Record()

    def nodes(self, number: int) -> int:
        return self.stack.sched.known[number].nodes if self.stack.sched.has(number) else 0

    def launched(self, op: Op) -> int:
        """The digest that a replay shows."""
        graph, run_async = self.kept[op.alloc].graphs[-1], has(op.flags, OpFlag.ASYNC)
        if not self.stack.sched.has(op.alloc):
            return oracle.digest(graph) or 0
        self.stack.sched.launched(op.alloc, graph, run_async)
        return 0 if run_async else oracle.digest(graph) or 0

    # -- pool memory -----------------------------------------------------------------

    def gone(self, pool: int, block: Block) -> bool:
        """The block is not mapped any more."""
        pools = self.stack.pools
        p = pools.state.pools[pool]
        if pools.model.vmm:
            return sum(block) > p.base + p.mapped
        return block[0] not in p.at and block not in pools.blocks[pool]

    def lent(self, pool: int, block: Block) -> bool:
        """The block, or a part of it, is handed out to somebody."""
        pools = self.stack.pools
        p = pools.state.pools[pool]
        return block[0] < p.base + p.out if pools.model.vmm else block in pools.blocks[pool]

    def trimmed(self, devices: set[int]) -> None:
        """Q2: who uses one of the devices has no captured graph any more."""
        types = self.stack.setup.types
        for n in list(self.kept):
            uses = self.stack.setup.configs[self.session.allocs[n].config]
            if devices & {d for t in uses for d in types[t].devices(t)}:
                del self.kept[n]

    # -- what a capture forbids (Q3) ---------------------------------------------------

    def gate(self, op: Op) -> Observation | None:
        """What an operation of another layer shows where a capture decides it; None: it does not."""
        if self.at == NOBODY:
            return None
        if op.kind >= Kind.CTX_OPEN:
            return self.stack.misuse()
        near = op.alloc in self.session.allocs and (op.alloc == self.at or self.mates(op.alloc, self.at))
        if op.kind == Kind.BORROW:
            near |= op.other == self.at or self.mates(op.other, self.at)
        if op.kind in _APART and near:
            return self.stack.misuse()
        if op.kind == Kind.COMPUTE and near:
            return self.recorded(op) if op.alloc == self.at else self.stack.misuse()
        if op.kind in (Kind.RESERVE, Kind.ALLOC, Kind.COMPUTE) and self.replaces(op):
            return self.refused(op)
        return None

    def refused(self, op: Op) -> Observation:
        return replace(self.session.look(op.alloc), status=Status.REFUSED)

    def recorded(self, op: Op) -> Observation:
        """COMPUTE of the captured allocator: nothing runs."""
        a = self.session.allocs[op.alloc]
        if a.bound is None:  # no reservation may happen now
            return self.stack.misuse()
        pools = self.stack.pools
        if not pools.take(op.alloc, a.bound):
            return replace(self.refused(op), allocations=self.session.attempts.tried)
        self.taking.graphs.append(a.bound)
        self.taking.scratch += pools.scratch
        pools.give()
        return replace(self.session.look(op.alloc), allocations=self.session.attempts.tried)

    def replaces(self, op: Op) -> bool:
        """Whether the operation would make or replace buffers: what it does to a twin of everything."""
        a = self.session.allocs.get(op.alloc)
        if op.kind == Kind.COMPUTE:
            if a is None or not a.sched or a.bound is not None or self.stack.sched.partner_busy(op.alloc):
                return False
            op = replace(op, kind=Kind.ALLOC, flags=OpFlag(0))
        same = {id(x): x for x in (self.stack.setup, *self.session.graphs, self.session.planning)}
        twin = copy.deepcopy(self.stack, same)
        before = _buffers(twin)
        twin.captures.at = NOBODY
        twin.route(op)
        return twin.session.attempts.tried > 0 or _buffers(twin) != before

    # -- what every operation shows ------------------------------------------------------

    def follow(self, op: Op, obs: Observation) -> None:
        """FREE, REMAKE and a larger scheduler (C3) drop a captured graph."""
        if op.kind in (Kind.FREE, Kind.REMAKE) and obs.status == Status.DONE:
            self.kept.pop(op.alloc, None)
        for n in list(self.kept):
            if self.kept[n].nodes != self.nodes(n):
                del self.kept[n]

    def adds(self, op: Op) -> dict[str, Any]:
        at = 0 if self.at == NOBODY else 1 << self.at
        return {"captured": sum(1 << n for n in self.kept), "capturing": at}


def _buffers(stack: Stack) -> object:
    """Everything by which a change of buffers shows."""
    allocs = stack.session.allocs.items()
    gens = [(n, a.pair.state.gen[a.role]) for n, a in allocs]
    return stack.session.used, gens, [(n, s.nodes) for n, s in stack.sched.known.items()]
