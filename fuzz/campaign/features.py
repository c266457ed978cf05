"""What a run showed, as numbers: a trace that shows a number that none showed before is kept.

A feature is an int: its family in the high half, a number of that family in the low half.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection
from itertools import pairwise

from ...model.records import Trace
from ..checker import Report

#: what a feature may be of: behaviour seen from outside, edges of native code, branches of the model
FAMILIES = ("behaviours", "edges", "branches")
BEHAVIOURS, EDGES, BRANCHES = range(3)
EDGE_BITS = 3  #: the low bits of an edge's number: about how often it was taken


def feature(family: int, text: str) -> int:
    """The same number in every process and on every machine."""
    return family << 32 | zlib.crc32(text.encode())


def family_of(number: int) -> str:
    return FAMILIES[number >> 32]


def features(trace: Trace, report: Report, coverage: Collection[int] = ()) -> frozenset[int]:
    """What one judged run showed: how often each clause was exercised (as a power of two), how each
    kind of operation ended, and what came right after what. `coverage`: features of other families.
    """
    seen = {f"{clause} {times.bit_length()}" for clause, times in report.tally.items() if times}
    ended = [f"{op.kind.name} {int(s)}" for op, s in zip(trace.ops, report.statuses, strict=False)]
    seen.update(ended)
    seen.update(f"{a} {b}" for a, b in pairwise(ended))
    seen.update(f"{v.sort} {v.op}" for v in report.verdicts)
    return frozenset(feature(BEHAVIOURS, text) for text in seen) | frozenset(coverage)
