"""Q: the clauses of captured graphs, over what is seen of them, and the machine that is proved.

`Seen` holds what any subject shows; `Past` what follows from operations and statuses alone. A
subject, the model over ints and the model in a proof are judged by the same rules.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..model.capture import NOBODY, CaptureOp, Model, Out, State
from ..model.domain import Tree, Value
from ..model.records import Kind, Status
from ..model.terms import fresh
from .machine import Machine, Rules
from .step import Rule

CLAUSES = ("Q1", "Q2", "Q3")


class Seen(NamedTuple):
    """All allocators at one moment; [n] is by allocator."""

    at: Value  # who is being captured, NOBODY
    captured: Tree  # [n]  has a captured graph
    gen: Tree  # [n]       generation read
    busy: Tree  # [n]      has work in flight


class Past(NamedTuple):
    """What operations and statuses say, before the step."""

    then: Tree  # [n]      generation read when its graph was captured
    mapped: Tree  # [n]    the pool memory of its captured graph is mapped
    trimmed: Tree  # [n]   pools of its devices were trimmed since its last capture
    mates: Tree  # [n][n]  the two share buffers


class Step:
    """One step, and the words of its rules. `sure`: whether `mapped` is known for certain."""

    def __init__(
        self, d: Any, g: Past, s: Seen, op: CaptureOp, t: Seen, out: Out, sure: Value = True
    ) -> None:
        self.d, self.g, self.s, self.op, self.t, self.out, self.sure = d, g, s, op, t, out, sure
        self.allocs = range(len(s.captured))
        self.me = tuple(op.alloc == n for n in self.allocs)
        self.done = out.status == int(Status.DONE)
        self.during = s.at != NOBODY

    def kind(self, *kinds: Kind) -> Value:
        return self.d.any(*(self.op.kind == int(k) for k in kinds))

    def mine(self, row: Tree) -> Value:
        return self.d.any(*map(self.d.all, self.me, row))

    def mate(self, n: int) -> Value:
        """Shares buffers with the allocator that acts."""
        return self.mine(tuple(self.g.mates[m][n] for m in self.allocs))

    def free(self) -> Value:
        """Who acts is not involved in a capture, and nobody who shares with it has work in flight."""
        d = self.d
        waits = d.any(*(d.all(self.mate(n), self.s.busy[n]) for n in self.allocs))
        near = d.any(*(d.all(self.s.at == n, d.any(self.me[n], self.mate(n))) for n in self.allocs))
        return d.inv(d.any(waits, near))


def rules(p: Step) -> dict[str, Rules]:
    """Every clause as its named parts."""
    return {"Q1": _replays(p), "Q2": _trims(p), "Q3": _during(p)}


def _replays(p: Step) -> Rules:
    d, s, t, g, op, out = p.d, p.s, p.t, p.g, p.op, p.out
    launch = p.kind(Kind.LAUNCH)
    there = d.all(launch, p.mine(s.captured), p.free())
    older = p.mine(tuple(a != b for a, b in zip(s.gen, g.then, strict=True)))
    checked, mapped = d.inv(op.unchecked), p.mine(g.mapped)
    dropped = d.all(out.status == int(Status.STALE), d.inv(p.mine(t.captured)))
    valid = d.all(there, d.any(op.unchecked, d.inv(older)), mapped)
    current = d.all(valid, d.inv(op.lent), p.sure)
    return {
        "an outdated graph is dropped, not replayed": Rule(d.all(there, checked, older), dropped),
        "on memory that is not mapped nothing is replayed": Rule(d.all(there, d.inv(mapped)), dropped),
        "on memory that is handed out to somebody nothing is replayed": Rule(
            d.all(valid, op.lent), out.status == int(Status.MISUSE)),
        "without its pool memory nothing is recorded": Rule(
            d.all(p.kind(Kind.COMPUTE), s.at == op.alloc, d.inv(op.scratch)), d.inv(p.done)),
        "a current graph is replayed": Rule(current, d.all(p.done, p.mine(t.captured))),
        "no memory that is gone is touched": Rule(d.all(launch, checked), d.inv(out.touched)),
        "without a captured graph nothing is replayed": Rule(
            d.all(launch, d.inv(p.mine(s.captured))), out.status == int(Status.MISUSE)),
        "a capture that took something is kept": Rule(
            d.all(p.kind(Kind.CAPTURE_END), p.done), p.mine(t.captured)),
        "who is freed, remade or made larger has no captured graph": Rule(out.anew, d.inv(p.mine(t.captured))),
    }  # fmt: skip


def _trims(p: Step) -> Rules:
    d, s, t, op = p.d, p.s, p.t, p.op
    trim = d.all(p.kind(Kind.TRIM), p.done)
    found = {
        "replaying is impossible after a trim": Rule(
            d.all(p.kind(Kind.LAUNCH), p.mine(p.g.trimmed)), d.inv(p.done)
        )
    }
    for n in p.allocs:
        hit = op.reach[n] if op.reach else False
        who = f"allocator {n}'s captured graph "
        found[who + "goes with a trim of its devices"] = Rule(
            d.all(trim, hit, s.captured[n]), d.inv(t.captured[n])
        )
        found[who + "outlives a trim of others"] = Rule(d.all(trim, d.inv(hit), s.captured[n]), t.captured[n])
    return found


def _during(p: Step) -> Rules:
    d, s, t, out = p.d, p.s, p.t, p.out
    trim, reserves = p.kind(Kind.TRIM), p.kind(Kind.RESERVE, Kind.ALLOC)
    found = {
        "no trim": Rule(d.all(p.during, trim), d.inv(d.any(p.done, out.trimmed))),
        "nothing is replaced": Rule(d.all(p.during, reserves), d.inv(out.replaced)),
    }
    for n in p.allocs:
        found[f"allocator {n} is captured: its buffers stay"] = Rule(s.at == n, t.gen[n] == s.gen[n])
        found[f"allocator {n} shares with who is captured: its buffers stay"] = Rule(
            d.any(*(d.all(s.at == m, p.g.mates[m][n]) for m in p.allocs)), t.gen[n] == s.gen[n]
        )
    return found


# -- the machine -----------------------------------------------------------------------


def seen(s: State) -> Seen:
    """What is seen of a model's state."""
    return Seen(s.at, s.has, s.gen, s.busy)


