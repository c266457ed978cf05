"""The model of owner and borrower: what each clause of R means in numbers, and that it keeps all of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from gallocheck.model.domain import Ints
from gallocheck.model.pair import BORROWER, OWNER, Out, RoleOp, State
from gallocheck.model.records import Kind, Status
from gallocheck.model.resizable import Model
from gallocheck.spec.history import follow, past, seen
from gallocheck.spec.resizable import CHECKED, Verdict, judge
from gallocheck.spec.step import Step
from gallocheck.spec.variants import VARIANTS, Variant

from tests.R.traces import steps


class Pair:
    """A pair over ints, one operation a call; every step is judged by all clauses."""

    def __init__(self, cap: int = 100, gran: int = 1, types: int = 1, chunks: int = 2) -> None:
        self.model = Model(Ints, types, chunks)
        self.s: State = self.model.init((cap,) * types, (gran,) * types)
        self.g = past(types, chunks)
        self(Kind.NEW)
        self(Kind.OWN)

    def __call__(self, kind: Kind, role: int = OWNER, need: tuple[int, ...] = (), **more: Any) -> Out:
        types, chunks = len(self.model.types), len(self.model.chunks)
        row = (need + (0,) * chunks)[:chunks]
        op = RoleOp(
            kind, role, need=(row,) * types, **{"uses": (True,) * types, "inject": (False,) * types} | more
        )
        before, s = self.g, self.s
        self.s, out = self.model.step(s, op)
        a, b = seen(self.model, s), seen(self.model, self.s)
        self.g = follow(Ints, before, a, op, out, b)
        assert judge(Step(Ints, a, op, b, out, before, self.g)).broken == []
        return out

    def attach(self) -> Pair:
        assert self(Kind.BORROW, BORROWER, match=False).ok
        return self

    def reserve(self, role: int, *need: int, **more: Any) -> bool:
        return bool(self(Kind.RESERVE, role, need, **more).ok)

    @property
    def asked(self) -> tuple[int, ...]:
        """Bytes asked for, chunk by chunk, of the first type."""
        row: tuple[int, ...] = self.s.asked[0]
        return row


def test_r1_no_owner_after_buffers() -> None:
    pair = Pair()
    assert pair(Kind.OWN).status == Status.REFUSED  # it is one already
    plain = Pair()
    plain.s = plain.s._replace(owner=False)
    plain.g = plain.g._replace(owner=False)
    assert plain.reserve(OWNER, 5)
    assert plain(Kind.OWN).status == Status.REFUSED


def test_r2_refusals_change_nothing() -> None:
    pair = Pair()
    before = pair.s
    for wrong in ({"other": BORROWER}, {"clean": False}, {"uses": (False,)}):
        assert pair(Kind.BORROW, BORROWER, **wrong).status == Status.REFUSED
        assert pair.s == before
    pair.attach()
    assert pair(Kind.BORROW, BORROWER).status == Status.REFUSED  # one borrower at a time


def test_r3_maximum_chunk_by_chunk() -> None:
    pair = Pair().attach()
    assert pair.reserve(OWNER, 10, 3) and pair.reserve(BORROWER, 4, 8)
    assert pair.asked == (10, 8)


def test_r4_old_buffer_is_freed_first() -> None:
    pair = Pair(cap=20)
    assert pair.reserve(OWNER, 15)
    assert pair.reserve(OWNER, 20)
    assert pair.s.used == (20,)


def test_r5_a_chunk_shrinks_where_another_grows() -> None:
    pair = Pair()
    assert pair.reserve(OWNER, 10, 3)
    assert pair.reserve(OWNER, 2, 3) and pair.asked == (10, 3)
    assert pair.reserve(OWNER, 2, 4) and pair.asked == (2, 4)


@pytest.mark.parametrize("first", [OWNER, BORROWER])
def test_r6_shrinks_once_both_reserved(first: int) -> None:
    pair = Pair().attach()
    assert pair.reserve(OWNER, 10) and pair.reserve(BORROWER, 12)
    pair(Kind.SHRINK, first)
    assert pair.reserve(first, 3) and pair.asked == (12, 0)
    assert pair.reserve(1 - first, 5) and pair.asked == (5, 0)
    assert not pair.s.pending


def test_r6_rounding_replaces_nothing_that_is_asked_the_same() -> None:
    pair = Pair(gran=8)
    assert pair.reserve(OWNER, 5)
    pair(Kind.SHRINK)
    out = pair(Kind.RESERVE, OWNER, (5,))
    assert (out.allocations, pair.s.used, pair.s.gen[OWNER]) == (0, (8,), 1)


def test_r7_both_roles_see_a_failed_replacement() -> None:
    pair = Pair(cap=20).attach()
    assert pair.reserve(OWNER, 10)
    before = pair.s.gen
    assert not pair.reserve(BORROWER, 30)
    assert pair.s.gen == tuple(g + 1 for g in before)


def test_r8_a_request_counts_once() -> None:
    pair = Pair().attach()
    pair(Kind.SHRINK, OWNER)
    pair(Kind.SHRINK, BORROWER)
    assert pair.s.shrink_gen == (1, 1)
    pair(Kind.FREE, BORROWER)
    assert pair.s.shrink_gen[OWNER] == 2


def test_r9_one_entry_closed_the_rest_as_it_was() -> None:
    pair = Pair(types=3)
    assert pair.reserve(OWNER, 5, 5)
    out = pair(Kind.RESERVE, OWNER, (7, 7), inject=(False, True, False))
    assert out.failed == (False, True, False)
    assert pair.s.asked == ((7, 7), (0, 0), (5, 5))
    assert pair.s.used == (14, 0, 10)


@pytest.mark.parametrize(("nth", "tried"), [(1, 1), (2, 2)])
def test_r9_chunks_got_before_the_failing_one_are_given_back(nth: int, tried: int) -> None:
    pair = Pair()
    out = pair(Kind.RESERVE, OWNER, (5, 6), fail_nth=nth)
    assert (out.status, out.allocations, pair.s.used) == (Status.REFUSED, tried, (0,))


def test_r10_a_failed_borrower_keeps_the_owner_out() -> None:
    pair = Pair(cap=20).attach()
    assert pair.reserve(OWNER, 10)
    assert not pair.reserve(BORROWER, 30)
    assert not pair.reserve(OWNER, 1)
    pair(Kind.CAPACITY, value=40)
    assert pair.reserve(OWNER, 1) and pair.asked == (30, 0)


def test_r10_a_smaller_requirement_mends_it() -> None:
    pair = Pair(cap=20).attach()
    assert not pair.reserve(BORROWER, 30)
    assert pair.reserve(BORROWER, 5) and pair.reserve(OWNER, 10)


@pytest.mark.parametrize("first", [OWNER, BORROWER])
def test_r11_shared_buffers_live_until_both_are_gone(first: int) -> None:
    pair = Pair().attach()
    assert pair.reserve(OWNER, 10)
    pair(Kind.FREE, first)
    assert pair.asked == (10, 0)
    pair(Kind.FREE, 1 - first)
    assert pair.s.used == (0,)


def test_r11_another_borrower_may_follow() -> None:
    pair = Pair().attach()
    pair(Kind.FREE, BORROWER)
    pair.attach()
    assert pair.reserve(BORROWER, 6) and pair.asked == (6, 0)


@pytest.mark.parametrize("unchecked", [False, True])
def test_r12_the_check_is_load_bearing(unchecked: bool) -> None:
    """The same sequence, with and without the comparison of generations."""
    pair = Pair().attach()
    assert pair.reserve(BORROWER, 4)
    assert pair(Kind.ALLOC, BORROWER, (4,)).ok
    assert pair.reserve(OWNER, 9)
    out = pair(Kind.COMPUTE, BORROWER, unchecked=unchecked)
    assert (out.status, out.touched) == ((Status.DONE, True) if unchecked else (Status.STALE, False))


def test_r13_borrowed_bytes_are_the_owners() -> None:
    pair = Pair(gran=8).attach()
    assert pair.reserve(BORROWER, 9)
    assert [pair.model.owned(pair.s, r) for r in (OWNER, BORROWER)] == [(16,), (0,)]
    pair(Kind.FREE, OWNER)
    assert pair.model.owned(pair.s, BORROWER) == (16,)


def test_r14_the_borrower_comes_after_its_new_owner() -> None:
    pair = Pair().attach()
    assert pair.reserve(BORROWER, 8)
    assert pair(Kind.ALLOC, BORROWER, (8,)).ok
    pair(Kind.REMAKE)
    assert pair(Kind.COMPUTE, BORROWER).ok
    assert pair.reserve(OWNER, 3)
    assert (pair.asked, pair.s.old[0], pair.s.used) == ((3, 0), (8, 0), (11,))
    assert pair.reserve(BORROWER, 5)
    assert (pair.asked, pair.s.old[0], pair.s.used) == ((5, 0), (0, 0), (5,))


def test_r14_an_owner_that_goes_leaves_the_old_buffers() -> None:
    pair = Pair().attach()
    assert pair.reserve(BORROWER, 8)
    pair(Kind.REMAKE)
    assert pair.reserve(OWNER, 3)
    pair(Kind.FREE, OWNER)
    assert (pair.asked, pair.s.used, pair.s.behind) == ((8, 0), (8,), False)


def test_g2_alloc_after_a_failure_never_binds_to_memory_that_is_gone() -> None:
    two = Pair(types=2)
    assert two.reserve(OWNER, 5)
    assert not two.reserve(OWNER, 200)
    assert two(Kind.ALLOC, OWNER, (200,)).status == Status.REFUSED
    one = Pair()
    assert not one.reserve(OWNER, 50, inject=(True,))
    assert one(Kind.ALLOC, OWNER, (50,)).ok  # one type: it reserves again


def test_sixteen_chunks() -> None:
    pair = Pair(cap=1000, chunks=16)
    assert pair.reserve(OWNER, *range(16))
    assert pair.s.used == (sum(range(16)),)


def verdicts(cls: type[Model], seed: int, traces: int, length: int) -> Iterator[Verdict]:
    """What all clauses say of the steps of random traces."""
    rng = random.Random(seed)
    for _ in range(traces):
        yield from map(judge, steps(rng, cls(Ints, rng.randint(1, 3), rng.randint(1, 3)), length))


def test_random_traces_keep_every_clause_and_exercise_it() -> None:
    met: Counter[str] = Counter()
    for verdict in verdicts(Model, 1, 100, 60):
        assert not verdict.broken
        met.update(verdict.exercised)
    assert {c for c in CHECKED if met[c] >= 10} == set(CHECKED), met


@pytest.mark.parametrize("cls", VARIANTS, ids=lambda c: c.__name__)
def test_random_traces_find_every_variant(cls: type[Variant]) -> None:
    """Each wrong variant is blamed on its clause by the same predicates, over ints."""
    assert any(c == cls.breaks for v in verdicts(cls, 2, 200, 60) for c, _ in v.broken)
