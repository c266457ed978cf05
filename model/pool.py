"""The reference model of device pools: on virtual memory (VMM), and legacy (blocks kept and reused).

`Model.step` is a pure function from a state and an operation to a new state and what the
caller sees of it, over a domain (see domain.py). No `if` looks at a value. Sizes are bytes.
Every device has a pool for each of its streams: pool `device * streams + stream`.
Exact behaviour is fixed in docs/choices.md, "Pools"; clauses V1 to V5 of the contract.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .domain import Domain, Tree, Value
from .records import Kind, PoolKind, Status

ALIGNMENT = 128  #: a block takes a multiple of it, at least one
LARGEST = 2**63 - 1  #: a larger block is refused, nothing is tried
KEPT = 16  #: blocks that a legacy pool keeps at most
_MISUSE, _REFUSED, _DONE = map(int, (Status.MISUSE, Status.REFUSED, Status.DONE))


class Pool(NamedTuple):
    """One pool."""

    base: Value  # VMM: first address of its range, 0: not reserved yet
    mapped: Value  # physical bytes
    out: Value  # bytes of them that are handed out
    kept: Tree  # [place]      legacy: bytes of the blocks that it keeps, the one kept longest first; 0: none
    at: Tree  # [place]        legacy: their addresses


class State(NamedTuple):
    """All pools and the devices under them."""

    pools: Tree  # [pool]
    used: Tree  # [device]     bytes in use, by anyone
    cap: Tree  # [device]      bytes there are
    room: Tree  # [device]     addresses that a VMM pool reserves, whole units
    busy: Tree  # [pool]       history: work is in flight on its stream
    due: Tree  # [pool]        history: bytes handed out, going by blocks that came and went alone
    unserved: (
        Tree  # [pool]   history: a computation on its stream was refused since a block last came or went
    )


class PoolOp(NamedTuple):
    """One operation. Fields that a kind does not name are ignored."""

    kind: Value  # records.Kind: POOL_ALLOC, POOL_FREE, TRIM, CAPACITY; COMPUTE and SYNC of a stream
    pool: Value = 0
    size: Value = (
        0  # POOL_ALLOC: bytes wanted; COMPUTE: scratch; POOL_FREE: bytes of the block, as handed out
    )
    address: Value = 0  # POOL_FREE: the block's
    fresh: Value = 1  # POOL_ALLOC: the address that the driver gives next
    inject: Value = False  # POOL_ALLOC: every allocation fails
    fail_nth: Value = 0  # the n-th allocation of the operation fails, 0: none
    before: Value = 0  # allocations that the operation tried before
    beside: Value = False  # COMPUTE: the pool of another of its devices has no scratch
    reach: Tree = ()  # TRIM: [device]
    meta: Value = False  # TRIM: through a meta type (V4)
    device: Value = 0  # CAPACITY
    value: Value = 0  # CAPACITY: bytes from now on


class Out(NamedTuple):
    """What the caller sees, beside the state."""

    status: Value  # records.Status
    allocations: Value = 0  # create, map and set-access count as one each
    address: Value = 0  # POOL_ALLOC: of the block
    size: Value = 0  # POOL_ALLOC: bytes that the block has
    released: Value = 0  # TRIM: bytes given back
    early: Value = False  # TRIM: memory went that work in flight uses


class Model:
    """The step function over domain `d` for pools of one kind (records.PoolKind).

    `keep`: blocks that a legacy pool keeps. `units`: by device, what memory is mapped in multiples of,
    itself a multiple of 128; the last one counts for all further devices.
    """

    def __init__(
        self, d: Domain | type[Any], kind: int, keep: int, devices: int, streams: int, *units: int
    ) -> None:
        self.d: Any = d
        self.vmm = kind == PoolKind.VMM_POOL
        self.devices, self.streams = range(devices), streams
        self.pools = range(devices * streams)
        self.units = (*units, *units[-1:] * devices)[:devices]
        self.places = (0,) * (0 if self.vmm else keep)

    def init(self, cap: Tree, room: Tree, used: Tree | None = None) -> State:
        """Pools that nothing was asked of. `cap`, `room` (addresses of a range) and `used` are [device], bytes."""
        empty = Pool(0, 0, 0, self.places, self.places)
        used = tuple(used or (0,) * len(self.devices))
        none, no = (0,) * len(self.pools), (False,) * len(self.pools)
        return State((empty,) * len(self.pools), used, tuple(cap), tuple(room), no, none, no)

    def device(self, pool: int) -> int:
        return pool // self.streams

    def pooled(self, s: State, device: int) -> Value:
        """Physical bytes that the pools of a device hold."""
        return sum(s.pools[p].mapped for p in self.pools if self.device(p) == device)

    # -- the step ----------------------------------------------------------------

    def step(self, s: State, op: PoolOp) -> tuple[State, Out]:
        """The state after `op`, and what the caller sees."""
        arms = {
            Kind.POOL_ALLOC: lambda: self.on_pool(s, op, self.come),
            Kind.POOL_FREE: lambda: self.on_pool(s, op, self.go),
            Kind.TRIM: lambda: self.trim(s, op),
            Kind.CAPACITY: lambda: self.capacity(s, op),
            Kind.COMPUTE: lambda: self.on_pool(s, op, self.compute),
            Kind.SYNC: lambda: self.waited(s, op),
        }
        new: tuple[State, Out] = self.d.switch(op.kind, arms, lambda: (s, Out(_MISUSE)))
        return new

    def on_pool(self, s: State, op: PoolOp, act: Any) -> tuple[State, Out]:
        """`act` on the pool that the operation names."""
        result: tuple[State, Out] = (s, Out(_MISUSE))
        for p in self.pools:
            result = self.d.choose(op.pool == p, lambda p=p: act(s, op, p), lambda r=result: r)
        return result

    def put(self, s: State, p: int, pool: Pool, used: Value) -> State:
        """Pool `p` replaced, and with it what is in use on its device."""
        k = self.device(p)
        return s._replace(
            pools=(*s.pools[:p], pool, *s.pools[p + 1 :]), used=(*s.used[:k], used, *s.used[k + 1 :])
        )

    def named(self, s: State, p: int, due: Value) -> State:
        """History: a block of pool `p` came or went."""
        return s._replace(due=replaced(s.due, p, due), unserved=replaced(s.unserved, p, False))

    # -- a block comes -----------------------------------------------------------------

    def come(self, s: State, op: PoolOp, p: int) -> tuple[State, Out]:
        t, out = self.take(s, op, p)
        return self.named(t, p, s.due[p] + out.size), out

    def block(self, size: Value) -> Value:
        """What a block of `size` bytes takes of a VMM pool."""
        return self.d.roundup(self.d.max(size, 1), ALIGNMENT)

    def take(self, s: State, op: PoolOp, p: int) -> tuple[State, Out]:
        return self.take_end(s, op, p) if self.vmm else self.take_block(s, op, p)

    def take_end(self, s: State, op: PoolOp, p: int) -> tuple[State, Out]:
        """VMM: at the end of what is handed out; what is missing is mapped at the end (V1, V2, V5)."""
        d, k = self.d, self.device(p)
        size = self.block(op.size)
        old = self.reserved(s.pools[p], op)
        end = old.out + size
        outside = end > s.room[k]
        missing = d.max(end - old.mapped, 0)
        grow = d.all(missing > 0, d.inv(outside))
        piece = self.piece(missing, k)
        failed, tried = self.growing(op, grow, s.used[k] + piece > s.cap[k])
        more = d.ite(d.all(grow, d.inv(failed)), piece, 0)
        bad = d.any(outside, failed)
        new = old._replace(mapped=old.mapped + more, out=d.ite(bad, old.out, end))
        status, address = d.ite(bad, (_REFUSED, 0), (_DONE, self.end(old)))
        return self.put(s, p, new, s.used[k] + more), Out(status, tried, address, d.ite(bad, 0, size))

    def reserved(self, pool: Pool, op: PoolOp) -> Pool:
        """V1: the range is reserved on first use."""
        return pool._replace(base=self.d.ite(pool.base == 0, op.fresh, pool.base))

    def end(self, pool: Pool) -> Value:
        """V2: the address behind all that is handed out."""
        return pool.base + pool.out

    def piece(self, missing: Value, device: int) -> Value:
        """V2: what is mapped where `missing` bytes are: whole units."""
        return self.d.roundup(missing, self.units[device])

    def growing(self, op: PoolOp, grow: Value, full: Value) -> tuple[Value, Value]:
        """V5: whether create, map or set-access fails, and how many of them were tried."""
        d = self.d
        create, map_, access = (self.fails(op, n) for n in (1, 2, 3))
        create = d.any(create, full)
        tried = d.ite(create, 1, d.ite(map_, 2, 3))
        return d.all(grow, d.any(create, map_, access)), d.ite(grow, tried, 0)

    def fails(self, op: PoolOp, nth: int) -> Value:
        """The n-th allocation of this block is told to fail."""
        return self.d.any(op.inject, op.fail_nth == op.before + nth)

    def take_block(self, s: State, op: PoolOp, p: int) -> tuple[State, Out]:
        """Legacy: the smallest kept block that is large enough, else a new one."""
        d, k, old = self.d, self.device(p), s.pools[p]
        need = d.roundup(d.max(op.size, 1), self.units[k])
        chosen = self.best(old, need)
        found = d.any(*chosen)
        failed, tried = self.making(op, need, s.used[k] + need > s.cap[k])
        size = d.ite(found, total(d, chosen, old.kept), need)
        address = d.ite(found, total(d, chosen, old.at), op.fresh)
        bad = d.all(d.inv(found), failed)
        rest = self.without(old, chosen)
        more = d.ite(d.any(found, failed), 0, need)
        new = rest._replace(mapped=old.mapped + more, out=d.ite(bad, old.out, old.out + size))
        status, address, size = d.ite(bad, (_REFUSED, 0, 0), (_DONE, address, size))
        return self.put(s, p, new, s.used[k] + more), Out(status, d.ite(found, 0, tried), address, size)

    def making(self, op: PoolOp, need: Value, full: Value) -> tuple[Value, Value]:
        """Whether a new block of a legacy pool cannot be had, and how many allocations were tried."""
        beyond = need > LARGEST
        return self.d.any(beyond, self.fails(op, 1), full), self.d.ite(beyond, 0, 1)

    def best(self, pool: Pool, need: Value) -> Tree:
        """[place]: the smallest kept block of at least `need` bytes, of equals the one kept longest."""
        d, kept, places = self.d, pool.kept, range(len(self.places))

        def beaten(i: int, j: int) -> Value:
            """Block j is to be taken before block i."""
            return d.all(kept[j] >= need, kept[j] <= kept[i] if j < i else kept[j] < kept[i])

        return tuple(d.all(kept[i] >= need, *(d.inv(beaten(i, j)) for j in places if j != i)) for i in places)

    def without(self, pool: Pool, chosen: Tree) -> Pool:
        """The pool without the kept block of `chosen`; those behind it move up."""
        d = self.d

        def moved(row: Tree) -> Tree:
            behind = (*row[1:], 0) if row else ()
            return tuple(d.ite(d.any(*chosen[: i + 1]), behind[i], x) for i, x in enumerate(row))

        return pool._replace(kept=moved(pool.kept), at=moved(pool.at))

    # -- a block goes ------------------------------------------------------------------

    def go(self, s: State, op: PoolOp, p: int) -> tuple[State, Out]:
        t, out = self.give(s, op, p)
        gone = self.named(t, p, s.due[p] - op.size)
        return self.d.ite(out.status == _DONE, gone, t), out

    def give(self, s: State, op: PoolOp, p: int) -> tuple[State, Out]:
        return self.give_end(s, op, p) if self.vmm else self.give_block(s, op, p)

    def latest(self, pool: Pool, op: PoolOp) -> Value:
        """V2: the block ends where all that is handed out ends."""
        return self.d.all(pool.out > 0, op.address + op.size == self.end(pool))

    def give_end(self, s: State, op: PoolOp, p: int) -> tuple[State, Out]:
        """VMM: in reverse order of allocation. The memory stays mapped."""
        pool = s.pools[p]
        new = self.put(s, p, pool._replace(out=pool.out - op.size), s.used[self.device(p)])
        result: tuple[State, Out] = self.d.ite(self.latest(pool, op), (new, Out(_DONE)), (s, Out(_MISUSE)))
        return result

    def give_block(self, s: State, op: PoolOp, p: int) -> tuple[State, Out]:
        """Legacy: kept, or freed where as many are kept as may be."""
        d, k, pool = self.d, self.device(p), s.pools[p]
        full = d.all(*(x > 0 for x in pool.kept))
        gone = d.ite(full, op.size, 0)
        first = [d.all(x == 0, *(y > 0 for y in pool.kept[:i])) for i, x in enumerate(pool.kept)]
        new = Pool(
            pool.base, pool.mapped - gone, pool.out - op.size,
            tuple(d.ite(here, op.size, x) for here, x in zip(first, pool.kept, strict=True)),
            tuple(d.ite(here, op.address, x) for here, x in zip(first, pool.at, strict=True)),
        )  # fmt: skip
        return self.put(s, p, new, s.used[k] - gone), Out(_DONE)

    # -- the rest ----------------------------------------------------------------------

    def trim(self, s: State, op: PoolOp) -> tuple[State, Out]:
        """V3, V4: once the devices have finished, their idle pools give all physical memory back."""
        d = self.d
        s = self.finished(s, op)
        early, released = False, 0
        for p in self.pools:
            k, pool = self.device(p), s.pools[p]
            goes = d.all(self.reached(op, k), self.idle(pool))
            freed = d.ite(goes, pool.mapped, 0)
            early = d.any(early, d.all(freed > 0, s.busy[p]))
            released = released + freed
            new = d.ite(goes, self.emptied(pool), pool)
            s = self.put(s, p, new, s.used[k] - freed)
        return s, Out(_DONE, released=released, early=early)

    def reached(self, op: PoolOp, device: int) -> Value:
        """V4: every device under the type."""
        return op.reach[device]

    def idle(self, pool: Pool) -> Value:
        return pool.out == 0

    def emptied(self, pool: Pool) -> Pool:
        """V1: without physical memory; the range stays."""
        return pool._replace(mapped=0, kept=self.places, at=self.places)

    def finished(self, s: State, op: PoolOp) -> State:
        """Waits for all streams of the devices."""
        d = self.d
        busy = tuple(d.all(b, d.inv(op.reach[self.device(p)])) for p, b in enumerate(s.busy))
        return s._replace(busy=busy)

    def capacity(self, s: State, op: PoolOp) -> tuple[State, Out]:
        cap = tuple(self.d.ite(op.device == k, op.value, s.cap[k]) for k in self.devices)
        return s._replace(cap=cap), Out(_DONE)

    def compute(self, s: State, op: PoolOp, p: int) -> tuple[State, Out]:
        """Scratch is taken, and given back at once; a computation without it is refused (V5)."""
        d = self.d
        t, out = self.take(s, op, p)
        served = d.all(out.status == _DONE, d.inv(op.beside))
        t = d.ite(out.status == _DONE, self.given_back(t, op, p, out), t)
        t = t._replace(
            busy=replaced(s.busy, p, d.any(s.busy[p], served)),
            unserved=replaced(s.unserved, p, d.any(s.unserved[p], d.inv(served))),
        )
        return t, Out(d.ite(served, _DONE, _REFUSED), out.allocations)

    def given_back(self, s: State, op: PoolOp, p: int, taken: Out) -> State:
        """V5: whether or not the computation has all its scratch."""
        return self.give(s, op._replace(size=taken.size, address=taken.address), p)[0]

    def waited(self, s: State, op: PoolOp) -> tuple[State, Out]:
        """History: what goes on the pool's stream was waited for."""
        busy = tuple(self.d.all(b, op.pool != p) for p, b in enumerate(s.busy))
        return s._replace(busy=busy), Out(_DONE)


def replaced(row: Tree, p: int, x: Value) -> Tree:
    """The row with one value replaced."""
    return (*row[:p], x, *row[p + 1 :])


def total(d: Any, chosen: Tree, row: Tree) -> Value:
    """The value of the one place that is chosen, 0 where none is."""
    return sum(d.ite(c, x, 0) for c, x in zip(chosen, row, strict=True))
