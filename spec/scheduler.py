"""C1 to C5 (and R14 where C3 causes it) as predicates of one step of a scheduler, and their proof.

`Seen` is what any subject shows of a scheduler and its partner, with what is known
of operations and statuses alone (who is attached, what is bound). The same rules
judge the model in the proof and a subject in a run.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

from ..model.domain import Tree, Value
from ..model.pair import BORROWER, OWNER, ROLES, Devices, RoleOp, mine
from ..model.records import Kind, Status
from ..model.scheduler import NONE, Model, Out, SchedOp, State
from ..model.terms import equal, fresh, leaves
from . import asking, pair_words
from .asking import implies
from .machine import Fields, Machine, Rules
from .step import Rule

CLAUSES = ("C1", "C2", "C3", "C4", "C5", "R14")
KINDS = (Kind.NEW, Kind.FREE, Kind.OWN, Kind.BORROW, Kind.RESERVE, Kind.MEASURE, Kind.ALLOC, Kind.COMPUTE,
         Kind.SHRINK, Kind.REMAKE, Kind.SYNC, Kind.RESET)  # fmt: skip
WHO = ("owner", "borrower")


class Seen(NamedTuple):
    """A scheduler and its partner at one moment. Bytes are bytes."""

    active: Tree  # [role]             is there
    owner: Value  # role OWNER has become an owner
    behind: Value  # the borrower keeps buffers of an owner that was remade
    uses: Tree  # [role][type]         its config has the type
    holds: Tree  # [role][type][chunk] bytes asked for of the buffers that it uses
    used: Tree  # [device]             bytes in use, by anyone
    cap: Tree  # [device]              bytes there are
    gran: Tree  # [type]               every buffer is rounded up to a multiple of this
    busy: Tree  # [role]               has work in flight
    nodes: Tree  # [role]              tensors that it is made for, 0: any number
    gen: Tree  # [role]                generation that its allocator reads
    shrink_gen: Tree  # [role]
    said_gen: Tree  # [role]           generation that the scheduler says
    said_shrink_gen: Tree  # [role]
    meant: Tree  # [role]              number of the graph that is bound, NONE
    sent: Tree  # [role]               number of the last graph that was launched, NONE
    turned_down: Tree  # [role]        its last compute had nothing bound and was refused


def seen(model: Model, s: State) -> Seen:
    """What is seen of a model's state."""
    p = s.pair
    holds = tuple(tuple(model.under.holding(p, r, t) for t in model.types) for r in ROLES)
    behind = getattr(p, "behind", False)
    return Seen(p.active, p.owner, behind, p.uses, holds, p.used, p.cap, p.gran, s.busy, s.nodes, p.gen,
                p.shrink_gen, s.gen, s.shrink_gen, s.meant, s.sent, s.turned_down)  # fmt: skip


