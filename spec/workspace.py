"""W1, W2, W3, W7, W8 of one context's reservations, as predicates of one step; and their proof.

A step is what a caller sees: what each lane is reserved for and its count, before and after,
and `Calls`, history that follows from the operations alone. The same rules judge the policy
over terms (the proof), over ints, and what a subject showed (fuzz/contexts.py).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..model.domain import Tree, Value
from ..model.records import Kind, Memory, Status
from ..model.terms import fresh
from ..model.workspace import NOTHING, Frame, Lane, Need, Parts, Policy
from .machine import Machine, Rules
from .step import Rule

CLAUSES = ("W1", "W2", "W3", "W7", "W8")
IN_A_ROW = 64  #: W2
BOTH_LANES = 64  #: W3, tokens


class Calls(NamedTuple):
    """History of one lane."""

    less: Value  # calls in a row, up to now, that needed less than was reserved
    peak: Need  # the largest need of those
    prompt: Value  # a batch above the generation size came, or nothing was ever reserved since opening


class Seen(NamedTuple):
    """One context as it is observed: [lane]."""

    open: Value
    reserved: Tree  # Need
    fewer: Tree


class PolicyOp(NamedTuple):
    """CTX_OPEN, CTX_CLOSE or CTX_DECODE. `fails` [lane]: the lane's reservation fails."""

    kind: Value
    tokens: Value = 1
    used: Value = 0
    fails: Tree = (False, False)


class PolicyOut(NamedTuple):
    """What the caller is told, and how the template was scaled (W7): by lane 0's reservation, by the batch."""

    status: Value
    reserves: Value  # reservations that the policy itself asked for
    reserved: Parts
    bound: Parts
    failed: Tree = (False, False)  # [lane]: its reservation was asked for, and failed


class Context(NamedTuple):
    """State of the machine: the context, the policy's lanes, the history."""

    frame: Frame
    open: Value
    lanes: Tree  # [lane] Lane
    calls: Tree  # [lane] Calls


# -- the words of the rules ----------------------------------------------------------------


def needs(d: Any, c: Frame, tokens: Value, used: Value) -> Need:
    """W1, W7: what a batch needs, as the contract states it."""
    small = d.all(c.phase, tokens <= c.generation)
    whole = 8 * c.eighth
    step = d.ite(used <= c.eighth, c.eighth, d.ite(used <= 2 * c.eighth, 2 * c.eighth,
                 d.ite(used <= 4 * c.eighth, 4 * c.eighth, whole)))  # fmt: skip
    bounded = d.all(c.live, c.memory != int(Memory.OTHER_MEMORY))
    return Need(d.ite(small, c.generation, c.batch), d.ite(bounded, step, whole))


def above(d: Any, a: Need, b: Need) -> Value:
    """`a` is more than `b` in some component."""
    return d.any(a.tokens > b.tokens, a.cells > b.cells)


def same(d: Any, a: Need, b: Need) -> Value:
    return d.all(a.tokens == b.tokens, a.cells == b.cells)


def runs(d: Any, c: Frame, tokens: Value) -> Tree:
    """W3, [lane]: lane 1 computes of batches of at least 64 tokens only."""
    return (True, d.all(c.two, tokens >= BOTH_LANES))


def follow(d: Any, c: Frame, g: Calls, before: Need, op: PolicyOp, ran: Value, failed: Value) -> Calls:
    """The history of a lane after a batch; `before`: what it was reserved for. `failed`: it has nothing now."""
    need = needs(d, c, op.tokens, op.used)
    counts = d.all(d.inv(above(d, need, before)), above(d, before, need))
    again = d.all(g.less > 0, g.less < IN_A_ROW)
    peak = Need(d.max(g.peak.tokens, need.tokens), d.max(g.peak.cells, need.cells))
    counted = Calls(d.ite(again, g.less + 1, 1), d.ite(again, peak, need), g.prompt)
    new = d.ite(counts, counted, g._replace(less=0))
    new = d.ite(failed, g._replace(less=0), d.ite(ran, new, g))
    out: Calls = new._replace(prompt=d.any(g.prompt, op.tokens > c.generation))
    return out


