"""A bound graph in its buffers: each tensor's bytes, whether it lives, and which bytes conflict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from ..model.planner import round_up
from ..model.records import Graph, Observation, Place, Setup, Trouble
from ..spec import placement
from ..spec.lifetimes import FOREVER, Life, lives

#: live: must hold its bytes now. dead: nobody needs it any more. planned: its time is still to come.
#: output: stays for good. view: shows bytes of another tensor. stale: its memory may be gone (R12).
State = Literal["live", "dead", "planned", "output", "view", "stale"]
BEFORE = -1  #: nothing of the graph was computed yet


@dataclass(frozen=True, slots=True)
class Bound:
    """A graph that an allocator has bound: `places` in graph order, `at` the tensor that is computed now
    (BEFORE: none yet; the number of tensors: all were), `generation` what was read when it was bound."""

    allocator: int
    graph: Graph
    number: int
    places: tuple[Place, ...]
    slots: tuple[int, ...]
    generation: int
    at: int = BEFORE
    stale: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """One tensor in a chunk: the bytes [begin, end) of it."""

    tensor: int
    allocator: int
    begin: int
    end: int
    state: State
    words: str


@dataclass(frozen=True, slots=True)
class Wrong:
    """Bytes [begin, end) of a chunk that conflict: two tensors need them, or they hold what they must not."""

    type: int
    chunk: int
    begin: int
    end: int
    words: str
    allocator: int = 0


def blocks(bound: Bound) -> Iterator[tuple[Place, Block]]:
    """Every tensor of a bound graph that the allocator placed and that has bytes."""
    alive = lives(bound.graph)
    for i, (t, place) in enumerate(zip(bound.graph.tensors, bound.places, strict=True)):
        if place.type < 0 or not t.alloc_size:
            continue
        state = state_of(bound, i, alive.get(i))
        words = described(bound, i, state, alive.get(i))
        yield place, Block(i, bound.allocator, place.offset, place.offset + t.alloc_size, state, words)


def state_of(bound: Bound, i: int, life: Life | None) -> State:
    """What a tensor is at `bound.at`; `life`: None where it has no bytes of its own."""
    if bound.stale:
        return "stale"
    if life is None:
        return "view"
    if life.end == FOREVER and life.start <= bound.at:
        return "output"
    if life.start <= bound.at:
        return "live" if bound.at <= life.end else "dead"
    return "planned"


_STATES: dict[State, str] = {
    "live": "live",
    "dead": "not needed any more",
    "planned": "not computed yet",
    "output": "output",
    "view": "view",
    "stale": "bound under an older generation",
}


def described(bound: Bound, i: int, state: State, life: Life | None) -> str:
    """'t3 of graph 0 (allocator 1): bytes 64 to 128, live from t3 to t5'."""
    t, place = bound.graph.tensors[i], bound.places[i]
    end = place.offset + t.alloc_size
    words = f"t{i} of graph {bound.number} (allocator {bound.allocator}): bytes {place.offset} to {end}"
    words += f", {_STATES[state]}"
    if t.view:
        return f"{words} of t{t.view_src}"
    if life is not None:
        words += f"; needed from {'the start' if life.start < 0 else f't{life.start}'}"
        words += " for good" if life.end == FOREVER else f" to t{life.end}"
    return words


# -- what is wrong -----------------------------------------------------------------------


def wrong_bytes(bound: Bound, obs: Observation) -> Iterator[Wrong]:
    """Where an observation says that bytes of the graph are wrong: from the first wrong byte to the tensor's end."""
    tensors, node = bound.graph.tensors, obs.bad_node
    if not 0 <= node < len(tensors):
        return
    source = tensors[node].src[obs.bad_src] if 0 <= obs.bad_src < len(tensors[node].src) else node
    place = bound.places[source]
    if place.type < 0 or not obs.trouble & (Trouble.BAD_SOURCE | Trouble.BAD_OUTPUT):
        return
    begin = place.offset + min(obs.bad_offset, max(0, tensors[source].size - 1))
    what = f"output t{source}" if source == node else f"t{source}, which t{node} reads,"
    words = f"{what} holds wrong bytes from byte {obs.bad_offset} on"
    end = max(begin + 1, place.offset + tensors[source].size)
    yield Wrong(place.type, place.chunk, begin, end, words, bound.allocator)


@lru_cache(maxsize=512)
def overlaps(
    setup: Setup, graph: Graph, places: tuple[Place, ...], slots: tuple[int, ...]
) -> tuple[tuple[int, int, int], ...]:
    """(a, b, step) of tensors that share bytes while both need them: as spec.placement.conflicts judges it."""
    none: Sequence[Sequence[int]] = [()] * len(setup.types)
    seen = placement.Seen(setup.types, slots, graph, places, none, none)
    alive = lives(graph)
    return tuple((a, b, max(alive[a].start, alive[b].start)) for a, b, _ in placement.clashes(seen))


def conflicting(bound: Bound, setup: Setup, asked: Sequence[Sequence[int]]) -> Iterator[tuple[Wrong, int]]:
    """Bytes that two tensors need at once, and bytes beyond the end of a chunk; with the step from which it shows.

    `asked`: bytes of each chunk, by type.
    """
    tensors, places = bound.graph.tensors, bound.places
    for a, b, step in overlaps(setup, bound.graph, places, bound.slots):
        p, q = places[a], places[b]
        begin = max(p.offset, q.offset)
        end = min(p.offset + tensors[a].alloc_size, q.offset + tensors[b].alloc_size)
        words = f"t{a} and t{b} share bytes {begin} to {end}, and both need them at t{max(step, 0)}"
        yield Wrong(p.type, p.chunk, begin, end, words, bound.allocator), step
    for i, (t, place) in enumerate(zip(tensors, places, strict=True)):
        if place.type < 0 or t.view or not t.alloc_size:
            continue
        chunks, unit = asked[place.type], setup.types[place.type].granularity
        have = round_up(chunks[place.chunk], unit) if 0 <= place.chunk < len(chunks) else 0
        end = place.offset + t.alloc_size
        if end > have:
            words = f"t{i} ends at byte {end} of a chunk that has {have}"
            yield Wrong(place.type, place.chunk, max(have, place.offset), end, words, bound.allocator), i
