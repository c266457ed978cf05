"""Captured graphs by hand, on the reference of a session: what docs/choices.md says of them."""

from __future__ import annotations

from typing import Any

import pytest
from gallocheck.model import oracle
from gallocheck.model.records import (
    BufferType,
    Kind,
    Observation,
    Op,
    OpFlag,
    PoolKind,
    Setup,
    Status,
)
from gallocheck.model.stack import Stack

from tests.shorthand import given, graph, out

UNIT = 4096
G, BIG = graph(given(64), out(64, 0)), graph(given(640), out(640, 0))
BEGIN, END, LAUNCH, DROP = (
    Op(Kind.CAPTURE_BEGIN),
    Op(Kind.CAPTURE_END),
    Op(Kind.LAUNCH),
    Op(Kind.DROP),
)
COMPUTE, TRIM = Op(Kind.COMPUTE), Op(Kind.TRIM)
ALLOC, GROW = Op(Kind.ALLOC), Op(Kind.RESERVE, graph=1)
BOUND = (Op(Kind.NEW), ALLOC)
CAPTURED = (*BOUND, BEGIN, COMPUTE, END)
PAIR = (Op(Kind.NEW), Op(Kind.OWN), Op(Kind.NEW, 1), Op(Kind.BORROW, 1, 0), ALLOC)
LATER = OpFlag.ASYNC
SCHED = tuple(Op(op.kind, op.alloc, flags=OpFlag.BY_SCHED) if op.kind == Kind.NEW else op for op in CAPTURED)
MISUSE, REFUSED, DONE, STALE = Status.MISUSE, Status.REFUSED, Status.DONE, Status.STALE


def session(*ops: Op, pool: PoolKind = PoolKind.VMM_POOL, types: int = 1) -> list[Observation]:
    devices = tuple(BufferType(granularity=64) for _ in range(types))
    stack = Stack(Setup(devices, tuple((t,) for t in range(types)), pool=pool, pool_range=4 * UNIT), [G, BIG])
    return [stack.step(op) for op in ops]


def last(*ops: Op, **how: Any) -> Observation:
    return session(*ops, **how)[-1]


def test_what_is_captured_runs_when_it_is_replayed() -> None:
    *_, begun, recorded, ended, replayed = session(*CAPTURED, LAUNCH)
    assert (begun.capturing, begun.captured) == (1, 0)
    assert (recorded.status, recorded.digest, recorded.capturing) == (DONE, 0, 1)
    assert (ended.capturing, ended.captured) == (0, 1)
    assert (replayed.status, replayed.digest) == (DONE, oracle.digest(G))


def test_an_empty_capture_is_refused_and_keeps_the_old_one() -> None:
    assert last(*BOUND, BEGIN, END).status == REFUSED
    seen = last(*CAPTURED, BEGIN, END)
    assert seen.status == REFUSED and seen.captured == 1


WRONG_TIME = {
    "nothing is bound": (Op(Kind.NEW), BEGIN),
    "a capture goes on": (*BOUND, BEGIN, BEGIN),
    "no capture to end": (*BOUND, END),
    "no captured graph to replay": (*BOUND, LAUNCH),
    "no captured graph to drop": (*BOUND, DROP),
    "dropped": (*CAPTURED, DROP, LAUNCH),
    "freed": (*CAPTURED, Op(Kind.FREE), *BOUND, LAUNCH),
    "nobody is there": (Op(Kind.LAUNCH, 2),),
    "replayed during its own capture": (*CAPTURED, BEGIN, LAUNCH),
    "freed during its capture": (*BOUND, BEGIN, Op(Kind.FREE)),
    "a partner computes": (*PAIR, Op(Kind.ALLOC, 1), BEGIN, Op(Kind.COMPUTE, 1)),
    "a partner is freed": (*PAIR, Op(Kind.ALLOC, 1), BEGIN, Op(Kind.FREE, 1)),
    "somebody attaches": (*PAIR[:2], ALLOC, BEGIN, Op(Kind.NEW, 1), Op(Kind.BORROW, 1, 0)),
    "its stream's pool": (*BOUND, BEGIN, Op(Kind.POOL_ALLOC, value=1)),
    "its scratch is handed out": (*CAPTURED, Op(Kind.POOL_ALLOC, value=1), LAUNCH),
}


@pytest.mark.parametrize("name", WRONG_TIME)
def test_at_a_wrong_time(name: str) -> None:
    assert last(*WRONG_TIME[name]).status == MISUSE


