"""A trace in words, with the values that matter: for reports, replays and the command line."""

from __future__ import annotations

from ..model.records import Flag, Graph, Kind, Op, OpFlag, Scale, Strategy, Tensor, Trace
from .words_seen import describe_observation, describe_place, numbers, shared
from .words_setup import CONTEXTS, count, describe_setup, size, slots_of

__all__ = ["count", "describe_graph", "describe_observation", "describe_op", "describe_place", "describe_setup",
           "describe_tensor", "describe_trace", "ordinal"]  # fmt: skip


def ordinal(n: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th, 21st."""
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"


def describe_op(op: Op, trace: Trace) -> str:
    """One operation: 'reserve graph 1 (3 tensors, 4096 bytes) by allocator 0, 2nd allocation fails'."""
    if op.kind >= Kind.CTX_OPEN:
        what = _context(op, trace)
    elif op.kind >= Kind.POOL_ALLOC:
        what = _pool(op)
    elif op.kind in _LIFE:
        what = _life(op, trace)
    else:
        what = _work(op, trace)
    return what + _how(op) + _failures(op)


_LIFE = (Kind.NEW, Kind.FREE, Kind.OWN, Kind.BORROW, Kind.CAPACITY, Kind.REMAKE)


def _life(op: Op, trace: Trace) -> str:
    """Who is there, what they share, how large the devices are."""
    match op.kind:
        case Kind.NEW:
            way = " through the scheduler" if op.flags & OpFlag.BY_SCHED else ""
            way += f" made for {count(op.value, 'tensor')}" if way and op.value else ""
            return f"new allocator {op.alloc} on {slots_of(trace.setup, op.other)}{way}"
        case Kind.FREE:
            return f"free allocator {op.alloc}"
        case Kind.OWN:
            return f"allocator {op.alloc} becomes an owner"
        case Kind.BORROW:
            return f"allocator {op.alloc} becomes the borrower of {op.other}" + _validated(op, trace)
        case Kind.REMAKE:
            return f"allocator {op.alloc} is replaced by a new owner"
        case _:
            return f"device {op.other} has {size(op.value)} from now on"


def _validated(op: Op, trace: Trace) -> str:
    """S4 matters where buffers are counted, or apart."""
    return f" ({shared(op.value)})" if trace.setup.strategy != Strategy.PAIR else ""


def _work(op: Op, trace: Trace) -> str:
    """What an allocator is asked to do."""
    graph = f"graph {op.graph} ({graph_size(trace, op.graph)})"
    return {
        Kind.RESERVE: f"reserve {graph} by allocator {op.alloc}",
        Kind.MEASURE: f"measure {graph} by allocator {op.alloc}",
        Kind.ALLOC: f"alloc {graph} by allocator {op.alloc}",
        Kind.COMPUTE: f"compute by allocator {op.alloc}",
        Kind.SHRINK: f"request a shrink by allocator {op.alloc}",
        Kind.LOOK: f"look at allocator {op.alloc}",
        Kind.SYNC: f"wait for the work of allocator {op.alloc}",
        Kind.RESET: f"reset the scheduler of allocator {op.alloc}",
    }[op.kind]


def _pool(op: Op) -> str:
    """Pools and captured graphs."""
    pool = f"the pool of device {op.other}, stream {op.alloc}"
    before = f"the block {op.value} before the latest" if op.value else "the latest block"
    return {
        Kind.POOL_ALLOC: f"take {size(op.value)} from {pool}",
        Kind.POOL_FREE: f"give {before} back to {pool}",
        Kind.TRIM: f"trim the pools of type {op.other}",
        Kind.CAPTURE_BEGIN: f"begin to capture allocator {op.alloc}",
        Kind.CAPTURE_END: f"end the capture of allocator {op.alloc}",
        Kind.LAUNCH: f"replay the captured graph of allocator {op.alloc}",
        Kind.DROP: f"drop the captured graph of allocator {op.alloc}",
    }[op.kind]


def _context(op: Op, trace: Trace) -> str:
    """Contexts, and the server's slots."""
    who = f"the {CONTEXTS[op.alloc]}" if op.alloc < len(CONTEXTS) else f"context {op.alloc}"
    return {
        Kind.CTX_OPEN: f"open {who}",
        Kind.CTX_CLOSE: f"close {who}",
        Kind.CTX_ATTACH: f"{who} attaches to the target's workspace{_validated(op, trace)}",
        Kind.CTX_DECODE: f"{who} decodes {count(op.value, 'token')} with {count(op.other, 'cell')} in use",
        Kind.CTX_SYNC: f"wait for the work of {who}",
        Kind.CTX_NODES: f"graphs of {who} may have {count(op.value, 'tensor')} from now on",
        Kind.CTX_TRIM: f"trim the pools of {who}",
        Kind.SLOT_ENTER: f"a request enters slot {op.alloc}",
        Kind.SLOT_STEP: f"slot {op.alloc} runs {count(op.value, 'token')}",
        Kind.SLOT_LEAVE: f"the request in slot {op.alloc} leaves",
    }[op.kind]


def _how(op: Op) -> str:
    how = ", leaving work in flight" if op.flags & OpFlag.ASYNC else ""
    return how + (", without comparing generations" if op.flags & OpFlag.UNCHECKED else "")


def _failures(op: Op) -> str:
    parts = []
    if op.fail_nth:
        parts.append(f"{ordinal(op.fail_nth)} allocation fails")
    if op.fail_types:
        parts.append(f"allocations on type {numbers(op.fail_types)} fail")
    return "".join(", " + part for part in parts)


def graph_size(trace: Trace, graph: int) -> str:
    """'3 tensors, 4096 bytes': bytes of what is placed, views and preallocated ones left out."""
    if not 0 <= graph < len(trace.graphs):
        return "not there"
    tensors = trace.graphs[graph].tensors
    total = sum(t.alloc_size for t in tensors if not t.view and not t.prealloc)
    return f"{count(len(tensors), 'tensor')}, {count(total, 'byte')}"


def describe_tensor(i: int, t: Tensor) -> str:
    """'t3: 64 bytes, reads t0, t1; in place, output'."""
    what = f"t{i}: {count(t.size, 'byte')}{_SCALES[t.scale]}"
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


_SCALES = {
    Scale.SCALE_NONE: "",
    Scale.SCALE_TOKENS: " a token",
    Scale.SCALE_ATTENTION: " a token and attention cell",
    Scale.SCALE_WINDOW: " a token and window cell",
    Scale.SCALE_INDEXER: " a token and indexer cell",
}
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


def describe_trace(trace: Trace) -> str:
    """The whole case: what it is set up with, graphs, then the operations, numbered from 0."""
    lines = [describe_setup(trace.setup)]
    for g, graph in enumerate(trace.graphs):
        lines.append(f"graph {g}:")
        lines += ["  " + line for line in describe_graph(graph).splitlines()]
    lines += [f"{i:3d}. {describe_op(op, trace)}" for i, op in enumerate(trace.ops)]
    return "\n".join(lines)
