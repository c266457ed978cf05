"""The model of schedulers in the whole stack: what each clause of C means in numbers."""

from __future__ import annotations

from typing import Any

from gallocheck.model import oracle
from gallocheck.model.records import BufferType, Graph, Kind, Observation, Op, OpFlag, Setup, Status, Strategy
from gallocheck.model.stack import Stack

from tests.shorthand import given, graph, out

SMALL = graph(given(64), out(64, 0))
LARGE = graph(given(64), out(64, 0), out(128, 1))
WIDE = graph(given(1000), out(1000, 0))
SMALL_G, LARGE_G, WIDE_G = range(3)
DONE, REFUSED, MISUSE, STALE = Status.DONE, Status.REFUSED, Status.MISUSE, Status.STALE


class Schedulers:
    """A session of schedulers, one operation a call; `seen` is what the last one showed."""

    def __init__(self, *capacity: int, strategy: Strategy = Strategy.PAIR) -> None:
        types = tuple(BufferType(capacity=c) for c in capacity or (10_000,))
        setup = Setup(types, (tuple(range(len(types))),), strategy=strategy)
        self.stack = Stack(setup, [SMALL, LARGE, WIDE])
        self.seen = Observation(DONE)

    def __call__(self, kind: Kind, alloc: int = 0, graph: int = 0, **more: Any) -> Status:
        self.seen = self.stack.step(Op(kind, alloc, graph=graph, **more))
        return self.seen.status

    def new(self, alloc: int = 0, nodes: int = 0) -> Status:
        return self(Kind.NEW, alloc, flags=OpFlag.BY_SCHED, value=nodes)

    def pair(self, nodes: tuple[int, int] = (0, 0)) -> Schedulers:
        """0 is an owner, 1 its borrower."""
        assert (self.new(0, nodes[0]), self(Kind.OWN)) == (DONE, DONE)
        assert (self.new(1, nodes[1]), self(Kind.BORROW, 1, other=0, value=15)) == (DONE, DONE)
        return self

    def run_async(self, alloc: int = 0, graph: int = 0) -> Status:
        return self(Kind.COMPUTE, alloc, graph, flags=OpFlag.ASYNC)

    def flies(self, alloc: int) -> int:
        return self.stack.look(alloc).in_flight


def digest(g: Graph) -> int:
    found = oracle.digest(g)
    assert found
    return found


def test_c1_a_reservation_waits_for_both() -> None:
    s = Schedulers().pair()
    assert s.run_async(0) == DONE and s.seen.digest == 0 and s.flies(0) and not s.flies(1)
    assert s(Kind.RESERVE, 1, LARGE_G) == DONE
    assert not s.flies(0) and not s.flies(1)
    assert s(Kind.SYNC, 0) == DONE and s.seen.digest == 0, "nothing was in flight any more"


def test_c1_what_needs_no_buffers_waits_for_nothing() -> None:
    s = Schedulers().pair()
    s(Kind.RESERVE, 1, LARGE_G)
    s(Kind.RESERVE, 0)
    s.run_async(0)
    assert s(Kind.MEASURE, 1, LARGE_G) == s(Kind.ALLOC, 0) == s(Kind.ALLOC, 1, LARGE_G) == DONE
    assert s(Kind.SHRINK, 1) == s(Kind.RESET, 1) == DONE and s.flies(0)
    assert s(Kind.SYNC, 0) == DONE and s.seen.digest == digest(SMALL) and not s.flies(0)


def test_c1_an_alloc_that_reserves_waits() -> None:
    s = Schedulers().pair()
    s.run_async(0)
    assert s(Kind.ALLOC, 1, WIDE_G) == DONE and not s.flies(0)


def test_c1_who_goes_or_is_remade_waits() -> None:
    for end in (Kind.FREE, Kind.REMAKE):
        s = Schedulers().pair()
        s.run_async(1)
        assert s(end, 0) == DONE and not s.flies(1), end


def test_who_computes_while_its_partner_works_misuses() -> None:
    s = Schedulers().pair()
    s.run_async(0)
    assert s(Kind.COMPUTE, 1) == MISUSE and s.flies(0)
    assert s.run_async(0) == DONE, "behind its own work it may"
    s(Kind.SYNC, 0)
    assert s(Kind.COMPUTE, 1) == DONE and s.seen.digest == digest(SMALL)


def test_c2_where_the_device_cannot_nothing_is_computed() -> None:
    s = Schedulers(1500)
    s.new()
    assert s(Kind.COMPUTE, 0, SMALL_G) == DONE
    assert s.run_async(0, SMALL_G) == DONE
    s(Kind.RESET)
    assert s.run_async(0, WIDE_G) == REFUSED and s.seen.digest == 0 and not s.flies(0)
    assert s.seen.used == (0,) and s.seen.allocations == 1
    assert s(Kind.COMPUTE, 0, SMALL_G) == DONE, "and it is not in the way of another"


def test_c2_a_failed_alloc_leaves_nothing_bound() -> None:
    s = Schedulers()
    s.new()
    s(Kind.ALLOC, 0, SMALL_G)
    assert s(Kind.ALLOC, 0, WIDE_G, fail_nth=1) == REFUSED
    assert s(Kind.COMPUTE, 0, LARGE_G) == DONE and s.seen.digest == digest(LARGE)


