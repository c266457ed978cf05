"""What a subject showed, in words."""

from __future__ import annotations

from collections.abc import Sequence

from ..model.records import Observation, Place, Shared, Status, Trouble

#: what S4 asks for
SHARED = {
    Shared.ONE_SEQUENCE: "one sequence",
    Shared.ONE_DEVICE: "one device",
    Shared.ON_CUDA: "on CUDA",
    Shared.NATIVE_MTP: "native MTP",
}


def shared(bits: int) -> str:
    """'one sequence, native MTP'; 'nothing' where no bit is set."""
    return ", ".join(word for bit, word in SHARED.items() if bits & bit) or "nothing"


def numbers(bits: int) -> str:
    """'0 and 2': the numbers of the bits that are set."""
    return " and ".join(str(n) for n in range(bits.bit_length()) if bits >> n & 1)


def describe_status(status: Status) -> str:
    return {
        Status.MISUSE: "misuse",
        Status.REFUSED: "refused",
        Status.DONE: "done",
        Status.STALE: "stale, dropped",
        Status.FAILED: "failed, without a scheduler",
    }[status]


def describe_observation(seen: Observation) -> str:
    """'done; in use 4096; asked [4096]; generation 1': what differs from nothing, in bytes and counts."""
    parts = [describe_status(seen.status), *_trouble(seen), "in use " + row(seen.used)]
    if any(seen.measured):
        parts.append("measured " + row(seen.measured))
    if any(seen.reported):
        parts.append("reported " + row(seen.reported))
    if any(seen.asked):
        parts.append("asked " + " ".join(f"[{row(chunks)}]" for chunks in seen.asked))
    if seen.generation or seen.shrink_generation:
        parts.append(f"generation {seen.generation}, shrink generation {seen.shrink_generation}")
    return "; ".join([*parts, *_scheduler(seen), *_pools(seen), *_contexts(seen)])


def _trouble(seen: Observation) -> list[str]:
    if not seen.trouble:
        return []
    names = ", ".join(f.name or "" for f in Trouble if f & seen.trouble)
    where = f" at t{seen.bad_node}, source {seen.bad_src}, byte {seen.bad_offset}"
    return [f"trouble {names}" + (where if seen.bad_node >= 0 else "")]


def _scheduler(seen: Observation) -> list[str]:
    parts = []
    if seen.sched_generation or seen.sched_shrink_generation:
        parts.append(f"scheduler says {seen.sched_generation}, {seen.sched_shrink_generation}")
    if seen.nodes:
        parts.append(f"made for {seen.nodes} tensors")
    if seen.in_flight:
        parts.append("work in flight")
    if seen.reason:
        parts.append(f"not shared for want of {shared(seen.reason)}")
    return parts


def _pools(seen: Observation) -> list[str]:
    parts = []
    if any(seen.pooled):
        parts.append("pools hold " + row(seen.pooled))
    if seen.released:
        parts.append(f"{seen.released} given back")
    if seen.base or seen.mapped or seen.out:
        parts.append(f"pool at {seen.base:#x}, {seen.mapped} mapped, {seen.out} handed out")
    if seen.address:
        parts.append(f"block at {seen.address:#x}")
    if seen.captured:
        parts.append(f"captured {numbers(seen.captured)}")
    if seen.capturing:
        parts.append(f"capturing {numbers(seen.capturing)}")
    return parts


def _contexts(seen: Observation) -> list[str]:
    parts = []
    lanes = zip(seen.tokens, seen.cells, seen.fewer, strict=True)
    for n, (tokens, cells, fewer) in enumerate(lanes):
        if tokens or cells or fewer:
            less = f" ({fewer} calls needed less)" if fewer else ""
            parts.append(f"lane {n} reserved for {tokens} tokens, {cells} cells{less}")
    if seen.reserves:
        parts.append(f"{seen.reserves} reservations")
    if seen.waits:
        parts.append("waited for the other context")
    if seen.attached:
        parts.append("attached")
    if seen.busy:
        parts.append(f"busy slots {numbers(seen.busy)}")
    return parts


def row(values: Sequence[int]) -> str:
    """The values without trailing zeros; '0' where all are."""
    values = list(values)
    while len(values) > 1 and not values[-1]:
        values.pop()
    return ", ".join(map(str, values)) if values else "0"


def describe_place(place: Place) -> str:
    if place.type < 0:
        return "outside"
    return f"type {place.type}, chunk {place.chunk}, offset {place.offset}"
