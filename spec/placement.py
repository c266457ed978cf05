"""P: judges any planner's plan by P1 to P8, P11 and P14, without knowing how it was made.

P9, P10, P12 and P13 speak of several plans or of none; fuzz/fresh.py asks for those.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..model.planner import round_up
from ..model.records import MAX_CHUNKS, BufferType, Graph, Place
from .lifetimes import FOREVER, Life, first_reads, lives
from .meeting import meetings, pairs_alive


@dataclass(frozen=True, slots=True)
class Broken:
    """A clause that a plan or a step breaks, and how, in one sentence."""

    clause: str
    message: str


@dataclass(frozen=True, slots=True)
class Seen:
    """A plan as a subject shows it.

    `places` are in graph order; `chunks[type]` are the bytes asked for each chunk, and `real[type]`
    what each buffer really has; `measured` is the total per type by the subject's own measure
    (None where it has none). `compact`: chunks of no bytes are left out, so chunk numbers are lower bounds.
    """

    types: Sequence[BufferType]
    slots: Sequence[int]
    graph: Graph
    places: Sequence[Place]
    chunks: Sequence[Sequence[int]]
    real: Sequence[Sequence[int]]
    measured: Sequence[int] | None = None
    compact: bool = False


def judge(seen: Seen) -> list[Broken]:
    """Every clause that the plan breaks; the first is the most telling."""
    return [
        *preallocated(seen),
        *views(seen),
        *alignment(seen),
        *conflicts(seen),
        *inside(seen),
        *requirements(seen),
        *chunk_sizes(seen),
    ]


def judge_bound(seen: Seen) -> list[Broken]:
    """What a binding breaks in buffers that may be larger than the plan needs."""
    return [*preallocated(seen), *views(seen), *alignment(seen), *conflicts(seen), *inside(seen)]


def exercised(seen: Seen) -> Counter[str]:
    """How often each clause's condition was really met by this plan."""
    n: Counter[str] = Counter()
    tensors = seen.graph.tensors
    alive = lives(seen.graph)
    placed = [i for i in alive if tensors[i].alloc_size and known(seen, i)]
    n["P1"] = pairs_alive([alive[i] for i in placed])
    n["P2"] = sum(seen.types[seen.places[i].type].alignment > 1 for i in placed)
    n["P3"] = n["P11"] = len(placed)
    for kind, chunks in zip(seen.types, seen.chunks, strict=True):
        n["P4"] += len(chunks) > 1 or any(size >= kind.max_size for size in chunks)
    n["P5"] = sum(life.pinned and a < max(placed, default=-1) for a, life in alive.items())
    n["P6"] = sum(tensors[i].input for i in placed) - 1 if any(tensors[i].input for i in placed) else 0
    n["P7"] = sum(t.view for t in tensors)
    n["P8"] = sum(t.inplace and any(s in alive for s in t.src) for t in tensors)
    n["P14"] = sum(t.prealloc for t in tensors)
    return n


def placed_roots(seen: Seen) -> dict[int, Life]:
    """Roots with bytes that the allocator placed."""
    return {
        i: life
        for i, life in lives(seen.graph).items()
        if seen.graph.tensors[i].alloc_size and known(seen, i)
    }


def known(seen: Seen, i: int) -> bool:
    """Whether tensor i is in memory that the allocator can have."""
    return seen.places[i].type in seen.slots and seen.places[i].chunk >= 0


def preallocated(seen: Seen) -> Iterator[Broken]:
    for i, t in enumerate(seen.graph.tensors):
        root = seen.graph.tensors[t.view_src] if t.view else t
        place = seen.places[i]
        if root.prealloc and place.type >= 0:
            yield Broken("P14", f"tensor {i} has memory of its own, but was moved to {spot(place)}")
        if not root.prealloc and not known(seen, i) and t.size:
            given = t.inplace and any(seen.graph.tensors[s].prealloc for s in t.src)
            if place.type >= 0:
                yield Broken("P3", f"tensor {i} is at {spot(place)}, which the allocator does not have")
            elif given:
                yield Broken("P8", f"tensor {i} is in a preallocated source")
            else:
                yield Broken("P3", f"tensor {i} is in no chunk")


def views(seen: Seen) -> Iterator[Broken]:
    for i, t in enumerate(seen.graph.tensors):
        if not t.view or seen.graph.tensors[t.view_src].prealloc or not t.size:
            continue
        root, place = seen.places[t.view_src], seen.places[i]
        want = Place(root.type, root.chunk, root.offset + t.view_offs)
        if place != want:
            yield Broken("P7", f"view {i} of tensor {t.view_src} is at {spot(place)}, not at {spot(want)}")


def alignment(seen: Seen) -> Iterator[Broken]:
    for i in placed_roots(seen):
        unit, place = seen.types[seen.places[i].type].alignment, seen.places[i]
        if place.offset % unit:
            yield Broken("P2", f"tensor {i} is at {spot(place)}, no multiple of the alignment {unit}")


def clashes(seen: Seen) -> Iterator[tuple[int, int, str]]:
    """(a, b, clause) of tensors that share bytes while both must hold theirs: the later one, b, breaks the clause."""
    roots = placed_roots(seen)
    for a, b in meetings(seen.places, seen.graph.tensors, roots):
        clause = blame(seen, a, roots[a], b, roots[b])
        if clause:
            yield a, b, clause


