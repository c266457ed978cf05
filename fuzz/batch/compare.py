"""A batch's model beside what was seen of it, step by step; and a lane of it as a trace."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...model.records import UNLIMITED, Kind, Op, OpFlag, Status, Trace
from ...native.lane_job import PLACES, Field, Job
from .draw import Batch
from .session import LaneSession
from .table import NO_LIMIT, Planner, by_reference, plans

#: what the model says under these names, compared with fields of gc_obs; "places" with a hash over placements
_ALWAYS = ("status", "trouble", "used")
_LOOKED = ("generation", "shrink_generation", "asked", "owned", "reported", "allocations")


class Difference(NamedTuple):
    """The first step at which a lane parts from the model, and the field; `step` past the last: at close."""

    lane: int
    step: int
    field: str


def fields(batch: Batch) -> tuple[Field, ...]:
    """What is taken from each observation."""
    types, slots = (
        range(len(batch.setup.types)),
        range(max(len(batch.slots(a)) for a in range(len(batch.config_of)))),
    )
    found: list[Field] = [(name, 0, 0) for name in ("status", "trouble", "generation", "shrink_generation")]
    found += [("allocations", 0, 0), ("digest", 0, 0), PLACES]
    found += [(name, t, 0) for name in ("used", "owned") for t in types]
    found += [(name, k, 0) for name in ("reported", "measured") for k in slots]
    return (*found, *(("asked", t, c) for t in types for c in range(batch.chunks)))


def job(batch: Batch) -> Job:
    """What the subject is to run."""
    return Job(
        batch.setup, batch.capacity, batch.graphs, batch.which.astype(np.uint32), batch.ops, fields(batch)
    )


def model(batch: Batch, planner: Planner | None = None) -> LaneSession:
    """The model of all lanes, before the first step. None: the reference planner."""
    allocs, how = range(len(batch.config_of)), planner or by_reference(batch.setup)
    configs = range(len(batch.setup.configs))
    by_config = [plans(batch.setup, c, batch.graphs, batch.chunks, how) for c in configs]
    types = batch.setup.types
    return LaneSession(
        uses=tuple(tuple(t in batch.slots(a) for t in range(len(types))) for a in allocs),
        slots=tuple(batch.slots(a) for a in allocs),
        plans=tuple(by_config[batch.config_of[a]] for a in allocs),
        cap=tuple(np.ascontiguousarray(batch.capacity[:, t]) for t in range(len(types))),
        gran=tuple(t.granularity for t in types),
        chunks=batch.chunks,
    )


def differences(
    batch: Batch,
    seen: NDArray[np.int64],
    left: NDArray[np.int64],
    unseen: NDArray[np.bool_] | None = None,
    whole: LaneSession | None = None,
    hidden: Collection[str] = (),
) -> Iterator[Difference]:
    """Each lane's first one, in the order of the steps. `seen` [step, field, lane], `left` [lane].

    `unseen` [lane]: nothing was seen of it. `whole`: the model before the first step, None: by the reference
    planner. `hidden`: fields that the subject does not show, or need not show as the model does.
    """
    whole = whole or model(batch)
    names = fields(batch)
    parted = np.zeros(seen.shape[2], bool) if unseen is None else unseen.copy()
    for i, order in enumerate(batch.orders):
        want = flat(whole.step(order))
        misuse = want["status", 0, 0] == int(Status.MISUSE)
        wrong = np.zeros_like(parted)
        for f, field in enumerate(names):
            if field in want and field[0] not in hidden:
                wrong |= seen[i, f] != want[field]
        wrong &= ~misuse
        wrong |= seen[i, 0] != want["status", 0, 0]
        for lane in np.flatnonzero(wrong & ~parted):
            yield Difference(
                int(lane),
                i,
                _which([n for n in names if n[0] not in hidden], names, want, seen[i], int(lane)),
            )
        parted |= wrong
    for lane in np.flatnonzero((left != 0) & ~parted):
        yield Difference(int(lane), len(batch.orders), "bytes in use after close")


def flat(seen: dict[str, Any]) -> dict[Field, Any]:
    """By field; trouble is none, ever."""
    out: dict[Field, Any] = {("trouble", 0, 0): 0}
    for name, value in seen.items():
        if not isinstance(value, tuple):
            out[name, 0, 0] = value
        elif name == "asked":
            out |= {(name, t, c): x for t, chunks in enumerate(value) for c, x in enumerate(chunks)}
        else:
            out |= {(name, k, 0): x for k, x in enumerate(value)}
    return out


def _which(
    shown: Sequence[Field], names: Sequence[Field], want: dict[Field, Any], seen: NDArray[np.int64], lane: int
) -> str:
    for field in shown:
        if field in want:
            expected = np.broadcast_to(want[field], seen.shape[1:])[lane]
            if expected != seen[names.index(field), lane]:
                return field[0]
    return "status"


def trace(batch: Batch, lane: int) -> Trace:
    """The lane's trace; where it sat out there is nothing."""
    caps = (int(c) for c in batch.capacity[lane])
    types = (
        replace(k, capacity=UNLIMITED if c >= NO_LIMIT else c)
        for k, c in zip(batch.setup.types, caps, strict=True)
    )
    ops = [operation(raw) for raw in batch.ops[lane]]
    graphs = tuple(batch.graphs[g] for g in batch.which[lane])
    return Trace(
        replace(batch.setup, types=tuple(types)), graphs, tuple(op for op in ops if op.kind != Kind.LOOK)
    )


def operation(raw: Any) -> Op:
    """The record of an operation as it is packed."""
    value = int(raw["value"])
    return Op(Kind(int(raw["kind"])), int(raw["alloc"]), int(raw["other"]), int(raw["graph"]), int(raw["fail_types"]),
              int(raw["fail_nth"]), OpFlag(int(raw["flags"])), UNLIMITED if value >= NO_LIMIT else value)  # fmt: skip
