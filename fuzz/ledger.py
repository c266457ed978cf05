"""The contract's own books on a session: the reference session, brought in line with what was seen.

For a subject that behaves exactly as the reference, nothing ever has to be brought in line. For
any other, the model says what the operation is about (who takes part, what is published, who has
reserved since the request), and the observed sizes, readings and statuses replace the model's.
The clauses are then evaluated on that transition.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..model.planner import OUTSIDE, Plan
from ..model.records import Cap, Graph, Kind, Observation, Op, Setup, Status
from ..model.resizable import BORROWER, ROLES, Out, State
from ..model.session import Allocator, Pair, Played, Session, pad
from .fresh import Fresh


class Ledger:
    """A reference session that follows the observations of a subject with capabilities `caps`."""

    def __init__(self, setup: Setup, graphs: tuple[Graph, ...], caps: Cap, fresh: Fresh) -> None:
        self.setup, self.caps, self.fresh = setup, caps, fresh
        self.session = Session(setup, list(graphs), self.planning)

    def planning(self, config: int, graph: Graph) -> Plan | None:
        """The subject's own fresh plan: the requirement that any reserve of the graph publishes."""
        plan = self.fresh.plan(self.setup, config, graph)
        if plan.need is None:
            return None
        return Plan(plan.places or (OUTSIDE,) * len(graph.tensors), plan.need)

    @property
    def allocs(self) -> dict[int, Allocator]:
        return self.session.allocs

    def step(self, op: Op, obs: Observation, looks: Mapping[int, Observation]) -> tuple[Status, Played | None]:
        """Follows one operation; the status that the model expected, and the observed transition."""
        before = self.allocs.get(op.alloc)
        kept = (before.plan, before.bound, before.places) if before else None
        predicted = self.session.step(op)
        played = self.session.last
        if obs.status == Status.MISUSE or predicted.status == Status.MISUSE:
            return predicted.status, None
        self.session.used = obs.used
        if played is None:
            return predicted.status, None
        if op.kind == Kind.ALLOC and obs.status != predicted.status and before is not None:
            if obs.status == Status.REFUSED and kept:
                before.plan, before.bound, before.places = kept
            played = self.other_alloc(op, obs, before, played)
        seen = dict(looks) if op.kind == Kind.FREE else {**looks, op.alloc: obs}
        after = self.observed(played.pair, played.after, seen, obs)
        played.pair.state = after
        return predicted.status, played._replace(after=after, out=self.out(played, after, obs))

    def observed(self, pair: Pair, state: State, seen: Mapping[int, Observation], obs: Observation) -> State:
        """The model's state with everything replaced that can be seen of the pair's allocators."""
        asked, old, gen, shrink = list(state.asked), list(state.old), list(state.gen), list(state.shrink_gen)
        for number, a in self.allocs.items():
            if a.pair is not pair or number not in seen:
                continue
            for t, chunks in enumerate(pad(seen[number].asked)):
                if state.uses[a.role][t]:
                    (old if a.role == BORROWER and state.behind else asked)[t] = chunks
            gen[a.role], shrink[a.role] = seen[number].generation, seen[number].shrink_generation
        if not self.caps & (Cap.RESIZABLE | Cap.GROUP):  # a plain allocator has no readings
            gen, shrink = list(state.gen), list(state.shrink_gen)
        return state._replace(
            asked=tuple(asked), old=tuple(old), gen=tuple(gen), shrink_gen=tuple(shrink), used=obs.used
        )

    def out(self, played: Played, after: State, obs: Observation) -> Out:
        """What the caller saw; an entry failed where a refused reserve left nothing of it."""
        failed = tuple(
            obs.status == Status.REFUSED and any(need) and not any(now)
            for need, now in zip(played.op.need or self.session.model.no_need, after.asked, strict=True)
        )
        return played.out._replace(status=int(obs.status), failed=failed, allocations=obs.allocations)

    def other_alloc(self, op: Op, obs: Observation, a: Allocator, played: Played) -> Played:
        """An alloc may end otherwise than the reference's where the contract leaves a choice (G2, G4)."""
        model, me = self.session.model, tuple(a.role == r for r in ROLES)
        if obs.status == Status.DONE:
            state = model.bind(played.after, me)
            a.plan = a.bound = self.session.graphs[op.graph]
        else:
            state = played.before._replace(used=obs.used)
        return played._replace(after=state)