def test_several_types_plan_again_too() -> None:
    s = Schedulers(10_000, 10_000)
    s.new()
    assert s(Kind.ALLOC, 0, SMALL_G) == s(Kind.ALLOC, 0, LARGE_G) == DONE
    assert Schedulers(10_000, 10_000)(Kind.NEW) == DONE


def test_c3_a_larger_graph_makes_a_larger_scheduler() -> None:
    s = Schedulers()
    s.new(nodes=2)
    assert s(Kind.RESERVE, 0, SMALL_G) == DONE and s.seen.nodes == 2 and s.seen.generation == 1
    assert s(Kind.MEASURE, 0, LARGE_G) == DONE and s.seen.nodes == 2, "a measure needs none"
    assert s(Kind.RESERVE, 0, LARGE_G) == DONE and s.seen.nodes == 3
    assert s.seen.generation == 1, "a plain one begins anew"
    assert s(Kind.RESERVE, 0, SMALL_G) == DONE and s.seen.nodes == 3


def test_c3_of_an_owner_is_a_remake() -> None:
    """R14: the borrower keeps what it has until its own next reserve."""
    s = Schedulers().pair(nodes=(2, 0))
    s(Kind.RESERVE, 1, WIDE_G)
    before = s.stack.look(1)
    s.run_async(1)
    assert s(Kind.COMPUTE, 0, LARGE_G) == MISUSE and s.flies(1), "the partner works"
    assert s(Kind.RESERVE, 0, LARGE_G) == DONE and s.seen.nodes == 3 and not s.flies(1)
    kept = s.stack.look(1)
    assert (kept.asked, kept.generation) == (before.asked, before.generation) and kept.nodes == 0
    assert s(Kind.RESERVE, 1, SMALL_G) == DONE and s.seen.asked == s.stack.look(0).asked != before.asked


def test_c3_of_a_borrower_borrows_again() -> None:
    s = Schedulers().pair(nodes=(0, 2))
    s(Kind.RESERVE, 0, WIDE_G)
    wide = s.seen.asked
    assert s(Kind.ALLOC, 1, LARGE_G) == DONE and s.seen.nodes == 3 and s.seen.asked == wide
    owner = s.stack.look(0)
    assert s.seen.generation == owner.generation and owner.shrink_generation == 1, "its going starts a shrink"


def test_c3_of_a_borrower_whose_owner_went_is_a_plain_one() -> None:
    s = Schedulers().pair(nodes=(0, 2))
    s(Kind.RESERVE, 1, SMALL_G)
    s(Kind.FREE, 0)
    assert s(Kind.RESERVE, 1, LARGE_G) == DONE and s.seen.nodes == 3
    assert s(Kind.SHRINK, 1) == MISUSE, "it is neither owner nor borrower any more"


def test_c3_of_a_counted_owner_leaves_what_it_shared() -> None:
    s = Schedulers(strategy=Strategy.COUNTED).pair(nodes=(2, 0))
    s(Kind.RESERVE, 0, SMALL_G)
    shared = s.stack.look(1).asked
    assert s(Kind.RESERVE, 0, LARGE_G) == DONE and s.seen.nodes == 3
    assert s.stack.look(1).asked == shared and s.stack.look(1).owned[0] == sum(shared[0])


def test_c4_reset_forgets_and_computing_allocates() -> None:
    s = Schedulers()
    s.new()
    assert s(Kind.COMPUTE, 0, SMALL_G) == DONE and s.seen.digest == digest(SMALL) and s.seen.allocations == 1
    assert s(Kind.COMPUTE, 0, LARGE_G) == DONE and s.seen.digest == digest(SMALL), "it is bound"
    s(Kind.RESET)
    assert s(Kind.COMPUTE, 0, LARGE_G) == DONE and s.seen.digest == digest(LARGE)


def test_a_reservation_forgets_the_bound_graph() -> None:
    s = Schedulers()
    s.new()
    s(Kind.COMPUTE, 0, SMALL_G)
    s(Kind.RESERVE, 0, LARGE_G)
    assert s(Kind.COMPUTE, 0, LARGE_G) == DONE and s.seen.digest == digest(LARGE)


def test_r12_what_the_partner_replaced_is_dropped() -> None:
    s = Schedulers().pair()
    s(Kind.ALLOC, 0, SMALL_G)
    s(Kind.RESERVE, 1, WIDE_G)
    assert s(Kind.COMPUTE, 0, SMALL_G) == STALE
    assert s(Kind.COMPUTE, 0, SMALL_G) == DONE and s.seen.digest == digest(SMALL)


def test_c5_the_scheduler_says_what_its_allocator_says() -> None:
    s = Schedulers().pair()
    s(Kind.RESERVE, 1, WIDE_G)
    s(Kind.SHRINK, 0)
    for n in (0, 1):
        look = s.stack.look(n)
        assert (look.sched_generation, look.sched_shrink_generation) == (1, 1)
        assert (look.generation, look.shrink_generation) == (1, 1)


def test_schedulers_and_plain_allocators_do_not_share() -> None:
    s = Schedulers()
    s.new()
    s(Kind.OWN)
    s(Kind.NEW, 1)
    s.new(2)
    assert s(Kind.BORROW, 1, other=0) == MISUSE
    assert s(Kind.BORROW, 2, other=1) == MISUSE and s(Kind.BORROW, 2, other=3) == REFUSED
    assert s(Kind.SYNC, 1) == s(Kind.RESET, 1) == MISUSE
