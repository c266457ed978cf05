"""The model of counted sharing: what each clause of S means in numbers, and that it keeps all of them."""

from __future__ import annotations

import random

import pytest
from gallocheck.model.counted import Apart, Counted
from gallocheck.model.domain import Ints
from gallocheck.model.lanes import Lanes, lane, stack
from gallocheck.model.pair import BORROWER, OWNER, RoleOp
from gallocheck.model.records import Kind, Status
from gallocheck.spec.variants_counted import VARIANTS, Variant

from tests.S.traces import KINDS, Two, lawful, operation


def shared(cap: int = 100, gran: int = 1) -> Two:
    two = Two(cap, gran)
    assert two.attach()
    return two


def test_s1_both_hold_what_the_first_one_made() -> None:
    """The peak is the larger need, not the sum."""
    two = shared()
    assert two.reserve(BORROWER, 30, 5) and two.held == ((30, 5), (30, 5))
    assert two.s.used == (35,) and two.s.gen == (1, 1)
    assert two.reserve(OWNER, 20, 5) and two.held == ((30, 5), (30, 5))
    assert two.s.used == (35,) and two.s.gen == (1, 1)


def test_s1_a_borrower_finds_what_its_owner_has() -> None:
    two = Two()
    assert two.reserve(OWNER, 30) and two.attach()
    assert two.held[BORROWER] == (30, 0) and two.s.used == (30,)


def test_s1_what_the_device_rounds_up_fits_too() -> None:
    two = shared(gran=16)
    assert two.reserve(OWNER, 10) and two.s.used == (16,)
    assert two.reserve(BORROWER, 16) and two.held[BORROWER] == (10, 0)


def test_s2_who_needs_more_leaves() -> None:
    two = shared()
    assert two.reserve(OWNER, 30) and two(Kind.ALLOC, OWNER, (30,)).ok
    assert two.reserve(BORROWER, 40)
    assert two.held == ((30, 0), (40, 0)) and two.s.used == (70,)
    assert two.s.gen == (1, 2)
    assert two(Kind.COMPUTE, OWNER).ok  # nothing of its own changed


def test_s2_a_graph_in_buffers_that_were_left_is_dropped() -> None:
    two = shared()
    assert two.reserve(OWNER, 30) and two(Kind.ALLOC, BORROWER, (30,), match=False).ok
    assert two.reserve(BORROWER, 31)
    assert two(Kind.COMPUTE, BORROWER).status == Status.STALE
    assert two(Kind.COMPUTE, BORROWER).status == Status.MISUSE


def test_s2_who_left_does_not_come_back() -> None:
    two = shared()
    assert two.reserve(OWNER, 30) and two.reserve(BORROWER, 40) and two.reserve(BORROWER, 10)
    assert two.held == ((30, 0), (40, 0))
    assert two.reserve(OWNER, 50) and two.held == ((50, 0), (40, 0))


def test_s2_left_and_nothing_to_be_had() -> None:
    """The role has none then; the other's stay, and there is no way back into them."""
    two = shared(cap=60)
    assert two.reserve(OWNER, 30) and not two.reserve(BORROWER, 40)
    assert two.held == ((30, 0), (0, 0)) and two.s.used == (30,) and two.s.gen == (1, 2)
    assert two.reserve(BORROWER, 30) and two.s.used == (60,)


@pytest.mark.parametrize("first", [OWNER, BORROWER])
def test_s3_the_last_reference_frees(first: int) -> None:
    two = shared()
    assert two.reserve(OWNER, 30)
    assert two(Kind.FREE, first).ok and two.s.used == (30,) and two.held[1 - first] == (30, 0)
    assert two.model.owned(two.s, 1 - first) == (30,)
    assert two(Kind.FREE, 1 - first).ok and two.s.used == (0,)


def test_s3_another_borrower_takes_the_place() -> None:
    two = shared()
    assert two.reserve(OWNER, 30) and two(Kind.FREE, BORROWER).ok and two.attach()
    assert two.held[BORROWER] == (30, 0) and two.s.used == (30,)


