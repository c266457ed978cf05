"""What a worker has its subject run: a trace on its way, and when it has run, what was seen of it."""

from __future__ import annotations

from typing import Any, Protocol

from ..model.records import Trace
from . import packet, zygote
from .header import SubjectError
from .packet import Death, Packed, Run


class Flight(Protocol):
    """Something that lies in a block of memory and is run there by the subject's process."""

    size: int  # bytes of the block that it needs
    parts: list[tuple[int, Any]]  # what to write at which offset before it is run
    what: bytes  # zygote.SERVE or LANES
    first: int  # of lanes, the first that runs

    def where(self, block: Any) -> tuple[int, int]:
        """Changes whenever the subject gets on."""

    def idle(self, block: Any) -> bool:
        """Nothing of it was run yet."""

    def land(self, block: Any, death: Death | None) -> None:
        """It was run, up to the subject's death if it died: keeps what was seen."""


class TraceFlight:
    """A trace."""

    what, first = zygote.SERVE, 0

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.packed, self.parts = packet.plan(trace)
        self.size = self.packed.size
        self.run: Run | None = None
        self.error: SubjectError | None = None

    def where(self, block: Any) -> tuple[int, int]:
        return packet.where(block)

    def idle(self, block: Any) -> bool:
        return packet.where(block)[0] == packet.IDLE

    def land(self, block: Any, death: Death | None) -> None:
        try:
            self.run = packet.unpack(self.packed, block)
        except SubjectError as error:  # for whoever asks for this trace
            self.error = error
        if death is not None and self.run is not None:
            self.run.death = _placed(death, self.packed, block, self.run)

    def result(self) -> Run:
        if self.error is not None:
            raise self.error
        if self.run is None:
            raise RuntimeError("the run was interrupted; ask for it again")
        return self.run


def _placed(death: Death, packed: Packed, block: Any, run: Run) -> Death:
    """The death with the step and the operation that it came at."""
    phase, index = packet.where(block)
    ops, name, step = packed.trace.ops, packet.PHASES[phase], 0
    if phase == packet.CLOSE:
        step = len(ops)
    elif phase == packet.RUN:
        step = len(run.steps)
        if step == len(ops) or index < packed.main[step]:
            step, name = step - 1, "look"
    elif phase == packet.PLACES:
        step = len(run.steps) - 1
    op = ops[step] if name in ("run", "look", "places") and step < len(ops) else None
    return Death(step, op, death.kind, name, death.signal, death.code, death.stderr)
