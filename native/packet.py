"""A whole trace in one block of memory: packed by one process, executed in another, read back by the first.

The block begins with a gw_head. Whoever executes publishes there what it is about
to do, so that after its death the block still says where it was and everything
that was seen before.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..model.records import MAX_LANES, Kind, Observation, Op, Place, Status, Trace
from . import layout
from .header import ffi

ffi.cdef("""
typedef struct gw_head {
    uint64_t phase;    /* a PHASE: what runs now */
    uint64_t base;     /* index of the first operation of the batch that runs; in DEFINE: the graph */
    uint64_t progress; /* gc_run's progress within the batch */
    uint64_t leaked, opened;
    uint64_t n_graphs, n_ops, n_stops;
    uint64_t setup, graphs, ops, obs, stops; /* offsets from the head */
} gw_head;
typedef struct gw_graph { uint64_t tensors; uint32_t n; int32_t number; } gw_graph;
/* Before operation `end`, list allocator `alloc`'s placements if operation end - 1 was done. */
typedef struct gw_stop { uint64_t end, places; int32_t alloc; uint32_t max, count, reserved; } gw_stop;
""")
IDLE, OPEN, DEFINE, RUN, PLACES, CLOSE, FINISHED = range(7)
PHASES = ("idle", "open", "define", "run", "places", "close", "finished")
HEAD, GRAPH, STOP = map(layout.format_of, ("gw_head", "gw_graph", "gw_stop"))


@dataclass(slots=True)
class StepSeen:
    """What one operation of a trace showed.

    `looks`: every other living allocator after it. `places`: after an ALLOC that
    is done, a Place for each tensor of the graph.
    """

    obs: Observation
    looks: dict[int, Observation]
    places: tuple[Place, ...] | None = None


@dataclass(frozen=True, slots=True)
class Death:
    """How a subject died.

    `step` is the index of the operation that ran (or that was done just before,
    where `phase` is 'look' or 'places'; the number of operations for 'close'; 0
    for 'open' and 'define'), `op` that operation (None where there was none).
    `kind`: 'abort', 'fault', 'hang', 'memory' (it took more than worker.MOST_MEMORY) or 'exit'. `signal`: its name, or ''.
    `stderr`: the last lines that the subject wrote.
    """

    step: int
    op: Op | None
    kind: str
    phase: str
    signal: str = ""
    code: int = 0
    stderr: str = ""

    @property
    def from_outside(self) -> bool:
        """It was killed, and not by us."""
        return self.kind == "exit" and self.signal == "SIGKILL"


@dataclass(slots=True)
class Run:
    """A trace as a subject ran it.

    `opened` is False where the subject takes no such setup (nothing was run then).
    `graphs[k]`: the subject's number of graph k, -1 where it does not take it.
    `leaked`: bytes still in use or reserved after close (G5), None where it did not get there.
    """

    steps: list[StepSeen]
    leaked: int | None = None
    death: Death | None = None
    opened: bool = True
    graphs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Packed:
    """Where things are in the block. `main[i]`: index of the trace's operation i among
    those that run; `looks[i]`: the allocators looked at after it."""

    trace: Trace
    main: list[int]
    looks: list[tuple[int, ...]]
    stops: list[int]  # the trace's operations after which placements are listed
    graphs: int
    obs: int
    stops_at: int
    n_ops: int
    size: int


_LOOKS = {a: layout.pack_op(Op(Kind.LOOK, alloc=a)) for a in range(4)}


def _of_contexts(trace: Trace) -> set[int]:
    """The allocators that the trace's contexts may have."""
    contexts = enumerate(trace.setup.contexts)
    return {n * MAX_LANES + lane for n, c in contexts if c.config >= 0 for lane in range(c.lanes)}


def _expand(trace: Trace) -> tuple[list[bytes], list[int], list[tuple[int, ...]]]:
    """The operations with a LOOK at every other allocator that may live after each."""
    ops: list[bytes] = []
    main: list[int] = []
    looks: list[tuple[int, ...]] = []
    alive: set[int] = set()
    lanes = _of_contexts(trace)
    for op in trace.ops:
        main.append(len(ops))
        ops.append(layout.pack_op(op))
        if op.kind == Kind.NEW:
            alive.add(op.alloc)
        if op.kind >= Kind.CTX_OPEN:
            others = tuple(sorted(alive | lanes))
        else:
            others = tuple(a for a in sorted(alive) if a != op.alloc)
        looks.append(others)
        ops += [_LOOKS[a] for a in others]
    return ops, main, looks


