"""A trace in words, as people see it."""

from __future__ import annotations

import pytest
from gallocheck.fuzz import words
from gallocheck.fuzz.draw import RandomDraw
from gallocheck.fuzz.generate import PROFILES, draw_trace
from gallocheck.model.records import (
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

TRACE = Trace(
    Setup((BufferType(32, 256, 64, 1000), BufferType()), ((0, 1, 0), (1,))),
    (
        Graph(()),
        Graph(
            (
                Tensor(4000, (), Flag.LEAF | Flag.INPUT),
                Tensor(64, (0,), Flag.OUTPUT, 0, 32),
                Tensor(1, (1,), Flag(0), 0, 0, 1, 8),
            )
        ),
    ),
    (),
)
OPS = [
    (Op(Kind.NEW, 0, 0), "new allocator 0 on types 0, 1, 0"),
    (Op(Kind.NEW, 2, 1, flags=OpFlag.BY_SCHED), "new allocator 2 on type 1 through the scheduler"),
    (
        Op(Kind.RESERVE, 0, graph=1, fail_nth=2),
        "reserve graph 1 (3 tensors, 4096 bytes) by allocator 0, 2nd allocation fails",
    ),
    (
        Op(Kind.ALLOC, 1, graph=0, fail_types=3),
        "alloc graph 0 (0 tensors, 0 bytes) by allocator 1, allocations on type 0 and 1 fail",
    ),
    (Op(Kind.MEASURE, 0, graph=7), "measure graph 7 (not there) by allocator 0"),
    (Op(Kind.COMPUTE, 1, flags=OpFlag.ASYNC), "compute by allocator 1, leaving work in flight"),
    (Op(Kind.BORROW, 1, 0), "allocator 1 becomes the borrower of 0"),
    (Op(Kind.CAPACITY, 0, 1, value=1), "device 1 has 1 byte from now on"),
    (Op(Kind.CAPACITY, 0, 1, value=2**64 - 1), "device 1 has no limit from now on"),
]


@pytest.mark.parametrize(("op", "text"), OPS)
def test_operations(op: Op, text: str) -> None:
    assert words.describe_op(op, TRACE) == text


def test_ordinals() -> None:
    assert [words.ordinal(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 111, 122)] == [
        "1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "111th", "122nd"
    ]  # fmt: skip


def test_a_whole_trace() -> None:
    trace = Trace(TRACE.setup, TRACE.graphs, (Op(Kind.NEW), Op(Kind.SHRINK)))
    assert words.describe_trace(trace) == (
        "type 0: alignment 32, largest buffer 256 bytes, device of 1000 bytes in units of 64\n"
        "type 1: alignment 1, device without limit\n"
        "graph 0:\n"
        "  empty\n"
        "graph 1:\n"
        "  t0: 4000 bytes; input\n"
        "  t1: 64 bytes and 32 of pad, reads t0; output\n"
        "  t2: 1 byte, view of t1 at 8\n"
        "  0. new allocator 0 on types 0, 1, 0\n"
        "  1. request a shrink by allocator 0"
    )


def test_observations_and_places() -> None:
    seen = Observation(Status.DONE, Trouble.BAD_SOURCE, 3, 0, 5, 2, 1, 0, (64, 0), (64, 0), (), ((64,), ()))
    assert words.describe_observation(seen) == (
        "done; trouble BAD_SOURCE at t3, source 0, byte 5; in use 64; reported 64; asked [64] [0]; "
        "generation 2, shrink generation 1"
    )
    assert words.describe_place(Place(1, 0, 32)) == "type 1, chunk 0, offset 32"
    assert words.describe_place(Place(-1, -1, 0)) == "outside"


def test_every_generated_trace_has_words() -> None:
    for profile in PROFILES:
        for seed in range(50):
            trace = draw_trace(RandomDraw(seed), profile)
            text = words.describe_trace(trace)
            assert text.count("\n") >= len(trace.ops) and "None" not in text
