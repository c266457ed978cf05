"""The reference model of captured graphs: what is recorded, when it may be replayed, and what a capture forbids.

`Model.step` is a pure function over a domain (see domain.py); no `if` looks at a value. It knows of
each allocator only what matters here: whether a graph is bound, the generation of its buffers, and
whether the pool memory that its captured graph uses is mapped. Buffers and pools themselves are
other machines' business. docs/choices.md, "Captured graphs"; clauses Q1 to Q3 of the contract.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .domain import Domain, Tree, Value
from .records import Kind, Status

_MISUSE, _REFUSED, _DONE, _STALE = map(int, (Status.MISUSE, Status.REFUSED, Status.DONE, Status.STALE))
NOBODY = -1


class State(NamedTuple):
    """All allocators; [n] is by allocator."""

    at: Value  # the allocator whose stream is captured, NOBODY
    taken: Value  # graphs recorded so far
    has: Tree  # [n]           has a captured graph
    has_gen: Tree  # [n]       the generation that it remembers
    bound: Tree  # [n]         a graph is bound
    bound_gen: Tree  # [n]     generation when it was bound
    gen: Tree  # [n]           generation now
    busy: Tree  # [n]          has work in flight
    mates: Tree  # [n][n]      the two share buffers
    mapped: Tree  # [n]        the pool memory that its captured graph uses is mapped
    then: Tree  # [n]          history: generation when it was captured
    stale: Tree  # [n]         history: buffers that its captured graph uses were replaced
    trimmed: Tree  # [n]       history: pools of its devices were trimmed since its last capture


class CaptureOp(NamedTuple):
    """One operation. Fields that a kind does not name are ignored."""

    kind: Value  # records.Kind
    alloc: Value = 0
    unchecked: Value = False  # LAUNCH
    run_async: Value = False  # LAUNCH, COMPUTE: return with work in flight
    scratch: Value = True  # COMPUTE: the pools give what is asked of them
    lent: Value = False  # LAUNCH: pool memory that it uses is handed out to somebody
    replaces: Value = False  # RESERVE, ALLOC: buffers must be made or replaced
    fails: Value = False  # RESERVE, ALLOC: and that fails
    reach: Tree = ()  # TRIM: [n] it uses a device of the type
    evicts: Tree = ()  # POOL_FREE: [n] a block that its captured graph uses is freed


class Out(NamedTuple):
    """What the caller sees, beside the state."""

    status: Value
    touched: Value = False  # LAUNCH: ran on memory that is gone
    replaced: Value = False  # buffers were made or replaced
    trimmed: Value = False  # pools gave memory back
    anew: Value = False  # the allocator was freed, remade or made larger


class Model:
    """The step function for `allocs` allocators over domain `d`."""

    def __init__(self, d: Domain | type[Any], allocs: int) -> None:
        self.d: Any = d
        self.allocs = range(allocs)

    def init(self) -> State:
        """Nothing is captured, nobody shares."""
        off, zero = (False,) * len(self.allocs), (0,) * len(self.allocs)
        mates = (off,) * len(self.allocs)
        return State(NOBODY, 0, off, zero, off, zero, zero, off, mates, off, zero, off, off)

    # -- the step ----------------------------------------------------------------

    def step(self, s: State, op: CaptureOp) -> tuple[State, Out]:
        """The state after `op`, and what the caller sees."""
        d, me = self.d, tuple(op.alloc == n for n in self.allocs)

        def apart(arm: Any) -> Any:
            """What neither the captured allocator nor who shares with it may do meanwhile."""
            return lambda: d.choose(self.involved(s, me), lambda: self.misuse(s), lambda: arm(s, me, op))

        arms = {
            Kind.CAPTURE_BEGIN: lambda: self.begin(s, me, op),
            Kind.CAPTURE_END: lambda: self.end(s, me, op),
            Kind.COMPUTE: lambda: self.compute(s, me, op),
            Kind.RESERVE: lambda: self.reserve(s, me, op),
            Kind.ALLOC: lambda: self.reserve(s, me, op),
            Kind.TRIM: lambda: self.trim(s, op),
            Kind.POOL_FREE: lambda: self.evict(s, op),
            Kind.LAUNCH: apart(self.launch),
            Kind.DROP: apart(self.drop),
            Kind.FREE: apart(self.leave),
            Kind.REMAKE: apart(self.leave),
            Kind.SYNC: apart(self.sync),
            Kind.RESET: apart(self.reset),
            Kind.OWN: apart(lambda s, me, op: self.done(s)),
            Kind.BORROW: apart(lambda s, me, op: self.done(s)),
        }
        new: tuple[State, Out] = d.switch(op.kind, arms, lambda: self.done(s))
        return new

    def done(self, s: State) -> tuple[State, Out]:
        return s, Out(_DONE)

    def misuse(self, s: State) -> tuple[State, Out]:
        return s, Out(_MISUSE)

    def mine(self, me: Tree, row: Tree) -> Value:
        """The flag of the allocator that acts."""
        return self.d.any(*map(self.d.all, me, row))

    def put(self, me: Tree, new: Value, row: Tree) -> Tree:
        """The row with `new` for the allocator that acts."""
        return tuple(self.d.ite(m, new, x) for m, x in zip(me, row, strict=True))

    def now(self, me: Tree, s: State, row: Tree) -> Tree:
        """The row with the present generation for the allocator that acts."""
        return tuple(self.d.ite(m, g, x) for m, g, x in zip(me, s.gen, row, strict=True))

    def shares(self, s: State, me: Tree) -> Tree:
        """[n]: shares buffers with the allocator that acts."""
        columns = (tuple(s.mates[m][n] for m in self.allocs) for n in self.allocs)
        return tuple(self.mine(me, column) for column in columns)

    def capturing(self, s: State) -> Value:
        return s.at != NOBODY

    def involved(self, s: State, me: Tree) -> Value:
        """The allocator that acts is being captured, or shares buffers with the one that is."""
        shares = self.shares(s, me)
        near = (self.d.any(m, x) for m, x in zip(me, shares, strict=True))
        return self.d.any(*(self.d.all(s.at == n, x) for n, x in enumerate(near)))

    def waited_for(self, s: State, me: Tree) -> Value:
        """Who shares buffers with the allocator that acts has work in flight."""
        return self.mine(s.busy, self.shares(s, me))

    # -- capturing -----------------------------------------------------------------

    def begin(self, s: State, me: Tree, op: CaptureOp) -> tuple[State, Out]:
        d = self.d
        idle = d.inv(d.any(self.mine(me, s.busy), self.waited_for(s, me), self.capturing(s)))
        may = d.all(self.mine(me, s.bound), idle)
        older = self.mine(me, tuple(a != b for a, b in zip(s.gen, s.bound_gen, strict=True)))
        dropped = s._replace(bound=self.put(me, False, s.bound))
        begun = s._replace(at=op.alloc, taken=0)
        result: tuple[State, Out] = d.ite(
            may, d.ite(older, (dropped, Out(_STALE)), (begun, Out(_DONE))), self.misuse(s)
        )
        return result

    def compute(self, s: State, me: Tree, op: CaptureOp) -> tuple[State, Out]:
        """Recorded where its stream is captured; else it runs, which is other machines' business."""
        d = self.d
        recorded = d.ite(op.scratch, s.taken + 1, s.taken)
        record = s._replace(taken=recorded), Out(d.ite(op.scratch, _DONE, _REFUSED))
        ran = s._replace(busy=self.put(me, op.run_async, s.busy)), Out(_DONE)
        result: tuple[State, Out] = d.ite(
            s.at == op.alloc, record, d.ite(self.involved(s, me), self.misuse(s), ran)
        )
        return result

    def end(self, s: State, me: Tree, op: CaptureOp) -> tuple[State, Out]:
        """The record becomes the captured graph; it remembers the generation."""
        d = self.d
        over = s._replace(at=NOBODY, taken=0)
        kept = over._replace(
            has=self.put(me, True, s.has), mapped=self.put(me, True, s.mapped),
            has_gen=self.now(me, s, s.has_gen), then=self.now(me, s, s.then),
            stale=self.put(me, False, s.stale), trimmed=self.put(me, False, s.trimmed),
        )  # fmt: skip
        found = d.ite(s.taken > 0, (kept, Out(_DONE)), (over, Out(_REFUSED)))
        result: tuple[State, Out] = d.ite(s.at == op.alloc, found, self.misuse(s))
        return result

    # -- replaying -----------------------------------------------------------------

    def launch(self, s: State, me: Tree, op: CaptureOp) -> tuple[State, Out]:
        """Q1: not under another generation, and not on pool memory that is not mapped."""
        d = self.d
        may = d.all(self.mine(me, s.has), d.inv(self.waited_for(s, me)))
        older = d.any(d.all(self.outdated(s, me), d.inv(op.unchecked)), d.inv(self.mine(me, s.mapped)))
        gone = s._replace(has=self.put(me, False, s.has))
        touched = d.any(self.mine(me, s.stale), d.inv(self.mine(me, s.mapped)))
        ran = s._replace(busy=self.put(me, op.run_async, s.busy))
        current = d.ite(op.lent, self.misuse(s), (ran, Out(_DONE, touched=touched)))
        result: tuple[State, Out] = d.ite(may, d.ite(older, (gone, Out(_STALE)), current), self.misuse(s))
        return result

    def outdated(self, s: State, me: Tree) -> Value:
        """The generation is another than at the capture."""
        return self.mine(me, tuple(a != b for a, b in zip(s.gen, s.has_gen, strict=True)))

    def drop(self, s: State, me: Tree, op: CaptureOp) -> tuple[State, Out]:
        result: tuple[State, Out] = self.d.ite(
            self.mine(me, s.has), self.done(s._replace(has=self.put(me, False, s.has))), self.misuse(s)
        )
        return result

    # -- what changes the memory under it --------------------------------------------

    def reserve(self, s: State, me: Tree, op: CaptureOp) -> tuple[State, Out]:
        """RESERVE, ALLOC. Q3: during a capture no buffer is made or replaced."""
        d = self.d
        refused = d.all(op.replaces, self.frozen(s))
        with_me = tuple(d.any(m, x) for m, x in zip(me, self.shares(s, me), strict=True))
        new = s._replace(
            gen=tuple(d.ite(w, g + 1, g) for w, g in zip(with_me, s.gen, strict=True)),
            stale=tuple(d.any(x, w) for w, x in zip(with_me, s.stale, strict=True)),
        )
        after = d.ite(op.replaces, new, s)
        done = d.inv(d.all(op.replaces, op.fails))
        binds = d.all(op.kind == int(Kind.ALLOC), done)
        after = after._replace(
            bound=d.ite(binds, self.put(me, True, s.bound), s.bound),
            bound_gen=d.ite(binds, self.now(me, after, s.bound_gen), s.bound_gen),
        )
        out = Out(d.ite(done, _DONE, _REFUSED), replaced=op.replaces)
        result: tuple[State, Out] = d.ite(refused, (s, Out(_REFUSED)), (after, out))
        return result

    def frozen(self, s: State) -> Value:
        """Q3: nothing may be replaced or trimmed."""
        return self.capturing(s)

    def trim(self, s: State, op: CaptureOp) -> tuple[State, Out]:
        """Q2: who uses a device of it has no captured graph any more. Q3: not during a capture."""
        d = self.d
        unmapped = tuple(d.all(m, d.inv(r)) for m, r in zip(s.mapped, op.reach, strict=True))
        after = s._replace(
            mapped=unmapped, trimmed=tuple(map(d.any, s.trimmed, op.reach)), has=self.kept(s, op)
        )
        result: tuple[State, Out] = d.ite(
            self.frozen(s), (s, Out(_REFUSED)), (after, Out(_DONE, trimmed=True))
        )
        return result

    def kept(self, s: State, op: CaptureOp) -> Tree:
        """Q2: [n] whose captured graph outlives a trim."""
        return tuple(self.d.all(h, self.d.inv(r)) for h, r in zip(s.has, op.reach, strict=True))

    def evict(self, s: State, op: CaptureOp) -> tuple[State, Out]:
        """A legacy pool frees a block that a captured graph uses."""
        d = self.d
        return self.done(
            s._replace(mapped=tuple(d.all(m, d.inv(e)) for m, e in zip(s.mapped, op.evicts, strict=True)))
        )

    def leave(self, s: State, me: Tree, op: CaptureOp) -> tuple[State, Out]:
        """FREE, REMAKE: its buffers go."""
        off = {f: self.put(me, False, getattr(s, f)) for f in ("has", "bound", "busy")}
        up = tuple(self.d.ite(m, g + 1, g) for m, g in zip(me, s.gen, strict=True))
        return s._replace(gen=up, **off), Out(_DONE, anew=True)

    def sync(self, s: State, me: Tree, op: CaptureOp) -> tuple[State, Out]:
        return self.done(s._replace(busy=self.put(me, False, s.busy)))

    def reset(self, s: State, me: Tree, op: CaptureOp) -> tuple[State, Out]:
        return self.done(s._replace(bound=self.put(me, False, s.bound)))
