"""T: the books of a server with slots: who is in, and what the pools hold (T1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..model.domain import Ints
from ..model.records import MAX_SERVER_SLOTS, Cap, Kind, Observation, Op, PoolKind, Status, Trace
from ..model.server import ServerOp, ServerOut, State
from ..native.worker import StepSeen
from ..spec import server
from .fresh import Fresh

#: parts that speak of what the pools hold: of no use where somebody else has blocks of them
OF_POOLS = (
    "pools hold nothing idle",
    "and trims otherwise",
    "what was released was held",
    "a slot that leaves",
)
_KINDS = (Kind.SLOT_ENTER, Kind.SLOT_STEP, Kind.SLOT_LEAVE, Kind.CTX_OPEN, Kind.CTX_CLOSE, Kind.CTX_TRIM)


class Books:
    """Follows the slots of one session."""

    def __init__(self, trace: Trace, caps: Cap, fresh: Fresh) -> None:
        self.pools = trace.setup.pool != PoolKind.NO_POOL
        self.ready, self.busy, self.pooled = False, 0, 0
        self.blocks = 0  # handed out to others
        self.judged: list[tuple[str, str]] = []

    def drives(self, op: Op) -> bool:
        return op.kind >= Kind.SLOT_ENTER

    def takes(self, op: Op, seen: StepSeen) -> bool:
        return self.drives(op)

    def blame(self, op: Op) -> str:
        """The clause that a death during `op` breaks."""
        return "T1"

    def tally(self, op: Op, seen: StepSeen) -> Counter[str]:
        """How often the step exercised T1. What it breaks is kept for `step`."""
        n: Counter[str] = Counter()
        self.judged = list(self.judge(op, seen.obs, n))
        return n

    def step(self, op: Op, seen: StepSeen) -> Iterator[tuple[str, str]]:
        yield from self.judged

    def watch(self, op: Op, seen: StepSeen) -> Iterator[tuple[str, str]]:
        """Of the contexts' operations: opening, closing, trimming."""
        yield from self.judge(op, seen.obs, Counter())

    def state(self, obs: Observation) -> State:
        busy = tuple(bool(obs.busy >> k & 1) for k in range(MAX_SERVER_SLOTS))
        return State(self.ready, busy, (0,) * MAX_SERVER_SLOTS, sum(obs.pooled))

    def judge(self, op: Op, obs: Observation, n: Counter[str]) -> Iterator[tuple[str, str]]:
        target = op.alloc == 0 and op.kind in (Kind.CTX_OPEN, Kind.CTX_CLOSE, Kind.CTX_TRIM)
        about = op.kind in _KINDS and (target or op.kind not in (Kind.CTX_OPEN, Kind.CTX_CLOSE))
        if about and not obs.capturing:  # Q3 forbids it then
            before = self.state(obs)._replace(
                busy=tuple(bool(self.busy >> k & 1) for k in range(MAX_SERVER_SLOTS)), pooled=self.pooled
            )
            yield from self.rules(op, obs, before, n)
        done = obs.status == Status.DONE
        if target and op.kind != Kind.CTX_TRIM and done:
            self.ready = op.kind == Kind.CTX_OPEN
        self.blocks += done * ((op.kind == Kind.POOL_ALLOC) - (op.kind == Kind.POOL_FREE))
        if obs.status != Status.MISUSE or op.kind >= Kind.SLOT_ENTER:
            self.busy, self.pooled = obs.busy, sum(obs.pooled)

    def rules(self, op: Op, obs: Observation, before: State, n: Counter[str]) -> Iterator[tuple[str, str]]:
        misuse = obs.status == Status.MISUSE
        if op.kind == Kind.CTX_TRIM and (misuse or not self.pools):
            return
        if op.kind == Kind.SLOT_STEP and misuse and before.busy[op.alloc]:
            return  # the target's own misuse
        after = self.state(obs)
        if target_gone := op.kind == Kind.CTX_CLOSE and obs.status == Status.DONE:
            after = after._replace(ready=False)
        ask = ServerOp(int(op.kind), op.alloc if op.kind >= Kind.SLOT_ENTER else 0, tokens=op.value)
        found = server.rules(Ints, before, ask, after, ServerOut(int(obs.status), obs.released))["T1"]
        aside = self.blocks or obs.capturing or target_gone
        for name, rule in found.items():
            if aside and name.startswith(OF_POOLS):
                continue
            if op.kind == Kind.CTX_TRIM and name.startswith(OF_POOLS):
                continue  # the pools of its own devices only, which are V's
            n["T1"] += rule.counts and bool(rule.when)
            if rule.when and not rule.then:
                yield "T1", name
