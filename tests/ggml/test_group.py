"""The shared group: its rules by hand-made traces, and the judge over drawn ones."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from gallocheck.fuzz.generate import Profile, RandomDraw, draw_trace
from gallocheck.fuzz.judge import Judge
from gallocheck.fuzz.subjects import resolve
from gallocheck.model.records import (
    BufferType,
    Cap,
    Graph,
    Kind,
    Observation,
    Op,
    OpFlag,
    Setup,
    Status,
    Tensor,
    Trace,
    Trouble,
)
from gallocheck.native import trees
from gallocheck.native.binding import Library
from gallocheck.native.packet import Run

from .cases import SCHED, node, op

NEW, OWN, BORROW, RESERVE, ALLOC, COMPUTE = (
    Kind.NEW, Kind.OWN, Kind.BORROW, Kind.RESERVE, Kind.ALLOC, Kind.COMPUTE)  # fmt: skip
SHRINK, FREE, LOOK = Kind.SHRINK, Kind.FREE, Kind.LOOK
DONE, REFUSED, MISUSE, STALE = Status.DONE, Status.REFUSED, Status.MISUSE, Status.STALE
SMALL, MIDDLE, LARGE, BOTH = 0, 1, 2, 3  # graphs of one node of 64, 640, 6400 bytes; of two, on two types
PLAIN = OpFlag(0)
FOUR = Setup((BufferType(32), BufferType(32)), ((0,), (1,), (0, 1)))


@pytest.fixture(scope="module")
def group(pinned: trees.Tree) -> Path:
    return trees.build(pinned, "group")


def play(library: Path, ops: list[Op]) -> list[Observation]:
    """In this process; nothing may leak."""
    session = Library(library).open(FOUR)
    for size in (64, 640, 6400):
        session.define(node(size))
    session.define(Graph((Tensor(64), Tensor(64, slot=1))))
    seen = session.run(ops)
    assert session.close() == 0
    return seen


def two(*ops: Op, flags: OpFlag = PLAIN) -> list[Op]:
    return [op(NEW, flags=flags), op(OWN), op(NEW, 1, flags=flags), op(BORROW, 1, other=0), *ops]


def test_subject(group: Path) -> None:
    library = Library(group)
    assert library.capabilities == Cap.PLAN | Cap.SCHED | Cap.GROUP | Cap.META
    assert library.describe == "ggml 0.15.3, shared group, meta backend"
    assert resolve("ggml-group", None, lambda _: None).library == str(group)


def test_members_share_the_maximum(group: Path) -> None:
    """R3, R4, R7: adding a member adds no bytes but what it needs beyond; all see the change."""
    ops = two(op(RESERVE, graph=MIDDLE), op(RESERVE, 1, graph=SMALL), op(RESERVE, 1, graph=LARGE), op(LOOK))
    seen = play(group, ops)[4:]
    assert [o.asked[0] for o in seen] == [(640,), (640,), (6400,), (6400,)]
    assert [o.used[0] for o in seen] == [640, 640, 6400, 6400]
    assert [o.generation for o in seen] == [1, 1, 2, 2]


def test_shrinks_after_all_have_reserved(group: Path) -> None:
    """R6, R8."""
    ops = two(op(RESERVE, graph=LARGE), op(RESERVE, 1, graph=SMALL), op(SHRINK, 1), op(SHRINK))
    ops += [op(RESERVE, 1, graph=SMALL), op(RESERVE, graph=MIDDLE), op(RESERVE, graph=SMALL)]
    seen = play(group, ops)[4:]
    assert [o.used[0] for o in seen] == [6400, 6400, 6400, 6400, 6400, 640, 640]
    assert [o.shrink_generation for o in seen] == [0, 0, 1, 1, 1, 1, 1]
    assert [o.generation for o in seen] == [1, 1, 1, 1, 1, 2, 2]


def test_an_outdated_graph_is_dropped(group: Path) -> None:
    """R12."""
    ops = two(op(ALLOC, graph=SMALL), op(COMPUTE), op(RESERVE, 1, graph=LARGE), op(COMPUTE), op(COMPUTE))
    assert [o.status for o in play(group, ops)[4:]] == [DONE, DONE, DONE, STALE, MISUSE]


def test_a_failed_members_requirement_stays(group: Path) -> None:
    """R9, R10."""
    ops = two(op(RESERVE, graph=SMALL), op(Kind.CAPACITY, value=1000), op(RESERVE, 1, graph=LARGE))
    ops += [op(RESERVE, graph=SMALL), op(RESERVE, 1, graph=MIDDLE), op(RESERVE, graph=SMALL)]
    seen = play(group, ops)[4:]
    assert [o.status for o in seen] == [DONE, DONE, REFUSED, REFUSED, DONE, DONE]
    assert [o.used[0] for o in seen] == [64, 64, 0, 0, 640, 640]


def test_buffers_live_until_the_last_member_goes(group: Path) -> None:
    """R11, R8: also when the group's founder goes first; who stays is asked to shrink."""
    ops = two(op(RESERVE, graph=LARGE), op(RESERVE, 1, graph=SMALL), op(FREE), op(LOOK, 1))
    ops += [op(RESERVE, 1, graph=SMALL), op(FREE, 1)]
    seen = play(group, ops)[4:]
    assert [o.used[0] for o in seen] == [6400, 6400, 6400, 6400, 64, 0]
    assert seen[3].shrink_generation == 1 and seen[3].generation == 1 and seen[4].generation == 2


