"""Of every clause the shortest traces that are known: one that exercises it, and one that breaks it.

The first are kept in traces.json, found on the bundled allocator and made small by
`python -m gallocheck.fuzz.shortest [CLAUSE...]` (find.py). The second are canaries: shrunk traces of planted defects.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from ...model.records import Trace
from .. import canary, wire
from ..catalogue import DEFECTS, SCHED_DEFECTS, Defect
from ..replay import Replay, load

FILE = Path(__file__).parent / "traces.json"

_decoder = msgspec.json.Decoder(dict[str, wire.TraceFile], strict=True)


@cache
def kept() -> dict[str, Trace]:
    """By clause, the kept traces that exercise it."""
    return read()


def read() -> dict[str, Trace]:
    """The same, as the file is now."""
    return {clause: wire.trace_in(file) for clause, file in _decoder.decode(FILE.read_bytes()).items()}


def shortest_exercise(clause: str) -> Trace:
    """The shortest trace that is known to exercise a clause and to break none. Raises KeyError where there is none."""
    return kept()[clause]


def shortest_break(clause: str) -> tuple[Defect, Replay]:
    """The planted defect of a clause that the fewest operations show, and the replay that does; of the bundled
    allocator where that has one. Raises ValueError where the clause has none."""
    mine = [d for d in DEFECTS if d.clause == clause] or [d for d in SCHED_DEFECTS if d.clause == clause]
    return min(((d, load(canary.path_of(d))) for d in mine), key=lambda found: length(found[1].trace))


def length(trace: Trace) -> tuple[int, int, int, int]:
    """What makes a trace longer than another: operations, then tensors, then types, then all else."""
    tensors = sum(len(graph.tensors) for graph in trace.graphs)
    text = msgspec.json.encode(wire.trace_out(trace))
    return len(trace.ops), tensors, len(trace.setup.types), len(text)
