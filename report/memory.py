"""The memory map of a trace, operation by operation: what a run showed, arranged for whoever draws it.

    frames(trace, judge.run(trace))           of a subject
    frames(trace, modelled(trace))            of the model

A frame is the state after one operation. All sizes are bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from ..fuzz.verdict import Verdict
from ..fuzz.words import describe_op
from ..fuzz.words_seen import describe_status, numbers
from ..model.planner import round_up
from ..model.records import BufferType, Graph, Kind, Observation, Op, OpFlag, Place, Status, Trace, Trouble
from ..model.session import Session
from ..model.stack import Stack
from ..native.worker import Run, StepSeen
from .placed import BEFORE, Block, Bound, Wrong, blocks, conflicting, wrong_bytes
from .sharers import Sharers, row
from .units import amount

Sort = Literal["generation", "failed", "stale", "died", "wrong", "broken", "leaked"]
_POOLS = (Kind.POOL_ALLOC, Kind.POOL_FREE, Kind.TRIM)


@dataclass(frozen=True, slots=True)
class Chunk:
    """One buffer of a type: bytes asked for, the tensors in it, and its bytes that conflict."""

    number: int
    size: int
    blocks: tuple[Block, ...] = ()
    wrong: tuple[Wrong, ...] = ()


@dataclass(frozen=True, slots=True)
class Buffers:
    """One set of buffers of a type. `users`: the allocators that have it, the owner first."""

    users: tuple[int, ...]
    words: str
    chunks: tuple[Chunk, ...]

    @property
    def size(self) -> int:
        return sum(chunk.size for chunk in self.chunks)

    @property
    def shared(self) -> bool:
        return len(self.users) > 1


@dataclass(frozen=True, slots=True)
class Lane:
    """One type: what its device has in use, what pools hold of that, and the buffers. `other`: bytes in use
    that neither buffers nor pools account for. A meta type has no device of its own: nothing in use."""

    type: int
    kind: BufferType
    capacity: int
    used: int
    pooled: int
    other: int
    buffers: tuple[Buffers, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """Something to be seen at once: a generation that changed, an operation that failed, a conflict."""

    sort: Sort
    words: str


@dataclass(frozen=True, slots=True)
class Frame:
    """After operation `step`: `words` says what it was. `status`: None where it never ended. `facts`: pools,
    captured graphs, lanes of contexts and slots, as (what, value). `bound`: every graph that is bound."""

    step: int
    op: Op | None
    words: str
    status: Status | None
    lanes: tuple[Lane, ...]
    marks: tuple[Mark, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    bound: tuple[Bound, ...] = ()

    @property
    def wrong(self) -> tuple[Wrong, ...]:
        """The bytes that conflict."""
        return tuple(w for x in self.lanes for b in x.buffers for c in b.chunks for w in c.wrong)


def frames(
    trace: Trace,
    run: Run,
    verdict: Verdict | None = None,
    plans: Mapping[int, tuple[Place, ...]] | None = None,
) -> list[Frame]:
    """A frame an operation that ran, and one more where the subject died or did not give everything back.

    `verdict`: what the run is blamed for; it is marked at its step. `plans`: by step of a RESERVE, where it
    is known to put the tensors, though nothing is bound yet.
    """
    follower = Follower(trace, plans or {})
    out = [follower.step(i, op, seen) for i, (op, seen) in enumerate(zip(trace.ops, run.steps, strict=False))]
    end = len(out)
    if run.death is not None:
        op = trace.ops[end] if end < len(trace.ops) else None
        words = describe_op(op, trace) if op else "everything is freed"
        out.append(follower.still(end, op, words, Mark("died", f"the subject died: {run.death.kind}")))
    elif run.leaked:
        mark = Mark("leaked", f"{run.leaked} bytes were not given back")
        out.append(follower.still(end, None, "everything is freed", mark))
    if verdict is not None and verdict.step < len(out):
        frame = out[verdict.step]
        what = f"{verdict.clause} is broken" if verdict.clause else "model and subject differ"
        mark = Mark("broken", f"{what}: {verdict.message}")
        out[verdict.step] = replace(frame, marks=(*frame.marks, mark))
    return out


def modelled(trace: Trace, reference: Stack | Session | None = None) -> Run:
    """The trace as the model runs it, in the shape of a subject's run. `reference`: the model to step."""
    model = reference or Stack(trace.setup, list(trace.graphs))
    session = model.session if isinstance(model, Stack) else model
    steps = []
    for op in trace.ops:
        obs = model.step(op)
        others = [n for n in sorted(session.allocs) if n != op.alloc or op.kind >= Kind.CTX_OPEN]
        binds = op.kind in (Kind.ALLOC, Kind.COMPUTE) and obs.status == Status.DONE
        a = session.allocs.get(op.alloc)
        places = a.places if binds and a is not None and a.bound == session.graph(op.graph) else None
        steps.append(StepSeen(obs, {n: model.look(n) for n in others}, places))
    return Run(steps, leaked=0, graphs=tuple(range(len(trace.graphs))))


