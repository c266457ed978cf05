"""Walks of one context's policy, and of target and draft together, as traces.

The policy's walks are those of a target alone, with two lanes where its frame says so. Of the two contexts'
walks only what is abstract is chosen here: how many tokens and cells a batch has that changes the reservation,
or does not, and how large the templates are, so that a reservation replaces the shared buffers, or does not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Any

from ...model.domain import Ints, Tree, Value
from ...model.records import (
    BufferType,
    Context,
    Flag,
    Graph,
    Kind,
    Memory,
    Observation,
    Op,
    OpFlag,
    Option,
    PoolKind,
    Scale,
    Setup,
    Status,
    Tensor,
    Trace,
)
from ...model.stack import Stack
from ...model.waiting import CONTEXTS, DRAFT, TARGET
from ...spec import bounded
from ...spec.asking import implies
from ...spec.machine import Machine
from ...spec.witness import Earlier
from .made import Draft, Made, Unlike, made


def template(size: int) -> Graph:
    """A graph that needs `size` bytes for each token and cell."""
    work = Tensor(size, (0,), Flag.OUTPUT, scale=Scale.SCALE_ATTENTION)
    return Graph((Tensor(1, flags=Flag.LEAF | Flag.PREALLOC), work))


# -- the policy ----------------------------------------------------------------------------


def policy_real(model: Any, s: Tree, op: Any, earlier: Earlier) -> list[Value]:
    """A context that is legal. Formulas."""
    c = s.frame
    law = [c.batch <= 256, c.eighth <= 64, c.window <= 1024, op.tokens <= 4096, op.used <= 4096]
    return [*law, implies(model.d, op.kind == int(Kind.CTX_CLOSE), op.tokens == 1)]


def policy_accept(m: Machine, walk: bounded.Trace) -> Made | None:
    f = walk.start.frame
    options = (Option.PHASE_AWARE if f.phase else Option(0)) | (Option.LIVE_CONTEXT if f.live else Option(0))
    context = Context(
        0, 0, Memory(f.memory), options, 2 if f.two else 1, 8 * f.eighth, f.window, f.generation, f.batch
    )
    setup = Setup((BufferType(),), ((0,),), contexts=(context,))
    model, s, ops = m.model(Ints, *walk.config), walk.start, []
    for op in walk.ops:
        t, out = model.step(s, op)
        ops.append(_policy_op(s, op, t, out))
        s = t
    trace = Trace(setup, (template(1),), tuple(ops))
    try:
        return made(m, walk, Draft(trace, tuple(range(len(ops)))), policy_same)
    except Unlike:
        return None


def _policy_op(s: Any, op: Any, t: Any, out: Any) -> Op:
    """Every reservation that moves tries one allocation, lane by lane."""
    kind = Kind(op.kind)
    if kind != Kind.CTX_DECODE:
        fails = kind == Kind.CTX_OPEN and out.status == Status.REFUSED
        return Op(kind, fail_nth=(1 if op.fails[0] else 2) if fails else 0)
    nth = 0
    if any(out.failed):
        nth = int(out.reserves)  # it is the last that was tried
    return Op(kind, 0, op.used, fail_nth=nth, value=op.tokens)


def policy_same(op: Any, out: Any, seen: Observation) -> bool:
    reserves = op.kind != Kind.CTX_DECODE or out.reserves == seen.reserves
    return bool(out.status == seen.status and reserves)


def less(tokens: int) -> tuple[tuple[int, dict[str, Any]], ...]:
    """A context that is opened, needs much, then 63 times less: batches of so many tokens on a cache that empties."""
    calm = {"fails": (False, False)}
    much = (Kind.CTX_DECODE, {**calm, "tokens": tokens, "used": 64})
    little = (Kind.CTX_DECODE, {**calm, "tokens": tokens, "used": 1})
    return ((Kind.CTX_OPEN, {**calm, "tokens": 1, "used": 0}), much, *(little,) * 63)


# -- target and draft --------------------------------------------------------------------------


def real(model: Any, s: Tree, op: Any, earlier: Earlier) -> list[Value]:
    """The placement does not change, and what is reserved again as it was replaces nothing. Formulas."""
    d = model.d
    law = [op.bumps == 0]
    law += [other.places == op.places for other, _ in earlier[:1]]
    idle = d.any(op.replaces, d.inv(op.fails))  # nothing fails where nothing is asked of the devices
    law.append(implies(d, op.kind != int(Kind.CTX_OPEN), idle))
    decodes = op.kind == int(Kind.CTX_DECODE)
    law.append(implies(d, d.all(decodes, op.replaces), d.any(op.changed, op.due)))
    return law


GENERATION, BATCH, CELLS = 64, 128, 64
_PHASE_LIVE = Option.PHASE_AWARE | Option.LIVE_CONTEXT


@dataclass
class Two:
    """Makes the trace while the reference runs beside it; `sizes`: of each context's template."""

    sizes: tuple[int, int]
    places: bool
    ops: list[Op] = field(default_factory=list)
    top: list[int] = field(default_factory=lambda: [CELLS // 8] * 2)  # cells that are reserved for
    last: list[tuple[int, int]] = field(default_factory=lambda: [(1, 0)] * 2)
    nodes: int = 2

    def __post_init__(self) -> None:
        kinds = [Context(c if not self.places else 0, c, Memory.KV, _PHASE_LIVE, 2, CELLS, 0, GENERATION, BATCH, 2)
                 for c in CONTEXTS]  # fmt: skip
        self.setup = Setup((BufferType(), BufferType()), ((0,), (0, 1)), contexts=tuple(kinds))
        self.graphs = tuple(map(template, self.sizes))
        self.stack = Stack(self.setup, list(self.graphs))

    def do(self, op: Op) -> int:
        self.stack.step(op)
        self.ops.append(op)
        return len(self.ops) - 1

    def add(self, op: Any, out: Any) -> int:
        kind, who = Kind(op.kind), int(op.who)
        fails: dict[str, Any] = {"fail_types": 1} if op.fails else {}
        if kind == Kind.CTX_DECODE:
            return self.decode(op, out, who, fails)
        if kind == Kind.CTX_OPEN and out.status == Status.DONE:
            self.top[who], self.last[who] = CELLS // 8, (1, 0)
        return self.do(Op(kind, who, **(fails if kind != Kind.CTX_CLOSE and kind != Kind.CTX_SYNC else {})))

    def decode(self, op: Any, out: Any, who: int, fails: dict[str, Any]) -> int:
        if op.due:
            self.nodes += 1
            self.do(Op(Kind.CTX_NODES, who, value=self.nodes))
        if op.changed:
            self.top[who] *= 2
            if self.top[who] > CELLS:
                raise Unlike("no reservation is larger")
        tokens, used = self.last[who]
        if op.wide != (tokens >= 64):
            tokens = 64 if op.wide else 1
        low = self.top[who] // 2 + 1 if self.top[who] > CELLS // 8 else 0
        used = max(used, low)
        if op.rebinds and (tokens, used) == self.last[who]:
            used = low + (used == low)
        self.last[who] = (tokens, used)
        flags = (OpFlag.ASYNC if op.asynchronous else OpFlag(0)) | (
            OpFlag.UNCHECKED if op.unchecked else OpFlag(0)
        )
        return self.do(
            Op(Kind.CTX_DECODE, who, used, flags=flags, value=tokens, **(fails if out.reserves else {}))
        )

    def facts(self, s: Any) -> None:
        """Raises Unlike where the reference is in another state than the machine."""
        contexts = self.stack.contexts
        for who in CONTEXTS:
            c = contexts.known.get(who)
            if (c is not None) != bool(s.open[who]):
                raise Unlike("open")
            if c is None or (who == DRAFT and not s.able):
                continue
            number = c.alloc(0)
            if bool(contexts.sched.busy(number)) != bool(s.busy[who][0]):
                raise Unlike("busy")
            outdated = contexts.readings(number) != c.known[0]
            if outdated != bool(s.reading[who] != s.known[who]):
                raise Unlike("readings")
            bound = contexts.session.allocs[number].bound is not None and c.bound[0] is not None
            if bound != bool(s.bound[who]):
                raise Unlike("bound")
        if contexts.attached != bool(s.attached):
            raise Unlike("attached")


def same(op: Any, out: Any, seen: Observation) -> bool:
    """The status, and how often it waited; a wide batch reserves on lane 1 too."""
    reserves = op.kind != Kind.CTX_DECODE or op.wide or out.reserves == seen.reserves
    return bool(out.status == seen.status and out.waits == seen.waits and reserves)


def accept(m: Machine, walk: bounded.Trace) -> Made | None:
    """None where the walk cannot be brought about with any of a few templates."""
    places = all(op.places for op in walk.ops)
    for sizes in product((1, 16), (1, 16, 4)):
        two = Two(sizes, places)
        model, s, at = m.model(Ints, *walk.config), walk.start, list[int]()
        try:
            for op in walk.ops:
                s, out = model.step(s, op)
                at.append(two.add(op, out))
                two.facts(s)
            return made(m, walk, Draft(Trace(two.setup, two.graphs, tuple(two.ops)), tuple(at)), same)
        except Unlike:
            continue
    return None


# -- the server ------------------------------------------------------------------------------------

MAPPED = 4096  #: bytes that a pool has after a computation
_TOKENS = 64


def server_real(model: Any, s: Tree, op: Any, earlier: Earlier) -> list[Value]:
    """What a target that reserves for all answers. Formulas."""
    d = model.d
    done, refused, misuse = (op.status == int(x) for x in (Status.DONE, Status.REFUSED, Status.MISUSE))
    step = op.kind == int(Kind.SLOT_STEP)
    able = d.all(op.tokens >= 1, op.tokens <= _TOKENS)
    law = [d.any(done, refused, misuse), op.tokens <= 2 * _TOKENS, misuse == d.inv(able)]
    law.append(implies(d, refused, d.all(step, s.pooled == 0)))
    law.append(implies(d, d.inv(step), d.all(done, op.tokens == 1)))
    works = d.any(d.all(step, done), op.kind == int(Kind.CTX_DECODE))
    law.append(op.grows == d.ite(d.all(works, s.pooled == 0), MAPPED, 0))
    return law


def server_accept(m: Machine, walk: bounded.Trace) -> Made | None:
    context = Context(0, 0, Memory.KV, Option(0), 1, 1024, 8, _TOKENS, _TOKENS)
    setup = Setup((BufferType(),), ((0,),), pool=PoolKind.VMM_POOL, pool_range=1 << 20, contexts=(context,))
    ops = []
    for op in walk.ops:
        kind, fails = Kind(op.kind), 0
        if kind == Kind.SLOT_STEP:
            fails = int(op.status == Status.REFUSED)
        value = op.tokens if kind == Kind.SLOT_STEP else 1 if kind == Kind.CTX_DECODE else 0
        who = op.slot if kind >= Kind.SLOT_ENTER else TARGET
        ops.append(Op(kind, who, fail_types=fails, value=value))
    trace = Trace(setup, (template(1),), tuple(ops))
    try:
        return made(m, walk, Draft(trace, tuple(range(len(ops)))), server_same)
    except Unlike:
        return None


def server_same(op: Any, out: Any, seen: Observation) -> bool:
    return bool(out.status == seen.status and out.released == seen.released)
