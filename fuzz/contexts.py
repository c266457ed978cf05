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
from dataclasses import replace

from ..model import oracle
from ..model.domain import Ints
from ..model.records import (
    MAX_LANES,
    VALIDATED,
    Cap,
    Context,
    Graph,
    Kind,
    Observation,
    Op,
    OpFlag,
    Option,
    PoolKind,
    Status,
    Strategy,
    Trace,
    Trouble,
    has,
)
from ..model.waiting import DRAFT, TARGET, ContextOp, ContextOut, State
from ..model.workspace import Parts, Policy, halves
from ..native.worker import StepSeen
from ..spec import waiting, workspace
from ..spec.step import Rule
from ..spec.workspace import Calls, PolicyOp, PolicyOut, Seen
from .context_book import Book
from .context_memory import Memory
from .fresh import Fresh
from .slots import BY_TARGET, NOBODY, UNKNOWN, Slots, digest, refuser

WRONG = Trouble.BAD_SOURCE | Trouble.BAD_OUTPUT | Trouble.BAD_PREALLOC | Trouble.BAD_GUARD
#: where one fault breaks several clauses, the one that says most of it comes first
FIRST = ("W8", "W6", "W7", "W3", "W1", "W2", "W5", "W4")
#: what only shows where memory is seen from inside
HIDDEN = ("no shared buffer is replaced under work in flight", "never computes on memory that is gone")