def opened(d: Any, g: Calls) -> Calls:
    return Calls(0, g.peak, False)


# -- the rules -------------------------------------------------------------------------------


def rules(d: Any, c: Frame, a: Seen, op: PolicyOp, b: Seen, out: PolicyOut, h: Tree) -> dict[str, Rules]:
    """By clause, the parts that speak of one operation. `h` [lane]: the history after it."""
    found: dict[str, Rules] = {clause: {} for clause in CLAUSES}
    opens = d.all(op.kind == int(Kind.CTX_OPEN), out.status == int(Status.DONE))
    decodes = d.all(op.kind == int(Kind.CTX_DECODE), out.status == int(Status.DONE))
    ran = runs(d, c, op.tokens)
    full, off = Need(c.batch, 8 * c.eighth), d.all(d.inv(c.phase), d.inv(c.live))
    for lane in (0, 1):
        exists = True if lane == 0 else c.two
        for clause, parts in _lane(d, c, a, op, b, h[lane], lane, d.all(decodes, ran[lane])).items():
            found[clause] |= {f"lane {lane}: {name}": rule for name, rule in parts.items()}
        found["W1"] |= _opening(d, c, b, lane, d.all(opens, exists))
        served = d.any(d.all(opens, exists), d.all(decodes, ran[lane]))
        kept = d.all(same(d, b.reserved[lane], full), b.fewer[lane] == 0)
        found["W8"][f"lane {lane}: without options all is reserved"] = Rule(d.all(served, off), kept)
    steady = d.all(
        off, decodes, *(d.any(d.inv(r), same(d, x, full)) for r, x in zip(ran, a.reserved, strict=True))
    )
    found["W8"]["without options nothing is reserved again"] = Rule(steady, out.reserves == 0)
    found["W3"] |= _lanes(d, c, a, op, b, decodes)
    found["W3"] |= _apart(d, c, a, op, b, decodes, found)
    for lane in (0, 1):
        found["W2"][f"lane {lane}: a reservation that failed is none"] = Rule(
            d.all(op.kind == int(Kind.CTX_DECODE), out.failed[lane]),
            d.all(same(d, b.reserved[lane], NOTHING), b.fewer[lane] == 0),
        )
    found["W7"] |= _parts(d, c, op, b, out, d.any(opens, decodes), decodes)
    return found


def _opening(d: Any, c: Frame, b: Seen, lane: int, opens: Value) -> Rules:
    least = needs(d, c, 1, 0)
    return {f"lane {lane}: opening reserves for one token in an empty cache": Rule(
        opens, d.all(same(d, b.reserved[lane], least), b.fewer[lane] == 0))}  # fmt: skip