def test_a_member_may_be_alone_and_be_followed(group: Path) -> None:
    ops = [op(NEW), op(OWN), op(RESERVE, graph=LARGE), op(SHRINK), op(RESERVE, graph=SMALL)]
    for _ in range(2):
        ops += [op(NEW, 1), op(BORROW, 1, other=0), op(RESERVE, 1, graph=MIDDLE), op(FREE, 1)]
    seen = play(group, ops)
    assert all(o.status == DONE for o in seen)
    assert [o.used[0] for o in seen][2:] == [6400, 6400, 64] + [64, 64, 640, 640] + [640] * 4


def test_what_cannot_join(group: Path) -> None:
    """After buffers were made, twice, through another kind of allocator; or beyond what the books know."""
    late = [op(NEW), op(RESERVE), op(OWN), op(NEW, 1), op(OWN, 1), op(BORROW, other=1), op(OWN, 1)]
    assert [o.status for o in play(group, late)] == [DONE, DONE, REFUSED, DONE, DONE, REFUSED, REFUSED]
    half = [op(NEW, other=2), op(RESERVE, graph=BOTH, fail_types=2), op(OWN)]
    assert [o.status for o in play(group, half)] == [DONE, REFUSED, REFUSED], "type 0 has its buffer"
    third = two(
        op(NEW, 2), op(BORROW, 2, other=0), op(BORROW, 2, other=1), op(FREE, 1), op(BORROW, 2, other=0)
    )
    assert [o.status for o in play(group, third)[4:]] == [DONE, MISUSE, MISUSE, DONE, DONE]
    apart = [op(NEW), op(OWN), op(NEW, 1, other=1), op(BORROW, 1, other=0), op(BORROW, 1, other=3)]
    assert [o.status for o in play(group, apart)[3:]] == [MISUSE, REFUSED]
    mixed = [op(NEW), op(OWN), op(NEW, 1, flags=SCHED), op(BORROW, 1, other=0)]
    assert play(group, mixed)[3].status == MISUSE


def test_schedulers_share_and_wait_for_each_other(group: Path) -> None:
    """C1, C5."""
    busy = [op(ALLOC, graph=SMALL), op(COMPUTE, flags=OpFlag.ASYNC), op(RESERVE, 1, graph=LARGE)]
    seen = play(group, two(*busy, op(LOOK), op(COMPUTE), op(ALLOC), op(COMPUTE), flags=SCHED))[4:]
    assert [o.status for o in seen] == [DONE, DONE, DONE, DONE, STALE, DONE, DONE]
    assert not any(o.trouble & Trouble.FREED_BUSY for o in seen)
    assert seen[3].generation == seen[0].generation + 1 and seen[3].asked[0] == (6400,)


@pytest.mark.parametrize(("profile", "traces"), [("pair", 200), ("sched", 150)])
def test_judge_finds_what_the_planner_does(
    group: Path, resizable: Path, profile: Profile, traces: int
) -> None:
    """The pinned planner's own defects, which the resizable pair shows on the same trace, and nothing else."""
    with Judge(str(group)) as judge, Judge(str(resizable)) as pair:
        for n in range(traces):
            trace = draw_trace(RandomDraw(random.Random(f"group {n}")), profile, judge.caps | Cap.RESIZABLE)
            found = judge.judge(trace).failed
            if found is None or (found.clause == "C5" and outside(judge.run(trace), trace, found.step)):
                continue
            also = pair.judge(trace).failed
            # of the scheduler only that a split may not have 31 inputs (F15)
            known = found.clause[0] == "P" or "GGML_SCHED_MAX_SPLIT_INPUTS" in found.message
            assert known and also is not None and also.signature == found.signature, found


def outside(run: Run, trace: Trace, step: int) -> bool:
    """Whether the step is by an allocator that has joined no group: it has no reading that could go up."""
    alloc, joined = trace.ops[step].alloc, False
    for o, seen in zip(trace.ops[:step], run.steps, strict=False):
        if o.alloc == alloc and seen.obs.status == DONE:
            joined = o.kind in (OWN, BORROW) or (joined and o.kind not in (NEW, FREE))
    return not joined