class Books:
    """Follows the contexts of one session."""

    def __init__(self, trace: Trace, caps: Cap, fresh: Fresh) -> None:
        self.trace, self.fresh = trace, fresh
        self.policy, self.memory = Policy(Ints), Memory(trace, fresh)
        contexts = enumerate(trace.setup.contexts)
        self.of = {n: Book(c, trace.graphs[c.graph]) for n, c in contexts if c.config >= 0}
        self.attached = False
        self.spoiled = False  # R12's counter-test ran on memory that may be gone
        self.slots = Slots()
        self.apart = (
            False  # the target was made anew, the draft keeps the old buffers until it reserves (R14)
        )
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
        before, was, due = self.state(), b.seen(), b.due(0) or b.vague or not b.sure
        if op.kind == Kind.CTX_DECODE and self.gone(op):
            self.spoiled = True
        found = [*self.follow(op, seen, b)]
        found += self.policy_rules(op, obs, b, was, n)
        sizes = [*self.memory.broken(op, seen.obs, b, n)]
        found += [] if found else sizes  # where it reserves for something else, sizes say nothing more
        found += self.waiting_rules(op, obs, before, due or was.reserved[0] != b.reserved[0], n)
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
        obs, done = seen.obs, seen.obs.status == Status.DONE
        was, forced = b.seen(), b.forced()
        if op.kind == Kind.CTX_OPEN and done:
            b.opened()
        if op.kind == Kind.CTX_CLOSE and done:
            b.open = False
        if op.kind == Kind.CTX_NODES:
            b.wanted = max(b.wanted, op.value)
        b.shown(obs)
        if op.kind == Kind.CTX_ATTACH and obs.status == Status.REFUSED and b.sure and b.seen() != was:
            yield "W6", "an attach that answered 0 changed what is reserved"
        self.attached = bool(obs.attached)
        self.look(seen)
        if op.kind == Kind.CTX_CLOSE and done and obs.attached:
            yield "W6", "a context was closed, and the draft counts as attached"
        if op.kind == Kind.CTX_DECODE:
            b.decoded(op, obs, list(was.reserved), forced)
        elif op.kind in (Kind.CTX_OPEN, Kind.CTX_ATTACH) and done:
            b.settled(range(MAX_LANES) if op.kind == Kind.CTX_OPEN else range(1))
        if op.alloc == DRAFT and op.kind in (Kind.CTX_ATTACH, Kind.CTX_DECODE):
            self.apart &= obs.reserves - b.second <= 0
        yield from self.borrowed()

    def borrowed(self) -> Iterator[tuple[str, str]]:
        """W3: what the draft shares is lane 0 of both: as long as it does, both ends show the same buffers."""
        pair = [self.of.get(n) for n in (TARGET, DRAFT)]
        if self.trace.setup.strategy != Strategy.PAIR or not self.attached or self.apart:
            return  # of other strategies not checked here
        if None not in pair and len({b.asked[0] for b in pair if b is not None}) > 1:
            yield "W3", "the draft's lane 0 does not have the buffers of the target's lane 0"

    def look(self, seen: StepSeen) -> None:
        """What every lane's allocator shows."""
        for n, b in self.of.items():
            nodes = b.nodes[0]
            b.look(seen.looks, n * MAX_LANES)
            self.apart |= n == TARGET and self.attached and nodes != b.nodes[0]
            b.shared |= self.attached and b.open

    # -- rules ---------------------------------------------------------------------------------

    def state(self) -> State:
        """Both contexts as spec/waiting.py sees them."""
        none = Book(Context(), Graph(()))
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
        if op.kind not in (Kind.CTX_OPEN, Kind.CTX_DECODE):
            return
        if not b.sure:  # the history begins anew where no lane counts
            b.sure = not any(b.fewer)
            b.calls = [g._replace(less=0) if b.sure else g for g in b.calls]
            return
        parts = Parts(b.reserved[0].cells, 0, 0)
        reserves = 0 if op.kind == Kind.CTX_OPEN else obs.reserves - b.again
        ask = PolicyOp(op.kind, op.value, op.other)
        failed = self.memory.failed(op, obs, b)
        out = PolicyOut(int(obs.status), reserves, parts, Parts(op.other, 0, 0), failed)
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
        self, op: Op, obs: Observation, before: State, due: bool, n: Counter[str]
    ) -> Iterator[tuple[str, str]]:
        """W4, W5, W6 over both contexts. `due`: the policy, or a larger scheduler, asks for a reservation."""
        b = self.of[op.alloc]
        places, only_options = self.placed(op)
        ask = ContextOp(
            int(op.kind), op.alloc, has(op.flags, OpFlag.ASYNC), unchecked=has(op.flags, OpFlag.UNCHECKED),
            places=places, fails=not b.able, due=due,
        )  # fmt: skip
        others = int(op.kind == Kind.CTX_DECODE and b.second)
        lane_0 = obs.reserves - others if b.known[0] == b.reading[0] else 0
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

    # -- content -----------------------------------------------------------------------

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
        one = oracle.digest(b.graph(op.value, op.other))
        shares = halves(op.value) if op.value > 1 else ()
        both: list[int | None] = [oracle.digest(b.graph(t, op.other)) for t in shares]
        want = oracle.of_lanes(both) if wide else one
        if want is None or obs.digest == want:
            return
        if b.made.lanes == 2 and obs.digest in (one, oracle.of_lanes(both)):
            yield "W3", "the batch ran on other lanes than it must"
        else:
            yield "W8", f"the outputs' digest is {obs.digest:#x}, it must be {want:#x}"

    # -- slots -------------------------------------------------------------------------------------

    def slot(self, op: Op, seen: StepSeen) -> Iterator[tuple[str, str]]:
        """A step of a slot is a batch of the target, then one of the draft; what is seen is the target's."""
        obs = seen.obs
        if op.kind == Kind.SLOT_STEP:
            yield from sorted(self.advance(op, seen), key=rank)
        else:
            self.slots.free(op.alloc)
            self.slots.lost &= op.kind == Kind.SLOT_ENTER or bool(obs.busy)
            self.look(seen)
        last = op.kind == Kind.SLOT_LEAVE and obs.status == Status.DONE and not obs.busy
        if last and any(any(b.busy) for b in self.of.values()):
            yield "T1", "the last slot is free, and a context still has work in flight"
        yield from self.borrowed()
        if obs.trouble & WRONG and not self.spoiled:
            yield "W8", f"node {obs.bad_node} met wrong bytes at {obs.bad_offset}"
        if op.kind == Kind.SLOT_STEP and obs.status not in (Status.DONE, Status.REFUSED):
            yield "W5", "a batch was neither computed nor refused"

    def advance(self, op: Op, seen: StepSeen) -> Iterator[tuple[str, str]]:
        """The history of both contexts after a step of a slot, and what its batch of the target breaks."""
        obs, slots, target, draft = seen.obs, self.slots, self.of[TARGET], self.of.get(DRAFT)
        used, was, forced, before = slots.used(op), target.seen(), target.forced(), self.state()
        due = target.due(0) or target.vague or not target.sure
        read, able = target.reading[0], draft is not None and draft.open and draft.able
        target.shown(obs)
        by = refuser(op, obs, target, draft, self.trace.setup.pool != PoolKind.NO_POOL)
        self.look(seen)
        batch = Op(Kind.CTX_DECODE, TARGET, min(used, target.made.cells), value=op.value)
        refused, calls = by == BY_TARGET, list(target.calls)
        alone = refused or (by == NOBODY and not able)  # it is a batch of the target and nothing else
        if alone:
            target.decoded(batch, obs, list(was.reserved), forced)
            target.bound = None if slots.lost else target.bound
        else:
            target.beside(batch, list(was.reserved), able and (by == UNKNOWN or read != target.reading[0]))
        if draft is not None and able and not refused:
            draft.stepped(1, min(used, draft.made.cells), self.attached and by == UNKNOWN)
            draft.sure &= by == NOBODY and not slots.lost
        target.sure &= not slots.lost
        reserves = obs.reserves if alone else target.again
        told = replace(obs, status=Status.REFUSED if refused else Status.DONE, reserves=reserves)
        found = [*self.policy_rules(batch, told, target, was, Counter())]
        if found and not refused and self.miscounted(op, batch, told, was, calls):
            found = [("W1", "a step of a slot reserves for other cells than the slots have in use")]
        yield from found
        if alone:
            due |= was.reserved[0] != target.reserved[0]
            yield from self.waiting_rules(batch, told, before, due, Counter())
        if by == NOBODY and not slots.lost and not self.spoiled:
            yield from self.step_content(op, obs)
        slots.stepped(op, by)

    def miscounted(self, op: Op, batch: Op, told: Observation, was: Seen, calls: list[Calls]) -> bool:
        """What the target reserves for is right for another count of the slots' cells."""
        made = self.of[TARGET].made
        for cells in {min(used, made.cells) for used in self.slots.miscounted(op)} - {batch.other}:
            other, probe = replace(batch, other=cells), replace(self.of[TARGET], calls=list(calls))
            probe.follow(other, True, list(was.reserved))
            if not [*self.policy_rules(other, told, probe, was, Counter())]:
                return True
        return False

    def step_content(self, op: Op, obs: Observation) -> Iterator[tuple[str, str]]:
        """W8 of both batches; W1 where they are for other cells than the slots have in use."""
        pair = self.of[TARGET], self.of.get(DRAFT)
        want = digest(op, self.slots.used(op), *pair)
        if not want or obs.digest == want:
            return
        if any(obs.digest == digest(op, used, *pair) for used in self.slots.miscounted(op)):
            yield "W1", "a step of a slot was computed for other cells than the slots have in use"
        else:
            yield "W8", f"the outputs' digest is {obs.digest:#x}, it must be {want:#x}"


def rank(found: tuple[str, str]) -> float:
    """Where a finding stands: the one that says most of the fault comes first."""
    clause, part = found
    if part == "without options nothing is reserved again":  # W5 says why not, where no reservation changed
        return FIRST.index("W5") + 0.5
    if part.endswith("cells grow at once"):  # what is reserved is not wrong, but late
        return FIRST.index("W1") - 0.5
    return FIRST.index(clause) if clause in FIRST else len(FIRST)
