"""What planning says of a batch's graphs, as arrays that lanes index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ...model import oracle, planner
from ...model.records import Graph, Place, Setup
from ..fresh import Fresh
from .session import Plans

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


class Planned(NamedTuple):
    """A graph as some planner plans it, for one slot list."""

    need: tuple[tuple[int, ...], ...]  # [type][chunk]  bytes
    measured: tuple[int, ...]  # [slot]  bytes
    places: tuple[Place, ...]


Planner = Callable[[int, Graph], Planned | None]  #: (config, graph) -> its plan, None: refused


def by_reference(setup: Setup) -> Planner:
    """The reference planner."""

    def plan(config: int, graph: Graph) -> Planned | None:
        slots = setup.configs[config]
        p = planner.plan(setup.types, slots, graph)
        if p is None:
            return None
        once = (sum(p.need[t]) if slots.index(t) == k else 0 for k, t in enumerate(slots))  # G3
        return Planned(p.need, tuple(once), p.places)

    return plan


def by_subject(setup: Setup, fresh: Fresh) -> Planner:
    """The subject's own plans, as a new allocator shows them; what these break is P's business."""

    def plan(config: int, graph: Graph) -> Planned | None:
        p = fresh.plan(setup, config, graph)
        if p.need is None or p.places is None or p.measured is None:
            return None
        return Planned(p.need, p.measured, p.places)

    return plan


def plans(setup: Setup, config: int, graphs: Sequence[Graph], chunks: int, planner: Planner) -> Plans:
    """The Plans of an allocator of that config."""
    all_plans = [planner(config, g) for g in graphs]

    def need(t: int, c: int) -> list[int]:
        return [p.need[t][c] if p and c < len(p.need[t]) else 0 for p in all_plans]

    return Plans(
        np.array([p is not None for p in all_plans]),
        tuple(tuple(np.array(need(t, c), np.int64) for c in range(chunks)) for t in range(len(setup.types))),
        tuple(
            np.array([p.measured[k] if p else 0 for p in all_plans], np.int64)
            for k in range(len(setup.configs[config]))
        ),
        np.array([hash_of_places(p.places) if p else 0 for p in all_plans], np.int64),
        np.array([signed(oracle.digest(g) or 0) for g in graphs], np.int64),
    )


def most_chunks(setup: Setup, slots: tuple[int, ...], graph: Graph) -> int | None:
    """Of any type, the chunks that the graph's plan has; None where it cannot be planned."""
    p = planner.plan(setup.types, slots, graph)
    return None if p is None else max(map(len, p.need), default=0)