def conflicts(seen: Seen) -> Iterator[Broken]:
    """Pairs of tensors that share bytes while both must hold theirs."""
    for a, b, clause in clashes(seen):
        where = f"tensor {b} at {spot(seen.places[b])} overlaps tensor {a} at {spot(seen.places[a])}"
        yield Broken(clause, f"{where}{over(seen, clause, a, lives(seen.graph)[a], b)}")


def over(seen: Seen, clause: str, a: int, life: Life, b: int) -> str:
    """Why `b` may not have the bytes of `a`."""
    if clause != "P8":
        return f", which is needed {until(life)}"
    words = f": tensor {b} reads tensor {a} and was put over it, but"
    if life.pinned:
        return f"{words} tensor {a} is needed {until(life)}"
    if life.end > b:
        return f"{words} tensor {a} has another reader, tensor {life.end}"
    layout = "" if not seen.graph.tensors[b].inplace else ": their layouts differ"
    return f"{words} it may not work in place{layout}"


def blame(seen: Seen, a: int, life_a: Life, b: int, life_b: Life) -> str:
    """The clause that `b` breaks by sharing bytes with the earlier `a`; '' where it may."""
    ta, tb = seen.graph.tensors[a], seen.graph.tensors[b]
    if ta.input and tb.input:
        return "P6"
    if ta.input and not tb.leaf and life_b.end < first_reads(seen.graph).get(a, FOREVER):
        return "P6"
    taken = [s for s in tb.src if (s == a or seen.graph.tensors[s].view_src == a)]
    same_place = [s for s in taken if seen.places[s] == seen.places[b]]
    if same_place:  # b writes over what it reads: in place
        ok = life_a.end == life_b.start and tb.inplace and not life_a.pinned
        layout = any(seen.graph.tensors[s].layout == tb.layout for s in same_place)
        return "" if ok and layout else "P8"
    if life_a.pinned:
        return "P5"
    if life_a.direct < life_b.start <= life_a.end:
        return "P7"
    return "P1"


def inside(seen: Seen) -> Iterator[Broken]:
    """P3 for tensors in chunks and chunks in buffers."""
    short = [understated(seen, kind) for kind in range(len(seen.types))]
    for i in placed_roots(seen):
        place, size = seen.places[i], seen.graph.tensors[i].alloc_size
        real = seen.real[place.type]
        have = real[place.chunk] if 0 <= place.chunk < len(real) else 0
        if place.offset + size > have:
            clause = "P11" if short[place.type] else "P3"
            end = place.offset + size
            yield Broken(clause, f"tensor {i} ends at {end} in a chunk of {have} bytes ({spot(place)})")


def ends(seen: Seen, kind: int) -> dict[int, tuple[int, int]]:
    """Per chunk of a type, its highest end: of the tensors as they are, and with rounded sizes."""
    out: dict[int, tuple[int, int]] = {}
    for i in placed_roots(seen):
        place, size = seen.places[i], seen.graph.tensors[i].alloc_size
        if place.type == kind:
            raw, rounded = out.get(place.chunk, (0, 0))
            top = place.offset + round_up(size, seen.types[kind].alignment)
            out[place.chunk] = max(raw, place.offset + size), max(rounded, top)
    return out


def understated(seen: Seen, kind: int) -> bool:
    """Whether the subject's own requirement is below what its plan needs (else the buffer is at fault)."""
    if seen.measured is None:
        return False
    return seen.measured[kind] < sum(raw for raw, _ in ends(seen, kind).values())


def requirements(seen: Seen) -> Iterator[Broken]:
    for kind in range(len(seen.types)):
        top = ends(seen, kind)
        for c, size in enumerate(seen.chunks[kind]):
            raw, rounded = top.get(c, (0, 0))
            if size > rounded:
                yield Broken(
                    "P11", f"chunk {c} of type {kind} asks for {size} bytes, its highest end is {rounded}"
                )
            elif size < raw and not understated(seen, kind):
                yield Broken("P3", f"chunk {c} of type {kind} has {size} bytes, its tensors end at {raw}")


def chunk_sizes(seen: Seen) -> Iterator[Broken]:
    """P4: no chunk above the largest buffer, but for one tensor that is larger, or the 16th chunk."""
    sizes: dict[tuple[int, int], int] = {}  # of the largest tensor, by type and chunk
    for i in placed_roots(seen):
        at, size = (seen.places[i].type, seen.places[i].chunk), seen.graph.tensors[i].alloc_size
        sizes[at] = max(sizes.get(at, 0), round_up(size, seen.types[at[0]].alignment))
    for kind, buffer_type in enumerate(seen.types):
        last = MAX_CHUNKS - 1
        if seen.compact and any(not t.size for t in seen.graph.tensors):
            last = min(last, len(seen.chunks[kind]) - 1)
        for c, size in enumerate(seen.chunks[kind]):
            if size > max(buffer_type.max_size, sizes.get((kind, c), 0)) and c < last:
                yield Broken(
                    "P4",
                    f"chunk {c} of type {kind} has {size} bytes; the largest buffer is {buffer_type.max_size}",
                )


def spot(place: Place) -> str:
    if place.type < 0:
        return "no place of the allocator's"
    return f"type {place.type}, chunk {place.chunk}, offset {place.offset}"


def until(life: Life) -> str:
    return "to the end, as an output" if life.end == FOREVER else f"until step {life.end}"
