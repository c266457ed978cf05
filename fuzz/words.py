"""A trace in words, with the values that matter: for reports, replays and the command line."""

from __future__ import annotations

from collections.abc import Sequence

from ..model.records import (
    SIZE_MAX,
    UNLIMITED,
    BufferType,
    Flag,
    Graph,
    Kind,
    Observation,
    Op,
    OpFlag,
    Place,
    Setup,
    Status,
    Tensor,
    Trace,
    Trouble,
)


def ordinal(n: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th, 21st."""
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"


def count(n: int, what: str) -> str:
    """'1 tensor', '3 tensors', '2 bytes'."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def describe_op(op: Op, trace: Trace) -> str:
    """One operation: 'reserve graph 1 (3 tensors, 4096 bytes) by allocator 0, 2nd allocation fails'."""
    return _what(op, trace) + _failures(op)


def _what(op: Op, trace: Trace) -> str:
    graph = f"graph {op.graph} ({graph_size(trace, op.graph)})"
    match op.kind:
        case Kind.NEW:
            way = " through the scheduler" if op.flags & OpFlag.BY_SCHED else ""
            return f"new allocator {op.alloc} on {slots_of(trace.setup, op.other)}{way}"
        case Kind.FREE:
            return f"free allocator {op.alloc}"
        case Kind.OWN:
            return f"allocator {op.alloc} becomes an owner"
        case Kind.BORROW:
            return f"allocator {op.alloc} becomes the borrower of {op.other}"
        case Kind.RESERVE:
            return f"reserve {graph} by allocator {op.alloc}"
        case Kind.MEASURE:
            return f"measure {graph} by allocator {op.alloc}"
        case Kind.ALLOC:
            return f"alloc {graph} by allocator {op.alloc}"
        case Kind.COMPUTE:
            how = ", leaving work in flight" if op.flags & OpFlag.ASYNC else ""
            how += ", without comparing generations" if op.flags & OpFlag.UNCHECKED else ""
            return f"compute by allocator {op.alloc}{how}"
        case Kind.SHRINK:
            return f"request a shrink by allocator {op.alloc}"
        case Kind.CAPACITY:
            return f"device {op.other} has {_bytes(op.value)} from now on"
        case Kind.LOOK:
            return f"look at allocator {op.alloc}"
        case Kind.REMAKE:
            return f"allocator {op.alloc} is replaced by a new owner"
        case Kind.SYNC:
            return f"wait for the work of allocator {op.alloc}"
        case Kind.RESET:
            return f"reset the scheduler of allocator {op.alloc}"


def _failures(op: Op) -> str:
    parts = []
    if op.fail_nth:
        parts.append(f"{ordinal(op.fail_nth)} allocation fails")
    if op.fail_types:
        types = [str(t) for t in range(op.fail_types.bit_length()) if op.fail_types >> t & 1]
        parts.append(f"allocations on type {' and '.join(types)} fail")
    return "".join(", " + part for part in parts)


def _bytes(n: int) -> str:
    return "no limit" if n == UNLIMITED else count(n, "byte")


def slots_of(setup: Setup, config: int) -> str:
    """'type 0' or 'types 0, 1, 0'."""
    if not 0 <= config < len(setup.configs):
        return f"config {config}"
    slots = setup.configs[config]
    return f"type{'s' * (len(slots) > 1)} " + ", ".join(map(str, slots))


def graph_size(trace: Trace, graph: int) -> str:
    """'3 tensors, 4096 bytes': bytes of what is placed, views and preallocated ones left out."""
    if not 0 <= graph < len(trace.graphs):
        return "not there"
    tensors = trace.graphs[graph].tensors
    total = sum(t.alloc_size for t in tensors if not t.view and not t.prealloc)
    return f"{count(len(tensors), 'tensor')}, {count(total, 'byte')}"


def describe_tensor(i: int, t: Tensor) -> str:
    """'t3: 64 bytes, reads t0, t1; in place, output'."""
    what = f"t{i}: {count(t.size, 'byte')}"
    if t.pad:
        what += f" and {t.pad} of pad"
    if t.view:
        what += f", view of t{t.view_src} at {t.view_offs}"
    elif t.src:
        what += ", reads " + ", ".join(f"t{s}" for s in t.src)
    if t.slot and not t.view:
        what += f", slot {t.slot}"
    words = [word for flag, word in _FLAG_WORDS.items() if t.flags & flag]
    if t.input or t.prealloc:
        words.remove("leaf")
    return what + ("; " + ", ".join(words) if words else "")


_FLAG_WORDS = {
    Flag.LEAF: "leaf",
    Flag.INPUT: "input",
    Flag.OUTPUT: "output",
    Flag.INPLACE: "in place",
    Flag.PREALLOC: "memory of its own",
    Flag.LAYOUT: "other layout",
}


def describe_graph(graph: Graph) -> str:
    """One line a tensor; 'empty' where there is none."""
    return "\n".join(describe_tensor(i, t) for i, t in enumerate(graph.tensors)) or "empty"


def describe_type(kind: BufferType) -> str:
    """'alignment 32, largest buffer 256 bytes, device of 1024 bytes in units of 64'."""
    parts = [f"alignment {kind.alignment}"]
    if kind.max_size != SIZE_MAX:
        parts.append(f"largest buffer {count(kind.max_size, 'byte')}")
    parts.append(
        "device without limit" if kind.capacity == UNLIMITED else f"device of {_bytes(kind.capacity)}"
    )
    return ", ".join(parts) + (f" in units of {kind.granularity}" if kind.granularity != 1 else "")


def describe_setup(setup: Setup) -> str:
    """One line a type."""
    return "\n".join(f"type {t}: {describe_type(kind)}" for t, kind in enumerate(setup.types))


def describe_trace(trace: Trace) -> str:
    """The whole case: types, graphs, then the operations, numbered from 0."""
    lines = [describe_setup(trace.setup)]
    for g, graph in enumerate(trace.graphs):
        lines.append(f"graph {g}:")
        lines += ["  " + line for line in describe_graph(graph).splitlines()]
    lines += [f"{i:3d}. {describe_op(op, trace)}" for i, op in enumerate(trace.ops)]
    return "\n".join(lines)


def describe_status(status: Status) -> str:
    return {
        Status.MISUSE: "misuse",
        Status.REFUSED: "refused",
        Status.DONE: "done",
        Status.STALE: "stale, dropped",
    }[status]


def describe_observation(seen: Observation) -> str:
    """'done; 4096 bytes in use; asked [4096]; generation 1': what differs from nothing."""
    parts = [describe_status(seen.status)]
    if seen.trouble:
        names = ", ".join(f.name or "" for f in Trouble if f & seen.trouble)
        where = (
            f" at t{seen.bad_node}, source {seen.bad_src}, byte {seen.bad_offset}"
            if seen.bad_node >= 0
            else ""
        )
        parts.append(f"trouble {names}{where}")
    parts.append("in use " + _row(seen.used))
    if any(seen.measured):
        parts.append("measured " + _row(seen.measured))
    if any(seen.reported):
        parts.append("reported " + _row(seen.reported))
    if any(seen.asked):
        parts.append("asked " + " ".join(f"[{_row(chunks)}]" for chunks in seen.asked))
    if seen.generation or seen.shrink_generation:
        parts.append(f"generation {seen.generation}, shrink generation {seen.shrink_generation}")
    return "; ".join(parts)


def _row(values: Sequence[int]) -> str:
    """The values without trailing zeros; '0' where all are."""
    values = list(values)
    while len(values) > 1 and not values[-1]:
        values.pop()
    return ", ".join(map(str, values)) if values else "0"


def describe_place(place: Place) -> str:
    if place.type < 0:
        return "outside"
    return f"type {place.type}, chunk {place.chunk}, offset {place.offset}"
