"""Whether two subjects showed the same of a trace: then the judge would say the same, and need not be asked."""

from __future__ import annotations

from ...model.records import Trace
from ...native.packet import Run
from ..exact import offsets


def shown(trace: Trace, run: Run) -> int:
    """A number for everything that was seen, in this process; 0 of a run that ended early.

    Addresses of pools count as offsets, and as staying where they are (V1).
    """
    if run.death is not None or run.leaked or not run.opened or len(run.steps) != len(trace.ops):
        return 0
    bases: dict[tuple[int, int], int] = {}  # by device and stream
    seen: list[object] = []
    for op, step in zip(trace.ops, run.steps, strict=True):
        base = step.obs.base
        stays = not base or bases.setdefault((op.other, op.alloc), base) == base
        seen.append((offsets(step.obs), stays, tuple(step.looks.items()), step.places))
    return hash((tuple(seen), run.graphs)) or 1
