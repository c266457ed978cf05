"""W: what a lane asks for, against what its reservation needs (W7), and which reservations failed (W2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..model.domain import Ints
from ..model.records import MAX_LANES, Kind, Observation, Op, OpFlag, Status, Trace, has
from ..model.workspace import NOTHING
from ..spec import workspace
from .context_book import Book
from .fresh import Fresh


class Memory:
    """Knows the devices of a session, and asks for plans."""

    def __init__(self, trace: Trace, fresh: Fresh) -> None:
        self.trace, self.fresh = trace, fresh

    def need(self, b: Book, lane: int) -> tuple[tuple[int, ...], ...] | None:
        """Bytes by type and chunk that the lane's reservation asks for."""
        return self.fresh.plan(self.trace.setup, b.made.config, b.graph(*b.reserved[lane])).need

    def broken(self, op: Op, obs: Observation, b: Book, n: Counter[str]) -> Iterator[tuple[str, str]]:
        """W7: a lane's buffers cover its reservation; where they are its own and new, they are just that."""
        opens = op.kind == Kind.CTX_OPEN
        served = obs.status == Status.DONE and op.kind in (Kind.CTX_OPEN, Kind.CTX_DECODE, Kind.CTX_ATTACH)
        if not served or not (obs.reserves or opens):
            return
        for lane in range(b.made.lanes):
            need, asked = self.need(b, lane), b.asked[lane]
            if need is None or b.reserved[lane] == NOTHING or not asked:
                continue
            n["W7"] += 1
            for t, row in enumerate(need):
                if not covers(asked[t], row, self.trace.setup.types[t].granularity):
                    yield (
                        "W7",
                        f"lane {lane}, type {t}: {list(asked[t])} bytes for a reservation of {list(row)}",
                    )
                alone = lane > 0 or not b.shared
                new = opens or (alone and asked[t] != (b.had[lane][t] if b.had[lane] else ()))
                if new and sum(asked[t]) > sum(row):
                    yield (
                        "W7",
                        f"lane {lane}, type {t}: {list(asked[t])} bytes, its reservation needs {list(row)}",
                    )

    def failed(self, op: Op, obs: Observation, b: Book) -> tuple[bool, ...]:
        """[lane]: its reservation failed. It has none then; or it says that it has one, but no buffers for it."""
        if op.kind != Kind.CTX_DECODE or obs.status != Status.REFUSED or has(op.flags, OpFlag.UNCHECKED):
            return (False,) * MAX_LANES
        ran = workspace.runs(Ints, b.frame, op.value)
        return tuple(bool(ran[lane]) and b.able and not self.covered(b, lane) for lane in range(MAX_LANES))

    def covered(self, b: Book, lane: int) -> bool:
        """The lane has a reservation, and buffers that it fits in."""
        if b.reserved[lane] == NOTHING:
            return False
        need = self.need(b, lane)
        units = [kind.granularity for kind in self.trace.setup.types]
        rows = zip(b.asked[lane], need or (), units, strict=False)
        return need is None or all(covers(have, row, unit) for have, row, unit in rows)


def covers(have: tuple[int, ...], need: tuple[int, ...], unit: int) -> bool:
    """Every chunk has room, as the device rounds."""
    row = have + (0,) * (len(need) - len(have))
    return all(-(-h // unit) * unit >= x for h, x in zip(row, need, strict=False))