class Step:
    """One step, and the words that the rules are written in. `devices`: by type, where its buffers are."""

    def __init__(self, d: Any, devices: Devices, s: Seen, op: SchedOp, t: Seen, out: Out) -> None:
        self.d, self.devices, self.s, self.op, self.t, self.out = d, devices, s, op, t, out
        self.types = range(len(devices))
        self.me = tuple(d.all(op.role == r, s.active[r]) for r in ROLES)
        self.acts = d.any(*self.me)
        self.after = tuple(d.all(self.acts, out.role == r) for r in ROLES)  # who it is from now on
        self.refused = out.status == int(Status.REFUSED)
        #: a partner's work in flight keeps it from computing
        self.waits = d.all(self.kind(Kind.COMPUTE), mine(d, self.me, (s.busy[BORROWER], s.busy[OWNER])))
        unbound = d.ite(self.me[OWNER], *s.meant) == NONE
        self.computes = d.all(self.kind(Kind.COMPUTE), self.acts, d.inv(self.waits))
        self.unbound = d.all(self.computes, unbound)
        self.bound = d.all(self.computes, d.inv(unbound))
        #: needs room for a graph, and binds it or makes the room
        self.wants_room = d.any(d.all(self.kind(Kind.RESERVE, Kind.ALLOC), self.acts), self.unbound)
        nodes = d.ite(self.me[OWNER], *s.nodes)
        self.larger = d.all(self.wants_room, nodes > 0, op.tensors > nodes)
        self.launched = d.all(self.computes, out.ok, op.run_async)

    def kind(self, *kinds: Kind) -> Value:
        return self.d.any(*(self.op.kind == int(k) for k in kinds))

    def of(self, who: Tree, by_role: Tree) -> Tree:
        """The part [role] of the one that `who` says."""
        return self.d.ite(who[OWNER], by_role[OWNER], by_role[BORROWER])

    def real(self, t: int, chunks: Tree) -> Tree:
        """What the device gives for chunks asked for."""
        return tuple(self.d.roundup(x, self.s.gran[t]) for x in chunks)

    def moved(self, role: int) -> Value:
        """Some buffer that the role used is another one, or gone."""
        rows = zip(self.s.holds[role], self.t.holds[role], strict=True)
        return self.d.any(*(self.d.any(*map(operator.ne, a, b)) for a, b in rows))

    def lacks(self, t: int) -> Value:
        """The graph needs more of the type than the scheduler has."""
        have = self.real(t, self.of(self.me, self.s.holds)[t])
        return self.d.all(self.uses(t), self.d.any(*map(operator.gt, self.op.on.need[t], have)))

    def uses(self, t: int) -> Value:
        return mine(self.d, self.me, tuple(u[t] for u in self.s.uses))

    def has_room(self, t: int) -> Value:
        """After the step the scheduler has what the graph needs of the type."""
        have = self.real(t, self.of(self.after, self.t.holds)[t])
        return self.d.any(self.d.inv(self.uses(t)), self.d.all(*map(operator.le, self.op.on.need[t], have)))

    def injected(self, t: int) -> Value:
        return self.d.any(*(self.op.on.inject[k] for k in self.devices[t]))

    def beside(self) -> Value:
        """The devices could give all that the graph needs beside what is in use now."""
        d, s, fits = self.d, self.s, []
        for k in range(len(s.used)):
            here = [t for t in self.types if k in self.devices[t]]
            need = sum(d.ite(self.uses(t), sum(self.real(t, self.op.on.need[t])), 0) for t in here)
            fits.append(s.used[k] + need <= s.cap[k])
        return d.all(*fits)


def rules(p: Step) -> dict[str, Rules]:
    """Every clause as its named parts."""
    found: dict[str, Rules] = {clause: {} for clause in CLAUSES}
    for group in (waiting, failing, growing, forgetting, saying):
        for clause, parts in group(p).items():
            found[clause] |= parts
    return found


def waiting(p: Step) -> dict[str, Rules]:
    """C1."""
    d, s, t, out = p.d, p.s, p.t, p.out
    frees = d.all(p.kind(Kind.RESERVE, Kind.FREE, Kind.REMAKE), p.acts, out.status != int(Status.MISUSE))
    rules: Rules = {
        "no buffer is freed under work in flight": Rule(d.any(*s.busy), d.inv(out.hurt), counts=False),
    }
    for r in ROLES:
        gone = d.any(d.inv(t.busy[r]), d.all(p.me[r], p.launched))
        rules[f"{WHO[r]}: its work is done before its buffers go"] = Rule(
            d.all(s.busy[r], p.moved(r)), d.all(gone, d.inv(out.hurt))
        )
        rules[f"{WHO[r]}: its work is done after a reservation"] = Rule(d.all(s.busy[r], frees), gone)
    return {"C1": rules}


