"""C: allocators that are driven through a scheduler.

The rules are in model/scheduler.py; here is only which scheduler is which role of
which pair, what its streams run, and how an operation asks. Other layers call the
methods that take arguments: contexts drive their lanes by them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import oracle
from ..domain import Ints
from ..pair import BORROWER, ROLES, RoleOp
from ..records import Graph, Kind, Observation, Op, OpFlag, Status
from ..scheduler import NONE, Model, Out, SchedOp, State
from ..session import Allocator, Pair

if TYPE_CHECKING:
    from . import Stack

#: kinds whose `alloc` is an allocator; after them its scheduler is observed
_OF_ALLOC = frozenset(k for k in Kind if k <= Kind.RESET and k != Kind.CAPACITY) | frozenset(
    k for k in Kind if Kind.CAPTURE_BEGIN <= k <= Kind.DROP
)
_STEPS = 1 << 12  #: of the machine that are kept


@dataclass
class Sched:
    """One scheduler: how many tensors it is made for (0: any number), and what its stream runs."""

    nodes: int
    busy: bool = False
    flying: Graph | None = None  # the last graph in flight


_NOBODY = Sched(0)  #: of a role that is not there


class Result(NamedTuple):
    """`ran`: the graph that was computed or whose work was waited for, None: nothing was.
    `reason`: what a borrow lacked (S4), bits of Shared."""

    status: Status
    ran: Graph | None = None
    reason: int = 0

    @property
    def digest(self) -> int:
        """What the caller is shown of it; 0 also where there are too many bytes for Python."""
        return (oracle.digest(self.ran) or 0) if self.ran is not None else 0


class Schedulers:
    """The schedulers of a session, by allocator number. Methods but `step`, `has` and `new` want a living one."""

    def __init__(self, stack: Stack) -> None:
        self.stack, self.session = stack, stack.session
        self.model = Model(Ints, len(stack.setup.types), self.session.chunks, self.session.model)
        self.known: dict[int, Sched] = {}
        self.graphs: list[Graph] = []  # by the number that the machine has for each
        self.numbers: dict[Graph, int] = {}
        self.steps: dict[tuple[State, SchedOp], tuple[State, Out]] = {}  # what was worked out already

    # -- what is seen ------------------------------------------------------------------

    def has(self, number: int) -> bool:
        """Whether allocator `number` is driven through a scheduler."""
        return number in self.known

    def busy(self, number: int) -> bool:
        """Whether it has work in flight."""
        return self.has(number) and self.known[number].busy

    def partner_busy(self, number: int) -> bool:
        """Whether what it shares buffers with has work in flight."""
        pair = self.session.allocs[number].pair
        return any(self.busy(n) for n in self.of(pair).values() if n != number)

    def of(self, pair: Pair) -> dict[int, int]:
        """Number of the scheduler, by role."""
        return {a.role: n for n, a in self.session.allocs.items() if a.pair is pair and n in self.known}

    def adds(self, op: Op) -> dict[str, Any]:
        """C5: what the scheduler says of itself."""
        if op.kind not in _OF_ALLOC or not self.has(op.alloc):
            return {}
        a, sched = self.session.allocs[op.alloc], self.known[op.alloc]
        now = self.state(a.pair)
        s = self.model.report(now, now, (False, False))
        return {
            "sched_generation": s.gen[a.role],
            "sched_shrink_generation": s.shrink_gen[a.role],
            "nodes": sched.nodes,
            "in_flight": int(sched.busy),
        }

    # -- one operation -------------------------------------------------------------------

    def step(self, op: Op) -> Observation:
        """What an operation of a scheduler shows."""
        graph = self.session.graph(op.graph)
        if op.kind == Kind.NEW:
            result = self.new(op.alloc, op.other, op.value)
        elif op.kind in (Kind.RESERVE, Kind.MEASURE, Kind.ALLOC) and graph is None:
            result = Result(Status.MISUSE)
        else:
            result = self.act(op, graph)
        seen = replace(
            self.session.look(op.alloc),
            status=result.status,
            digest=result.digest,
            allocations=self.session.attempts.tried,
            reason=result.reason,
        )
        if op.kind == Kind.MEASURE and graph is not None and result.status == Status.DONE:
            seen = replace(seen, measured=self.measured(op.alloc, graph))
        return seen

    def act(self, op: Op, graph: Graph | None) -> Result:
        """An operation of a living scheduler."""
        n = op.alloc
        if op.kind == Kind.COMPUTE:
            return self.compute(n, graph, op.flags)
        if op.kind == Kind.ALLOC and graph is not None:
            return self.bind(n, graph)
        if op.kind == Kind.RESERVE and graph is not None:
            return self.reserve(n, graph)
        if op.kind == Kind.BORROW:
            return self.borrow(n, op.other, op.value)
        if op.kind == Kind.FREE:
            return self.free(n)
        if op.kind == Kind.SYNC:
            return self.wait(n)
        if op.kind == Kind.LOOK:
            return Result(Status.DONE)
        return self.play(n, SchedOp(op.kind, on=self.asking(n, graph)))

    def measured(self, number: int, graph: Graph) -> tuple[int, ...]:
        """P12: bytes by slot."""
        a = self.session.allocs[number]
        plan = self.session.plan(a.config, graph)
        return self.session.by_slot(a, [sum(chunks) for chunks in plan.need] if plan else [])

    # -- coming, going -----------------------------------------------------------------

    def new(self, number: int, config: int, nodes: int = 0) -> Result:
        """A scheduler made for that many tensors; MISUSE where the number is taken or no such config is there."""
        made = self.session.new(Op(Kind.NEW, number, config, flags=OpFlag.BY_SCHED))
        if made.status == Status.DONE:
            self.known[number] = Sched(nodes)
        return Result(made.status)

    def own(self, number: int) -> Result:
        return self.play(number, SchedOp(Kind.OWN, on=self.asking(number, None)))

    def borrow(self, number: int, of: int, bits: int = 0) -> Result:
        """R1, R2, S4 (`bits`: what of Shared is so). MISUSE where `of` is not driven through a scheduler."""
        missing = self.session.missing(bits)
        a, other = self.session.allocs[number], self.session.allocs.get(of)
        if other is None or other.pair is a.pair:
            return Result(Status.REFUSED, reason=missing)
        if not other.sched:
            return Result(Status.MISUSE)
        joining = self.session.joining(a, other, missing)
        ask = SchedOp(Kind.BORROW, tensors=self.known[number].nodes, on=joining)
        state = self.state(other.pair)
        t, out = self.stepped(state, ask)
        if out.ok:
            a.pair, a.role = other.pair, BORROWER
        self.enter(other.pair, t)
        return Result(Status(out.status), reason=missing)

    def free(self, number: int) -> Result:
        """Waits for it and its partner (C1), then frees it."""
        result = self.play(number, SchedOp(Kind.FREE))
        del self.session.allocs[number], self.known[number]
        return result

    def remake(self, number: int) -> Result:
        """R14. MISUSE where it is no owner."""
        return self.play(number, SchedOp(Kind.REMAKE))

    def shrink(self, number: int) -> Result:
        return self.play(number, SchedOp(Kind.SHRINK))

    # -- reserve, bind, compute -----------------------------------------------------------

    def reserve(self, number: int, graph: Graph) -> Result:
        """Waits (C1), then reserves; a larger scheduler first where the graph needs one (C3)."""
        return self.play(number, SchedOp(Kind.RESERVE, on=self.asking(number, graph)), graph)

    def bind(self, number: int, graph: Graph, by: Graph | None = None) -> Result:
        """Binds by the plan in force where that is right and fits, else reserves and binds.

        `by`: the plan of this graph is right for `graph` too, and is what is reserved (contexts).
        """
        return self.play(number, SchedOp(Kind.ALLOC, on=self.asking(number, by or graph)), graph, by)

    def compute(self, number: int, graph: Graph | None, flags: int = 0) -> Result:
        """Computes what is bound, else binds `graph` first (C4; MISUSE where that is None)."""
        a = self.session.allocs[number]
        if a.bound is None and graph is None:
            return Result(Status.MISUSE)
        asking = self.asking(number, graph)._replace(unchecked=bool(flags & OpFlag.UNCHECKED))
        run_async = bool(flags & OpFlag.ASYNC)
        op = self.operation(a, SchedOp(Kind.COMPUTE, run_async=run_async, on=asking), graph)
        state = self.state(a.pair)
        result = self.finish(a, op, *self.stepped(state, op), graph)
        if result.ran is not None and not self.stack.pools.take(number, result.ran):
            t, out = self.stepped(state, op._replace(scratch=False))
            t = t._replace(pair=t.pair._replace(used=self.session.used))
            result = self.finish(a, op, t, out._replace(allocations=0), graph)
        elif result.ran is not None:
            self.stack.pools.give()
        return result._replace(ran=None) if run_async else result

    def wait(self, number: int) -> Result:
        """SYNC: waits for its own stream."""
        return self.play(number, SchedOp(Kind.SYNC))

    def wait_shared(self, number: int) -> None:
        """Waits for it and its partner."""
        for n in self.of(self.session.allocs[number].pair).values():
            self.known[n].busy = False

    def wait_all(self) -> None:
        """Waits for every stream."""
        for sched in self.known.values():
            sched.busy = False

    def reset(self, number: int) -> Result:
        """C4: the bound graph is forgotten."""
        return self.play(number, SchedOp(Kind.RESET))

    def larger(self, number: int, tensors: int) -> bool:
        """Whether a graph of so many tensors needs a larger scheduler (C3); the next reserve makes it."""
        nodes = self.known[number].nodes
        return nodes > 0 and tensors > nodes

    def enlarge(self, number: int, tensors: int) -> None:
        """C3, where the graph itself is not larger (contexts): a scheduler of so many tensors, nothing bound."""
        a = self.session.allocs[number]
        op = self.operation(a, SchedOp(Kind.RESERVE, on=self.asking(number, None)), None)
        op = op._replace(tensors=tensors)
        me = tuple(a.role == r for r in ROLES)
        t, op, grown = self.model.fitting(self.state(a.pair), me, op)
        self.finish(a, op, t, Out(int(Status.DONE), larger=grown, role=op.role), None)

    def launched(self, number: int, graph: Graph, run_async: bool) -> Result:
        """Its stream was given a graph that is not the bound one (a captured graph's replay)."""
        sched = self.known[number]
        sched.busy, sched.flying = run_async, graph
        return Result(Status.DONE, graph)

    # -- the machine ---------------------------------------------------------------------

    def stepped(self, s: State, op: SchedOp) -> tuple[State, Out]:
        """The machine's step. Runs of small calls ask for the same ones again and again."""
        key = s, op
        done = self.steps.get(key)
        if done is None:
            if len(self.steps) >= _STEPS:
                self.steps.clear()
            done = self.steps[key] = self.model.step(s, op)
        return done

    def number(self, graph: Graph | None) -> int:
        """The machine's number of a graph."""
        if graph is None:
            return NONE
        if graph not in self.numbers:
            self.numbers[graph] = len(self.graphs)
            self.graphs.append(graph)
        return self.numbers[graph]

    def asking(self, number: int, graph: Graph | None) -> RoleOp:
        """What an operation on the graph asks of the allocator."""
        a = self.session.allocs[number]
        if graph is None:
            return RoleOp(0, uses=self.session.uses(a), need=self.session.model.no_need)
        plan = self.session.plan(a.config, graph)
        return self.session.asked(Kind.RESERVE, a, graph, plan)

    def state(self, pair: Pair) -> State:
        """The machine's state, with the devices as they are now."""
        there: dict[int, tuple[Sched, Allocator]] = {}
        member: Allocator | None = None
        for n, a in self.session.allocs.items():
            if a.pair is pair:
                member = a
                if n in self.known:
                    there[a.role] = self.known[n], a
        assert member is not None
        scheds = [there[r][0] if r in there else _NOBODY for r in ROLES]
        bound = [there[r][1].bound if r in there else None for r in ROLES]
        state = self.session.present(member)
        graphs = tuple(map(self.number, bound))
        return State(
            state,
            busy=tuple(x.busy for x in scheds),
            flying=tuple(self.number(x.flying) for x in scheds),
            nodes=tuple(x.nodes for x in scheds),
            graph=graphs,
            gen=state.gen,
            shrink_gen=state.shrink_gen,
            meant=graphs,
            sent=(NONE, NONE),
            turned_down=(False, False),
            hurt=False,
        )

    def play(self, number: int, op: SchedOp, graph: Graph | None = None, by: Graph | None = None) -> Result:
        """One step of the machine; `graph` is what the operation is on, `by` whose plan is used for it."""
        a = self.session.allocs[number]
        op = self.operation(a, op, graph)
        return self.finish(a, op, *self.stepped(self.state(a.pair), op), graph, by)

    def operation(self, a: Allocator, op: SchedOp, graph: Graph | None) -> SchedOp:
        """The operation, by this allocator and on this graph."""
        tensors = len(graph.tensors) if graph is not None else 0
        return op._replace(role=a.role, graph=self.number(graph), tensors=tensors)

    def finish(
        self, a: Allocator, op: SchedOp, t: State, out: Out, graph: Graph | None, by: Graph | None = None
    ) -> Result:
        """Enters a step in the books."""
        self.session.attempts.tried += int(out.allocations)
        self.after(a, op, out, graph, by)
        self.enter(a.pair, t)
        return Result(Status(out.status), self.graphs[out.ran] if out.ran != NONE else None)

    def after(self, a: Allocator, op: SchedOp, out: Out, graph: Graph | None, by: Graph | None) -> None:
        """Plan and places of the allocator after a step."""
        a.role = out.role
        if out.larger or (op.kind == Kind.REMAKE and out.ok):
            a.plan = None
        if out.reserved:
            a.plan = by or graph
        binds = op.kind == Kind.ALLOC or (op.kind == Kind.COMPUTE and a.bound is None)
        if binds and out.ok and graph is not None:
            plan = self.session.plan(a.config, by or graph)
            assert plan is not None
            a.places = plan.places

    def enter(self, pair: Pair, t: State) -> None:
        """The machine's state into the books."""
        pair.state, self.session.used = t.pair, t.pair.used
        for role, number in self.of(pair).items():
            sched = self.known[number]
            sched.nodes, sched.busy = t.nodes[role], t.busy[role]
            sched.flying = self.graphs[t.flying[role]] if t.busy[role] else None
            self.session.allocs[number].bound = self.graphs[t.graph[role]] if t.pair.bound[role] else None