class Follower:
    """Keeps what was shown last of every allocator, and what each has bound."""

    def __init__(self, trace: Trace, plans: Mapping[int, tuple[Place, ...]]) -> None:
        self.trace, self.setup, self.plans = trace, trace.setup, plans
        self.sharers = Sharers(trace.setup)
        self.scheds: set[int] = set()
        self.shown: dict[int, Observation] = {}
        self.bound: dict[int, Bound] = {}
        self.capacity = [kind.capacity for kind in trace.setup.types]
        self.pools: dict[tuple[int, int], tuple[int, int]] = {}  # (device, stream): mapped, handed out
        self.last = Observation(Status.DONE, used=(0,) * len(trace.setup.types))
        self.contexts: dict[int, Observation] = {}

    # -- one operation ---------------------------------------------------------------------

    def step(self, at: int, op: Op, seen: StepSeen) -> Frame:
        before = {n: o.generation for n, o in self.shown.items()}
        self.last = seen.obs
        self.sharers.note(op, seen.obs)
        self.look(op, seen)
        self.devices(op, seen.obs)
        self.bind(op, seen)
        kept = dict(self.bound)
        if at in self.plans and op.kind == Kind.RESERVE:
            self.take(op, self.plans[at], seen.obs)
        marks = [*self.moved(before), *failed(op, seen.obs), *self.stale(op, seen.obs)]
        wrong = list(self.wrong(op, seen.obs))
        marks += [Mark("wrong", w.words) for w in wrong]
        marks += [Mark("wrong", words) for words in whole_buffers(seen.obs)]
        lanes, bound = tuple(self.lanes(wrong)), tuple(self.bound.values())
        if at in self.plans:
            self.bound = kept
        words, status = describe_op(op, self.trace), seen.obs.status
        return Frame(at, op, words, status, lanes, tuple(marks), tuple(self.facts()), bound)

    def still(self, at: int, op: Op | None, words: str, mark: Mark) -> Frame:
        """A frame of what was there before, for what was never seen."""
        wrong = list(self.wrong(op, Observation(Status.DONE))) if op is not None else []
        lanes, bound = tuple(self.lanes(wrong)), tuple(self.bound.values())
        return Frame(at, op, words, None, lanes, (mark,), tuple(self.facts()), bound)

    def look(self, op: Op, seen: StepSeen) -> None:
        """What is shown of every allocator now."""
        of_allocator = op.kind < Kind.CTX_OPEN and op.kind not in (*_POOLS, Kind.CAPACITY)
        if op.kind == Kind.FREE and seen.obs.status == Status.DONE:
            self.shown.pop(op.alloc, None)
            self.bound.pop(op.alloc, None)
        elif of_allocator and seen.obs.status != Status.MISUSE:
            self.shown[op.alloc] = seen.obs
        for number, obs in seen.looks.items():
            if obs.status == Status.MISUSE:
                self.shown.pop(number, None)
                self.bound.pop(number, None)
            else:
                self.shown[number] = obs

    def devices(self, op: Op, obs: Observation) -> None:
        """Capacities, pools and contexts, as an operation of theirs shows them."""
        if op.kind == Kind.CAPACITY and obs.status == Status.DONE:
            self.capacity[op.other] = op.value
        elif op.kind in (Kind.POOL_ALLOC, Kind.POOL_FREE) and obs.status != Status.MISUSE:
            self.pools[op.other, op.alloc] = obs.mapped, obs.out
        elif obs.released or (op.kind == Kind.TRIM and obs.status == Status.DONE):
            self.pools = {key: pool for key, pool in self.pools.items() if pool[1]}
        if Kind.CTX_OPEN <= op.kind < Kind.SLOT_ENTER:
            self.contexts[op.alloc] = obs
        elif op.kind >= Kind.SLOT_ENTER:
            self.contexts[0] = obs

    def bind(self, op: Op, seen: StepSeen) -> None:
        """What the allocator of the operation has bound, and how far it is computed."""
        n, obs = op.alloc, seen.obs
        if self.forgets(op, obs):
            self.bound.pop(n, None)
        new = op.kind == Kind.ALLOC or (op.kind == Kind.COMPUTE and n in self.scheds and n not in self.bound)
        if new and obs.status == Status.DONE and seen.places:
            self.take(op, seen.places, obs)
        if op.kind == Kind.COMPUTE and n in self.bound and obs.status == Status.DONE:
            whole = len(self.bound[n].graph.tensors)
            reached = obs.bad_node if obs.trouble and obs.bad_node >= 0 else whole
            self.bound[n] = replace(self.bound[n], at=reached)
        for number, bound in self.bound.items():
            old = number in self.shown and self.shown[number].generation != bound.generation
            self.bound[number] = replace(bound, stale=old)

    def take(self, op: Op, places: tuple[Place, ...], obs: Observation) -> None:
        """The allocator of the operation has bound its graph there."""
        graph = self.trace.graphs[op.graph] if 0 <= op.graph < len(self.trace.graphs) else Graph(())
        if len(places) == len(graph.tensors):
            slots = self.sharers.slots(op.alloc)
            self.bound[op.alloc] = Bound(op.alloc, graph, op.graph, places, slots, obs.generation)

    def forgets(self, op: Op, obs: Observation) -> bool:
        """Whether the allocator has no graph bound any more: R12, C4, and all that a scheduler reserves."""
        done = obs.status == Status.DONE
        if op.kind == Kind.NEW and done:
            (self.scheds.add if op.flags & OpFlag.BY_SCHED else self.scheds.discard)(op.alloc)
            return True
        if op.kind in (Kind.RESERVE, Kind.ALLOC):
            return op.alloc in self.scheds and obs.status != Status.MISUSE
        if op.kind == Kind.COMPUTE:
            return obs.status == Status.STALE
        return done and op.kind in (Kind.RESET, Kind.REMAKE)

    # -- what is to be seen -----------------------------------------------------------------

    def moved(self, before: dict[int, int]) -> Iterator[Mark]:
        """R7: generations that changed."""
        for number, obs in sorted(self.shown.items()):
            was = before.get(number, obs.generation)
            if was != obs.generation:
                yield Mark("generation", f"allocator {number}: generation {was} to {obs.generation}")

    def stale(self, op: Op, obs: Observation) -> Iterator[Mark]:
        if obs.status == Status.STALE:
            yield Mark("stale", f"the graph of allocator {op.alloc} is of an older generation")

    def wrong(self, op: Op, obs: Observation) -> Iterator[Wrong]:
        """The bytes that conflict after the operation; two tensors' shared ones as soon as they are bound."""
        for number, bound in list(self.bound.items()):
            computed = op.kind == Kind.COMPUTE and op.alloc == number
            if (bound.stale and not computed) or number not in self.shown:
                continue  # an outdated graph is wrong only where somebody computes it (R12)
            shown = self.shown[number]
            asked = [row(shown, t) for t in range(len(self.setup.types))]
            for wrong, step in conflicting(bound, self.setup, asked):
                if (
                    op.alloc == number
                    and op.kind in (Kind.ALLOC, Kind.RESERVE)
                    and self.bound[number].at == BEFORE
                ):
                    self.bound[number] = replace(bound, at=step)  # show the map as it is there
                yield wrong
        bound_now = self.bound.get(op.alloc)
        if obs.trouble and bound_now is not None:
            yield from wrong_bytes(bound_now, obs)

    def lanes(self, wrong: list[Wrong]) -> Iterator[Lane]:
        for t, kind in enumerate(self.setup.types):
            buffers = tuple(self.buffers(t, wrong))
            used = at(self.last.used, t)
            pooled = at(self.last.pooled, t)
            known = pooled + sum(
                self.real(k) for k, meta in enumerate(self.setup.types) if t in meta.devices(k)
            )
            yield Lane(t, kind, self.capacity[t], used, pooled, max(0, used - known), buffers)

    def real(self, kind: int) -> int:
        """Bytes that the buffers of a type have, on each of its devices."""
        unit = self.setup.types[kind].granularity
        groups = self.sharers.groups(kind, self.shown)
        return sum(round_up(size, unit) for users in groups for size in row(self.shown[users[0]], kind))

    def buffers(self, kind: int, wrong: list[Wrong]) -> Iterator[Buffers]:
        """The sets of buffers of a type; where tensors lie in none any more, an empty one."""
        groups = self.sharers.groups(kind, self.shown)
        holding = {n for users in groups for n in users}
        lost = {b.allocator for b in self.bound.values() if any(p.type == kind for p in b.places)} - holding
        for users in [*groups, *((n,) for n in sorted(lost))]:
            sizes = row(self.shown[users[0]], kind) if users[0] in self.shown else ()
            inside = [x for n in users if n in self.bound for x in blocks(self.bound[n]) if x[0].type == kind]
            mine = [w for w in wrong if w.type == kind and w.allocator in users]
            most = max([len(sizes), *(p.chunk + 1 for p, _ in inside)])
            chunks = tuple(
                Chunk(
                    c,
                    sizes[c] if c < len(sizes) else 0,
                    tuple(block for place, block in inside if place.chunk == c),
                    tuple(w for w in mine if w.chunk == c),
                )
                for c in range(most)
            )
            yield Buffers(users, self.whose(users), chunks)

    def whose(self, users: tuple[int, ...]) -> str:
        """'owner 0 and borrower 1', 'allocator 2', 'borrower 1, on its own'."""
        if len(users) > 1:
            return f"owner {users[0]} and borrower {' and '.join(map(str, users[1:]))}"
        (n,) = users
        if n in self.sharers.behind:
            return f"borrower {n}, from before its owner was replaced"
        if n in self.sharers.owner:
            return f"borrower {n}, on its own"
        return f"owner {n}" if n in self.sharers.owner.values() else f"allocator {n}"

    def facts(self) -> Iterator[tuple[str, str]]:
        """Pools, captured graphs, contexts and slots."""
        for (device, stream), (mapped, out) in sorted(self.pools.items()):
            yield f"pool of device {device}, stream {stream}", f"{amount(mapped)} mapped, {amount(out)} out"
        last = self.last
        if last.captured:
            yield "captured graphs", f"of allocator {numbers(last.captured)}"
        if last.capturing:
            yield "being captured", f"allocator {numbers(last.capturing)}"
        for number, obs in sorted(self.contexts.items()):
            name = ("target", "draft")[number] if number < 2 else f"context {number}"
            for lane, (tokens, cells, fewer) in enumerate(zip(obs.tokens, obs.cells, obs.fewer, strict=True)):
                if tokens or cells:
                    less = f", {fewer} fewer" if fewer else ""
                    yield f"{name}, lane {lane} reserved for", f"{tokens} tokens, {cells} cells{less}"
        if last.busy:
            yield "busy slots", numbers(last.busy)


def failed(op: Op, obs: Observation) -> Iterator[Mark]:
    """What did not end as its caller would have it."""
    if obs.status in (Status.REFUSED, Status.FAILED, Status.MISUSE):
        yield Mark("failed", describe_status(obs.status))


def whole_buffers(obs: Observation) -> Iterator[str]:
    """Trouble that is of no tensor's bytes."""
    if obs.trouble & Trouble.FREED_BUSY:
        yield "a buffer was freed while work in flight used it"
    if obs.trouble & Trouble.BAD_GUARD:
        yield "bytes behind the end of a buffer were written"
    if obs.trouble & Trouble.BAD_POOL:
        yield "a pool's block did not hold what was written to it"
    if obs.trouble & Trouble.BAD_PREALLOC:
        yield f"preallocated t{obs.bad_node} was overwritten at byte {obs.bad_offset}"


def at(values: tuple[int, ...], index: int) -> int:
    """The value there, 0 where nothing was shown."""
    return values[index] if index < len(values) else 0