def failing(p: Step) -> dict[str, Rules]:
    """C2."""
    d, out = p.d, p.out
    short = d.any(p.op.on.fail_nth > 0, d.inv(p.beside()), *map(p.injected, p.types))
    short = d.all(short, out.allocations > 0)  # it was tried, and may have failed
    must = [d.all(p.lacks(t), p.injected(t)) for t in p.types]
    told = d.inv(p.of(p.me, (False, p.s.behind)))  # one that is behind starts with other buffers
    hit = d.all(p.op.on.fail_nth > 0, p.op.on.fail_nth <= out.allocations)
    every = d.all(out.allocations > 0, *p.op.on.inject)
    return {"C2": {
        "what is said to be done has room": Rule(
            d.all(p.wants_room, out.ok, short), d.all(*map(p.has_room, p.types)), counts=False),
        "a failed allocation is told": Rule(d.all(p.wants_room, told, d.any(*must)), p.refused),
        "an allocation that was made to fail is told": Rule(
            d.all(d.any(p.wants_room, p.computes), d.any(hit, every)), p.refused),
        "a graph that cannot be planned is told": Rule(
            d.all(p.wants_room, d.inv(p.op.on.plannable)), p.refused),
        "where it fails nothing is computed": Rule(d.all(p.computes, p.refused), d.all(
            out.ran == NONE, *(d.any(d.inv(p.t.busy[r]), p.s.busy[r]) for r in ROLES))),
        "what is said to be computed was": Rule(d.all(p.computes, out.ok), d.all(
            out.ran != NONE, d.any(d.inv(p.op.run_async), p.of(p.after, p.t.busy))), counts=False),
        "a compute that was refused left nothing bound": Rule(
            d.all(p.unbound, p.of(p.me, p.s.turned_down), out.ok), out.ran == p.op.graph),
    }}  # fmt: skip


def growing(p: Step) -> dict[str, Rules]:
    """C3, and what it must leave alone (R14)."""
    d, s, t, op = p.d, p.s, p.t, p.op
    nodes = p.of(p.after, t.nodes)
    large = d.any(nodes == 0, nodes >= op.tensors)
    alone = d.inv(d.all(*s.active))
    calm = d.all(op.on.plannable, op.scratch, op.on.fail_nth == 0, *(map(d.inv, map(p.injected, p.types))))
    kept = zip(s.holds[BORROWER], t.holds[BORROWER], strict=True)
    same = d.all(*(d.all(*map(operator.eq, a, b)) for a, b in kept), t.gen[BORROWER] == s.gen[BORROWER])
    stays = d.all(p.me[OWNER], s.owner, s.active[BORROWER], p.larger, d.inv(p.refused), t.active[BORROWER])
    return {
        "C3": {
            "a larger graph makes a larger scheduler": Rule(p.larger, large),
            "no larger than it must be": Rule(p.larger, nodes == op.tensors),
            "it is large enough": Rule(p.wants_room, large, counts=False),
            "a large graph is no reason to refuse": Rule(d.all(p.larger, alone, calm, p.beside()), p.out.ok),
            "any number stays any number": Rule(
                d.all(p.acts, p.of(p.me, s.nodes) == 0, p.of(p.after, t.active)), nodes == 0, counts=False),
        },
        "R14": {"the borrower of a larger owner keeps its buffers": Rule(stays, same)},
    }  # fmt: skip


def forgetting(p: Step) -> dict[str, Rules]:
    """C4."""
    d, s, t, op, out = p.d, p.s, p.t, p.op, p.out
    reset = d.all(p.kind(Kind.RESET), p.acts)
    still = [d.inv(p.moved(r)) for r in ROLES]
    still += [d.all(t.busy[r] == s.busy[r], t.gen[r] == s.gen[r]) for r in ROLES]
    return {"C4": {
        "computing without alloc allocates first": Rule(d.all(p.unbound, out.ok), out.ran == op.graph),
        "computing without alloc is no misuse": Rule(p.unbound, d.any(out.ok, p.refused)),
        "what was bound last is computed": Rule(
            d.all(p.bound, out.ok), out.ran == p.of(p.me, s.meant), counts=False),
        "a wait shows the graph that was launched last": Rule(
            d.all(p.kind(Kind.SYNC), mine(d, p.me, s.busy)), out.ran == p.of(p.me, s.sent), counts=False),
        "a reset changes nothing else": Rule(reset, d.all(*still)),
    }}  # fmt: skip


