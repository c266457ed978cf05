"""The whole stack, predicted: plain allocators and pairs (session.py), and the layers above them.

`Stack.step` gives the observation that a subject shows which behaves exactly as
docs/choices.md says. The rules are in the state machines (resizable.py, counted.py,
scheduler.py, pool.py, capture.py, workspace.py, server.py); a layer here only keeps
track of which machine an operation is about.
"""

from __future__ import annotations

from typing import Any

from ..records import MAX_CHUNKS, Graph, Kind, Observation, Op, OpFlag, Setup, Status, changed
from ..session import Attempts, Planning, Session
from .captures import Captures
from .contexts import Contexts
from .pools import Pools
from .sched import Schedulers
from .server import Server


class Stack:
    """The executable reference of one session. Raises nothing: misuse is a status.

    `planning`, `chunks`: as for Session. A layer has `step(op)`, which gives the observation of one of
    its operations, and `adds(op)`, the fields that it adds to the observation of any operation.
    """

    def __init__(
        self, setup: Setup, graphs: list[Graph], planning: Planning | None = None, chunks: int = MAX_CHUNKS
    ) -> None:
        self.setup = setup
        self.session = Session(setup, graphs, planning, chunks=chunks)
        self.sched = Schedulers(self)
        self.pools = Pools(self)
        self.captures = Captures(self)
        self.contexts = Contexts(self)
        self.server = Server(self)

    def step(self, op: Op) -> Observation:
        """What the operation shows."""
        self.session.attempts = Attempts(op.fail_types, op.fail_nth)
        obs = self.captures.gate(op)
        obs = self.route(op) if obs is None else obs
        self.captures.follow(op, obs)
        return self.seen(obs, op)

    def look(self, number: int) -> Observation:
        """The observation of one allocator, nothing changed."""
        return self.seen(self.session.look(number), Op(Kind.LOOK, number))

    def route(self, op: Op) -> Observation:
        if op.kind >= Kind.SLOT_ENTER:
            return self.server.step(op)
        if op.kind >= Kind.CTX_OPEN:
            return self.contexts.step(op)
        if op.kind >= Kind.CAPTURE_BEGIN:
            return self.captures.step(op)
        if op.kind >= Kind.POOL_ALLOC:
            return self.pools.step(op)
        if op.kind not in (Kind.CAPACITY, Kind.LOOK) and self.contexts.has(op.alloc):
            return self.misuse()
        if op.kind == Kind.BORROW and self.contexts.has(op.other):
            return self.misuse()
        new = op.kind == Kind.NEW and op.flags & OpFlag.BY_SCHED
        if new or (op.kind not in (Kind.NEW, Kind.CAPACITY) and self.sched.has(op.alloc)):
            return self.sched.step(op)
        if op.kind == Kind.COMPUTE:
            return self.pools.compute(op)
        return self.session.step(op)

    def misuse(self) -> Observation:
        return Observation(Status.MISUSE, used=self.session.used)

    def seen(self, obs: Observation, op: Op) -> Observation:
        """With what every layer adds, as it is after the operation; `used` too."""
        fields: dict[str, Any] = {"used": self.session.used}
        for layer in (self.sched, self.pools, self.captures, self.contexts, self.server):
            fields |= layer.adds(op)
        return changed(obs, fields)