def _lane(
    d: Any, c: Frame, a: Seen, op: PolicyOp, b: Seen, h: Calls, lane: int, when: Value
) -> dict[str, Rules]:
    """W1 and W2 of one lane that ran a part of a batch, and was served."""
    old, new = a.reserved[lane], b.reserved[lane]
    need = needs(d, c, op.tokens, op.used)
    grows = above(d, need, old)
    largest = Need(d.max(old.tokens, need.tokens), d.max(old.cells, need.cells))
    steps = d.any(*(new.cells == k * c.eighth for k in (1, 2, 4, 8)))
    late = h.less == IN_A_ROW
    return {
        "W1": {
            "enough tokens for the batch": Rule(when, op.tokens <= new.tokens, False),
            "the generation size until a prompt comes": Rule(
                d.all(when, c.phase, d.inv(h.prompt)), new.tokens == c.generation
            ),
            "the micro-batch for a prompt": Rule(
                d.all(when, op.tokens > c.generation), new.tokens == c.batch
            ),
            "cells in power-of-two steps of one eighth": Rule(when, steps, False),
            "cells grow to the least step that holds those in use": Rule(
                d.all(when, new.cells > old.cells), new.cells == need.cells
            ),
        },
        "W2": {
            "cells grow at once": Rule(d.all(when, need.cells > old.cells), op.used <= new.cells),
            "growth at once, and by no more than is needed": Rule(
                d.all(when, grows), same(d, new, largest)
            ),
            "smaller only after 64 calls in a row that need less": Rule(
                d.all(when, d.inv(grows), d.inv(same(d, new, old))), late
            ),
            "after 64 it is what those calls needed": Rule(d.all(when, late), same(d, new, h.peak)),
            "a call that needs as much, or more, starts the count again": Rule(
                d.all(when, h.less == 0), b.fewer[lane] == 0
            ),
            "every call that needs less counts": Rule(
                d.all(when, h.less > 0), b.fewer[lane] == d.ite(late, 0, h.less)
            ),
        },
    }  # fmt: skip


def _lanes(d: Any, c: Frame, a: Seen, op: PolicyOp, b: Seen, decodes: Value) -> Rules:
    """W3. Each lane's own count is W2's business, stated over its own history."""
    small = d.all(decodes, op.tokens < BOTH_LANES)
    wide = d.all(decodes, c.two, op.tokens >= BOTH_LANES)
    stays = d.all(same(d, a.reserved[1], b.reserved[1]), a.fewer[1] == b.fewer[1])
    return {
        "lane 1 stays as it is for a batch of less than 64 tokens": Rule(small, stays),
        "lane 1 follows a batch of at least 64 tokens": Rule(
            wide, d.all(op.tokens <= b.reserved[1].tokens, op.used <= b.reserved[1].cells)
        ),
    }


def _apart(
    d: Any, c: Frame, a: Seen, op: PolicyOp, b: Seen, decodes: Value, found: dict[str, Rules]
) -> Rules:
    """W3: each lane keeps its own state. Lane 1, where it is not what its own calls make of it (W1, W2), is not
    what follows from lane 0's state: neither from that before the batch, nor from that after it."""
    mine = [r for k in ("W1", "W2") for name, r in found[k].items() if name.startswith("lane 1: ")]
    own = d.all(*(d.any(d.inv(r.when), r.then) for r in mine))
    less = above(d, b.reserved[0], needs(d, c, op.tokens, op.used))
    counted = d.any(b.fewer[1] == b.fewer[0], b.fewer[1] == d.ite(less, b.fewer[0] + 1, 0))
    like_0 = d.all(same(d, b.reserved[1], b.reserved[0]), counted)
    alike = d.all(same(d, a.reserved[0], a.reserved[1]), a.fewer[0] == a.fewer[1])
    wide = d.all(decodes, c.two, op.tokens >= BOTH_LANES)
    return {
        "lane 1 does not follow lane 0's state": Rule(d.all(wide, d.inv(alike)), d.any(own, d.inv(like_0)))
    }


def _parts(d: Any, c: Frame, op: PolicyOp, b: Seen, out: PolicyOut, when: Value, decodes: Value) -> Rules:
    """W7: which kinds are bounded, by what, and that a bounded reservation covers every batch it is for."""
    other = c.memory == int(Memory.OTHER_MEMORY)
    windowed = d.any(c.memory == int(Memory.KV_WINDOW), c.memory == int(Memory.HYBRID_WINDOW))
    indexed = c.memory == int(Memory.HYBRID_INDEXER)
    cells, parts, most = b.reserved[0].cells, out.reserved, c.window + c.batch
    small = d.all(parts.window <= cells, parts.window <= most)
    exact = d.any(parts.window == cells, parts.window == most)
    return {
        "a kind without a bounded reservation keeps the full one": Rule(
            d.all(when, other), cells == 8 * c.eighth
        ),
        "attention cells are those reserved": Rule(when, parts.attention == cells, False),
        "a window is bounded by itself and a micro-batch": Rule(
            d.all(when, windowed), d.all(small, exact)
        ),
        "no window where there is none": Rule(d.all(when, d.inv(windowed)), parts.window == 0, False),
        "the indexer follows the attention cache": Rule(
            d.all(when, indexed), parts.indexer == parts.attention
        ),
        "no indexer where there is none": Rule(d.all(when, d.inv(indexed)), parts.indexer == 0, False),
        "a reservation covers the batch, part by part": Rule(
            decodes, d.all(*(x <= y for x, y in zip(out.bound, parts, strict=True))), False
        ),
    }  # fmt: skip