@pytest.mark.parametrize("bit", range(4))
def test_s4_says_what_is_missing(bit: int) -> None:
    two = Two()
    missing = tuple(k == bit for k in range(4))
    out = two(Kind.BORROW, BORROWER, match=False, missing=missing)
    assert out.status == Status.REFUSED and out.reason == missing
    assert two.attach()


def test_s5_refused_only_where_the_device_cannot() -> None:
    two = shared(cap=60)
    assert not two.reserve(OWNER, 61) and two.held == ((0, 0), (0, 0))
    assert two.reserve(OWNER, 60) and two.reserve(BORROWER, 60)
    assert not two.reserve(BORROWER, 61)


def test_s7_what_fits_needs_no_memory() -> None:
    two = shared(cap=60)
    assert two.reserve(OWNER, 50)
    two(Kind.CAPACITY, value=0)
    assert two.reserve(BORROWER, 50, fail_nth=1) and two.broken == []


def test_nothing_shrinks_and_nobody_is_remade() -> None:
    two = shared()
    assert two(Kind.SHRINK).status == two(Kind.REMAKE).status == Status.MISUSE


def test_apart_nobody_borrows() -> None:
    model = Apart(Ints, 1, 1)
    s, _ = model.step(model.init((9,)), RoleOp(Kind.NEW, uses=(True,)))
    for _ in range(2):
        s, out = model.step(s, RoleOp(Kind.OWN))
        assert out.ok and not s.owner
    missing = (False, True, False, False)
    _, out = model.step(s, RoleOp(Kind.BORROW, BORROWER, uses=(True,), need=((0,),), missing=missing))
    assert out.status == Status.REFUSED and out.reason == missing
    assert model.step(s, RoleOp(Kind.SHRINK))[1].status == Status.MISUSE


@pytest.mark.parametrize("types", [1, 2])
def test_random_traces_break_nothing(types: int) -> None:
    for seed in range(30):
        rng = random.Random(seed)
        two = Two(rng.choice((20, 40, 1000)), rng.choice((1, 4)), types)
        for _ in range(60):
            two.step(lawful(operation(rng, types, 2), two.s))
        assert two.broken == [], seed


@pytest.mark.parametrize("cls", VARIANTS, ids=lambda c: c.__name__)
def test_random_traces_find_every_variant(cls: type[Variant]) -> None:
    """The rules over ints see what the proof refutes."""
    for seed in range(200):
        rng = random.Random(seed)
        two = Two(rng.choice((20, 40)), 1, 1, cls)
        for _ in range(40):
            two.step(lawful(operation(rng, 1, 2), two.s))
            if any(c == cls.breaks for c, _ in two.broken):
                return
    pytest.fail(f"{cls.__name__} never broke {cls.breaks}")


@pytest.mark.parametrize(("types", "chunks"), [(1, 1), (2, 2)])
def test_lanes_give_what_ints_give(types: int, chunks: int) -> None:
    """Every field of state and result, after every operation."""
    rng = random.Random(types * 10 + chunks)
    alone, together = Counted(Ints, types, chunks), Counted(Lanes(), types, chunks)
    states = [
        alone.init((rng.choice((20, 40, 1000)),) * types, (rng.choice((1, 4)),) * types) for _ in range(32)
    ]
    many = stack(states)
    for n in range(50):
        kind = Kind.NEW if n == 0 else rng.choice(KINDS)
        ops = [lawful(operation(rng, types, chunks)._replace(kind=kind), s) for s in states]
        many, out = together.step(many, stack(ops)._replace(kind=kind))
        for i, (s, op) in enumerate(zip(states, ops, strict=True)):
            states[i], mine = alone.step(s, op)
            assert lane(many, i) == states[i], f"operation {n}, lane {i}: {op}"
            assert lane(out, i) == mine, f"operation {n}, lane {i}: {op}"
