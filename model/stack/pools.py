"""V: a pool for each device and stream."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..capture import NOBODY
from ..domain import Ints
from ..pool import ALIGNMENT, KEPT, Model, Out, PoolOp
from ..records import MAX_STREAMS, Graph, Kind, Observation, Op, PoolKind, Setup, Status

if TYPE_CHECKING:
    from . import Stack

SCRATCH = 4096  #: bytes of scratch that a computation takes at most
Block = tuple[int, int]  #: address and bytes, as they were handed out


def unit(setup: Setup, device: int) -> int:
    """What a pool's memory is mapped in multiples of, bytes."""
    return max(setup.types[device].granularity, 4096)


def scratch_size(graph: Graph) -> int:
    """Bytes of scratch that computing a graph takes on each of its devices."""
    largest = max((t.size for t in graph.tensors if not t.leaf and not t.view), default=0)
    return -(-min(largest, SCRATCH) // ALIGNMENT) * ALIGNMENT


def pool_model(setup: Setup) -> Model:
    """The machine of a setup's pools."""
    units = [unit(setup, k) for k in range(len(setup.types))]
    return Model(Ints, setup.pool, KEPT, len(setup.types), MAX_STREAMS, *units)


def rooms(setup: Setup) -> tuple[int, ...]:
    """By device: addresses of a pool's range."""
    return tuple(Ints.roundup(setup.pool_range, unit(setup, k)) for k in range(len(setup.types)))


class Pools:
    """Which blocks are out of which pool, and what computations take as scratch."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        setup = stack.setup
        self.model = pool_model(setup)
        none = (0,) * len(setup.types)
        self.state = self.model.init(none, rooms(setup))
        self.blocks: list[list[Block]] = [[] for _ in self.model.pools]
        self.pooled = none  # bytes by device that its pools hold
        self.scratch: list[tuple[int, Block]] = []  # (pool, block) of what is being computed
        self.addresses = 0  # given out so far, one number each

    @property
    def there(self) -> bool:
        return self.stack.setup.pool != PoolKind.NO_POOL

    def number(self, device: int, stream: int) -> int:
        """The pool of a device and stream."""
        return device * MAX_STREAMS + stream

    # -- operations ----------------------------------------------------------------

    def step(self, op: Op) -> Observation:
        """POOL_ALLOC, POOL_FREE, TRIM."""
        types = self.stack.setup.types
        if not self.there or not 0 <= op.other < len(types):
            return self.stack.misuse()
        if op.kind == Kind.TRIM:
            if self.stack.captures.at != NOBODY:  # Q3
                return Observation(Status.REFUSED)
            return self.trim((op.other,))
        captured = op.alloc == self.stack.captures.at
        if not 0 <= op.alloc < MAX_STREAMS or types[op.other].meta or captured:
            return self.stack.misuse()
        pool = self.number(op.other, op.alloc)
        if op.kind == Kind.POOL_ALLOC:
            return self.shown(pool, self.take_block(pool, op.value))
        return self.free(pool, op.value)

    def take_block(self, pool: int, size: int) -> Out:
        """A block of one pool, on top of those that are out."""
        attempts = self.stack.session.attempts
        device = self.model.device(pool)
        self.addresses += 1
        out = self.play(
            PoolOp(
                Kind.POOL_ALLOC, pool, size, fresh=self.addresses,
                inject=bool(attempts.fail_types >> device & 1), fail_nth=attempts.fail_nth, before=attempts.tried,
            )
        )  # fmt: skip
        attempts.tried += out.allocations
        if out.status == Status.DONE:
            self.blocks[pool].append((out.address, out.size))
        return out

    def free(self, pool: int, back: int) -> Observation:
        """The block handed out `back` blocks before the latest that is still out."""
        blocks = self.blocks[pool]
        if back >= len(blocks):
            return self.stack.misuse()
        address, size = blocks[-1 - back]
        out = self.play(PoolOp(Kind.POOL_FREE, pool, size, address))
        if out.status == Status.DONE:
            del blocks[-1 - back]
        return self.shown(pool, out)

    def trim(self, types: tuple[int, ...]) -> Observation:
        """TRIM of these types at once; their devices' captured graphs are dropped (Q2)."""
        setup = self.stack.setup
        devices = {d for t in types for d in setup.types[t].devices(t)}
        reach = tuple(k in devices for k in range(len(setup.types)))
        out = self.play(PoolOp(Kind.TRIM, reach=reach))
        self.stack.captures.trimmed(devices)
        return Observation(Status(out.status), released=out.released)

    def play(self, op: PoolOp) -> Out:
        """Steps the pools with the devices as they are now."""
        session = self.stack.session
        state = self.state._replace(used=session.used, cap=session.capacity)
        self.state, out = self.model.step(state, op)
        session.used = self.state.used
        self.pooled = tuple(self.model.pooled(self.state, k) for k in self.model.devices)
        return out

    def shown(self, pool: int, out: Out) -> Observation:
        p = self.state.pools[pool]
        return Observation(
            Status(out.status),
            allocations=out.allocations,
            base=p.base,
            mapped=p.mapped,
            out=p.out,
            address=out.address,
        )

    # -- scratch -------------------------------------------------------------------

    def take(self, number: int, graph: Graph) -> bool:
        """Takes the scratch of allocator `number`, to compute what it has bound; False, nothing taken, where
        it cannot be had. Counts in the session's attempts."""
        for pool in self.of_graph(number) if self.there else ():
            out = self.take_block(pool, scratch_size(graph))
            if out.status != Status.DONE:
                self.give()
                return False
            self.scratch.append((pool, self.blocks[pool].pop()))
        return True

    def of_graph(self, number: int) -> list[int]:
        """The pools of the allocator's stream on the devices that its bound graph has tensors on."""
        types = self.stack.setup.types
        placed = {p.type for p in self.stack.session.allocs[number].places if p.type >= 0}
        return [self.number(d, number) for d in sorted({d for t in placed for d in types[t].devices(t)})]

    def give(self) -> None:
        """Gives back what `take` took, in reverse order."""
        while self.scratch:
            pool, (address, size) = self.scratch.pop()
            self.play(PoolOp(Kind.POOL_FREE, pool, size, address))

    def compute(self, op: Op) -> Observation:
        """COMPUTE of a plain allocator: with scratch, where there are pools."""
        session = self.stack.session
        obs = session.step(op)
        if not self.there or obs.status != Status.DONE:
            return obs
        graph = session.allocs[op.alloc].bound
        assert graph is not None
        if self.take(op.alloc, graph):
            self.give()
        else:
            obs = replace(obs, status=Status.REFUSED, digest=0)
        return replace(obs, allocations=session.attempts.tried)

    def adds(self, op: Op) -> dict[str, Any]:
        return {"pooled": self.pooled}
