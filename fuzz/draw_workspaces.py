"""Setups of target and draft contexts: tiny templates and caches, capacities near what they need (W, T)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..model.domain import Ints
from ..model.planner import plan
from ..model.records import (
    BufferType,
    Cap,
    Context,
    Flag,
    Graph,
    Memory,
    Option,
    Scale,
    Setup,
    Strategy,
    Tensor,
)
from ..model.template import scaled
from ..model.workspace import Policy, frame
from .draw import Draw, weighted

TARGET, DRAFT = 0, 1


def draw_setup(draw: Draw, caps: Cap) -> tuple[Setup, tuple[Graph, ...]]:
    """One or two buffer types (at times a meta type), and contexts on them."""
    types = _types(draw, caps)
    every = tuple(range(len(types)))
    configs = [every]
    if len(types) > 1 and draw.boolean(0.25):  # other placements: they do not match (W6)
        configs.append((draw.choice(every),))
    if draw.boolean(0.1):
        configs.append((*every, every[0]))  # the same types, one of them twice
    memory = draw.choice(tuple(Memory))
    graphs = tuple(_template(draw, len(types)) for _ in range(draw.choice((1, 2, 2))))
    options = weighted(draw, ((3, 6), (1, 2), (2, 2), (0, 2)))
    target = _context(draw, 0, graphs, memory, options, lanes=draw.choice((1, 2, 2)))
    config = draw.integer(0, len(configs) - 1) if draw.boolean(0.5) else 0
    other = options if draw.boolean(0.6) else draw.choice((0, 0, 0, 1, 2, 3))
    draft = _context(draw, config, graphs, memory, other, lanes=draw.choice((1, 1, 2)))
    contexts = (target, draft) if draw.boolean(0.9) else (target,)
    strategies = [(Strategy.PAIR, 7)]
    if caps & Cap.COUNTED:
        strategies += [(Strategy.COUNTED, 2), (Strategy.APART, 1)]
    setup = Setup(types, tuple(configs), weighted(draw, strategies), contexts=contexts)
    return _limited(draw, setup, graphs) if draw.boolean(0.4) else setup, graphs


def _types(draw: Draw, caps: Cap) -> tuple[BufferType, ...]:
    def one() -> BufferType:
        return BufferType(draw.choice((1, 8, 32)), granularity=draw.choice((1, 1, 64, 4096)))

    types = [one() for _ in range(weighted(draw, ((1, 5), (2, 3))))]
    if caps & Cap.META and draw.boolean(0.12):
        devices = tuple(types[:2])
        largest = max(t.granularity for t in devices)
        types = [*devices, BufferType(32, granularity=largest, meta=(1 << len(devices)) - 1)]
    return tuple(types)


def _template(draw: Draw, n_types: int) -> Graph:
    """An input, something of each part of the cache, a small output."""
    given = Flag.LEAF | Flag.INPUT
    slots = [draw.integer(0, n_types - 1) for _ in range(6)]
    tensors = [Tensor(draw.integer(1, 8), (), given, slots[0], scale=Scale.SCALE_TOKENS)]
    if draw.boolean(0.3):
        tensors.append(Tensor(draw.integer(1, 64), (), Flag.LEAF | Flag.PREALLOC))
    for scale in (Scale.SCALE_ATTENTION, Scale.SCALE_WINDOW, Scale.SCALE_INDEXER):
        if draw.boolean(0.75):
            source = (draw.integer(0, len(tensors) - 1),)
            pad = draw.choice((0, 0, 0, 3))
            tensors.append(
                Tensor(draw.integer(1, 3), source, slot=slots[len(tensors) % 6], pad=pad, scale=scale)
            )
    last = len(tensors) - 1
    sources = tuple(dict.fromkeys((last, draw.integer(0, last))))
    flags = Flag.INPLACE if draw.boolean(0.3) else Flag(0)
    tensors.append(Tensor(draw.integer(1, 8), sources, flags, slots[5], scale=Scale.SCALE_TOKENS))
    if draw.boolean(0.2):  # a view of it
        tensors.append(Tensor(1, (len(tensors) - 1,), view_src=len(tensors) - 1))
    output = weighted(draw, ((Scale.SCALE_TOKENS, 5), (Scale.SCALE_NONE, 2), (Scale.SCALE_ATTENTION, 3)))
    size = 1 if output == Scale.SCALE_ATTENTION else draw.integer(1, 8)
    tensors.append(Tensor(size, (len(tensors) - 1,), Flag.OUTPUT, slots[4], scale=output))
    return Graph(tuple(tensors))


def _context(
    draw: Draw, config: int, graphs: Sequence[Graph], memory: Memory, options: int, lanes: int
) -> Context:
    graph = draw.integer(0, len(graphs) - 1)
    cells = 8 * draw.choice((1, 2, 3, 4, 8, 32))
    generation = draw.choice((1, 1, 2, 4))
    batch = draw.choice((63, 64, 65, 65, 128)) if lanes == 2 or draw.boolean(0.3) else draw.choice((4, 8, 16))
    window = draw.choice((0, 1, 8, cells // 2))
    nodes = len(graphs[graph].tensors) + draw.choice((0, 0, 0, 2, -1))
    nodes = 0 if draw.boolean(0.5) else nodes
    return Context(config, graph, memory, Option(options), lanes, cells, window, generation, batch, nodes)


def _limited(draw: Draw, setup: Setup, graphs: Sequence[Graph]) -> Setup:
    """A device that has what opening takes, and about what a context needs at some step of its cache."""
    c, policy = draw.choice(setup.contexts), Policy(Ints)
    need = _need(
        setup, graphs, c, draw.choice((c.generation, c.batch, c.batch)), c.cells // draw.choice((1, 1, 2, 8))
    )
    device = draw.integer(0, len(need) - 1)
    kind = setup.types[device]
    if kind.meta:
        return setup
    opening = 0
    for x in setup.contexts:
        first = policy.start(frame(x)).reserved
        opening += x.lanes * _need(setup, graphs, x, first.tokens, first.cells)[device]
    more = need[device] * draw.choice((1, 2, 2, 3)) // 2 + draw.choice((0, 0, 1, -1, 64))
    capacity = max(0, more if draw.boolean(0.1) else max(more, opening))
    types = (*setup.types[:device], replace(kind, capacity=capacity), *setup.types[device + 1 :])
    return replace(setup, types=types)


def _need(setup: Setup, graphs: Sequence[Graph], c: Context, tokens: int, cells: int) -> list[int]:
    """Bytes by type that a reservation takes, as the device rounds."""
    parts = Policy(Ints).parts(frame(c), cells)
    planned = plan(setup.types, setup.configs[c.config], scaled(graphs[c.graph], tokens, parts))
    rows = planned.need if planned else ((0,),) * len(setup.types)
    return [
        sum(-(-x // k.granularity) * k.granularity for x in row)
        for row, k in zip(rows, setup.types, strict=True)
    ]
