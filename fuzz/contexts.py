"""W: the books of target and draft contexts.

What is seen of a context: its lanes' reservations and counts after its own operations, and what a LOOK at its
allocators shows after every one (what a lane reads, what it has asked for, whether it has work in flight).
The rules are those that are proved (spec/workspace.py, spec/waiting.py), over what was seen and over history
that follows from operations and statuses. Beside them: the digest of every batch (W8, W3), and what a lane
asks for against the formulas of its memory kind (W7).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..model import oracle
from ..model.domain import Ints
from ..model.records import (
    MAX_LANES,
    VALIDATED,
    Cap,
    Context,
    Graph,
    Kind,
    Memory,
    Observation,
    Op,
    OpFlag,
    Option,
    Status,
    Strategy,
    Trace,
    Trouble,
    has,
)
from ..model.template import scaled
from ..model.waiting import DRAFT, TARGET, ContextOp, ContextOut, State
from ..model.workspace import NOTHING, Frame, Lane, Need, Parts, Policy, frame, halves
from ..native.worker import StepSeen
from ..spec import waiting, workspace
from ..spec.step import Rule
from ..spec.workspace import Calls, PolicyOp, PolicyOut, Seen
from .fresh import Fresh

WRONG = Trouble.BAD_SOURCE | Trouble.BAD_OUTPUT | Trouble.BAD_PREALLOC | Trouble.BAD_GUARD
#: where one fault breaks several clauses, the one that says most of it comes first
FIRST = ("W8", "W6", "W7", "W3", "W1", "W2", "W5", "W4")
#: what only shows where memory is seen from inside
HIDDEN = ("no shared buffer is replaced under work in flight", "never computes on memory that is gone")
_NO_CALLS = Calls(0, NOTHING, False)


@dataclass
class Book:
    """One context. Lists are [lane]."""

    made: Context
    frame: Frame
    open: bool = False
    able: bool = True  # lane 0 has a scheduler (W6)
    reserved: list[Need] = field(default_factory=lambda: [NOTHING] * MAX_LANES)
    fewer: list[int] = field(default_factory=lambda: [0] * MAX_LANES)
    calls: list[Calls] = field(default_factory=lambda: [_NO_CALLS] * MAX_LANES)
    reading: list[int] = field(default_factory=lambda: [0] * MAX_LANES)
    known: list[int] = field(default_factory=lambda: [0] * MAX_LANES)
    busy: list[bool] = field(default_factory=lambda: [False] * MAX_LANES)
    asked: list[tuple[tuple[int, ...], ...]] = field(default_factory=lambda: [()] * MAX_LANES)
    bound: tuple[int, int] | None = None  # tokens and cells that lane 0's graph is for
    bound_at: int = 0  # the generation then
    generation: int = 0  # that lane 0 reads
    flying: list[Graph | None] = field(default_factory=lambda: [None] * MAX_LANES)
    sure: bool = True  # what is reserved was seen, or follows from what was seen
    nodes: list[int] = field(default_factory=lambda: [0] * MAX_LANES)  # that the lane's scheduler is made for
    wanted: int = 0  # tensors that its graphs may have
    again: int = 0  # reservations that a batch's readings and nodes made necessary

    def seen(self) -> Seen:
        return Seen(self.open, tuple(self.reserved), tuple(self.fewer))


class Books:
    """Follows the contexts of one session."""

    def __init__(self, trace: Trace, caps: Cap, fresh: Fresh) -> None:
        self.trace, self.fresh = trace, fresh
        self.policy = Policy(Ints)
        self.of = {n: Book(c, frame(c)) for n, c in enumerate(trace.setup.contexts) if c.config >= 0}
        self.attached = False
        self.failed = False  # a reservation failed once: what it published is not seen
        self.spoiled = False  # R12's counter-test ran on memory that may be gone
        self.busy_slots = 0
        self.cells = [0] * 4
        self.judged: list[tuple[str, str]] = []

    # -- the layer ---------------------------------------------------------------------------

    def drives(self, op: Op) -> bool:
        if Kind.CTX_OPEN <= op.kind < Kind.SLOT_ENTER:
            return True
        return op.kind <= Kind.DROP and op.kind != Kind.CAPACITY and self.owns(op)

    def takes(self, op: Op, seen: StepSeen) -> bool:
        return self.drives(op)

    def owns(self, op: Op) -> bool:
        """The operation is on an allocator of an open context (or borrows from one): misuse, but for LOOK."""
        if Kind.POOL_ALLOC <= op.kind <= Kind.TRIM:
            return False
        numbers = {n * MAX_LANES + lane for n, b in self.of.items() if b.open for lane in range(b.made.lanes)}
        return op.alloc in numbers or (op.kind == Kind.BORROW and op.other in numbers)

    def tally(self, op: Op, seen: StepSeen) -> Counter[str]:
        """How often the step exercised each clause. What it breaks is kept for `step`."""
        n: Counter[str] = Counter()
        if seen.obs.status == Status.MISUSE and op.kind == Kind.CTX_DECODE and self.gone(op):
            n["R12"] += 1  # it died of it
            n["W5"] += 1
        self.judged = list(self.judge(op, seen, n)) if op.kind >= Kind.CTX_OPEN else []
        return n

    def step(self, op: Op, seen: StepSeen) -> Iterator[tuple[str, str]]:
        yield from self.judged

    def watch(self, op: Op, seen: StepSeen) -> Iterator[tuple[str, str]]:
        """Slots drive the contexts; what everything else does is only looked at."""
        if op.kind >= Kind.SLOT_ENTER and seen.obs.status != Status.MISUSE:
            yield from self.slot(op, seen)

    def blame(self, op: Op) -> str:
        """The clause that a death during `op` breaks."""
        if self.spoiled or (op.kind == Kind.CTX_DECODE and self.gone(op)):
            return ""
        if op.kind == Kind.CTX_ATTACH:
            return "W6"
        outdated = any(b.open and b.reading[0] != b.known[0] for b in self.of.values())
        return "W5" if outdated and op.kind in (Kind.CTX_DECODE, Kind.CTX_SYNC) else "W4"

    def gone(self, op: Op) -> bool:
        """R12's counter-test: the graph that is bound is used again, and its memory may be gone."""
        b = self.of.get(op.alloc)
        if b is None or not has(op.flags, OpFlag.UNCHECKED) or b.bound is None:
            return False
        wide = workspace.runs(Ints, b.frame, op.value)[1]
        tokens = halves(op.value)[0] if wide else op.value
        return b.bound == (tokens, op.other) and b.generation != b.bound_at

    # -- one step ------------------------------------------------------------------------------

    def judge(self, op: Op, seen: StepSeen, n: Counter[str]) -> Iterator[tuple[str, str]]:
        b, obs = self.of.get(op.alloc), seen.obs
        if b is None:
            return
        if obs.status == Status.MISUSE:
            yield from self.misused(op, b)
            return
        before, was = self.state(), b.seen()
        if op.kind == Kind.CTX_DECODE and self.gone(op):
            self.spoiled = True
        found = [*self.follow(op, seen, b)]
        found += self.policy_rules(op, obs, b, was, n)
        sizes = [*self.memory(op, seen, b, n)]
        found += [] if found else sizes  # where it reserves for something else, sizes say nothing more
        found += self.waiting_rules(op, obs, before, n)
        found += self.content(op, obs, b, before, n)
        yield from sorted(found, key=rank)

    def misused(self, op: Op, b: Book) -> Iterator[tuple[str, str]]:
        """Of an operation that is none."""
        other = self.of.get(1 - op.alloc)
        lawful = op.kind == Kind.CTX_DECODE and self.policy.lawful(b.frame, op.value, op.other)
        if b.open and lawful and self.attached and other is not None and any(other.busy):
            yield "W4", "a batch was not computed while the other context had work in flight"

    def follow(self, op: Op, seen: StepSeen, b: Book) -> Iterator[tuple[str, str]]:
        """Enters what was seen in the books. A refused attach that changed a reservation breaks W6."""
        obs = seen.obs
        reserved = [Need(t, c) for t, c in zip(obs.tokens, obs.cells, strict=True)]
        moved = b.sure and (reserved, list(obs.fewer)) != (b.reserved, b.fewer)
        if op.kind == Kind.CTX_ATTACH and obs.status == Status.REFUSED and moved:
            yield "W6", "an attach that answered 0 changed what is reserved"
        old = list(b.reserved)
        done = obs.status == Status.DONE
        if op.kind == Kind.CTX_OPEN and done:
            self.opened(b)
        if op.kind == Kind.CTX_CLOSE and done:
            b.open = False
        b.reserved, b.fewer = reserved, list(obs.fewer)
        self.failed |= obs.status in (Status.REFUSED, Status.FAILED) and bool(obs.reserves)
        if op.kind == Kind.CTX_NODES:
            b.wanted = max(b.wanted, op.value)
        forced = [b.reading[k] != b.known[k] or 0 < b.nodes[k] < b.wanted for k in range(MAX_LANES)]
        self.attached = bool(obs.attached)
        self.look(seen)
        if op.kind == Kind.CTX_DECODE:
            self.decoded(op, obs, b, old, forced)
        elif op.kind in (Kind.CTX_OPEN, Kind.CTX_ATTACH) and obs.status == Status.DONE:
            lanes = range(MAX_LANES) if op.kind == Kind.CTX_OPEN else (0,)
            for lane in lanes:
                b.known[lane] = b.reading[lane]
            b.bound = None

    def opened(self, b: Book) -> None:
        b.open, b.able, b.sure, b.bound = True, True, True, None
        b.wanted = b.made.nodes or len(self.trace.graphs[b.made.graph].tensors)
        b.calls = [workspace.opened(Ints, g) for g in b.calls]
        b.flying = [None] * MAX_LANES

    def look(self, seen: StepSeen) -> None:
        """What every lane's allocator shows."""
        for n, b in self.of.items():
            for lane in range(b.made.lanes):
                look = seen.looks.get(n * MAX_LANES + lane)
                alive = look is not None and look.status == Status.DONE
                if lane == 0:
                    b.able = alive if b.open else b.able
                    b.generation = look.generation if look is not None and alive else 0
                b.busy[lane], b.asked[lane] = False, ()
                if look is not None and alive:
                    b.busy[lane], b.asked[lane] = bool(look.in_flight), look.asked
                    b.reading[lane] = look.generation + look.shrink_generation
                    b.nodes[lane] = look.nodes

    def decoded(self, op: Op, obs: Observation, b: Book, old: list[Need], forced: list[bool]) -> None:
        """The history of a context's lanes after a batch. `forced`: a lane had to reserve in any case."""
        c, done = b.frame, obs.status == Status.DONE
        ask = PolicyOp(Kind.CTX_DECODE, op.value, op.other)
        ran = workspace.runs(Ints, c, op.value)
        before_able = b.able
        for lane in range(MAX_LANES):
            failed = not done and b.reserved[lane] == NOTHING
            here = ran[lane] and before_able and (done or failed or lane == 0)
            b.calls[lane] = workspace.follow(Ints, c, b.calls[lane], old[lane], ask, here, failed)
        b.again = sum(f for f, r in zip(forced, ran, strict=True) if r)
        second = ran[1] and (old[1] != b.reserved[1] or forced[1])
        if ran[1] and done:
            b.known[1] = b.reading[1]
        if obs.reserves - bool(second) > 0:
            b.known[0], b.bound = b.reading[0], None
        if not done:
            b.bound = None
            return
        tokens = halves(op.value) if ran[1] else (op.value, 0)
        if b.bound != (tokens[0], op.other):
            b.bound, b.bound_at = (tokens[0], op.other), b.generation
        for lane in range(MAX_LANES):
            if ran[lane]:
                self.fly(b, lane, tokens[lane], op)

    def fly(self, b: Book, lane: int, tokens: int, op: Op) -> None:
        graph = self.graph(b, tokens, op.other)
        b.flying[lane] = graph if has(op.flags, OpFlag.ASYNC) else None

    # -- rules ---------------------------------------------------------------------------------

    def state(self) -> State:
        """Both contexts as spec/waiting.py sees them."""
        none = Book(Context(), frame(Context()))
        pair = [self.of.get(n, none) for n in (TARGET, DRAFT)]
        return State(
            open=tuple(b.open for b in pair),
            busy=tuple(tuple(b.busy) for b in pair),
            attached=self.attached,
            able=pair[DRAFT].able,
            reading=tuple(b.reading[0] for b in pair),
            known=tuple(b.known[0] for b in pair),
            bound=(False, False),
            gone=(False, False),
        )

    def policy_rules(
        self, op: Op, obs: Observation, b: Book, was: Seen, n: Counter[str]
    ) -> Iterator[tuple[str, str]]:
        """W1, W2, W3, W8 over what is reserved."""
        if op.kind not in (Kind.CTX_OPEN, Kind.CTX_DECODE) or not b.sure:
            b.sure |= op.kind in (Kind.CTX_OPEN, Kind.CTX_DECODE)
            return
        parts = Parts(b.reserved[0].cells, 0, 0)
        reserves = 0 if op.kind == Kind.CTX_OPEN else obs.reserves - b.again
        ask = PolicyOp(op.kind, op.value, op.other)
        out = PolicyOut(int(obs.status), reserves, parts, Parts(op.other, 0, 0))
        found = workspace.rules(Ints, b.frame, was, ask, b.seen(), out, tuple(b.calls))
        for clause, rules in found.items():
            if clause == "W7":
                rules = {k: r for k, r in rules.items() if k.startswith("a kind without")}
            yield from self.told(clause, rules, n)

    def told(self, clause: str, rules: dict[str, Rule], n: Counter[str]) -> Iterator[tuple[str, str]]:
        n[clause] += any(r.counts and bool(r.when) for r in rules.values())
        for name, rule in rules.items():
            if rule.when and not rule.then and name not in HIDDEN:
                yield clause, name

    def waiting_rules(
        self, op: Op, obs: Observation, before: State, n: Counter[str]
    ) -> Iterator[tuple[str, str]]:
        """W4, W5, W6 over both contexts."""
        b = self.of[op.alloc]
        places, only_options = self.placed(op)
        ask = ContextOp(
            int(op.kind), op.alloc, has(op.flags, OpFlag.ASYNC), unchecked=has(op.flags, OpFlag.UNCHECKED),
            places=places, fails=obs.status == Status.FAILED,
        )  # fmt: skip
        lane_0 = obs.reserves if b.known[0] == b.reading[0] else 0
        out = ContextOut(int(obs.status), obs.waits, lane_0)
        after = self.state()
        if op.kind == Kind.CTX_DECODE and obs.status not in (Status.DONE, Status.REFUSED):
            yield "W5", "a batch was neither computed nor refused"
        if op.kind == Kind.CTX_ATTACH and not places and only_options and obs.status == Status.DONE:
            yield "W8", "without the option, the draft shares all the same"
        found = waiting.rules(Ints, before, ask, after, out)
        for clause, rules in found.items():
            yield from self.told(clause, rules, n)

    def placed(self, op: Op) -> tuple[bool, bool]:
        """Whether the placement matches, and both may share; whether only their options say no."""
        pair = [self.of.get(x) for x in (TARGET, DRAFT)]
        if None in pair:
            return False, False
        setup = self.trace.setup
        options = all(has(b.made.options, Option.PHASE_AWARE) for b in pair if b is not None)
        types = len({frozenset(setup.configs[b.made.config]) for b in pair if b is not None}) == 1
        counted = setup.strategy == Strategy.COUNTED and op.value & VALIDATED == VALIDATED
        rest = types and (setup.strategy == Strategy.PAIR or counted)
        return rest and options, rest and not options

    # -- memory and content -----------------------------------------------------------------------

    def parts(self, b: Book, cells: int) -> Parts:
        """W7, as the contract's seeds have it (docs/workspace.md)."""
        c = b.made
        windowed = c.memory in (Memory.KV_WINDOW, Memory.HYBRID_WINDOW)
        window = min(cells, c.window + c.batch) if windowed else 0
        return Parts(cells, window, cells if c.memory == Memory.HYBRID_INDEXER else 0)

    def graph(self, b: Book, tokens: int, cells: int) -> Graph:
        return scaled(self.trace.graphs[b.made.graph], tokens, self.parts(b, cells))

    def need(self, b: Book, lane: int) -> tuple[tuple[int, ...], ...] | None:
        """Bytes by type and chunk that the lane's reservation asks for."""
        graph = self.graph(b, *b.reserved[lane])
        return self.fresh.plan(self.trace.setup, b.made.config, graph).need

    def memory(self, op: Op, seen: StepSeen, b: Book, n: Counter[str]) -> Iterator[tuple[str, str]]:
        """W7: what a lane has asked for is what its reservation needs, or the larger of both contexts' needs."""
        obs = seen.obs
        served = obs.status == Status.DONE and op.kind in (Kind.CTX_OPEN, Kind.CTX_DECODE, Kind.CTX_ATTACH)
        if not served or not (obs.reserves or op.kind == Kind.CTX_OPEN):
            return
        for lane in range(b.made.lanes):
            need = self.need(b, lane)
            if need is None or b.reserved[lane] == NOTHING or not b.asked[lane]:
                continue
            n["W7"] += 1
            for t, row in enumerate(need):
                have = b.asked[lane][t]
                if not covers(have, row, self.trace.setup.types[t].granularity):
                    yield "W7", f"lane {lane}, type {t}: {list(have)} bytes for a reservation of {list(row)}"
            if op.kind == Kind.CTX_OPEN and tuple(need) != b.asked[lane]:
                yield "W7", f"lane {lane}: {b.asked[lane]} bytes asked for, the reservation needs {need}"
        yield from self.largest(b)

    def largest(self, b: Book) -> Iterator[tuple[str, str]]:
        """No lane ever has more than the largest reservation of its kind and placement needs."""
        for lane in range(b.made.lanes):
            if not b.asked[lane]:
                continue
            limits = [self.whole(x) for x in (self.of.values() if lane == 0 else (b,))]
            if None in limits:
                return
            for t, row in enumerate(b.asked[lane]):
                most = max(sum(limit[t]) for limit in limits if limit is not None)
                if sum(row) > most:
                    yield "W7", f"lane {lane}, type {t}: {sum(row)} bytes, at most {most} can be needed"

    def whole(self, b: Book) -> tuple[tuple[int, ...], ...] | None:
        """What a reservation for everything needs."""
        graph = self.graph(b, b.made.batch, b.made.cells)
        return self.fresh.plan(self.trace.setup, b.made.config, graph).need

    def content(
        self, op: Op, obs: Observation, b: Book, before: State, n: Counter[str]
    ) -> Iterator[tuple[str, str]]:
        """W8: every batch gives the bytes that it must give, whatever is reserved and shared."""
        if self.spoiled:
            return
        if obs.trouble & Trouble.FREED_BUSY:
            yield ("W4" if self.attached else "C1"), "a buffer was freed while work in flight used it"
        if obs.trouble & WRONG:
            outdated = before.reading[op.alloc] != before.known[op.alloc]
            yield ("W5" if outdated else "P1"), f"node {obs.bad_node} met wrong bytes at {obs.bad_offset}"
            return
        if op.kind != Kind.CTX_DECODE or obs.status != Status.DONE or has(op.flags, OpFlag.ASYNC):
            return
        n["W8"] += 1
        wide = workspace.runs(Ints, b.frame, op.value)[1]
        one = oracle.digest(self.graph(b, op.value, op.other))
        shares = halves(op.value) if op.value > 1 else ()
        both: list[int | None] = [oracle.digest(self.graph(b, t, op.other)) for t in shares]
        want = mixed(both) if wide else one
        if want is None or obs.digest == want:
            return
        if b.made.lanes == 2 and obs.digest in (one, mixed(both)):
            yield "W3", "the batch ran on other lanes than it must"
        else:
            yield "W8", f"the outputs' digest is {obs.digest:#x}, it must be {want:#x}"

    # -- slots -------------------------------------------------------------------------------------

    def slot(self, op: Op, seen: StepSeen) -> Iterator[tuple[str, str]]:
        """A step of a slot is a batch of the target, then one of the draft; what is seen is the target's."""
        obs = seen.obs
        if op.kind == Kind.SLOT_ENTER:
            self.cells[op.alloc] = 0
        target, draft = (self.of.get(n) for n in (TARGET, DRAFT))
        if op.kind == Kind.SLOT_STEP and target is not None:
            used = sum(self.cells) + op.value
            batches = [(target, op.value)] + ([(draft, 1)] if draft is not None and draft.open else [])
            done = obs.status == Status.DONE
            for b, tokens in batches:
                self.stepped(b, tokens, min(used, b.made.cells), done)
            target.reserved = [Need(t, c) for t, c in zip(obs.tokens, obs.cells, strict=True)]
            target.fewer = list(obs.fewer)
            if done or len(batches) == 2:
                self.cells[op.alloc] += op.value
        if op.kind == Kind.SLOT_LEAVE:
            self.cells[op.alloc] = 0
        self.look(seen)
        if op.kind == Kind.SLOT_STEP:
            for b in self.of.values():
                b.known, b.bound = list(b.reading), None
        if obs.trouble & WRONG and not self.spoiled:
            yield "W8", f"node {obs.bad_node} met wrong bytes at {obs.bad_offset}"
        if op.kind == Kind.SLOT_STEP and obs.status not in (Status.DONE, Status.REFUSED):
            yield "W5", "a batch was neither computed nor refused"

    def stepped(self, b: Book, tokens: int, used: int, done: bool) -> None:
        """The history after a batch that is not seen itself; what is reserved follows the policy."""
        c, ask = b.frame, PolicyOp(Kind.CTX_DECODE, tokens, used)
        ran = workspace.runs(Ints, c, tokens)
        lanes = tuple(Lane(r, g.peak, f) for r, g, f in zip(b.reserved, b.calls, b.fewer, strict=True))
        after = self.policy.decode(c, lanes, tokens, used)
        for lane in range(MAX_LANES):
            b.calls[lane] = workspace.follow(Ints, c, b.calls[lane], b.reserved[lane], ask, ran[lane], False)
            b.reserved[lane], b.fewer[lane] = after[lane].reserved, after[lane].fewer
        b.sure &= done
        self.failed |= not done


def rank(found: tuple[str, str]) -> float:
    """Where a finding stands: the one that says most of the fault comes first."""
    clause, part = found
    if part.endswith("cells grow at once"):  # what is reserved is not wrong, but late
        return FIRST.index("W1") - 0.5
    return FIRST.index(clause) if clause in FIRST else len(FIRST)


def covers(have: tuple[int, ...], need: tuple[int, ...], unit: int) -> bool:
    """Every chunk has room, as the device rounds."""
    row = have + (0,) * (len(need) - len(have))
    return all(-(-h // unit) * unit >= x for h, x in zip(row, need, strict=False))


def mixed(digests: list[int | None]) -> int | None:
    """Both lanes' digests in one."""
    if None in digests or len(digests) != 2:
        return None
    first, second = digests
    assert first is not None and second is not None
    return oracle.mix(first ^ second)