def saying(p: Step) -> dict[str, Rules]:
    """C5."""
    d, s, t = p.d, p.s, p.t
    rules: Rules = {}
    for r in ROLES:
        same = d.all(t.said_gen[r] == t.gen[r], t.said_shrink_gen[r] == t.shrink_gen[r])
        news = d.any(t.gen[r] != s.gen[r], t.shrink_gen[r] != s.shrink_gen[r])
        rules[f"{WHO[r]}: says what its allocator says"] = Rule(t.active[r], same, counts=False)
        rules[f"{WHO[r]}: and says what is new"] = Rule(d.all(t.active[r], s.active[r], news), same)
    return {"C5": rules}


# -- the proof ---------------------------------------------------------------------------


def operation_of(model: Model) -> SchedOp:
    """An operation of plain values, for its shape."""
    under = model.under
    return SchedOp(0, on=RoleOp(0, uses=under.no_type, need=under.no_need, inject=under.no_type))


def step(model: Model, s: State, op: SchedOp, t: State, out: Out) -> Step:
    return Step(model.d, model.under.devices, seen(model, s), op, seen(model, t), out)


def invariants(model: Model, s: State) -> dict[str, Value]:
    """What holds in every state that can be reached; by name."""
    d, p, types = model.d, s.pair, model.types
    sizes = [x for tree in (p.asked, p.old, p.req) for x in leaves(tree)]
    held = [sum(model.under.real(p, t, p.asked[t])) + sum(model.under.real(p, t, p.old[t])) for t in types]
    both = d.all(*p.active)
    out = {
        "sizes are not negative": d.all(*(x >= 0 for x in sizes), *(x >= 1 for x in p.gran)),
        "the devices count the pair's bytes": d.all(*(p.used[t] >= held[t] for t in types)),
        "who is attached, and how": d.all(
            implies(d, p.owner, p.active[OWNER]), implies(d, both, p.owner), implies(d, p.behind, both),
            *(implies(d, p.uses[r][t], p.active[r]) for r in ROLES for t in types), implies(d, both, d.any(*p.common)),
            *(implies(d, both, p.common[t] == d.all(p.uses[OWNER][t], p.uses[BORROWER][t])) for t in types)),
        "no buffer that nobody uses": d.all(
            *(implies(d, x > 0, d.any(*(model.under.part(p, r, t) for r in ROLES)))
              for t in types for x in p.asked[t]),
            *(implies(d, x > 0, d.all(p.behind, p.uses[BORROWER][t])) for t in types for x in p.old[t])),
        "only who is there has work in flight or a graph": d.all(
            *(implies(d, d.any(s.busy[r], p.bound[r]), p.active[r]) for r in ROLES)),
        "what is bound is what was meant": d.all(
            *(implies(d, p.active[r], (s.meant[r] == NONE) == d.inv(p.bound[r])) for r in ROLES),
            *(implies(d, p.bound[r], s.meant[r] == s.graph[r]) for r in ROLES)),
        "what flies is what was sent": d.all(*(implies(d, s.busy[r], s.sent[r] == s.flying[r]) for r in ROLES)),
        "graphs are numbered from 0": d.all(*(x >= NONE for x in (*s.meant, *s.flying))),
        "what is bound has a number": d.all(*(implies(d, p.bound[r], s.graph[r] > NONE) for r in ROLES)),
        "a number of tensors is one": d.all(*(x >= 0 for x in s.nodes)),
        "the scheduler says what its allocator says": d.all(*equal((s.gen, s.shrink_gen), (p.gen, p.shrink_gen))),
    }  # fmt: skip
    return out


