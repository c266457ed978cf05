"""T: a server with slots."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .. import oracle, server
from ..domain import Ints
from ..records import MAX_SERVER_SLOTS, Kind, Observation, Op, Status
from .contexts import DRAFT, TARGET

if TYPE_CHECKING:
    from . import Stack


class Server:
    """Which slots have requests; what they compute is the contexts' business."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.model = server.Model(Ints)
        self.state = self.model.init()

    @property
    def serving(self) -> bool:
        """Some slot is busy."""
        return not self.model.idle(self.state)

    def step(self, op: Op) -> Observation:
        contexts = self.stack.contexts
        contexts.reserves = contexts.waits = contexts.reason = 0
        if not 0 <= op.alloc < MAX_SERVER_SLOTS:
            return self.stack.misuse()
        self.state = self.state._replace(ready=TARGET in contexts.known)
        if op.kind == Kind.SLOT_STEP:
            return self.advance(op)
        self.state, out = self.model.step(self.state, server.ServerOp(op.kind, op.alloc))
        if op.kind == Kind.SLOT_LEAVE and out.status == Status.DONE and not self.serving:
            return self.idle()
        return contexts.shown(Status(out.status))

    def idle(self) -> Observation:
        """T1: both contexts sync, then every device's pools give back what nobody uses."""
        contexts = self.stack.contexts
        for c in contexts.known.values():
            contexts.sync(c)
        obs = contexts.trimmed(tuple(t for t, kind in enumerate(self.stack.setup.types) if not kind.meta))
        return replace(obs, status=Status.DONE)

    def advance(self, op: Op) -> Observation:
        """The target decodes for the slot, then the draft one token."""
        if not self.state.busy[op.alloc]:
            return self.stack.misuse()
        contexts, target = self.stack.contexts, self.stack.contexts.known[TARGET]
        used = sum(self.state.cells) + op.value
        status, digest = contexts.decode(target, op.value, min(used, target.made.cells), 0)
        self.state, _ = self.model.step(
            self.state, server.ServerOp(op.kind, op.alloc, tokens=op.value, status=int(status))
        )
        draft = contexts.known.get(DRAFT)
        if status == Status.DONE and draft is not None:
            status, second = contexts.decode(draft, 1, min(used, draft.made.cells), 0)
            digest = oracle.both(digest, second) if digest and second and status == Status.DONE else 0
        return contexts.shown(status, digest)

    def adds(self, op: Op) -> dict[str, Any]:
        """Which slots are busy, after every operation."""
        return {"busy": sum(1 << k for k, on in enumerate(self.state.busy) if on)}
