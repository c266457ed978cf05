"""R1 to R14 (with G1, G2, P12 at requirement level, and M1) as predicates of one step of a pair.

`step_checks` gives, for one operation, every clause as named parts, over any
domain: terms for the proof, ints for the model's steps and for what a foreign
subject showed. A part says "if this happened, then that must hold"; `exercised`
says of which clauses something happened. The parts are as permissive as the
contract: what docs/choices.md adds is the model's business, not theirs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from ..model.domain import Value
from ..model.pair import BORROWER, OWNER, ROLES, mine
from ..model.records import Kind, Status
from .history import ready, real
from .step import Rule, Step

CHECKED = ("R1", "R2", "R3", "R4", "R5", "R6", "R7", "R8", "R9", "R10", "R11", "R12", "R13", "R14",
           "G1", "G2", "P12")  # fmt: skip
META = ("M1",)  #: what only types over several devices exercise


Rules = dict[str, Rule]


def attaching(p: Step) -> dict[str, Rules]:
    """R1 and R2."""
    d, g, op = p.d, p.g, p.op
    owning = d.all(p.kind(Kind.OWN), p.acts)
    buffers = d.any(*(x > 0 for entry in p.s.asked for x in entry))
    taken = d.any(g.owner, d.all(op.role == BORROWER))
    plain = d.all(d.inv(taken), d.inv(buffers), d.inv(g.ever[OWNER]), d.inv(g.planned[OWNER]))
    borrowing = p.kind(Kind.BORROW)
    meet = d.any(*map(d.all, g.uses[OWNER], op.uses))
    lendable = d.all(op.other == OWNER, g.owner, g.active[OWNER])
    good = d.all(op.clean, lendable, d.inv(g.active[BORROWER]), meet)
    return {
        "R1": {
            "no owner with buffers": Rule(d.all(owning, buffers), p.refused()),
            "an owner or borrower cannot own": Rule(d.all(owning, taken), p.refused()),
            "a plain one without buffers can own": Rule(d.all(owning, plain), p.out.ok),
            "no borrower with buffers": Rule(d.all(borrowing, d.inv(op.clean)), p.refused()),
            "one borrower at a time": Rule(d.all(borrowing, g.active[BORROWER]), p.refused()),
        },
        "R2": {
            "refused where the other is no owner": Rule(d.all(borrowing, d.inv(lendable)), p.refused()),
            "refused where it has a borrower": Rule(d.all(borrowing, g.active[BORROWER]), p.refused()),
            "refused where no type is common": Rule(d.all(borrowing, d.inv(meet)), p.refused()),
            "otherwise done": Rule(d.all(borrowing, good), p.out.ok),
            "nothing changed": Rule(d.all(borrowing, p.refused()), p.untouched()),
            "attaching changes no buffer": Rule(
                d.all(borrowing, p.out.ok),
                d.all(p.no_allocations(), p.same(p.s.used, p.t.used), *map(d.inv, map(p.changed, p.types))),
            ),
        },
    }  # fmt: skip


def fitting(p: Step) -> dict[str, Rules]:
    """R3 to R6, G1: what a reservation does to each entry."""
    d = p.d
    rules: dict[str, Rules] = {k: {} for k in ("R3", "R4", "R5", "R6", "G1")}
    injected = d.any(p.op.fail_nth > 0, *(d.all(p.mine(t), p.injected(t)) for t in p.types))
    rules["R4"]["the old buffer never counts beside the new"] = Rule(
        d.all(
            p.reserve,
            d.any(*(d.all(p.mine(t), d.inv(p.room_beside(t))) for t in p.types)),
            d.inv(injected),
            *(d.any(d.inv(p.mine(t)), p.on_device(t)) for t in p.types),
        ),
        p.out.ok,
    )
    rules["G1"]["a reservation that fits changes nothing"] = Rule(_idle(p), _nothing_done(p))
    for t in p.types:
        here = p.mine(t)
        served = d.all(p.served, here)
        grow = d.inv(p.had_room(t))
        moved = d.all(p.reserve, here, p.changed(t))
        unforced = d.all(moved, d.inv(grow))
        common = p.h.common[t]
        may = d.any(p.all_tried(t), p.private_request())
        rules["R3"][f"type {t}: at least the maximum"] = Rule(served, p.has_room(t))
        rules["R3"][f"type {t}: exact where just resized"] = Rule(d.all(moved, d.inv(p.empty(t))), p.exact(t))
        rules["R4"][f"type {t}: grows at once"] = Rule(d.all(served, grow), p.has_room(t))
        rules["R5"][f"type {t}: no replacement without need or request"] = Rule(
            unforced, d.any(p.g.open, p.private_request())
        )
        rules["R5"][f"type {t}: replaced whole where a chunk must grow"] = Rule(
            d.all(served, grow), p.exact(t)
        )
        rules["R6"][f"type {t}: common, only after all reserved"] = Rule(
            d.all(unforced, common), p.all_tried(t)
        )
        rules["R6"][f"type {t}: private, only on request"] = Rule(d.all(unforced, d.inv(common)), may)
        rules["R6"][f"type {t}: common, exact once all reserved"] = Rule(
            d.all(p.completed(), here, common), p.exact(t)
        )
        rules["R6"][f"type {t}: private, exact at the requester's reserve"] = Rule(
            d.all(served, d.inv(common), p.private_request()), p.exact(t)
        )
    unchanged = d.all(*(d.any(d.inv(p.mine(t)), p.same(p.s.asked[t], p.want(t))) for t in p.types))
    rules["R6"]["nothing replaced where what is asked for is the same"] = Rule(
        d.all(p.reserve, unchanged), d.all(p.out.ok, p.no_allocations(), *map(d.inv, map(p.changed, p.types)))
    )
    return rules


def _idle(p: Step) -> Value:
    """A reservation that fits, and nothing that may shrink or is behind."""
    d = p.d
    calm = [d.any(d.inv(p.mine(t)), d.all(p.had_room(t), d.inv(p.all_tried(t)))) for t in p.types]
    return d.all(p.reserve, d.inv(p.late), d.inv(p.private_request()), *calm)


def _nothing_done(p: Step) -> Value:
    return p.d.all(p.out.ok, p.no_allocations(), p.untouched())


def counters(p: Step) -> dict[str, Rules]:
    """R7, R8, and of R5 that nothing else replaces a buffer."""
    d, s, t, g = p.d, p.s, p.t, p.g
    r7: Rules = {}
    r8: Rules = {}
    asked = d.all(p.kind(Kind.SHRINK), p.out.ok)
    aside = d.all(p.me[BORROWER], g.behind)
    for r in ROLES:
        stays, who = p.stays(r), ("owner", "borrower")[r]
        had = d.any(*(x > 0 for entry in p.holds(s, g, r) for x in entry))
        hit = d.all(stays, had, d.inv(p.keeps(r)))
        up = t.shrink_gen[r] > s.shrink_gen[r]
        same = t.shrink_gen[r] == s.shrink_gen[r]
        quiet = d.inv(d.any(p.kind(Kind.FREE, Kind.REMAKE, Kind.SHRINK)))
        r7[f"{who}: never goes down"] = Rule(stays, t.gen[r] >= s.gen[r], counts=False)
        r7[f"{who}: up when a buffer goes"] = Rule(hit, t.gen[r] > s.gen[r])
        r8[f"{who}: up when a request starts"] = Rule(d.all(asked, stays, d.inv(g.open), d.inv(aside)), up)
        r8[f"{who}: not when one is pending"] = Rule(d.all(asked, stays, g.sure), same)
        r8[f"{who}: up when the other detaches"] = Rule(d.all(p.kind(Kind.FREE), p.acts, stays), up)
        r8[f"{who}: not otherwise"] = Rule(d.all(stays, quiet), same, counts=False)
        r8[f"{who}: never goes down"] = Rule(stays, t.shrink_gen[r] >= s.shrink_gen[r], counts=False)
    others = d.inv(d.any(p.reserve, p.kind(Kind.FREE, Kind.REMAKE, Kind.NEW)))
    r5 = {
        "only a reserve replaces buffers": Rule(others, d.inv(d.any(*map(p.changed, p.types))), counts=False)
    }
    return {"R5": r5, "R7": r7, "R8": r8}


def failing(p: Step) -> dict[str, Rules]:
    """R9, R10 and G2: reservations that fail, and what comes after."""
    d, op = p.d, p.op
    must = [d.all(p.mine(t), d.inv(p.had_room(t))) for t in p.types]
    small = [d.all(m, *map(operator.lt, op.need[t], p.want(t))) for t, m in zip(p.types, must, strict=True)]
    full = d.any(*(d.all(m, d.inv(p.on_device(t))) for t, m in zip(p.types, must, strict=True)))
    injected = d.any(*(d.all(m, p.injected(t)) for t, m in zip(p.types, must, strict=True)))
    fine = d.all(d.inv(op.fail_nth > 0), *(
        d.any(d.inv(p.mine(t)), d.all(d.inv(p.injected(t)), p.on_device(t))) for t in p.types))  # fmt: skip
    broken = d.any(*(d.all(p.mine(t), *(x == 0 for x in p.s.asked[t]), p.wanted(t)) for t in p.types))
    binding = d.all(p.kind(Kind.ALLOC), p.acts)
    refused_alloc = d.all(binding, d.inv(p.reserve), p.refused())
    return {
        "R9": {
            "one entry closed, those before done, those after untouched": Rule(
                p.failed, d.any(*(_closed(p, t) for t in p.types))),
            "no byte lost": Rule(p.failed, _balance(p)),
            "a refused allocation is a refused reserve": Rule(d.all(p.reserve, injected), p.refused()),
            "success leaves no entry closed": Rule(p.served, d.all(*(
                d.any(d.inv(p.mine(t)), d.inv(p.wanted(t)), d.inv(p.empty(t))) for t in p.types))),
        },
        "R10": {
            "fails while the requirements do not fit": Rule(d.all(p.reserve, full), p.refused()),
            "the other's requirement still counts": Rule(
                d.all(p.reserve, full, d.any(*small)), p.refused()),
            "works again once they fit": Rule(d.all(p.reserve, broken, fine), p.out.ok),
        },
        "G2": {
            "alloc binds only to memory that is there": Rule(d.all(binding, p.out.ok), _room_for_graph(p)),
            "alloc by a plan that fits is done": Rule(
                d.all(binding, op.plannable, ready(d, p.g, p.s, op)), p.out.ok),
            "a refused alloc changes nothing": Rule(refused_alloc, p.untouched()),
            "no failure without a reason": Rule(d.all(p.reserve, broken, fine), p.out.ok),
        },
    }  # fmt: skip


def _closed(p: Step, t: int) -> Value:
    """Entry `t` failed: it is empty, those before it have what is wanted, those after it were not touched."""
    d = p.d
    before = (d.any(d.inv(p.mine(j)), p.has_room(j)) for j in p.types if j < t)
    after = (d.inv(p.changed(j)) for j in p.types if j > t)
    reason = d.any(p.injected(t), p.op.fail_nth > 0, d.inv(p.on_device(t)))
    return d.all(p.mine(t), reason, p.wanted(t), p.empty(t), *before, *after)


def _balance(p: Step) -> Value:
    """Every device's bytes in use changed by what the pair's buffers changed."""
    return p.d.all(*map(p.balanced, range(len(p.on))))


def _room_for_graph(p: Step) -> Value:
    d = p.d
    parts = []
    for r in ROLES:
        for t, entry in zip(p.types, p.holds(p.t, p.h, r), strict=True):
            enough = d.all(*map(operator.le, p.op.need[t], real(d, p.t, t, entry)))
            parts.append(d.any(d.inv(p.me[r]), d.inv(p.h.uses[r][t]), enough))
    return d.all(*parts)


def leaving(p: Step) -> dict[str, Rules]:
    """R11, R13 and R14."""
    d, s, t, g, h = p.d, p.s, p.t, p.g, p.h
    free = d.all(p.kind(Kind.FREE), p.acts)
    last = d.all(free, d.inv(d.any(*h.active)))
    gone = [d.all(p.empty(x), *(y == 0 for y in t.old[x])) for x in p.types]
    remade = d.all(p.kind(Kind.REMAKE), p.out.ok, h.active[BORROWER])
    still = d.all(g.behind, h.behind)
    lent = d.all(h.active[OWNER], h.active[BORROWER], d.inv(h.behind))
    own = [d.all(free, mine(d, p.me, tuple(u[x] for u in g.uses)), d.inv(g.common[x])) for x in p.types]
    r11 = {f"the {who} keeps its buffers when the other goes": Rule(d.all(free, p.stays(r)), p.keeps(r))
           for r, who in zip(ROLES, ("owner", "borrower"), strict=True)}  # fmt: skip
    r11["with the last, every buffer goes"] = Rule(last, d.all(*gone))
    r11["private buffers go with their role"] = Rule(
        d.any(*own),
        d.all(*(d.any(d.inv(o), g.behind, p.empty(x)) for o, x in zip(own, p.types, strict=True))),
    )
    r11["no byte lost"] = Rule(d.inv(d.any(p.failed, p.kind(Kind.NEW))), _balance(p), counts=False)
    r13 = {}
    for x in p.types:
        r13[f"type {x}: every byte counted once"] = Rule(
            p.bytes(t, x) > 0, t.owned[OWNER][x] + t.owned[BORROWER][x] == p.bytes(t, x)
        )
        r13[f"type {x}: a borrowed byte is the owner's"] = Rule(
            d.all(lent, h.common[x]), t.owned[BORROWER][x] == 0
        )
    r14 = {
        "the borrower keeps its buffers": Rule(
            remade, d.all(p.keeps(BORROWER), t.gen[BORROWER] == s.gen[BORROWER])
        ),
        "until its own next reserve": Rule(
            still, d.all(p.keeps(BORROWER), t.gen[BORROWER] == s.gen[BORROWER])
        ),
        "then borrows the new ones": Rule(
            d.all(p.late, p.reserve),
            d.all(*(y == 0 for entry in t.old for y in entry), d.inv(h.behind)),
        ),
    }
    return {"R11": r11, "R13": r13, "R14": r14}


def meta(p: Step) -> dict[str, Rules]:
    """M1: what a reservation does to the parts of a meta type's buffers."""
    d = p.d
    m1: Rules = {}
    for t in p.types:
        if len(p.devices[t]) == 1:
            continue  # whole already where its one part is
        whole = d.all(*map(p.balanced, p.devices[t]))
        m1[f"type {t}: a part on every device"] = Rule(d.all(p.served, p.mine(t), p.changed(t)), whole)
        m1[f"type {t}: after a failure no part is left"] = Rule(
            d.all(p.failed, p.mine(t), p.wanted(t), p.empty(t)), whole
        )
        m1[f"type {t}: a device that cannot give its part fails it"] = Rule(
            d.all(p.reserve, p.mine(t), d.inv(p.had_room(t)), d.any(p.injected(t), d.inv(p.on_device(t)))),
            p.refused())  # fmt: skip
    return {"M1": m1}


