"""Every observation against the reference session, for subjects that declare Cap.EXACT."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from operator import attrgetter

from ..model.records import Kind, Observation, Op, Place, Status, Trouble
from ..model.stack import Stack
from ..native.worker import StepSeen
from ..spec.placement import spot

#: compared after every operation that is no misuse; those from "digest" on are the operation's, not the allocator's
FIELDS = (
    "generation", "shrink_generation", "used", "reported", "owned", "asked", "sched_generation",
    "sched_shrink_generation", "nodes", "in_flight", "pooled", "captured", "capturing", "busy",
    "digest", "allocations", "reason", "released", "base", "address", "mapped", "out", "tokens", "cells", "fewer",
    "reserves", "waits", "attached",
)  # fmt: skip
LOOKED = FIELDS[: FIELDS.index("digest")]
#: what an operation of a pool, a context or a slot does not show: it is about no allocator
OF_ALLOCATOR = frozenset(FIELDS[: FIELDS.index("in_flight")]) - {"used"}


def differences(reference: Stack, op: Op, seen: StepSeen) -> Iterator[tuple[str, str, str]]:
    """Steps the reference; yields (what differs, expected, seen) for all that can be observed."""
    want = offsets(reference.step(op))
    obs = offsets(seen.obs)
    if want.status != seen.obs.status:
        yield "status", want.status.name, seen.obs.status.name
        return
    if want.status == Status.MISUSE:
        return
    if op.kind in (Kind.FREE, Kind.CAPACITY):
        yield from compare("", want, obs, ("used",))
    else:
        yield from compare("", want, obs, shown(op.kind))
        if op.kind == Kind.MEASURE:
            yield from compare("", want, obs, ("measured",))
    for number, look in seen.looks.items():
        yield from compare(f"allocator {number}'s ", reference.look(number), look, LOOKED)
    if seen.obs.trouble:
        yield "memory", "no trouble", str(Trouble(seen.obs.trouble))
    if op.kind == Kind.ALLOC and seen.places is not None and op.alloc in reference.session.allocs:
        yield from places(reference.session.allocs[op.alloc].places, seen.places, reference, op)


@cache
def shown(kind: Kind) -> tuple[str, ...]:
    """What an operation of this kind shows."""
    if kind in (Kind.POOL_ALLOC, Kind.POOL_FREE, Kind.TRIM) or kind >= Kind.CTX_OPEN:
        return tuple(name for name in FIELDS if name not in OF_ALLOCATOR)
    return FIELDS


def offsets(obs: Observation) -> Observation:
    """A pool's addresses as what can be predicted of them: offsets, and whether there is a range."""
    if not obs.address and not obs.base:
        return obs
    within = obs.address - obs.base if obs.base and obs.address else 0
    return replace(obs, base=int(obs.base > 0), address=within)


def compare(
    whose: str, want: Observation, have: Observation, names: tuple[str, ...]
) -> Iterator[tuple[str, str, str]]:
    show = _shows(names)
    if show(want) == show(have):
        return
    for name in names:
        if name == "digest" and not want.digest and want.status == Status.DONE:
            continue  # too many bytes for Python, or computed later
        expected, found = getattr(want, name), getattr(have, name)
        if expected != found:
            yield whose + name, str(expected), str(found)


@cache
def _shows(names: tuple[str, ...]) -> Callable[[Observation], object]:
    """What an observation has under these names."""
    return attrgetter(*names)


def places(
    want: tuple[Place, ...], have: tuple[Place, ...], reference: Stack, op: Op
) -> Iterator[tuple[str, str, str]]:
    sizes = [t.size for t in reference.session.graphs[op.graph].tensors]
    for i, (expected, found) in enumerate(zip(want, have, strict=True)):
        outside = expected.type < 0 and found.type < 0
        if expected != found and not outside and sizes[i]:
            yield f"place of tensor {i}", spot(expected), spot(found)
