"""C3 by experiment: is what went wrong only so because a scheduler had to become larger?"""

from __future__ import annotations

from dataclasses import replace

from ..model.records import Kind, Trace
from ..model.stack import Stack
from .exact import differences
from .fresh import Fresh


def right_for_any_size(trace: Trace, at: int, fresh: Fresh, chunks: int) -> bool:
    """All is as it must be, up to operation `at`, where schedulers are made for any number of tensors.

    Runs the trace once more. `chunks`: the most that a type may come to have.
    """
    ops = [replace(x, value=0) if x.kind == Kind.NEW else x for x in trace.ops[: at + 1]]
    run = fresh.run(replace(trace, ops=tuple(ops)))
    if len(run.steps) < len(ops):
        return False
    reference = Stack(trace.setup, list(trace.graphs), chunks=chunks)
    steps = zip(ops, run.steps, strict=True)
    return not any(any(True for _ in differences(reference, x, seen)) for x, seen in steps)