def of_step(model: Model, s: State, op: CaptureOp, t: State, out: Out) -> dict[str, Rules]:
    past = Past(s.then, s.mapped, s.trimmed, s.mates)
    return rules(Step(model.d, past, seen(s), op, seen(t), out))


def invariants(model: Model, s: State) -> dict[str, Value]:
    """What holds in every state that can be reached."""
    d, all_ = model.d, model.allocs
    pairs = [(m, n) for m in all_ for n in all_]
    return {
        "who is captured": d.all(s.at >= NOBODY, s.at < len(all_), s.taken >= 0),
        "a captured graph's generation tells": d.all(
            *(d.any(d.inv(s.has[n]), d.all(s.has_gen[n] == s.then[n], s.then[n] <= s.gen[n])) for n in all_),
            *(d.any(d.inv(d.all(s.has[n], s.stale[n])), s.then[n] < s.gen[n]) for n in all_),
        ),
        "no captured graph after a trim": d.all(
            *(d.any(d.inv(s.trimmed[n]), d.inv(s.has[n])) for n in all_)
        ),
        "sharing is mutual": d.all(*(s.mates[m][n] == s.mates[n][m] for m, n in pairs if m < n)),
        "nobody shares with itself": d.all(*(d.inv(s.mates[n][n]) for n in all_)),
    }  # fmt: skip


def lawful(model: Model, s: State, op: CaptureOp) -> list[Value]:
    """An allocator that there is."""
    return [op.alloc >= 0, op.alloc < len(model.allocs)]


def start(model: Model) -> tuple[State, list[Value]]:
    """Any of them may share."""
    first = model.init()
    s = first._replace(mates=fresh(first.mates, "mates"))
    mutual = [s.mates[m][n] == s.mates[n][m] for m in model.allocs for n in range(m)]
    return s, [*mutual, *(model.d.inv(s.mates[n][n]) for n in model.allocs)]


def operation(model: Model) -> CaptureOp:
    off = (False,) * len(model.allocs)
    return CaptureOp(0, reach=off, evicts=off)


#: allocators: two that may share, and a third
MACHINE = Machine(
    name="captures",
    model=Model,
    configs=((2,), (3,)),
    kinds=(
        Kind.CAPTURE_BEGIN, Kind.CAPTURE_END, Kind.LAUNCH, Kind.DROP, Kind.COMPUTE, Kind.RESERVE, Kind.ALLOC,
        Kind.TRIM, Kind.POOL_FREE, Kind.FREE, Kind.REMAKE, Kind.SYNC, Kind.RESET, Kind.OWN, Kind.BORROW,
    ),
    clauses=CLAUSES,
    init=lambda model: model.init(),
    operation=operation,
    rules=of_step,
    invariants=invariants,
    lawful=lawful,
    start=start,
    sizes="allocators",
)  # fmt: skip