# -- the machine ---------------------------------------------------------------------------------


class Watched:
    """The policy of one context, with the history that its rules need."""

    policy: type[Policy] = Policy

    def __init__(self, d: Any) -> None:
        self.d, self.p = d, self.policy(d)

    def step(self, s: Context, op: PolicyOp) -> tuple[Context, PolicyOut]:
        arms = {
            Kind.CTX_OPEN: lambda: self.opening(s, op),
            Kind.CTX_CLOSE: lambda: (s._replace(open=False), self.out(s, op, self.done(s.open), 0)),
            Kind.CTX_DECODE: lambda: self.decode(s, op),
        }
        new: tuple[Context, PolicyOut] = self.d.switch(
            op.kind, arms, lambda: (s, self.out(s, op, int(Status.MISUSE), 0))
        )
        return new

    def done(self, may: Value) -> Value:
        return self.d.ite(may, int(Status.DONE), int(Status.MISUSE))

    def out(
        self, s: Context, op: PolicyOp, status: Value, reserves: Value, failed: Tree = (False, False)
    ) -> PolicyOut:
        parts = self.p.parts(s.frame, s.lanes[0].reserved.cells)
        return PolicyOut(status, reserves, parts, self.p.parts(s.frame, op.used), failed)

    def opening(self, s: Context, op: PolicyOp) -> tuple[Context, PolicyOut]:
        d = self.d
        first = self.p.start(s.frame)
        new = s._replace(open=True, lanes=(first, first), calls=tuple(opened(d, g) for g in s.calls))
        fails = d.any(op.fails[0], d.all(s.frame.two, op.fails[1]))
        status = d.ite(s.open, int(Status.MISUSE), d.ite(fails, int(Status.REFUSED), int(Status.DONE)))
        t = d.ite(d.any(s.open, fails), s, new)
        return t, self.out(t, op, status, 0)

    def decode(self, s: Context, op: PolicyOp) -> tuple[Context, PolicyOut]:
        """Lanes in order; after one whose reservation fails nothing more is done."""
        d, c = self.d, s.frame
        new = self.p.decode(c, s.lanes, op.tokens, op.used)
        ran = runs(d, c, op.tokens)
        lanes, calls, failed, refused, reserves = [], [], [], False, 0
        for lane, after, g, fails, mine in zip(s.lanes, new, s.calls, op.fails, ran, strict=True):
            here = d.all(mine, d.inv(refused))
            moves = d.all(here, d.inv(same(d, lane.reserved, after.reserved)))
            fails = d.all(moves, fails)
            lanes.append(d.ite(refused, lane, d.ite(fails, self.p.failed(lane), after)))
            calls.append(follow(d, c, g, lane.reserved, op, here, fails))
            failed.append(fails)
            reserves = reserves + d.ite(moves, 1, 0)
            refused = d.any(refused, fails)
        t = s._replace(lanes=tuple(lanes), calls=tuple(calls))
        may = d.all(s.open, self.p.lawful(c, op.tokens, op.used))
        status = d.ite(may, d.ite(refused, int(Status.REFUSED), int(Status.DONE)), int(Status.MISUSE))
        t = d.ite(may, t, s)
        failed = [d.all(may, x) for x in failed]
        return t, self.out(t, op, status, d.ite(may, reserves, 0), tuple(failed))


