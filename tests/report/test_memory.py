"""The memory map: what a run showed, arranged; hand-made traces whose maps are known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from gallocheck.model.records import (
    BufferType,
    Context,
    Flag,
    Graph,
    Kind,
    Observation,
    Op,
    OpFlag,
    Option,
    Place,
    PoolKind,
    Setup,
    Status,
    Strategy,
    Trace,
    Trouble,
)
from gallocheck.native.worker import Death, Run
from gallocheck.report.memory import Frame, Lane, frames, modelled
from gallocheck.report.placed import BEFORE, Bound, overlaps, state_of
from gallocheck.report.units import amount, exact
from gallocheck.spec.lifetimes import lives

from tests.shorthand import given, graph, inplace, node, out, plain, view

CHAIN = graph(given(64), node(64, 0), out(64, 1), node(32, 2))
SMALL = graph(given(16), out(16, 0))
ONE = (Op(Kind.NEW), Op(Kind.RESERVE), Op(Kind.ALLOC), Op(Kind.COMPUTE))
PAIR = (Op(Kind.NEW), Op(Kind.OWN), Op(Kind.NEW, 1), Op(Kind.BORROW, 1, 0))


def by_model(trace: Trace) -> list[Frame]:
    return frames(trace, modelled(trace))


def lane(frame: Frame, kind: int = 0) -> Lane:
    return frame.lanes[kind]


def states(frame: Frame) -> dict[int, str]:
    """By tensor, in all chunks."""
    return {x.tensor: x.state for la in frame.lanes for b in la.buffers for c in b.chunks for x in c.blocks}


def test_one_allocator() -> None:
    """Nothing, then buffers, then tensors, then only outputs live."""
    new, reserved, bound, computed = by_model(plain(*ONE, graphs=(CHAIN,)))
    assert lane(new).buffers == () and lane(new).used == 0
    assert [c.size for c in lane(reserved).buffers[0].chunks] == [lane(reserved).used] and not states(
        reserved
    )
    assert [m.sort for m in reserved.marks] == ["generation"]
    assert states(bound) == {0: "live", 1: "planned", 2: "planned", 3: "planned"}
    assert states(computed) == {0: "dead", 1: "dead", 2: "output", 3: "dead"}
    assert [f.words for f in (new, computed)] == ["new allocator 0 on type 0", "compute by allocator 0"]


def test_a_tensor_is_where_the_plan_put_it() -> None:
    bound = by_model(plain(*ONE, graphs=(CHAIN,)))[2]
    (chunk,) = lane(bound).buffers[0].chunks
    places = modelled(plain(*ONE, graphs=(CHAIN,))).steps[2].places
    assert places is not None
    assert {b.tensor: (b.begin, b.end) for b in chunk.blocks} == {
        i: (p.offset, p.offset + t.alloc_size)
        for i, (p, t) in enumerate(zip(places, CHAIN.tensors, strict=True))
    }
    assert "bytes" in chunk.blocks[0].words and "needed from the start" in chunk.blocks[0].words


def test_owner_and_borrower_have_one_set_of_buffers() -> None:
    ops = (*PAIR, Op(Kind.RESERVE, 0, graph=1), Op(Kind.RESERVE, 1))
    last = by_model(plain(*ops, graphs=(CHAIN, SMALL)))[-1]
    (buffers,) = lane(last).buffers
    assert buffers.users == (0, 1) and buffers.shared and buffers.words == "owner 0 and borrower 1"
    assert buffers.size == lane(last).used and lane(last).other == 0


def test_buffers_apart_are_apart() -> None:
    ops = (Op(Kind.NEW), Op(Kind.NEW, 1), Op(Kind.RESERVE), Op(Kind.RESERVE, 1))
    last = by_model(plain(*ops, graphs=(CHAIN,)))[-1]
    assert [b.users for b in lane(last).buffers] == [(0,), (1,)]
    assert sum(b.size for b in lane(last).buffers) == lane(last).used


def test_a_detached_role_has_its_own() -> None:
    """S2: counted sharing; who needs more makes buffers of its own."""
    ops = (
        *PAIR[:3],
        Op(Kind.BORROW, 1, 0, value=15),
        Op(Kind.RESERVE, 0, graph=1),
        Op(Kind.RESERVE, 1, graph=1),
    )
    setup = Setup((BufferType(),), ((0,),), strategy=Strategy.COUNTED)
    joint = by_model(Trace(setup, (CHAIN, SMALL), ops))[-1]
    apart = by_model(Trace(setup, (CHAIN, SMALL), (*ops, Op(Kind.RESERVE, 1))))[-1]
    assert [b.users for b in lane(joint).buffers] == [(0, 1)]
    assert [b.users for b in lane(apart).buffers] == [(0,), (1,)]
    assert lane(apart).buffers[1].words == "borrower 1, on its own"


def test_a_borrower_behind_a_new_owner() -> None:
    """R14: it keeps the old buffers until its own next reserve."""
    ops = (*PAIR, Op(Kind.RESERVE, 1), Op(Kind.REMAKE), Op(Kind.RESERVE, 0), Op(Kind.RESERVE, 1))
    seen = by_model(plain(*ops, graphs=(CHAIN,)))
    assert [b.users for b in lane(seen[5]).buffers] == [(1,)]
    assert "before its owner was replaced" in lane(seen[5]).buffers[0].words
    assert [b.users for b in lane(seen[6]).buffers] == [(0,), (1,)], "the same bytes, and yet two sets"
    assert [b.users for b in lane(seen[7]).buffers] == [(0, 1)]


def test_a_graph_of_an_older_generation() -> None:
    """R12: the borrower's reserve replaced the buffers; what the owner has bound is stale, then dropped."""
    ops = (
        *PAIR,
        Op(Kind.RESERVE, 0, graph=1),
        Op(Kind.ALLOC, 0, graph=1),
        Op(Kind.RESERVE, 1),
        Op(Kind.COMPUTE),
    )
    seen = by_model(plain(*ops, graphs=(CHAIN, SMALL)))
    assert set(states(seen[5]).values()) == {"live", "planned"}
    assert set(states(seen[6]).values()) == {"stale"} and not seen[6].wrong
    assert states(seen[7]) == {} and [m.sort for m in seen[7].marks] == ["stale"]
    assert {m.words.split(":")[0] for m in seen[6].marks} == {"allocator 0", "allocator 1"}


