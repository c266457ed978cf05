"""What an emitted program checks: chosen by how the failure shows, as its message says.

A check is a tuple of its kind and what it needs; emit_steps.py writes each as C++.

    ("placed", "check_no_overlap")     of the graph just bound (or computed), where the call succeeded
    ("status", True)                   what the call returns
    ("unchanged",)                     no buffer is allocated or freed by the call
    ("buffers", ((64,), ()))           sizes of the living buffers by type
    ("reported", (64, 0))              by slot, as the allocator reports them
    ("measured", (64, 0))              by slot
    ("state", 0, "generation", ">")    of allocator 0, after the call against before it
    ("large_enough",)                  no tensor needs more than the largest buffer of its type
    ("current",), ("outdated",)        whether the bound graph's generation is still the present one
    ("busy",)                          no buffer is freed under work in flight: the device itself notices
    ("look",)                          the allocator is asked for its sizes
    ("no_more", 0, 1, 0)               allocator 1 reports no more bytes than 0 for slot 0
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..model.pair import OWNER
from ..model.records import MAX_CHUNKS, Cap, Graph, Kind, Observation, Op, Status, Tensor, Trace
from ..model.session import Session
from .fresh import Fresh, boundless, largest_gap, with_readers
from .ledger import Ledger
from .replay import Replay

Check = tuple[object, ...]


class EmitError(Exception):
    """There is no program that shows the failure. One sentence for the user; exit code 3."""

    exit_code = 3


@dataclass(frozen=True, slots=True)
class Candidate:
    """A program to try: `trace` up to `step` (the number of operations: to the end), and what is checked there."""

    trace: Trace
    step: int
    checks: tuple[Check, ...] = ()


#: what a message about a plan says, and the check of addresses that shows it
PLACED = (
    (r"wrong bytes|digest", ("check_all_allocated", "check_views", "check_no_overlap")),
    (r"overlaps tensor|preallocated source|was overwritten", ("check_no_overlap",)),
    (r"in no chunk|\bends at\b|end at|behind the end|binds only to memory", ("check_all_allocated",)),
    (r"no multiple of the alignment", ("check_alignment",)),
    (r"^view \d", ("check_views",)),
    (r"memory of its own, but was moved", ("check_weights_stay",)),
    (r"a new allocator puts it", ("check_same_offsets",)),
    (r"its highest end is", ("check_highest_end",)),
    (r"the largest buffer is", ("check_max_size",)),
)
EVERYWHERE = (
    "check_all_allocated",
    "check_alignment",
    "check_views",
    "check_weights_stay",
    "check_no_overlap",
)
DEATHS = r"(freeing everything )?(aborted|touched memory|did not return|ended the process)"
STATUS = r"works again|fails while|requirement still counts|refused|can own|cannot own|no owner|no borrower|one borrower"
STATUS += r"|is done|without a reason|never counts beside|otherwise done|every allocation failed"
CHANGED = r"changes nothing|nothing changed|changes no buffer|nothing replaced"
RELATIONS = ((r"never goes down|went down", ">="), (r"\bup\b|but the generation", ">"), (r"\bnot\b", "=="))


def candidates(saved: Replay, caps: Cap, fresh: Fresh) -> Iterator[Candidate]:
    """Programs that may show the failure, the most telling first. `fresh`: plans of the tree it is written for.

    Raises EmitError where ggml has no call that could show it.
    """
    if saved.verdict != "broken":
        raise EmitError(
            f"The saved verdict is {saved.verdict!r}: no clause is broken, so no program could show that one is."
        )
    if saved.clause in ("R13", "R14"):
        raise EmitError(
            f"{saved.clause} is about something that ggml has no call for, so no program can show it."
        )
    here = Candidate(saved.trace, saved.step)
    if re.match(DEATHS, saved.message):
        yield here
        if saved.step < len(saved.trace.ops):  # an allocator is looked at after each operation
            yield replace(here, checks=(("look",),))
        yield from by_kind(here)
        return
    if saved.step >= len(saved.trace.ops):
        yield replace(here, checks=(("buffers", ((),) * len(saved.trace.setup.types)),))
        return
    yield from by_message(saved, caps, fresh, here)
    yield from by_kind(here)


def by_message(saved: Replay, caps: Cap, fresh: Fresh, here: Candidate) -> Iterator[Candidate]:
    """What the message says, of the step that failed."""
    message, op = saved.message, saved.trace.ops[saved.step]
    if message.startswith("after the last node"):
        yield from room_at_the_end(saved, fresh)
    elif "was planned into" in message:
        yield replace(here, checks=(("large_enough",),))
    elif "is refused on devices without limit" in message:
        yield alone(saved, bind=False, checks=(("status", True),))
    elif names := next((n for pattern, n in PLACED if re.search(pattern, message)), ()):
        checks = tuple(("placed", name) for name in names)
        yield (
            alone(saved, bind=True, checks=checks)
            if op.kind == Kind.RESERVE
            else replace(here, checks=checks)
        )
    else:
        saved = readable(saved)
        yield Candidate(saved.trace, saved.step, tuple(of_the_pair(saved, Foreseen(saved, caps, fresh))))


def alone(saved: Replay, bind: bool, checks: tuple[Check, ...]) -> Candidate:
    """The graph of the step that failed, on a new allocator and devices without limit (fresh.py judges it so)."""
    trace = saved.trace
    op = trace.ops[saved.step]
    config = next(
        o.other for o in reversed(trace.ops[: saved.step]) if o.kind == Kind.NEW and o.alloc == op.alloc
    )
    ops = [Op(Kind.NEW, 0, config), Op(Kind.RESERVE, 0, graph=op.graph)]
    ops += [Op(Kind.ALLOC, 0, graph=op.graph)] * bind
    return Candidate(Trace(boundless(trace.setup), trace.graphs, tuple(ops)), len(ops) - 1, checks)


def by_kind(here: Candidate) -> Iterator[Candidate]:
    """Whatever may be wrong after an operation of this kind."""
    kind = here.trace.ops[here.step].kind if here.step < len(here.trace.ops) else None
    if kind in (Kind.ALLOC, Kind.COMPUTE):
        yield replace(here, checks=tuple(("placed", name) for name in EVERYWHERE))
    if kind == Kind.RESERVE:
        yield replace(here, checks=(("large_enough",),))
        bind = replace(here.trace.ops[here.step], kind=Kind.ALLOC, fail_nth=0, fail_types=0)
        trace = replace(here.trace, ops=(*here.trace.ops[: here.step + 1], bind))
        yield Candidate(trace, here.step + 1, tuple(("placed", name) for name in EVERYWHERE))
    if kind == Kind.MEASURE:
        yield replace(here, checks=(("unchanged",),))


def room_at_the_end(saved: Replay, fresh: Fresh) -> Iterator[Candidate]:
    """P10: the graph, and the graph with one more node that must find room in it."""
    trace, op = saved.trace, saved.trace.ops[saved.step]
    config = next(
        o.other for o in reversed(trace.ops[: saved.step]) if o.kind == Kind.NEW and o.alloc == op.alloc
    )
    setup = boundless(trace.setup)
    setup = replace(
        setup, types=tuple(replace(t, granularity=1) for t in setup.types), configs=(setup.configs[config],)
    )
    longer = with_readers(trace.graphs[op.graph])
    plan = fresh.plan_once(setup, longer, False)
    said = re.search(r"after the last node (\d+) bytes of type (\d+)", saved.message)
    gaps = [(int(said[2]), int(said[1]))] if said else []
    gaps += [largest_gap(setup, longer, plan)] if plan.places is not None else []
    for kind, size in gaps:
        slot = setup.configs[0].index(kind)
        probed = Graph((*longer.tensors, Tensor(size, slot=slot)))
        ops = [Op(Kind.NEW, n, 0) for n in (0, 1)] + [Op(Kind.RESERVE, n, graph=n) for n in (0, 1)]
        yield Candidate(Trace(setup, (longer, probed), tuple(ops)), 3, (("no_more", 0, 1, slot),))


# -- owner and borrower, and what is reported ----------------------------------------


class Foreseen:
    """What the reference session says of the step that failed, by plans of the tree."""

    def __init__(self, saved: Replay, caps: Cap, fresh: Fresh) -> None:
        trace = saved.trace
        session = Ledger(trace.setup, trace.graphs, caps, fresh, MAX_CHUNKS).session
        for op in trace.ops[: saved.step]:
            session.step(op)
        self.roles = roles(session, trace.ops[saved.step].alloc)
        self.seen: Observation = session.step(trace.ops[saved.step])
        pairs = {id(a.pair): a.pair.state for a in session.allocs.values()}
        self.buffers = tuple(
            tuple(size for s in pairs.values() for entry in (s.asked, s.old) for size in entry[t] if size)
            for t in range(len(trace.setup.types))
        )

    @property
    def status(self) -> tuple[Check, ...]:
        """What the call returns; nothing where the session cannot tell."""
        known = self.seen.status in (Status.DONE, Status.REFUSED)
        return (("status", self.seen.status == Status.DONE),) if known else ()


def roles(session: Session, number: int) -> dict[str, int]:
    """{'owner': 0, 'borrower': 1}: the allocators of the pair that `number` is of."""
    mine = session.allocs.get(number)
    members = {n: a for n, a in session.allocs.items() if mine and a.pair is mine.pair}
    return {"owner" if a.role == OWNER else "borrower": n for n, a in members.items()}


def readable(saved: Replay) -> Replay:
    """R7, R8: ggml has readings for those that take part in a pair only, so each allocator becomes an owner."""
    if saved.clause not in ("R7", "R8") or any(op.kind == Kind.OWN for op in saved.trace.ops):
        return saved
    ops: list[Op] = []
    for i, op in enumerate(saved.trace.ops):
        if i == saved.step:
            saved = replace(saved, step=len(ops))
        ops += [op, Op(Kind.OWN, op.alloc)] if op.kind == Kind.NEW else [op]
    return replace(saved, trace=replace(saved.trace, ops=tuple(ops)))


def of_the_pair(saved: Replay, foreseen: Foreseen) -> Iterator[Check]:
    """Statuses, sizes and readings."""
    clause, message, op = saved.clause, saved.message, saved.trace.ops[saved.step]
    slots = len(saved.trace.setup.configs[config_of(saved)])
    if clause == "C1":
        yield ("busy",)
    elif clause == "C2":
        yield ("status", False)
    elif clause in ("R7", "R8", "C5"):
        yield from readings(clause, message, op, foreseen)
    elif clause == "R12":
        yield ("outdated",) if foreseen.seen.status == Status.STALE else ("current",)
    elif op.kind == Kind.MEASURE and not re.search(CHANGED, message):
        yield ("measured", measured(saved) or foreseen.seen.measured[:slots])
    elif re.search(r"slot \d+ .*reports", message):
        yield ("reported", foreseen.seen.reported[:slots])
    elif re.search(CHANGED, message):
        yield from foreseen.status
        yield ("unchanged",)
        yield from (("state", n, "generation", "==") for n in foreseen.roles.values())
    elif re.search(STATUS, message):
        yield from foreseen.status
    elif any(not t.size and not t.view for g in saved.trace.graphs for t in g.tensors):
        raise EmitError(
            "The failure is about chunks of no bytes, of which ggml does not show where they are."
        )
    elif foreseen.seen.status != Status.MISUSE:
        yield from foreseen.status
        yield ("buffers", foreseen.buffers)


def measured(saved: Replay) -> tuple[int, ...]:
    """What a measure should have given, where the message says it (of a scheduler nothing is foreseen)."""
    said = re.search(r"reserve gives \[([\d, ]+)\]", saved.message)
    return tuple(map(int, said[1].split(","))) if said else ()


def readings(clause: str, message: str, op: Op, foreseen: Foreseen) -> Iterator[Check]:
    """R7, R8, C5: what a role reads afterwards against before."""
    who = foreseen.roles.get(message.split(":")[0], op.alloc)
    relation = next((sign for pattern, sign in RELATIONS if re.search(pattern, message)), ">")
    yield ("state", who, "shrink" if clause == "R8" else "generation", relation)


def config_of(saved: Replay) -> int:
    """The config of the failing operation's allocator."""
    ops, number = saved.trace.ops[: saved.step + 1], saved.trace.ops[saved.step].alloc
    return next((op.other for op in reversed(ops) if op.kind == Kind.NEW and op.alloc == number), 0)
