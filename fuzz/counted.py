"""S: the books of sessions whose allocators share by reference count, or keep apart.

As in ledger.py, a reference session says what each operation is about, and what was observed replaces
what it predicted; the clauses (spec/sharing.py) are evaluated on that. Plans and contents are judged as
those of any allocator (P, G). What only a comparison of histories shows is in differential.py.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterator, Mapping

from ..model import planner
from ..model.domain import Ints
from ..model.pair import BORROWER, OWNER, ROLES, Out, RoleOp
from ..model.records import Cap, Kind, Observation, Op, OpFlag, PoolKind, Shared, Status, Strategy, Trace
from ..model.session import Pair, Played, pad
from ..native.worker import StepSeen
from ..spec import sharing
from ..spec.shares import Move, Past, Seen, follow, past
from . import alloc, deaths
from .fresh import Fresh
from .ledger import Ledger

#: what a clause of S says of allocators that never shared: the clause of G it follows from
PLAIN = {"S1": "G1", "S2": "G1", "S3": "G5", "S5": "G2", "S7": "G1"}
#: where one fault breaks several clauses, the one that says most of it comes first; parts that speak of
#: nearly every step come last
FIRST = ("S4", "S3", "S2", "S1", "S7", "S5")


class Books:
    """Follows the plain allocators of one session under the strategies COUNTED and APART."""

    def __init__(self, trace: Trace, caps: Cap, fresh: Fresh) -> None:
        self.trace, self.caps, self.fresh = trace, caps, fresh
        self.apart = trace.setup.strategy == Strategy.APART
        self.history = alloc.History()
        self.pasts: dict[Pair, Past] = {}
        self.seen: dict[Pair, Seen] = {}
        self.steps = 0
        self.pooled: tuple[int, ...] = ()  #: bytes by device that pools hold, as last seen
        self.left_at: int | None = None  #: the first step in which a role left or went
        self.judged: list[tuple[str, str]] = []
        self._ledger: Ledger | None = None

    @property
    def ledger(self) -> Ledger:
        """The reference session, of as many chunks as any plan has."""
        if self._ledger is None:
            setup, graphs = self.trace.setup, self.trace.graphs
            rows: list[tuple[int, ...]] = [(0,)]
            for graph in graphs:
                for config, slots in enumerate(setup.configs):
                    fresh = self.fresh.plan(setup, config, graph)
                    plan = planner.plan(setup.types, slots, graph)
                    rows += [*(fresh.need or fresh.beyond or ()), *(plan.need if plan else ())]
            self._ledger = Ledger(setup, graphs, self.caps, self.fresh, max(map(len, rows)))
        return self._ledger

    # -- the layer ---------------------------------------------------------------------

    def drives(self, op: Op) -> bool:
        """Operations of plain allocators; those behind a scheduler or of a context have their own books."""
        return op.kind <= Kind.REMAKE and not op.flags & OpFlag.BY_SCHED

    def takes(self, op: Op, seen: StepSeen) -> bool:
        """A computation that is refused for want of scratch is the pools' to judge."""
        refused = op.kind == Kind.COMPUTE and seen.obs.status == Status.REFUSED
        return self.drives(op) and not (refused and self.trace.setup.pool != PoolKind.NO_POOL)

    def tally(self, op: Op, seen: StepSeen) -> Counter[str]:
        """How often the step exercised each clause. What it breaks is kept for `step`."""
        n = alloc.exercised(op, seen, self.ledger, self.history)
        self.judged = list(self.judge(op, seen, n))
        self.steps += 1
        return n

    def step(self, op: Op, seen: StepSeen) -> Iterator[tuple[str, str]]:
        yield from self.judged

    def watch(self, op: Op, seen: StepSeen) -> Iterator[tuple[str, str]]:
        """Of what others do only the bytes in use matter here."""
        self.ledger.session.used = seen.obs.used
        self.pooled = seen.obs.pooled or self.pooled
        self.steps += 1
        yield from ()

    def blame(self, op: Op) -> str:
        """The clause that a death during `op` breaks; differential.py knows more of it."""
        if deaths.expected(op, self.ledger):
            return ""
        a = self.ledger.allocs.get(op.alloc)
        shares = a is not None and a.pair in self.pasts and not plain(self.pasts[a.pair])
        if op.kind == Kind.BORROW:
            return "S4"
        if shares and op.kind == Kind.FREE:
            return "S3"
        return deaths.blame(op, self.ledger, self.history)

    # -- one step ------------------------------------------------------------------------

    def judge(self, op: Op, seen: StepSeen, n: Counter[str]) -> Iterator[tuple[str, str]]:
        """(clause, message) of what the step breaks, the most telling first; counts in `n` what it exercised."""
        session, obs = self.ledger.session, seen.obs
        predicted = session.step(op)
        if Status.MISUSE in (obs.status, predicted.status):
            if obs.status != predicted.status and op.kind in (Kind.SHRINK, Kind.REMAKE):
                yield "S2", "nothing shrinks and nobody is remade where buffers are counted"
            return
        session.used = obs.used
        self.history.note(op, obs, self.ledger)
        yield from alloc.trouble(op, seen, self.ledger, None)
        yield from alloc.plan_rules(op, seen, self.ledger, self.history)
        if op.kind == Kind.BORROW and session.last is None:  # nobody to borrow from
            yield from self.unanswered(op, obs)
        if session.last is None:
            return
        move = self.observe(op, obs, seen.looks, session.last)
        self.note_leaving(op, move)
        found = sharing.rules(move)
        alone = plain(move.g) and plain(move.h)
        for clause, parts in found.items():
            if any(r.counts and r.when for r in parts.values()):
                n[PLAIN.get(clause, clause) if alone else clause] += 1
        broken = [(r, c, part) for c in FIRST for part, r in found[c].items() if r.when and not r.then]
        for _, clause, part in sorted(broken, key=lambda found: not found[0].counts):
            yield (PLAIN.get(clause, clause) if alone else clause), part

    def unanswered(self, op: Op, obs: Observation) -> Iterator[tuple[str, str]]:
        missing = self.ledger.session.missing(op.value)
        if obs.status != Status.REFUSED:
            yield "S4", "a borrower of nobody, or of itself, was accepted"
        elif obs.reason != missing:
            yield "S4", f"the reason {obs.reason} is not what is missing, {missing}"

    def observe(self, op: Op, obs: Observation, looks: Mapping[int, Observation], played: Played) -> Move:
        """The step as it was seen, entered in the books."""
        pair, types, ledger = played.pair, len(self.trace.setup.types), self.ledger
        before = self.seen.get(pair) or self.as_model(played.before)
        used = tuple(map(operator.add, played.before.used, self.scratch(op, obs)))
        before = before._replace(used=used, cap=played.before.cap)
        g = self.pasts.get(pair) or past(types, ledger.chunks)
        shown = {n: look for n, look in looks.items() if look.status == Status.DONE}
        if op.kind != Kind.FREE:
            shown[op.alloc] = obs
        after = self.as_seen(pair, played, shown, obs)
        reason = tuple(bool(obs.reason & bit) for bit in Shared)
        out = Out(int(obs.status), (False,) * types, obs.allocations, played.out.touched, reason)
        ask = self.asked_for(op, played)
        h = follow(Ints, g, before, ask, out, after)
        self.pasts[pair], self.seen[pair] = h, after
        self.enter(pair, played, after, h)
        return Move(Ints, before, ask, after, out, g, h, ledger.session.model.devices)

    def scratch(self, op: Op, obs: Observation) -> tuple[int, ...]:
        """Bytes by device that pools grew by, so that a computation has its scratch: no allocator's."""
        none = (0,) * len(self.trace.setup.types)
        now = obs.pooled or none
        grown = tuple(map(operator.sub, now, self.pooled or none)) if op.kind == Kind.COMPUTE else none
        self.pooled = now
        return grown

    def asked_for(self, op: Op, played: Played) -> RoleOp:
        """Under APART nobody can be borrowed from, whoever says that he owns."""
        ask: RoleOp = played.op
        return ask._replace(clean=False) if self.apart and op.kind == Kind.BORROW else ask

    def as_model(self, s: object) -> Seen:
        """What the reference shows of a pair."""
        model, state = self.ledger.session.model, s
        asked = tuple(tuple(model.holding(state, r, t) for t in model.types) for r in ROLES)  # type: ignore[arg-type]
        owned = tuple(model.owned(state, r) for r in ROLES)  # type: ignore[arg-type]
        return Seen(asked, state.used, state.cap, state.gran, state.gen, owned)  # type: ignore[attr-defined]

    def as_seen(self, pair: Pair, played: Played, shown: Mapping[int, Observation], obs: Observation) -> Seen:
        """The pair as its living allocators show it; the reference's figures where none shows them."""
        known, chunks = self.as_model(played.after), self.ledger.chunks
        asked, gen, owned = list(known.asked), list(known.gen), list(known.owned)
        for number, a in self.ledger.allocs.items():
            if a.pair is pair and number in shown:
                look = shown[number]
                asked[a.role] = tuple(row[:chunks] for row in pad(look.asked, chunks))
                gen[a.role], owned[a.role] = look.generation, look.owned
        return known._replace(asked=tuple(asked), gen=tuple(gen), owned=tuple(owned), used=obs.used)

    def enter(self, pair: Pair, played: Played, after: Seen, h: Past) -> None:
        """The reference goes on from what was seen."""
        state = played.after._replace(gen=after.gen, used=after.used)
        if self.apart:
            pair.state = state._replace(asked=after.asked[OWNER])
        else:
            pair.state = state._replace(asked=after.asked, joint=h.joint)  # type: ignore[call-arg]

    def note_leaving(self, op: Op, move: Move) -> None:
        """Histories are compared as long as everybody who shares stays (S1, S5)."""
        left = move.reserve and any(move.leaving(t) for t in move.types)
        went = op.kind == Kind.FREE and all(move.g.active)
        if (left or went) and self.left_at is None:
            self.left_at = self.steps


def plain(g: Past) -> bool:
    """Whether this never was more than one plain allocator."""
    return not (g.owner or g.active[BORROWER])