def test_another_generation_drops_it() -> None:
    """Q1; the check can be left out, and is what keeps replays from memory that is gone."""
    stale = last(*CAPTURED, GROW, LAUNCH)
    assert stale.status == STALE and stale.captured == 0
    assert last(*CAPTURED, GROW, LAUNCH, LAUNCH).status == MISUSE
    assert last(*CAPTURED, GROW, ALLOC, LAUNCH).status == STALE  # what is bound is not what was captured
    assert last(*CAPTURED, GROW, Op(Kind.LAUNCH, flags=OpFlag.UNCHECKED)).status == DONE
    outdated = last(*BOUND, GROW, BEGIN)
    assert outdated.status == STALE and outdated.capturing == 0


def test_what_keeps_the_buffers_keeps_the_captured_graph() -> None:
    small = (Op(Kind.NEW), Op(Kind.RESERVE, graph=1), ALLOC, BEGIN, COMPUTE, END)
    assert last(*small, ALLOC, Op(Kind.ALLOC, graph=1), LAUNCH).digest == oracle.digest(G)


def test_a_trim_drops_it() -> None:
    """Q2: of who uses the device, and of nobody else; replaying it is impossible then."""
    *_, trimmed, replayed, unchecked = session(
        *CAPTURED, TRIM, LAUNCH, Op(Kind.LAUNCH, flags=OpFlag.UNCHECKED)
    )
    assert (trimmed.status, trimmed.released, trimmed.captured) == (DONE, UNIT, 0)
    assert (replayed.status, unchecked.status) == (MISUSE, MISUSE)
    other = last(*CAPTURED, Op(Kind.TRIM, other=1), types=2)
    assert other.captured == 1


def test_a_legacy_pool_may_free_what_it_uses() -> None:
    """Q1: then it is dropped, though the generation is the same."""
    takes, gives = (
        [Op(Kind.POOL_ALLOC, value=1)] * 17,
        [Op(Kind.POOL_FREE)] * 17,
    )  # the first takes its scratch
    legacy = PoolKind.LEGACY_POOL
    assert last(*CAPTURED, *takes, *gives[:16], LAUNCH, pool=legacy).status == MISUSE
    stale = last(*CAPTURED, *takes, *gives, LAUNCH, pool=legacy)
    assert stale.status == STALE and stale.captured == 0
    assert last(*CAPTURED, *takes[:16], *gives[:16], LAUNCH, pool=legacy).status == DONE


def test_nothing_is_trimmed_or_replaced_during_a_capture() -> None:
    """Q3: refused, nothing changed, by whomever; what replaces nothing goes on."""
    *_, trimmed = session(*CAPTURED, BEGIN, TRIM)
    assert (trimmed.status, trimmed.released, trimmed.captured) == (REFUSED, 0, 1)
    for op in (GROW, Op(Kind.ALLOC, graph=1), Op(Kind.RESERVE, 1, graph=1), Op(Kind.ALLOC, 1)):
        before, refused = session(*BOUND, Op(Kind.NEW, 1), BEGIN, op)[-2:]
        assert refused.status == REFUSED and refused.used == before.used and refused.allocations == 0
    assert last(*BOUND, BEGIN, GROW, Op(Kind.RESERVE)).status == DONE
    assert last(*BOUND, BEGIN, GROW, COMPUTE, END, LAUNCH).digest == oracle.digest(G)
    assert last(*BOUND, Op(Kind.NEW, 1), BEGIN, Op(Kind.FREE, 1)).status == DONE


def test_a_scheduler_s_replay_may_be_in_flight() -> None:
    *_, launched, waited = session(*SCHED, Op(Kind.LAUNCH, flags=LATER), Op(Kind.SYNC))
    assert (launched.in_flight, launched.digest) == (1, 0)
    assert (waited.in_flight, waited.digest) == (0, oracle.digest(G))
    assert last(*SCHED, Op(Kind.LAUNCH, flags=LATER), BEGIN).status == MISUSE
    plain = last(*CAPTURED, Op(Kind.LAUNCH, flags=LATER))
    assert (plain.in_flight, plain.digest) == (0, oracle.digest(G))


def test_a_larger_scheduler_has_no_captured_graph() -> None:
    """C3."""
    small = tuple(Op(Kind.NEW, value=2, flags=OpFlag.BY_SCHED) if op.kind == Kind.NEW else op for op in SCHED)
    stack = Stack(Setup((BufferType(),), ((0,),)), [G, graph(given(8), out(8, 0), out(8, 0))])
    seen = [stack.step(op) for op in (*small, Op(Kind.RESERVE, graph=1))]
    assert seen[-2].captured == 1 and (seen[-1].captured, seen[-1].nodes) == (0, 3)


def test_without_pools_a_capture_works_too() -> None:
    assert last(*CAPTURED, LAUNCH, pool=PoolKind.NO_POOL).digest == oracle.digest(G)