def using(p: Step) -> dict[str, Rules]:
    """R12 and P12."""
    d, g = p.d, p.g
    run = d.all(p.kind(Kind.COMPUTE), mine(d, p.me, g.bound), d.inv(p.op.unchecked))
    older = mine(d, p.me, tuple(map(operator.ne, p.s.gen, g.bound_gen)))
    never = d.all(p.kind(Kind.COMPUTE), p.acts, d.inv(mine(d, p.me, g.bound)))
    return {
        "R12": {
            "an outdated graph is not computed": Rule(d.all(run, older), p.out.status == int(Status.STALE)),
            "a current graph is computed": Rule(d.all(run, d.inv(older)), p.out.ok),
            "no memory that is gone is touched": Rule(run, d.inv(p.out.touched)),
            "a dropped graph stays dropped": Rule(never, p.out.status == int(Status.MISUSE)),
        },
        "P12": {"a measure changes nothing": Rule(d.all(p.kind(Kind.MEASURE), p.acts), d.all(
            p.untouched(), p.no_allocations()))},
    }  # fmt: skip


ALL = tuple(Kind)
GROUPS: tuple[tuple[Callable[[Step], dict[str, Rules]], tuple[Kind, ...]], ...] = (
    (attaching, (Kind.OWN, Kind.BORROW)),
    (fitting, (Kind.RESERVE, Kind.ALLOC)),
    (failing, (Kind.RESERVE, Kind.ALLOC)),
    (counters, ALL),
    (leaving, ALL),
    (using, (Kind.COMPUTE, Kind.MEASURE)),
    (meta, (Kind.RESERVE, Kind.ALLOC)),
)


