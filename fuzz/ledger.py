"""The contract's own books on a session: what is seen of each pair, and what happened to it.

A reference session says what each operation is about (which pair, which role, what
is published). The observed sizes, readings and statuses then replace the model's,
so that the clauses are evaluated on what the subject showed, however it came to it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..model.domain import Ints
from ..model.pair import BORROWER, ROLES, Out, RoleOp
from ..model.planner import OUTSIDE, Plan
from ..model.records import UNLIMITED, Cap, Graph, Kind, Observation, Op, Place, Setup, Status, Strategy
from ..model.session import Allocator, Pair, Played, Session, pad
from ..spec.history import Past, Seen, fits, follow, past
from ..spec.history import seen as seen_of
from ..spec.resizable import Step
from .fresh import Fresh, huge

READINGS = Cap.RESIZABLE | Cap.GROUP  #: subjects whose allocators have generations


def is_plain(*pasts: Past) -> bool:
    """Whether the pair never was more than one plain allocator, before and after a step."""
    return not any(g.owner or g.active[BORROWER] for g in pasts)


class Ledger:
    """Follows one session of a subject with capabilities `caps`."""

    def __init__(self, setup: Setup, graphs: tuple[Graph, ...], caps: Cap, fresh: Fresh, chunks: int) -> None:
        self.setup, self.caps, self.fresh = setup, caps, fresh
        self.chunks = chunks
        self.blind = False  # chunks of no bytes may be hidden: chunk numbers mean nothing
        self.session = Session(setup, list(graphs), self.planning, chunks=chunks)
        self.pasts: dict[Pair, Past] = {}
        self.seen: dict[Pair, Seen] = {}
        self.unsure: set[int] = set()  # allocators whose published requirement is not known
        self.settled: set[int] = set()
        self.measured: dict[int, Graph] = {}  # by allocator: measured since the last reserve
        self.pooled: tuple[int, ...] = (0,) * len(setup.types)  # bytes by device that pools hold

    def planning(self, config: int, graph: Graph) -> Plan | None:
        """The subject's own fresh plan: the requirement that any reserve of the graph publishes."""
        plan = self.fresh.plan(self.setup, config, graph)
        if plan.need is None:
            if plan.beyond is None or self.caps & Cap.EXACT:
                return None
            return Plan((OUTSIDE,) * len(graph.tensors), plan.beyond)
        return Plan(plan.places or (OUTSIDE,) * len(graph.tensors), plan.need)

    def sure(self, op: Op) -> bool:
        """Whether the published requirements of all roles of the operation's pair are known."""
        a = self.allocs.get(op.alloc)
        return not any(
            n in self.unsure for n, other in self.allocs.items() if a is None or other.pair is a.pair
        )

    @property
    def allocs(self) -> dict[int, Allocator]:
        return self.session.allocs

    def past(self, number: int) -> Past | None:
        """The history of an allocator's pair."""
        a = self.allocs.get(number)
        return self.pasts.get(a.pair) if a else None

    def stale(self, number: int) -> bool:
        """Whether memory of the allocator's bound graph was freed since it was bound."""
        a = self.allocs.get(number)
        return a is not None and bool(a.pair.state.stale[a.role])

    # -- following ---------------------------------------------------------------

    def beside(self, obs: Observation) -> None:
        """An operation of another layer: its devices are as it showed them."""
        self.session.used = obs.used
        self.pooled = obs.pooled or self.pooled

    def pools_grew(self, obs: Observation) -> None:
        """Scratch of a computation is no byte of the pair's: it counts as if it had been in use before."""
        more = [b - a for a, b in zip(self.pooled, obs.pooled or self.pooled, strict=True)]
        self.session.used = tuple(u + m for u, m in zip(self.session.used, more, strict=True))
        self.pooled = obs.pooled or self.pooled

    def step(self, op: Op, obs: Observation, looks: Mapping[int, Observation]) -> tuple[Status, Step | None]:
        """The status that the reference would show, and the observed step of the pair (None: no pair)."""
        self.unsure -= self.settled
        self.settled.clear()
        mine = self.allocs.get(op.alloc)
        kept = (mine.plan, mine.bound, mine.places) if mine else None
        self.pools_grew(obs)
        predicted = self.session.step(op)
        played = self.session.last
        if op.kind == Kind.NEW and obs.status == Status.MISUSE != predicted.status:
            del self.session.allocs[op.alloc]  # its number is a scheduler's, or a context's
        if Status.MISUSE in (obs.status, predicted.status):
            return predicted.status, None
        self.session.used = obs.used
        if played is None or self.setup.strategy != Strategy.PAIR:
            return predicted.status, None  # counted.py keeps the other books; a scheduler was not made
        if mine is not None and kept and obs.status != predicted.status:
            played = self.other_end(op, obs, mine, kept, played)
        shown = {n: look for n, look in looks.items() if look.status == Status.DONE}
        if op.kind != Kind.FREE:
            shown[op.alloc] = obs
        step = self.observe(op, obs, shown, played)
        if mine is not None and kept and not step.op.plannable:
            mine.plan = kept[0]
        if op.kind == Kind.MEASURE:
            self.measured[op.alloc] = self.session.graphs[op.graph]
        elif op.kind in (Kind.NEW, Kind.RESERVE) or obs.allocations:
            self.measured.pop(op.alloc, None)
        if op.kind in (Kind.NEW, Kind.FREE) or (op.kind == Kind.RESERVE and obs.status == Status.DONE):
            self.settled.add(op.alloc)  # from the next step on; what this one had to do was not known
        return predicted.status, step

    def assume(self, op: Op) -> None:
        """An operation that is a part of another and not seen by itself: as the reference does it."""
        self.session.step(op)
        played = self.session.last
        if played is None:
            return
        pair, model = played.pair, self.session.model
        before, after = seen_of(model, played.before), seen_of(model, played.after)
        g = self.pasts.get(pair) or past(len(self.setup.types), self.chunks)
        self.pasts[pair] = follow(Ints, g, before, played.op, played.out, after)
        self.seen[pair] = after

    def observe(self, op: Op, obs: Observation, shown: Mapping[int, Observation], played: Played) -> Step:
        """The step as it was seen, entered in the books."""
        pair, types = played.pair, len(self.setup.types)
        before = self.seen.get(pair) or seen_of(self.session.model, played.before)
        before = before._replace(used=played.before.used, cap=played.before.cap)
        g = self.pasts.get(pair) or past(types, self.chunks)
        after = self.after(pair, played, shown, obs, before)
        ask = self.asked_for(op, obs, played, g, before, after)
        out = Out(int(obs.status), (False,) * types, obs.allocations, played.out.touched)
        h = follow(Ints, g, before, ask, out, after)
        if op.kind == Kind.ALLOC and op.alloc in self.unsure:
            h = h._replace(sure=False)  # it may have been the reserve that a pending request waited for
        self.pasts[pair], self.seen[pair] = h, after
        return Step(Ints, before, ask, after, out, g, h, self.session.model.devices)

    def after(
        self, pair: Pair, played: Played, shown: Mapping[int, Observation], obs: Observation, before: Seen
    ) -> Seen:
        """The pair as its living allocators show it; the model's figures where none shows them."""
        state = played.after
        asked, old = list(state.asked), list(state.old)
        gen, shrink = list(state.gen), list(state.shrink_gen)
        owned = [self.session.model.owned(state, r) for r in ROLES]
        for number, a in self.allocs.items():
            if a.pair is not pair or number not in shown:
                continue
            look = shown[number]
            for t, chunks in enumerate(pad(look.asked, self.chunks)):
                if state.uses[a.role][t]:
                    (old if a.role == BORROWER and state.behind else asked)[t] = chunks
            gen[a.role], shrink[a.role] = look.generation, look.shrink_generation
            if self.caps & Cap.BREAKDOWN:
                owned[a.role] = look.owned
        plain = not (state.owner or state.active[BORROWER] or played.before.active[BORROWER])
        if not self.caps & READINGS or (plain and not self.caps & Cap.EXACT):  # count what was replaced
            moved = tuple(asked) != before.asked or tuple(old) != before.old
            gen, shrink = [n + moved for n in before.gen], list(before.shrink_gen)
        pair.state = state._replace(
            asked=tuple(asked), old=tuple(old), gen=tuple(gen), shrink_gen=tuple(shrink), used=obs.used
        )
        return Seen(
            tuple(asked), tuple(old), obs.used, state.cap, state.gran, tuple(gen), tuple(shrink), tuple(owned)
        )

    # -- where the contract leaves a choice ------------------------------------------

    def asked_for(
        self, op: Op, obs: Observation, played: Played, g: Past, before: Seen, after: Seen
    ) -> RoleOp:
        """What the operation was, as a subject that is not exact took it.

        An alloc may use a plan that was made for another graph if it is right for this one too (G4): it
        then makes no reservation, and is judged by its places. A type that is listed twice may count
        as several buffer types.
        """
        ask = played.op
        if self.caps & Cap.EXACT or op.kind not in (Kind.ALLOC, Kind.RESERVE):
            return ask
        a = self.allocs[op.alloc]
        graph = self.session.graphs[op.graph]
        if obs.status == Status.REFUSED and not obs.allocations and huge(graph):
            return ask._replace(plannable=False)  # refused by the planner, not by the device
        if op.kind == Kind.RESERVE:
            return ask
        if self.measured.get(op.alloc, graph) != graph:
            ask = ask._replace(match=False)  # a measure may put another plan in force (P12)
        if ask.match:
            return ask
        idle = not obs.allocations and before.asked == after.asked and before.old == after.old
        by_plan = g.planned[a.role] and fits(Ints, g, before, a.role)
        if obs.status == Status.DONE and idle and by_plan:
            self.unsure.add(op.alloc)  # it may have reserved and found that everything fits
            return ask._replace(match=True, need=g.req[a.role])
        if obs.status == Status.REFUSED and idle and len(self.setup.configs[a.config]) > 1:
            return ask._replace(plannable=False)
        return ask

    def other_end(
        self,
        op: Op,
        obs: Observation,
        a: Allocator,
        kept: tuple[Graph | None, Graph | None, tuple[Place, ...]],
        played: Played,
    ) -> Played:
        """The operation ended otherwise than the reference's: the books follow the subject."""
        model, me = self.session.model, tuple(a.role == r for r in ROLES)
        if op.kind == Kind.ALLOC and obs.status == Status.DONE:
            a.bound = self.session.graphs[op.graph]
            return played._replace(after=model.bind(played.after, me))
        if op.kind == Kind.ALLOC:
            a.plan, a.bound, a.places = kept
            return played._replace(after=played.before)
        if op.kind == Kind.COMPUTE and obs.status == Status.DONE:  # the harness found it still current
            a.bound = kept[1]
            return played._replace(after=played.before)
        if op.kind == Kind.COMPUTE and obs.status == Status.STALE:
            a.bound = None
            return played._replace(after=played.after._replace(bound=tuple(
                b and not m for b, m in zip(played.after.bound, me, strict=True))))  # fmt: skip
        return played

    def limited(self) -> bool:
        """Whether some device can run out of memory."""
        return any(c < UNLIMITED for c in self.session.capacity)
