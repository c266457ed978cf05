"""A trace in words, as people see it."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from gallocheck.fuzz import words
from gallocheck.fuzz.applies import NEEDS
from gallocheck.fuzz.deaths import RULES, misused
from gallocheck.fuzz.draw import RandomDraw
from gallocheck.fuzz.emit import EmitError, check_in_reach
from gallocheck.fuzz.generate import PROFILES, draw_trace
from gallocheck.model.records import (
    BufferType,
    Context,
    Flag,
    Graph,
    Kind,
    Memory,
    Observation,
    Op,
    OpFlag,
    Option,
    Place,
    PoolKind,
    Setup,
    Status,
    Strategy,
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
    (
        Op(Kind.NEW, 0, 1, flags=OpFlag.BY_SCHED, value=7),
        "new allocator 0 on type 1 through the scheduler made for 7 tensors",
    ),
    (
        Op(Kind.POOL_ALLOC, 2, 1, value=500, fail_nth=1),
        "take 500 bytes from the pool of device 1, stream 2, 1st allocation fails",
    ),
    (Op(Kind.POOL_FREE, 2, 1), "give the latest block back to the pool of device 1, stream 2"),
    (
        Op(Kind.POOL_FREE, 2, 1, value=3),
        "give the block 3 before the latest back to the pool of device 1, stream 2",
    ),
    (Op(Kind.TRIM, 0, 2), "trim the pools of type 2"),
    (Op(Kind.CAPTURE_BEGIN, 1), "begin to capture allocator 1"),
    (
        Op(Kind.LAUNCH, 1, flags=OpFlag.UNCHECKED | OpFlag.ASYNC),
        "replay the captured graph of allocator 1, leaving work in flight, without comparing generations",
    ),
    (Op(Kind.CTX_OPEN, 0), "open the target"),
    (Op(Kind.CTX_ATTACH, 1), "the draft attaches to the target's workspace"),
    (
        Op(Kind.CTX_DECODE, 1, 9, value=1, flags=OpFlag.ASYNC),
        "the draft decodes 1 token with 9 cells in use, leaving work in flight",
    ),
    (Op(Kind.CTX_NODES, 0, value=7), "graphs of the target may have 7 tensors from now on"),
    (Op(Kind.SLOT_STEP, 3, value=2), "slot 3 runs 2 tokens"),
]


@pytest.mark.parametrize(("op", "text"), OPS)
def test_operations(op: Op, text: str) -> None:
    assert words.describe_op(op, TRACE) == text


def test_every_operation_has_words_and_a_rule() -> None:
    said = [words.describe_op(Op(kind), TRACE) for kind in Kind]
    assert len(set(said)) == len(Kind)
    assert [k for k in Kind if not misused(Op(k))] == []
    assert [k for k in Kind if k >= Kind.POOL_ALLOC and (k not in RULES or k not in NEEDS)] == []


def test_what_s4_asks_for_is_said_where_it_matters() -> None:
    op = Op(Kind.BORROW, 1, 0, value=9)
    text = "allocator 1 becomes the borrower of 0"
    assert words.describe_op(op, TRACE) == text
    counted = replace(TRACE, setup=replace(TRACE.setup, strategy=Strategy.COUNTED))
    assert words.describe_op(op, counted) == text + " (one sequence, native MTP)"


def test_a_setup_with_every_layer() -> None:
    types = (BufferType(), BufferType(capacity=4096), BufferType(16, granularity=64, meta=0b11))
    draft = Context(0, 2, Memory.KV_WINDOW, Option.PHASE_AWARE | Option.LIVE_CONTEXT, 2, 64, 16, 3, 32, 7)
    setup = Setup(types, ((2,),), Strategy.COUNTED, PoolKind.VMM_POOL, 8192, (Context(0, 1), draft))
    assert words.describe_setup(setup).splitlines()[2:] == [
        "type 2: alignment 16, a part on device 0 and 1 in units of 64",
        "buffers: shared by reference count",
        "pools: VMM, 8192 bytes of addresses each",
        "target: on type 2, graph 1 for 1 or 1 token, a plain KV cache of 8 cells",
        "draft: on type 2, graph 2 for 3 or 32 tokens, a KV cache with a sliding window of 64 cells, a window of 16,"
        " 2 lanes, schedulers for 7 tensors; phase aware, live context",
    ]


def test_every_field_of_an_observation_has_words() -> None:
    """But those that repeat others or only make sense in a comparison."""
    quiet = {"status", "bad_node", "bad_src", "bad_offset", "digest", "owned", "allocations"}
    plain = Observation(Status.DONE, tokens=(0, 0), cells=(0, 0), fewer=(0, 0))
    for field in fields(Observation):
        if field.name not in quiet:
            usual = getattr(plain, field.name)
            changed = 1 if isinstance(usual, int) else ((1,),) if field.name == "asked" else (1, 0)
            seen = replace(plain, **{field.name: changed})
            assert words.describe_observation(seen) != words.describe_observation(plain), field.name


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


@pytest.mark.parametrize(
    ("setup", "op", "says"),
    [
        (replace(TRACE.setup, strategy=Strategy.COUNTED), Op(Kind.NEW), "The strategy counted needs counted"),
        (
            replace(TRACE.setup, pool=PoolKind.VMM_POOL, pool_range=1),
            Op(Kind.NEW),
            "A setup with pools needs pool",
        ),
        (TRACE.setup, Op(Kind.CTX_OPEN), "Operation 0 (open the target) needs contexts"),
        (TRACE.setup, Op(Kind.SLOT_ENTER), "needs server"),
        (TRACE.setup, Op(Kind.DROP), "needs capture"),
    ],
)
def test_what_ggml_does_not_have_is_not_emitted(setup: Setup, op: Op, says: str) -> None:
    """One sentence; what it has passes."""
    with pytest.raises(EmitError) as caught:
        check_in_reach(Trace(setup, TRACE.graphs, (op,)))
    assert says in str(caught.value) and str(caught.value).endswith("give the replay file away instead.")
    for kind in (Kind.OWN, Kind.SYNC, Kind.REMAKE, Kind.RESERVE):
        check_in_reach(Trace(TRACE.setup, TRACE.graphs, (Op(kind),)))
