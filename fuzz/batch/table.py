"""What planning says of a batch's graphs, as arrays that lanes index."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...model import oracle, planner
from ...model.lane_session import Plans
from ...model.records import Graph, Place, Setup

NO_LIMIT = 1 << 62  #: bytes; a capacity that never runs out, and fits an int64


def hash_of_places(places: Sequence[Place]) -> int:
    """As the runner of gc_lanes.h makes it, as an int64."""
    value = len(places)
    for p in places:
        for x in (p.type, p.chunk, p.offset):
            value = oracle.mix(value ^ (x & oracle.MASK))
    return signed(value)


def signed(x: int) -> int:
    """The int64 of the same bits."""
    return x - (1 << 64) if x >> 63 else x


def plans(setup: Setup, slots: tuple[int, ...], graphs: Sequence[Graph], chunks: int) -> Plans:
    """The Plans of an allocator with that slot list."""
    all_plans = [planner.plan(setup.types, slots, g) for g in graphs]
    types = range(len(setup.types))

    def need(t: int, c: int) -> list[int]:
        return [p.need[t][c] if p and c < len(p.need[t]) else 0 for p in all_plans]

    def measured(k: int) -> list[int]:
        first = slots.index(slots[k]) == k  # G3
        return [sum(p.need[slots[k]]) if p and first else 0 for p in all_plans]

    return Plans(
        np.array([p is not None for p in all_plans]),
        tuple(tuple(np.array(need(t, c), np.int64) for c in range(chunks)) for t in types),
        tuple(np.array(measured(k), np.int64) for k in range(len(slots))),
        np.array([hash_of_places(p.places) if p else 0 for p in all_plans], np.int64),
        np.array([signed(oracle.digest(g) or 0) for g in graphs], np.int64),
    )


def most_chunks(setup: Setup, slots: tuple[int, ...], graph: Graph) -> int | None:
    """Of any type, the chunks that the graph's plan has; None where it cannot be planned."""
    p = planner.plan(setup.types, slots, graph)
    return None if p is None else max(map(len, p.need), default=0)
