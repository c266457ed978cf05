"""Generation of setups: devices, and the slot lists that allocators are made with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..model.planner import plan
from ..model.records import MAX_SLOTS, MAX_TYPES, SIZE_MAX, UNLIMITED, BufferType, Graph, Setup
from .draw import Draw, weighted

_ALIGNMENTS = ((1, 3), (2, 1), (4, 1), (8, 2), (16, 2), (32, 4), (64, 2), (128, 2), (256, 2), (4096, 1))
_GRANULARITIES = ((1, 12), (64, 4), (4096, 3), (2 << 20, 1))
_SCALES = ((8, 2), (64, 4), (256, 3), (1024, 2), (8192, 1), (100_000, 1))


@dataclass(frozen=True, slots=True)
class Frame:
    """Types and configs without capacities yet, and the typical tensor size in bytes."""

    types: tuple[BufferType, ...]
    configs: tuple[tuple[int, ...], ...]
    scale: int


def draw_frame(draw: Draw, pair: bool) -> Frame:
    """1 to 3 types; config 0 is an owner's or plain, others are a borrower's where `pair`."""
    n_types = weighted(draw, ((1, 3), (2, 5), (3, 4)) if pair else ((1, 5), (2, 4), (3, 2)))
    scale = weighted(draw, _SCALES)
    types = tuple(_draw_type(draw, scale) for _ in range(n_types))
    if not pair:
        return Frame(types, (draw_slots(draw, tuple(range(n_types))),), scale)
    n_configs = weighted(draw, ((1, 1), (2, 3), (3, 2)))  # other lists: some types are private
    configs = [draw_slots(draw, _subset(draw, n_types)) for _ in range(n_configs)]
    if draw.boolean(0.5):  # something in common
        configs[0] = draw_slots(draw, tuple(range(n_types)))
    return Frame(types, tuple(configs), scale)


def draw_meta_frame(draw: Draw) -> Frame:
    """1 to 4 devices and one or two meta types over them, in any order; config 0 is an owner's, others a
    borrower's. Every config has a meta type (M)."""
    n = weighted(draw, ((1, 1), (2, 6), (3, 3), (4, 1)))
    scale = weighted(draw, _SCALES[:4])
    first = draw.boolean(0.3)  # the meta types come before their devices
    n_metas = 2 if n + 2 <= MAX_TYPES and draw.boolean(0.3) else 1
    devices = range(n_metas, n_metas + n) if first else range(n)
    simple = [
        replace(_draw_type(draw, scale), granularity=weighted(draw, _GRANULARITIES[:3])) for _ in devices
    ]
    metas = [_draw_meta(draw, scale, devices, simple) for _ in range(n_metas)]
    types = (*metas, *simple) if first else (*simple, *metas)
    lists = []
    for _ in range(draw.integer(1, 3)):
        some = [t for t, kind in enumerate(types) if draw.boolean(0.75 if kind.meta else 0.25)]
        if not any(types[t].meta for t in some):
            some.append(draw.choice([t for t, kind in enumerate(types) if kind.meta]))
        lists.append(draw_slots(draw, tuple(sorted(some))))
    return Frame(types, tuple(lists), scale)


def _draw_meta(draw: Draw, scale: int, devices: Sequence[int], simple: Sequence[BufferType]) -> BufferType:
    """A type over some of the devices, which are of these simple types."""
    parts = [k for k in range(len(devices)) if draw.boolean(0.8)] or list(range(len(devices)))
    unit = max(simple[k].granularity for k in parts)
    kind = _draw_type(draw, scale)
    rounds = max(unit, weighted(draw, _GRANULARITIES[:3]))
    return replace(kind, granularity=rounds, meta=sum(1 << devices[k] for k in parts))


def _draw_type(draw: Draw, scale: int) -> BufferType:
    alignment = weighted(draw, _ALIGNMENTS)
    how = draw.integer(0, 9)
    if how <= 3:
        largest = SIZE_MAX
    elif how <= 6:  # some tensors of it: several chunks
        largest = -(-scale * draw.integer(2, 8) // alignment) * alignment
    elif how <= 8:
        largest = max(1, scale * draw.choice((1, 2, 3)) + draw.choice((-1, 0, 1)))
    else:
        largest = max(alignment, scale)
    return BufferType(alignment, largest, weighted(draw, _GRANULARITIES))


def _subset(draw: Draw, n_types: int) -> tuple[int, ...]:
    chosen = tuple(t for t in range(n_types) if draw.boolean(0.6))
    return chosen or (draw.integer(0, n_types - 1),)


def draw_slots(draw: Draw, types: Sequence[int]) -> tuple[int, ...]:
    """A slot list of these types (ascending), with duplicates at times: [0, 0], [0, 1, 0] (G3)."""
    slots = list(types)
    if draw.boolean(0.35):
        for _ in range(draw.integer(1, 2)):
            again = draw.choice(types)
            slots.insert(draw.integer(slots.index(again) + 1, len(slots)), again)
    return tuple(slots[:MAX_SLOTS])


def device_bytes(frame: Frame, graphs: Sequence[Graph]) -> list[int]:
    """Per device: what the graph that needs most of it needs, as the types round; bytes."""
    need = [0] * len(frame.types)
    for graph in graphs:
        for slots in frame.configs:
            planned = plan(frame.types, slots, graph)
            mine = [0] * len(frame.types)
            for t, chunks in enumerate(planned.need if planned else ()):
                unit = frame.types[t].granularity
                for k in frame.types[t].devices(t):
                    mine[k] += sum(-(-c // unit) * unit for c in chunks)
            need = list(map(max, need, mine))
    return need


def with_capacities(draw: Draw, frame: Frame, graphs: Sequence[Graph], p_limited: float) -> Setup:
    """The setup: devices without limit, or (with probability `p_limited`) close to what the graphs need."""
    if not draw.boolean(p_limited):
        return Setup(frame.types, frame.configs)
    needs = device_bytes(frame, graphs)
    # one small device beside others without limit: an entry fails while its neighbours stand (R9)
    devices = [t for t, kind in enumerate(frame.types) if not kind.meta]
    small = draw.choice(devices) if draw.boolean(0.4) else None
    types = tuple(
        kind
        if small not in (None, t) or kind.meta
        else replace(kind, capacity=near_need(draw, need, kind.granularity))
        for t, (kind, need) in enumerate(zip(frame.types, needs, strict=True))
    )
    return Setup(types, frame.configs)


def near_need(draw: Draw, need: int, granularity: int) -> int:
    """A capacity in bytes at, around, or apart from `need`."""
    how = draw.integer(0, 7)
    if how <= 1:
        return need
    if how == 2:
        return max(0, need - draw.choice((1, granularity)))
    if how == 3:
        return need + draw.choice((1, granularity))
    if how == 4:
        return need // draw.choice((2, 3, 4))
    if how == 5:
        return need + need // draw.choice((2, 3, 4))
    return UNLIMITED if how == 6 else 2 * need