def plan(trace: Trace) -> tuple[Packed, list[tuple[int, bytes]]]:
    """How the trace lies in a block: its sizes, and the (offset, bytes) to write there."""
    ops, main, looks = _expand(trace)
    parts: list[tuple[int, bytes]] = []
    end = HEAD.size

    def put(data: bytes) -> int:
        nonlocal end
        at = end
        if data:
            parts.append((at, data))
        end += -(-len(data) // 8) * 8
        return at

    setup = put(layout.pack_setup(trace.setup))
    tensors = [(put(layout.pack_graph(g)), len(g.tensors)) for g in trace.graphs]
    graphs = put(b"".join(GRAPH.pack(at, n, -1) for at, n in tensors))
    ops_at = put(b"".join(ops))
    stops = [i for i, op in enumerate(trace.ops) if op.kind == Kind.ALLOC and op.graph < len(tensors)]
    stops_at = end
    end += STOP.size * len(stops)
    obs = end
    end += layout.OBS.size * len(ops)
    table = []
    for i in stops:
        op = trace.ops[i]
        n = tensors[op.graph][1]
        table.append(STOP.pack(main[i] + 1, end, op.alloc, n, 0, 0))
        end += layout.PLACE.size * n
    parts.append((stops_at, b"".join(table) + bytes(layout.OBS.size * len(ops))))
    counts = (len(tensors), len(ops), len(stops))
    parts.append((0, HEAD.pack(IDLE, 0, 0, 0, 0, *counts, setup, graphs, ops_at, obs, stops_at)))
    return Packed(trace, main, looks, stops, graphs, obs, stops_at, len(ops), end), parts


def execute(lib: Any, block: Any) -> None:
    """Runs the trace that lies at `block` (a char pointer) on a loaded subject library."""
    head = ffi.cast("gw_head *", block)
    head.phase = OPEN
    session = lib.gc_open(ffi.cast("gc_setup *", block + head.setup))
    head.opened = bool(session)
    if session:
        _define(lib, session, block, head)
        _run(lib, session, block, head)
        head.phase = CLOSE
        head.leaked = lib.gc_close(session)
    head.phase = FINISHED


def _define(lib: Any, session: Any, block: Any, head: Any) -> None:
    graphs = ffi.cast("gw_graph *", block + head.graphs)
    head.phase = DEFINE
    moved = False
    for k in range(head.n_graphs):
        head.base = k
        tensors = ffi.cast("gc_tensor *", block + graphs[k].tensors)
        graphs[k].number = lib.gc_define(session, tensors, graphs[k].n)
        moved |= graphs[k].number != k
    head.base = 0
    if moved:  # some graph was not taken: operations follow the subject's numbers
        ops = ffi.cast("gc_op *", block + head.ops)
        for i in range(head.n_ops):
            if 0 <= ops[i].graph < head.n_graphs and ops[i].kind != Kind.LOOK:
                ops[i].graph = graphs[ops[i].graph].number


def _run(lib: Any, session: Any, block: Any, head: Any) -> None:
    ops = ffi.cast("gc_op *", block + head.ops)
    obs = ffi.cast("gc_obs *", block + head.obs)
    stops = ffi.cast("gw_stop *", block + head.stops)
    progress = ffi.addressof(head, "progress")
    start = 0
    for k in range(head.n_stops + 1):
        end = stops[k].end if k < head.n_stops else head.n_ops
        head.progress = 0
        head.base = start
        head.phase = RUN
        lib.gc_run(session, ops + start, obs + start, end - start, progress)
        if k < head.n_stops and obs[end - 1].status == Status.DONE:
            head.phase = PLACES
            out = ffi.cast("gc_place *", block + stops[k].places)
            stops[k].count = lib.gc_places(session, stops[k].alloc, out, stops[k].max)
        start = end


def where(block: Any) -> tuple[int, int]:
    """(phase, index of the operation that runs): changes whenever the subject gets on."""
    phase, base, progress = struct.unpack_from("=3Q", block)
    return phase, base + progress


def unpack(packed: Packed, block: Any) -> Run:
    """What was seen, up to where the subject got. Raises SubjectError for a status that
    gallocheck.h does not know."""
    head = HEAD.unpack_from(block)
    phase, base, progress, leaked, opened = head[:5]
    graphs = tuple(
        GRAPH.unpack_from(block, packed.graphs + k * GRAPH.size)[2] for k in range(len(packed.trace.graphs))
    )
    run = Run([], graphs=graphs)
    if phase <= DEFINE or not opened:
        run.opened = phase != FINISHED
        return run
    done = min(base + progress, packed.n_ops)
    run.steps = list(_steps(packed, block, done))
    _add_places(packed, block, run.steps, phase == FINISHED)
    if phase == FINISHED:
        run.leaked = leaked
    return run


def _steps(packed: Packed, block: Any, done: int) -> Iterator[StepSeen]:
    size, n_types = layout.OBS.size, len(packed.trace.setup.types)
    raw = bytes(block[packed.obs : packed.obs + done * size])
    alive: set[int] = set()
    for op, at, others in zip(packed.trace.ops, packed.main, packed.looks, strict=True):
        if at >= done:
            return
        obs = layout.observation(raw[at * size : (at + 1) * size], n_types)
        if obs.status == Status.DONE:
            if op.kind == Kind.NEW:
                alive.add(op.alloc)
            elif op.kind == Kind.FREE:
                alive.discard(op.alloc)
        looks = {}
        for k, a in enumerate(others, at + 1):
            if k >= done:
                break
            look = layout.observation(raw[k * size : (k + 1) * size], n_types)
            if a in alive or look.status == Status.DONE:  # of a context's allocators: those that live
                looks[a] = look
        yield StepSeen(obs, looks)


def _add_places(packed: Packed, block: Any, steps: list[StepSeen], finished: bool) -> None:
    for k, i in enumerate(packed.stops):
        if i >= len(steps) or steps[i].obs.status != Status.DONE:
            continue
        _, at, _, most, count, _ = STOP.unpack_from(block, packed.stops_at + k * STOP.size)
        n = min(most, count)
        missing = (Place(-1, 0, 0),) * (most - n) if finished else ()  # the subject says that there are fewer
        steps[i].places = layout.places(bytes(block[at : at + n * layout.PLACE.size])) + missing
