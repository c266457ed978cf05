"""Whether a run is what the model says, and no more: several times as fast as to judge it.

For subjects that declare Cap.EXACT. The model is proven to keep the contract, so a run in which everything that
can be seen is as it says keeps it too; how often each clause was exercised is not counted here, and
what only a new allocator's plan of a graph would show is not looked at.
"""

from __future__ import annotations

from ..model import planner
from ..model.records import MAX_CHUNKS, SIZE_MAX, Kind, Trace
from ..model.stack import Stack
from ..native.worker import Run
from . import exact


def agrees(trace: Trace, run: Run) -> bool:
    """Nothing died, nothing is lost, and every observation is the reference's."""
    if run.death is not None or run.leaked or not run.opened or len(run.steps) != len(trace.ops):
        return False
    reference = Stack(trace.setup, list(trace.graphs), chunks=_chunks(trace, run))
    bases: dict[tuple[int, int], int] = {}  # by device and stream
    for op, seen in zip(trace.ops, run.steps, strict=True):
        if any(True for _ in exact.differences(reference, op, seen)):
            return False
        bound = reference.session.allocs.get(op.alloc)
        if (
            op.kind == Kind.ALLOC
            and seen.places is not None
            and bound is not None
            and seen.places != bound.places
        ):
            return False  # even where nothing is: P7 says where that lies
        if seen.obs.base and bases.setdefault((op.other, op.alloc), seen.obs.base) != seen.obs.base:
            return False  # V1: the model has no addresses, but knows that they stay
    return True


def _chunks(trace: Trace, run: Run) -> int:
    """How many chunks a type comes to have, at most."""
    setup = trace.setup
    if setup.contexts and any(kind.max_size < SIZE_MAX for kind in setup.types):
        return MAX_CHUNKS  # their graphs are made of templates
    rows = [len(chunks) for seen in run.steps for chunks in seen.obs.asked]
    for slots in setup.configs:
        for graph in trace.graphs:
            plan = planner.plan(setup.types, slots, graph)
            rows += map(len, plan.need) if plan else ()
    return max(rows, default=0) or 1
