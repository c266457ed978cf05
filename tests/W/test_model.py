"""The reference of policy and contexts, by hand."""

from __future__ import annotations

import random

import pytest
from gallocheck.model import oracle
from gallocheck.model.domain import Ints
from gallocheck.model.records import (
    Context,
    Kind,
    Memory,
    Observation,
    Op,
    OpFlag,
    Option,
    Status,
    Strategy,
    Trace,
)
from gallocheck.model.stack import Stack
from gallocheck.model.template import scaled
from gallocheck.model.workspace import Lane, Need, Parts, Policy, frame, halves

from .traces import BOTH, REPLACED, START, TEMPLATE, attach, decode, open_, setup, trace

POLICY = Policy(Ints)
CONTEXT = Context(0, 0, Memory.KV, BOTH, 2, 64, 8, 2, 128)


def play(t: Trace) -> list[Observation]:
    stack = Stack(t.setup, list(t.graphs), chunks=1)
    return [stack.step(op) for op in t.ops]


# -- the policy -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("used", "cells"), [(0, 8), (8, 8), (9, 16), (16, 16), (17, 32), (32, 32), (33, 64), (64, 64)]
)
def test_cells_in_power_of_two_steps_from_an_eighth(used: int, cells: int) -> None:
    assert POLICY.cells(frame(CONTEXT), used) == cells


def test_tokens_are_the_generation_size_until_a_prompt_comes() -> None:
    f = frame(CONTEXT)
    assert [POLICY.tokens(f, n) for n in (1, 2, 3, 128)] == [2, 2, 128, 128]
    assert POLICY.tokens(f._replace(phase=False), 1) == 128


@pytest.mark.parametrize("calls", [63, 64, 65])
def test_smaller_only_after_64_calls_in_a_row(calls: int) -> None:
    lane = Lane(Need(128, 64), Need(0, 0), 0)
    for _ in range(calls):
        lane = POLICY.follow(lane, Need(2, 8))
    small = calls >= 64
    assert lane.reserved == (Need(2, 8) if small else Need(128, 64))
    assert lane.fewer == (calls if not small else 0)


@pytest.mark.parametrize("need", [Need(128, 64), Need(2, 128), Need(256, 8)])
def test_a_call_that_needs_as_much_or_more_starts_the_count_again(need: Need) -> None:
    lane = Lane(Need(128, 64), Need(2, 8), 63)
    after = POLICY.follow(lane, need)
    assert after.fewer == 0
    assert after.reserved == Need(max(128, need.tokens), max(64, need.cells))


def test_it_shrinks_to_the_largest_need_of_the_64() -> None:
    lane = Lane(Need(128, 64), Need(0, 0), 0)
    for call in range(64):
        lane = POLICY.follow(lane, Need(2, 32 if call == 5 else 8))
    assert lane.reserved == Need(2, 32)


def test_what_became_as_large_as_before_is_no_change() -> None:
    """Two kinds of calls that together need all of it: after 64 nothing is reserved again."""
    lane = Lane(Need(128, 64), Need(0, 0), 0)
    for call in range(64):
        lane = POLICY.follow(lane, Need(2, 64) if call % 2 else Need(128, 8))
    assert lane == Lane(Need(128, 64), Need(128, 64), 0)


def test_lanes() -> None:
    f = frame(CONTEXT)
    assert [POLICY.runs(f, n)[1] for n in (63, 64, 65)] == [False, True, True]
    assert POLICY.runs(f._replace(two=False), 128)[1] is False
    assert [halves(n) for n in (64, 65)] == [(32, 32), (33, 32)]


@pytest.mark.parametrize(
    ("memory", "parts"),
    [
        (Memory.KV, Parts(32, 0, 0)), (Memory.KV_WINDOW, Parts(32, 12, 0)), (Memory.HYBRID, Parts(32, 0, 0)),
        (Memory.HYBRID_WINDOW, Parts(32, 12, 0)), (Memory.HYBRID_INDEXER, Parts(32, 0, 32)),
        (Memory.OTHER_MEMORY, Parts(32, 0, 0)),
    ],
)  # fmt: skip
def test_parts_of_each_memory_kind(memory: Memory, parts: Parts) -> None:
    made = Context(0, 0, memory, BOTH, 1, 64, 8, 2, 4)
    assert POLICY.parts(frame(made), 32) == parts
    whole = POLICY.cells(frame(made), 1)
    assert whole == (64 if memory == Memory.OTHER_MEMORY else 8)


def test_a_reservation_covers_every_smaller_batch() -> None:
    """Random calls of every memory kind: tensor by tensor, the batch is no larger than the reservation."""
    rng = random.Random(4)
    for memory in Memory:
        made = Context(0, 0, memory, BOTH, 2, 64, rng.choice((0, 3, 8)), 2, 70)
        f = frame(made)
        lanes = (POLICY.start(f), POLICY.start(f))
        for _ in range(400):
            n, used = rng.choice((1, 2, rng.randint(1, 70))), rng.randint(0, 64)
            lanes = POLICY.decode(f, lanes, n, used)
            r = lanes[0].reserved
            large = scaled(TEMPLATE, r.tokens, POLICY.parts(f, r.cells))
            small = scaled(TEMPLATE, n, POLICY.parts(f, used))
            assert all(a.size <= b.size for a, b in zip(small.tensors, large.tensors, strict=True))