def test_memory_that_is_gone_is_shown_under_a_bound_graph() -> None:
    """R9: the replacement fails; computing there without looking is what R12 is about."""
    big = graph(given(640))
    ops = (*ONE[:3], Op(Kind.RESERVE, graph=1, fail_types=1))
    trace = plain(*ops, Op(Kind.COMPUTE, flags=OpFlag.UNCHECKED), graphs=(CHAIN, big))
    run = modelled(trace)
    seen = frames(trace, Run(run.steps[:4], death=Death(4, trace.ops[4], "fault", "run", "SIGSEGV")))
    assert "refused" in [m.words for m in seen[3].marks] and lane(seen[3]).used == 0
    assert [c.size for b in lane(seen[3]).buffers for c in b.chunks] == [0]
    assert [m.sort for m in seen[4].marks] == ["died"] and seen[4].status is None
    assert any("has 0" in w.words for w in seen[4].wrong) and not seen[3].wrong


def test_capacity_and_what_is_in_use_beside_buffers() -> None:
    kind = BufferType(granularity=64, capacity=512)
    ops = (*ONE, Op(Kind.CAPACITY, other=0, value=256))
    last = by_model(plain(*ops, graphs=(CHAIN,), types=(kind,)))[-1]
    assert lane(last).capacity == 256 and lane(last).other == 0
    trace = plain(*ops, graphs=(CHAIN,), types=(kind,))
    run = modelled(trace)
    run.steps[-1].obs = replace(run.steps[-1].obs, used=(lane(last).used + 64,))
    assert lane(frames(trace, run)[-1]).other == 64


def test_pools_are_bytes_of_their_own() -> None:
    setup = Setup((BufferType(capacity=1 << 20),), ((0,),), pool=PoolKind.VMM_POOL, pool_range=1 << 16)
    ops = (Op(Kind.POOL_ALLOC, value=5000), Op(Kind.POOL_FREE), Op(Kind.TRIM))
    seen = by_model(Trace(setup, (), ops))
    assert [lane(f).pooled for f in seen] == [8192, 8192, 0]
    facts = [dict(f.facts).get("pool of device 0, stream 0") for f in seen]
    assert facts == ["8 KiB mapped, 5 KiB out", "8 KiB mapped, 0 B out", None]


