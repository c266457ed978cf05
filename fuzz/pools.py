"""V: the books of device pools, kept from what a subject showed of them.

A pool's range, bytes and blocks are seen whenever an operation names it; what else happens to it
(scratch of computations, trims) is followed from operations, statuses and the devices' sums. Where
that leaves something open, it is not judged until it is known again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..model.pool import KEPT, Out, Pool, PoolOp
from ..model.records import (
    MAX_STREAMS,
    Cap,
    Kind,
    Observation,
    Op,
    OpFlag,
    PoolKind,
    Status,
    Trace,
    Trouble,
    has,
)
from ..model.stack.pools import pool_model, rooms
from ..native.worker import StepSeen
from ..spec.pool import Seen, Step, rules
from .fresh import Fresh

POOL_OPS = (Kind.POOL_ALLOC, Kind.POOL_FREE)
Block = tuple[int, int]  #: address and bytes, as they were handed out
Found = list[tuple[str, str]]  #: (clause, message)
#: what one fault breaks first is told first: whom a trim reaches before what it gives back
ORDER = ("V1", "V5", "V4", "V2", "V3")


@dataclass
class _One:
    """One pool, as far as it is known."""

    pool: Pool
    blocks: list[Block] = field(default_factory=list)
    unsure: bool = False  # legacy: which blocks it keeps is not known
    unserved: bool = False  # a computation on its stream was refused since it was last seen
    sizes: dict[int, int] = field(default_factory=dict)  # legacy: bytes of its blocks, by address
    lost: bool = False  # how much of the device's pool memory it has is not known


class Books:
    """Judges POOL_ALLOC, POOL_FREE and TRIM, and computations that were refused for want of scratch."""

    def __init__(self, trace: Trace, caps: Cap, fresh: Fresh) -> None:
        setup = trace.setup
        self.setup, self.there = setup, setup.pool != PoolKind.NO_POOL
        self.model, self.room = pool_model(setup), rooms(setup)
        none = (0,) * len(setup.types)
        start = self.model.init(none, none)
        self.known = [_One(p) for p in start.pools]
        self.used, self.pooled = none, none
        self.cap = tuple(t.capacity for t in setup.types)
        self.by_sched: set[int] = set()
        self.judged: tuple[Counter[str], Found] = (Counter(), [])

    # -- which operations ------------------------------------------------------------

    def drives(self, op: Op) -> bool:
        return op.kind in (*POOL_OPS, Kind.TRIM)

    def takes(self, op: Op, seen: StepSeen) -> bool:
        """A plain allocator's COMPUTE is refused only where its scratch cannot be had."""
        wants = self.there and op.kind == Kind.COMPUTE and op.alloc not in self.by_sched
        return self.drives(op) or (wants and seen.obs.status == Status.REFUSED)

    def blame(self, op: Op) -> str:
        """Who dies in a pool touches memory that is not mapped, or not accessible."""
        return {Kind.TRIM: "V3"}.get(op.kind, "V2")

    def tally(self, op: Op, seen: StepSeen) -> Counter[str]:
        self.judged = self.judge(op, seen)
        return self.judged[0]

    def step(self, op: Op, seen: StepSeen) -> Iterator[tuple[str, str]]:
        self.went(seen.obs)
        yield from sorted(self.judged[1], key=lambda found: ORDER.index(found[0]))
        if self.drives(op):
            self.note(op, seen.obs)
        else:
            self.scratch(op, seen.obs)
        self.used, self.pooled = seen.obs.used, seen.obs.pooled

    def watch(self, op: Op, seen: StepSeen) -> Iterator[tuple[str, str]]:
        """Others change capacities, and their computations take scratch."""
        obs = seen.obs
        if op.kind == Kind.CAPACITY and obs.status == Status.DONE:
            self.cap = tuple(op.value if k == op.other else c for k, c in enumerate(self.cap))
        if op.kind == Kind.NEW and obs.status == Status.DONE:
            self.by_sched -= {op.alloc}
            self.by_sched |= {op.alloc} if has(op.flags, OpFlag.BY_SCHED) else set()
        self.went(obs)
        self.scratch(op, obs)
        self.used, self.pooled = obs.used, obs.pooled
        if obs.trouble & Trouble.BAD_POOL and not has(op.flags, OpFlag.UNCHECKED):
            yield "V2", "scratch does not hold what a node wrote to it: something else lies there"

    # -- judging -------------------------------------------------------------------------

    def judge(self, op: Op, seen: StepSeen) -> tuple[Counter[str], Found]:
        """How often each clause was exercised, and what is broken."""
        obs = seen.obs
        asked = self.asked(op, obs)
        if asked is None:
            return self.whole(op, obs)
        ask, out = asked
        history = tuple(one.pool.out for one in self.known), tuple(one.unserved for one in self.known)
        before = Seen(self.settled(), self.pooled, self.used, self.cap, self.room, *history)
        after = Seen(self.pools_after(op, obs), obs.pooled, obs.used, self.cap, self.room, *history)
        tally: Counter[str] = Counter()
        broken: Found = []
        for clause, parts in rules(Step(self.model, before, ask, after, out)).items():
            for name, rule in parts.items():
                tally[clause] += bool(rule.when and rule.counts)
                if rule.when and not rule.then:
                    broken.append((clause, name))
        if obs.trouble & Trouble.BAD_POOL:
            broken.append(("V2", "a block does not hold what was written to it"))
        return Counter({c: int(n > 0) for c, n in tally.items()}), broken

    def whole(self, op: Op, obs: Observation) -> tuple[Counter[str], Found]:
        """V2, where which blocks a legacy pool keeps is not known: one that it hands out again has the bytes it had."""
        again = op.kind == Kind.POOL_ALLOC and obs.status == Status.DONE and obs.allocations == 0
        if self.model.vmm or not (self.there and again) or self.setup.types[op.other].meta:
            return Counter(), []
        one = self.known[self.named(op)]
        had = one.sizes.get(obs.address)
        if had is None:
            return Counter(), []
        whole = self.size_of(one, obs) == had
        return Counter(V2=1), [] if whole else [("V2", "a kept block is not handed out whole")]

    def asked(self, op: Op, obs: Observation) -> tuple[PoolOp, Out] | None:
        """The operation and its result, as the rules know them; None where they say nothing of it."""
        setup = self.setup
        if not self.there or obs.capturing:
            return None  # during a capture Q says what is refused
        if op.kind == Kind.COMPUTE:
            return PoolOp(int(op.kind)), Out(int(obs.status), obs.allocations)
        if op.kind == Kind.TRIM:
            if any(one.lost and one.blocks for one in self.known):
                return None
            devices = setup.types[op.other].devices(op.other)
            reach = tuple(k in devices for k in range(len(setup.types)))
            early = bool(obs.trouble & Trouble.FREED_BUSY)
            ask = PoolOp(int(op.kind), reach=reach, meta=bool(setup.types[op.other].meta))
            return ask, Out(int(obs.status), released=obs.released, early=early)
        one = self.known[self.named(op)]
        if setup.types[op.other].meta or one.unsure or one.lost:
            return None
        if op.kind == Kind.POOL_FREE:
            if op.value >= len(one.blocks):
                return None
            address, size = one.blocks[-1 - op.value]
            return PoolOp(int(op.kind), self.named(op), size, address), Out(int(obs.status))
        ask = PoolOp(int(op.kind), self.named(op), op.value, inject=bool(op.fail_types >> op.other & 1),
                     fail_nth=op.fail_nth)  # fmt: skip
        size = self.size_of(one, obs) if obs.status == Status.DONE else 0
        return ask, Out(int(obs.status), obs.allocations, obs.address, size)

    def named(self, op: Op) -> int:
        return op.other * MAX_STREAMS + op.alloc

    def size_of(self, one: _One, obs: Observation) -> int:
        """Bytes of a block that was handed out."""
        return obs.out - one.pool.out

    def settled(self) -> tuple[Pool, ...]:
        """All pools; of those that are lost, one has what the device's pools have beside the others."""
        pools = [one.pool for one in self.known]
        for k, held in enumerate(self.pooled):
            mine = [p for p in self.model.pools if self.model.device(p) == k]
            lost = [p for p in mine if self.known[p].lost]
            if lost:
                rest = held - sum(pools[p].mapped for p in mine if p not in lost)
                for n, p in enumerate(lost):
                    pools[p] = pools[p]._replace(mapped=rest if n == 0 else 0)
        return tuple(pools)

    # -- following -----------------------------------------------------------------------

    def pools_after(self, op: Op, obs: Observation) -> tuple[Pool, ...]:
        """All pools after the operation."""
        pools = list(self.settled())
        if op.kind in POOL_OPS and obs.status != Status.MISUSE:
            p = self.named(op)
            pools[p] = self.pool_after(op, obs, self.known[p])
        elif op.kind == Kind.TRIM and obs.status == Status.DONE:
            devices = self.setup.types[op.other].devices(op.other)
            for p, pool in enumerate(pools):
                if self.model.device(p) in devices and pool.out == 0:
                    empty = self.model.places
                    pools[p] = pool._replace(mapped=0, kept=empty, at=empty)
        return tuple(pools)

    def pool_after(self, op: Op, obs: Observation, one: _One) -> Pool:
        """The pool that an operation names, as it was shown."""
        old = one.pool
        new = old._replace(base=obs.base, mapped=obs.mapped, out=obs.out)
        if self.model.vmm or obs.status != Status.DONE:
            return new
        kept = [(x, y) for x, y in zip(old.kept, old.at, strict=True) if x]
        if op.kind == Kind.POOL_ALLOC:
            kept = [(x, y) for x, y in kept if obs.allocations or y != obs.address]
        elif op.value < len(one.blocks) and obs.mapped == old.mapped:
            address, size = one.blocks[-1 - op.value]
            kept = [*kept, (size, address)][-KEPT:]
        kept += [(0, 0)] * (KEPT - len(kept))
        return new._replace(kept=tuple(x for x, _ in kept), at=tuple(y for _, y in kept))

    def note(self, op: Op, obs: Observation) -> None:
        """What the operation did to the pools and their blocks."""
        pools = self.pools_after(op, obs)
        trimmed = op.kind == Kind.TRIM and obs.status == Status.DONE
        for p, one in enumerate(self.known):
            seen = op.kind in POOL_OPS and p == self.named(op) and obs.status != Status.MISUSE
            if seen and op.kind == Kind.POOL_ALLOC and obs.status == Status.DONE:
                one.blocks.append((obs.address, self.size_of(one, obs)))
                one.sizes[obs.address] = self.size_of(one, obs)
            if seen and op.kind == Kind.POOL_FREE and op.value < len(one.blocks):
                del one.blocks[-1 - op.value]
            one.lost &= not seen
            one.unserved &= not (seen or (trimmed and pools[p].mapped == 0))
            one.unsure &= not (trimmed and pools[p].mapped == 0)
            one.pool = pools[p]

    def went(self, obs: Observation) -> None:
        """Where a device's pools have less than before, a block's address may come to be another's."""
        for p, one in enumerate(self.known):
            k = self.model.device(p)
            if obs.pooled and self.pooled and obs.pooled[k] < self.pooled[k]:
                one.sizes.clear()

    def scratch(self, op: Op, obs: Observation) -> None:
        """A computation may have made its stream's pools larger, and legacy pools used their blocks in another order."""
        if not self.there:
            return
        grown = [b - a for a, b in zip(self.pooled, obs.pooled, strict=True)]
        ran = op.kind in (Kind.COMPUTE, Kind.LAUNCH) and obs.status != Status.MISUSE
        deep = op.kind >= Kind.CTX_OPEN  # on which stream is the context's business
        for p, one in enumerate(self.known):
            device, stream = divmod(p, MAX_STREAMS)
            if ran and op.alloc == stream:
                one.pool = one.pool._replace(mapped=one.pool.mapped + grown[device])
            one.unserved |= ran and op.alloc == stream and obs.status == Status.REFUSED
            one.lost |= deep and grown[device] != 0
            one.unsure |= not self.model.vmm and (deep or (ran and op.alloc == stream))