def rules(p: Step) -> dict[str, Rules]:
    """Every clause that is checked here, in the order of CHECKED and META, as its named parts.

    Where the operation's kind is known, parts that have nothing to say of it are left out.
    """
    found: dict[str, Rules] = {clause: {} for clause in (*CHECKED, *META)}
    for group, kinds in GROUPS:
        if kinds is ALL or p.kind(*kinds) is not False:
            for clause, parts in group(p).items():
                found[clause] |= parts
    return found


def holds(d: Any, rule: Rule) -> Value:
    """The rule as one truth value."""
    return d.any(d.inv(rule.when), rule.then)


def step_checks(p: Step) -> dict[str, dict[str, Value]]:
    """By clause and part: true where the step keeps it."""
    return {c: {name: holds(p.d, r) for name, r in parts.items()} for c, parts in rules(p).items()}


def exercised(p: Step) -> dict[str, Value]:
    """By clause: some part of it had something to say of the step."""
    return {c: p.d.any(*(r.when for r in parts.values() if r.counts)) for c, parts in rules(p).items()}


class Verdict(NamedTuple):
    """Over ints: of which clauses the step says something, and which parts it breaks, as (clause, part)."""

    exercised: list[str]
    broken: list[tuple[str, str]]


def judge(p: Step) -> Verdict:
    """`exercised` and the broken parts in one go; for domain Ints."""
    found = rules(p)
    met = [c for c, parts in found.items() if any(r.counts and r.when for r in parts.values())]
    bad = [(c, name) for c, parts in found.items() for name, r in parts.items() if r.when and not r.then]
    return Verdict(met, bad)


def chunk_claim(p: Step) -> Value:
    """The false claim of R5: no chunk ever becomes smaller without a request (and not by a failure)."""
    d = p.d
    less = [
        d.all(p.reserve, p.mine(t), d.inv(p.empty(t)), d.any(*map(operator.lt, p.t.asked[t], p.s.asked[t])))
        for t in p.types
    ]
    return d.all(
        *(d.any(d.inv(x), p.all_tried(t), p.private_request()) for t, x in zip(p.types, less, strict=True))
    )