def test_contexts_and_slots_are_facts() -> None:
    template = Graph((replace(given(16)), replace(out(16, 0))))
    context = Context(0, 0, options=Option.PHASE_AWARE, cells=8, batch=4)
    setup = Setup((BufferType(),), ((0,),), contexts=(context,))
    ops = (Op(Kind.CTX_OPEN), Op(Kind.SLOT_ENTER, 2), Op(Kind.SLOT_STEP, 2, value=1), Op(Kind.SLOT_LEAVE, 2))
    seen = by_model(Trace(setup, (template,), ops))
    assert dict(seen[0].facts)["target, lane 0 reserved for"] == "1 tokens, 8 cells"
    assert dict(seen[1].facts)["busy slots"] == "2" and "busy slots" not in dict(seen[3].facts)
    assert [b.users for b in lane(seen[0]).buffers] == [(0,)]


def test_wrong_bytes_are_marked_where_they_are() -> None:
    """A source that holds wrong bytes from byte 3 on: first wrong byte, node and source are those observed."""
    trace = plain(*ONE, graphs=(CHAIN,))
    run = modelled(trace)
    bad = {"trouble": Trouble.BAD_SOURCE, "bad_node": 2, "bad_src": 0, "bad_offset": 3}
    run.steps[3].obs = replace(run.steps[3].obs, **bad)
    (wrong,) = frames(trace, run)[3].wrong
    places = run.steps[2].places
    assert places is not None
    assert (wrong.begin, wrong.end) == (places[1].offset + 3, places[1].offset + 64)
    assert wrong.words == "t1, which t2 reads, holds wrong bytes from byte 3 on"
    assert states(frames(trace, run)[3]) == {0: "dead", 1: "live", 2: "output", 3: "planned"}


def test_tensors_that_share_bytes_while_both_are_needed() -> None:
    trace = plain(*ONE, graphs=(CHAIN,))
    run = modelled(trace)
    places = run.steps[2].places
    assert places is not None
    moved = (places[0], Place(0, 0, places[0].offset + 32), *places[2:])
    run.steps[2].places = moved
    wrong = frames(trace, run)[2].wrong
    assert any(w.words.startswith("t0 and t1 share bytes 32 to 64") for w in wrong)
    setup = trace.setup
    assert overlaps(setup, CHAIN, places, (0,)) == () and (0, 1, 1) in overlaps(setup, CHAIN, moved, (0,))


def test_in_place_is_no_conflict() -> None:
    g = graph(given(64), node(64, 0), inplace(64, 1), view(16, 2, 16), out(8, 3))
    seen = by_model(plain(*ONE, graphs=(g,)))
    assert not any(f.wrong for f in seen)
    assert states(seen[2])[3] == "view"


def test_a_leak_is_a_frame_of_its_own() -> None:
    trace = plain(*ONE, graphs=(CHAIN,))
    run = modelled(trace)
    run.leaked = 96
    last = frames(trace, run)[-1]
    assert last.op is None and [m.words for m in last.marks] == ["96 bytes were not given back"]
    assert len(by_model(trace)) == len(trace.ops)


def test_states_follow_the_lives() -> None:
    bound = Bound(0, CHAIN, 0, (Place(0, 0, 0),) * 4, (0,), 1)
    life = lives(CHAIN)
    table = [[state_of(replace(bound, at=at), i, life[i]) for i in range(4)] for at in (BEFORE, 1, 2, 3)]
    assert table == [
        ["live", "planned", "planned", "planned"],
        ["live", "live", "planned", "planned"],
        ["dead", "live", "output", "planned"],
        ["dead", "dead", "output", "live"],
    ]


@pytest.mark.parametrize("status", [Status.MISUSE, Status.REFUSED, Status.FAILED])
def test_what_does_not_succeed_is_marked(status: Status) -> None:
    trace = plain(Op(Kind.NEW), graphs=(CHAIN,))
    run = modelled(trace)
    run.steps[0].obs = Observation(status, used=(0,))
    assert [m.sort for m in frames(trace, run)[0].marks] == ["failed"]


def test_flags_do_not_matter_to_the_map() -> None:
    g = graph(given(64), out(64, 0, flags=Flag.LAYOUT))
    assert states(by_model(plain(*ONE, graphs=(g,)))[-1]) == {0: "dead", 1: "output"}


@pytest.mark.parametrize(
    ("n", "words"),
    [(0, "0 B"), (96, "96 B"), (4096, "4 KiB"), (4097, "4,097 B"), (1 << 20, "1 MiB"), (22_723 << 20, "22,723 MiB"),
     ((1 << 30) + 1, "1 GiB"), (1536 << 10, "1,536 KiB"), (123_456, "120.6 KiB"), (2**64 - 1, "no limit")],
)  # fmt: skip
def test_bytes_for_people(n: int, words: str) -> None:
    assert amount(n) == words
    assert exact(n) == (words if words.endswith(" B") or words == "no limit" else f"{words} ({n:,} bytes)")