def lawful(model: Model, s: State, op: SchedOp) -> list[Value]:
    """Sizes are sizes, graphs have numbers, and a plan's graph has the plan's requirement."""
    d, on = model.d, op.on
    law = [x >= 0 for x in leaves(on.need)]
    law += [on.fail_nth >= 0, op.tensors >= 0, op.graph >= 0, on.other >= OWNER, on.other <= BORROWER]
    law += [op.role >= OWNER, op.role <= BORROWER]
    law += [
        implies(d, op.kind == int(k), op.role == r) for k, r in ((Kind.NEW, OWNER), (Kind.BORROW, BORROWER))
    ]
    binds = d.any(op.kind == int(Kind.ALLOC), op.kind == int(Kind.COMPUTE))
    for r in ROLES:
        fits = d.all(on.plannable, *equal(on.need, s.pair.req[r]))
        law.append(implies(d, d.all(binds, op.role == r, on.match, s.pair.planned[r]), fits))
    return law


def any_start(model: Model) -> tuple[State, list[Value]]:
    """Devices of any size and rounding."""
    cap, gran = (fresh((0,) * len(model.types), name) for name in ("cap", "gran"))
    return model.init(cap, gran), [x >= 1 for x in gran]


def first(model: Model) -> tuple[State, list[Value]]:
    """Devices of any size that round nothing."""
    types = len(model.types)
    cap = fresh((0,) * types, "cap")
    return model.init(cap, (1,) * types), [c >= 0 for c in cap]


def tidy(s: State) -> State:
    """The scheduler says what its allocator says; graphs are what was meant."""
    return s._replace(gen=s.pair.gen, shrink_gen=s.pair.shrink_gen, hurt=False)


def roles(kind: int) -> tuple[Fields, ...]:
    """Either role acts, where the kind does not say which."""
    only = {Kind.NEW: OWNER, Kind.BORROW: BORROWER}
    return tuple({"role": r} for r in ROLES if only.get(Kind(kind), r) == r)


def wishes(op: SchedOp) -> list[list[Value]]:
    """No failures, everything ordinary; scratch can be had."""
    first, *rest = asking.wishes(op.on, op.kind)
    return [[*first, op.scratch], *rest]


def words(tree: Tree) -> str:
    if isinstance(tree, State):
        rest = [f"{WHO[r]} has work in flight" for r in ROLES if tree.busy[r]]
        rest += [f"{WHO[r]}'s scheduler is made for {tree.nodes[r]}" for r in ROLES if tree.nodes[r]]
        return "; ".join([pair_words.state(tree.pair), *rest])
    if isinstance(tree, SchedOp):
        if tree.kind in (Kind.SYNC, Kind.RESET):
            return f"the {WHO[tree.role]} {'waits' if tree.kind == Kind.SYNC else 'resets'}"
        on = pair_words.operation(tree.on._replace(kind=tree.kind, role=tree.role))
        how = ", asynchronously" if tree.run_async and tree.kind == Kind.COMPUTE else ""
        return f"{on} (graph {tree.graph} of {tree.tensors}){how}"
    ran = f", graph {tree.ran} ran" if tree.ran != NONE else ""
    return Status(tree.status).name.lower() + ran


_MINE, _THEIRS = {"role": OWNER}, {"role": BORROWER}
MACHINE = Machine(
    name="scheduler",
    model=Model,
    configs=((1, 1), (2, 1)),
    kinds=KINDS,
    clauses=CLAUSES,
    init=lambda model: model.init((0,) * len(model.types)),
    operation=operation_of,
    rules=lambda *a: rules(step(*a)),
    invariants=invariants,
    lawful=lawful,
    words=words,
    start=any_start,
    begin=first,
    splits=roles,
    tidy=tidy,
    prefixes=(((Kind.NEW, _MINE), (Kind.OWN, _MINE), (Kind.BORROW, _THEIRS)), ((Kind.NEW, _MINE),)),
    wishes=wishes,
    sizes="types x chunks",
)