def seen(s: Context) -> Seen:
    return Seen(s.open, tuple(x.reserved for x in s.lanes), tuple(x.fewer for x in s.lanes))


def invariants(m: Watched, s: Context) -> dict[str, Value]:
    """What holds in every state that can be reached."""
    d, c = m.d, s.frame
    out = {
        "the frame makes sense": d.all(
            c.eighth >= 1, c.generation >= 1, c.generation <= c.batch, c.window >= 0
        )
    }
    for n, (lane, g) in enumerate(zip(s.lanes, s.calls, strict=True)):
        r = lane.reserved
        nothing, exists = same(d, r, NOTHING), d.all(s.open, True if n == 0 else c.two)
        named = {
            "reserves for a batch": d.any(d.inv(exists), nothing, _plausible(d, c, r, g.prompt)),
            "counts": d.all(lane.fewer >= 0, lane.fewer < IN_A_ROW, g.less >= 0, g.less <= IN_A_ROW,
                            lane.fewer == d.ite(g.less == IN_A_ROW, 0, g.less)),
            "keeps the largest need": d.any(lane.fewer == 0, d.all(
                same(d, lane.peak, g.peak), _plausible(d, c, g.peak, g.prompt), d.inv(above(d, g.peak, r)))),
            "counts for nothing where nothing is reserved": d.any(d.inv(nothing), lane.fewer == 0),
        }  # fmt: skip
        out |= {f"lane {n} {name}": value for name, value in named.items()}
    return out


def _plausible(d: Any, c: Frame, r: Need, prompt: Value) -> Value:
    """Some batch needs this, component by component."""
    bounded = d.all(c.live, c.memory != int(Memory.OTHER_MEMORY))
    steps = d.any(*(r.cells == k * c.eighth for k in (1, 2, 4)))
    small = d.all(c.phase, r.tokens == c.generation)
    large = d.all(d.any(d.inv(c.phase), prompt), r.tokens == c.batch)
    return d.all(d.any(small, large), d.any(r.cells == 8 * c.eighth, d.all(bounded, steps)))


def lawful(m: Watched, s: Context, op: PolicyOp) -> list[Value]:
    """A frame is what it is; numbers of cells and tokens are not negative."""
    c = s.frame
    known = m.d.any(*(c.memory == int(k) for k in Memory))
    return [known, op.tokens >= 0, op.used >= 0]


def _rules(m: Watched, s: Context, op: PolicyOp, t: Context, out: PolicyOut) -> dict[str, Rules]:
    return rules(m.d, s.frame, seen(s), op, seen(t), out, t.calls)


def shape(_: Watched) -> Context:
    """A context of eight cells that is not open."""
    lane, calls = Lane(NOTHING, NOTHING, 0), Calls(0, NOTHING, False)
    return Context(Frame(0, False, False, False, 1, 0, 1, 1), False, (lane, lane), (calls, calls))


def start(m: Watched) -> tuple[Context, list[Value]]:
    """Any context, not open yet."""
    s = shape(m)
    s = s._replace(frame=fresh(s.frame, "frame"))
    known = m.d.any(*(s.frame.memory == int(k) for k in Memory))
    return s, [known, *invariants(m, s).values()]


MACHINE = Machine(
    name="the workspace policy",
    model=Watched,
    configs=((),),
    kinds=(Kind.CTX_OPEN, Kind.CTX_CLOSE, Kind.CTX_DECODE),
    clauses=CLAUSES,
    init=shape,
    start=start,
    operation=lambda _: PolicyOp(0),
    rules=_rules,
    invariants=invariants,
    lawful=lawful,
)

__all__ = ["MACHINE", "Calls", "Context", "PolicyOp", "PolicyOut", "Seen", "follow", "needs", "rules"]