# -- contexts -----------------------------------------------------------------------------------


def test_the_digest_of_a_wide_batch_mixes_both_lanes() -> None:
    seen = play(trace(open_(0), decode(0, 65, 3)))[1]
    parts = [oracle.digest(scaled(TEMPLATE, n, Parts(3, 0, 0))) for n in (33, 32)]
    assert parts[0] and parts[1] and seen.digest == oracle.both(parts[0], parts[1])


def test_equal_halves_do_not_cancel_out() -> None:
    """Both halves of an even batch compute the same graph."""
    batches = play(trace(open_(0), decode(0, 64, 3), decode(0, 66, 3)))[1:]
    assert len({seen.digest for seen in batches}) == 2


def test_attached_contexts_wait_and_reserve_again() -> None:
    seen = play(trace(*START, decode(0, 128, 64, OpFlag.ASYNC), decode(1, 1, 1), decode(1, 1, 1)))
    assert [o.waits for o in seen[3:]] == [0, 1, 0]
    assert [o.reserves for o in seen[3:]] == [2, 1, 0]


def test_both_must_need_less_before_shared_buffers_shrink() -> None:
    ops = (*START, decode(0, 128, 64), decode(1, 128, 64))
    small = [decode(0, 1, 1) for _ in range(64)]
    seen = play(trace(*ops, *small, *(decode(1, 1, 1) for _ in range(64)), decode(0, 1, 1)))
    used = [o.used[0] for o in seen]
    lane_1 = 128 * 64  # of the target alone
    assert used[4] == used[4 + 64] == used[-2] > used[-1] > lane_1
    assert seen[4 + 64].tokens == (2, 128) and seen[-2].tokens[0] == 2


def test_attach_answers() -> None:
    no = play(trace(open_(0), open_(1), attach(), made=setup(draft=Option.LIVE_CONTEXT)))[2]
    assert (no.status, no.attached, no.reserves) == (Status.REFUSED, 0, 0)
    seen = play(
        trace(open_(0), open_(1), decode(1, 128, 64), attach(1), decode(1, 1, 1), attach(), decode(1, 1, 1))
    )
    assert [o.status for o in seen[3:]] == [Status.FAILED, Status.REFUSED, Status.DONE, Status.DONE]
    assert seen[3].tokens == (0, 0) and seen[5].attached == 1
    assert play(trace(open_(0), attach()))[1].status == Status.MISUSE


@pytest.mark.parametrize("strategy", [Strategy.COUNTED, Strategy.APART])
def test_attach_under_other_strategies_gives_a_reason(strategy: Strategy) -> None:
    made = setup(strategy=strategy)
    seen = play(trace(open_(0), open_(1), Op(Kind.CTX_ATTACH, 1, value=5), attach(), made=made))
    assert (seen[2].status, seen[2].reason) == (Status.REFUSED, 10)
    assert seen[3].status == (Status.DONE if strategy == Strategy.COUNTED else Status.REFUSED)


def test_a_failed_reservation_leaves_nothing_reserved() -> None:
    seen = play(trace(open_(0), decode(0, 128, 64, fail_nth=1), decode(0, 1, 1)))
    assert (seen[1].status, seen[1].tokens[0], seen[1].digest) == (Status.REFUSED, 0, 0)
    assert (seen[2].status, seen[2].tokens[0], seen[2].reserves) == (Status.DONE, 2, 1)


def test_the_draft_stays_on_shared_buffers_when_the_target_goes() -> None:
    seen = play(trace(*REPLACED, Op(Kind.CTX_CLOSE, 0), decode(1, 1, 1)))
    assert seen[-1].status == Status.DONE and seen[-1].attached == 0 and seen[-2].used[0] > 0


def test_without_the_comparison_the_old_graph_is_used() -> None:
    checked = play(trace(*REPLACED, decode(1, 1, 1)))[-1]
    unchecked = play(trace(*REPLACED, decode(1, 1, 1, OpFlag.UNCHECKED)))[-1]
    assert (checked.reserves, unchecked.reserves) == (1, 0)


def test_direct_operations_on_a_contexts_allocators_are_misuse() -> None:
    ops = [Op(Kind.RESERVE, 0), Op(Kind.FREE, 1), Op(Kind.NEW, 0), Op(Kind.LOOK, 0)]
    seen = play(trace(open_(0), *ops))
    assert [o.status for o in seen[1:]] == [Status.MISUSE] * 3 + [Status.DONE]


@pytest.mark.parametrize(("tokens", "used"), [(0, 1), (129, 1), (1, 65)])
def test_a_batch_that_the_context_cannot_take_is_misuse(tokens: int, used: int) -> None:
    assert play(trace(open_(0), decode(0, tokens, used)))[1].status == Status.MISUSE


def test_outputs_are_the_same_whatever_the_options_and_the_strategy() -> None:
    """W8: decode by decode."""
    rng = random.Random(2)
    ops = [decode(rng.randint(0, 1), rng.choice((1, 2, 70)), rng.randint(0, 64)) for _ in range(30)]
    rows = []
    for options in (Option(0), Option.PHASE_AWARE, BOTH):
        for strategy in Strategy:
            seen = play(trace(*START, *ops, made=setup(options, strategy=strategy)))
            rows.append([o.digest for o in seen[3:]])
    assert all(row == rows[0] for row in rows) and all(rows[0])
