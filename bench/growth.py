"""Whether the cost of a checked operation grows: with the operations done, and with the tensors of a graph."""

from __future__ import annotations

import math
import random

from gallocheck.fuzz.batch.draw import batch_of
from gallocheck.fuzz.batch.engine import Lanes
from gallocheck.fuzz.draw import RandomDraw
from gallocheck.fuzz.generate import ALL_CAPS
from gallocheck.fuzz.setups import Frame
from gallocheck.model.records import SIZE_MAX, BufferType, Flag, Graph, Tensor
from gallocheck.native.library import library_path
from timing import resident, spent

TENSORS = (10, 32, 100, 316, 1000)
WARM = 1_000_000


def by_operations(most: int) -> tuple[list[tuple[int, float]], float]:
    """((operations, seconds an operation since the point before) at every power of ten, memory after the
    last point against after a million). Seconds of processor time."""
    points, marks = [], [10**k for k in range(5, 1 + int(math.log10(most)))]
    with Lanes(library_path("bundled")) as lanes:
        done, since, begin, number, base = 0, 0, spent(), 0, 0
        for mark in marks:
            while done < mark:
                done += lanes.check(lanes.batch(f"growth {number}", 4096, 48)).operations
                number += 1
                if not base and done >= WARM:
                    base = resident()
            now = spent()
            points.append((done, (now - begin) / max(1, done - since)))
            since, begin = done, now
        return points, resident() / base if base else 1.0


def chain(n: int, draw: RandomDraw) -> Graph:
    """n nodes in a row that read the last few; the last one is the output."""
    tensors = [Tensor(64, (), Flag.LEAF | Flag.INPUT)]
    for i in range(1, n):
        sources = tuple({max(0, i - 1 - draw.integer(0, 3)) for _ in range(2)})
        tensors.append(Tensor(draw.integer(1, 64), sources, Flag.OUTPUT if i == n - 1 else Flag(0)))
    return Graph(tuple(tensors))


def by_tensors() -> list[tuple[int, float]]:
    """(tensors of each graph, seconds a checked operation and tensor)."""
    out = []
    with Lanes(library_path("bundled")) as lanes:
        for n in TENSORS:
            draw = RandomDraw(random.Random(n))
            graphs = tuple(chain(n, draw) for _ in range(4))
            frame = Frame((BufferType(32, SIZE_MAX, 64),), ((0,),), 64)
            batch = batch_of(draw, frame, graphs, 1, max(64, 20000 // n), 48, ALL_CAPS)
            lanes.check(batch)
            begin = spent()
            checked = lanes.check(batch)
            out.append((n, (spent() - begin) / checked.operations / n))
            assert not checked.suspects
    return out
