"""P: the reference planner. Where each tensor of a graph goes, exactly.

Best fit, as documented in docs/choices.md. It predicts the bundled allocator's
plan; a foreign subject's plan is judged by spec/placement.py, which does not
know how a plan was made.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from .records import MAX_CHUNKS, BufferType, Graph, Place

LIMIT = 2**63 - 1  #: no end of a tensor and no sum of chunks lies above (P13)
OUTSIDE = Place(-1, -1, 0)  #: a tensor that the allocator did not place (P14)


class TooLarge(Exception):
    """The graph cannot be planned: sizes near the largest integer, or no chunk left (P13)."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Places in graph order, and per type the bytes of each chunk (P11)."""

    places: tuple[Place, ...]
    need: tuple[tuple[int, ...], ...]


def round_up(size: int, unit: int) -> int:
    """`size` rounded up to a multiple of `unit`, both in bytes."""
    return -(-size // unit) * unit


@dataclass(slots=True)
class Chunk:
    """Free blocks [offset, end) below `limit`, sorted and coalesced; `top`: highest end so far."""

    limit: int
    free: list[tuple[int, int]] = field(default_factory=list)
    top: int = 0

    def cost(self, block: tuple[int, int], size: int) -> tuple[int, int]:
        """Least growth first, then the tightest block."""
        offset, end = block
        growth = max(0, offset + size - self.top)
        return growth, max(0, min(end, self.top) - offset - size)

    def take(self, k: int, size: int) -> int:
        """Cuts `size` bytes off the front of free block k; returns their offset."""
        offset, end = self.free[k]
        self.free[k : k + 1] = [(offset + size, end)] if offset + size < end else []
        self.top = max(self.top, offset + size)
        return offset

    def give(self, offset: int, size: int) -> None:
        """Frees [offset, offset + size) and joins it with its neighbours."""
        blocks = sorted([*self.free, (offset, offset + size)])
        joined = blocks[:1]
        for begin, end in blocks[1:]:
            if begin == joined[-1][1]:
                joined[-1] = (joined[-1][0], end)
            else:
                joined.append((begin, end))
        self.free = joined


class Memory:
    """The chunks of one buffer type while a graph is being planned."""

    def __init__(self, kind: BufferType) -> None:
        self.kind = kind
        self.chunks: list[Chunk] = []

    def rounded(self, size: int) -> int:
        """P2: sizes are multiples of the alignment. Raises TooLarge (P13)."""
        size = round_up(size, self.kind.alignment)
        if size > LIMIT:
            raise TooLarge(f"a tensor of {size} bytes")
        return size

    def place(self, size: int) -> tuple[int, int]:
        """(chunk, offset) for `size` rounded bytes."""
        if size == 0:  # no block is needed; chunk 0 exists all the same
            if not self.chunks:
                self.open(0)
            return 0, 0
        fits = [
            (*chunk.cost(block, size), c, block[0], k)
            for c, chunk in enumerate(self.chunks)
            for k, block in enumerate(chunk.free)
            if block[1] - block[0] >= size
        ]
        if fits:
            _, _, c, _, k = min(fits)
        else:
            c, k = self.open(size), 0
        return c, self.chunks[c].take(k, size)

    def open(self, size: int) -> int:
        """A new chunk for at least `size` bytes (P4); returns its number."""
        n = len(self.chunks)
        if n == MAX_CHUNKS:
            raise TooLarge("no chunk left")
        limit = LIMIT if n == MAX_CHUNKS - 1 else min(LIMIT, max(self.kind.max_size, size))
        self.chunks.append(Chunk(limit, [(0, limit)] if limit else []))
        return n

    def need(self) -> tuple[int, ...]:
        """P11: each chunk's requirement is the highest end of any tensor placed in it."""
        need = tuple(chunk.top for chunk in self.chunks)
        if sum(need) > LIMIT:
            raise TooLarge(f"{sum(need)} bytes in all")
        return need


class Planning:
    """One planning run over a graph; state is a handful of counters per tensor."""

    def __init__(self, types: tuple[BufferType, ...], slots: tuple[int, ...], graph: Graph) -> None:
        self.tensors = graph.tensors
        self.target = [slots[t.slot % len(slots)] for t in graph.tensors]
        self.memory = [Memory(kind) for kind in types]
        n = len(graph.tensors)
        self.place: list[Place | None] = [None] * n
        self.held = [False] * n  # memory that the tensor must give back
        self.reads = [0] * n
        self.views = [0] * n  # of roots: views still in use
        self.pinned = [t.output for t in graph.tensors]  # P5, also for an output that is a view
        for t in graph.tensors:
            for s in t.src:
                self.reads[s] += 1
            if t.view:
                self.views[t.view_src] += 1
                self.pinned[t.view_src] |= t.output

    def run(self) -> Plan:
        order = range(len(self.tensors))
        for i in order:  # P6: inputs before everything else
            if self.tensors[i].input:
                self.put(i)
        for i in order:
            if self.tensors[i].leaf and not self.tensors[i].input:
                self.put(i)
        for i in order:
            if not self.tensors[i].leaf:
                self.put(i)
                self.after(i)
        for i in order:  # leafs that nobody read
            if self.tensors[i].leaf and self.held[i] and not self.pinned[i]:
                self.free(i)
        need = tuple(m.need() for m in self.memory)
        return Plan(tuple(self.where(i) for i in order), need)

    def where(self, i: int) -> Place:
        """P7: a view is at its source's place plus its offset."""
        t = self.tensors[i]
        place = self.place[t.view_src if t.view else i]
        if place is None or place == OUTSIDE:
            return OUTSIDE
        return Place(place.type, place.chunk, place.offset + t.view_offs)

    def size(self, i: int) -> int:
        return self.memory[self.target[i]].rounded(self.tensors[i].alloc_size)

    def put(self, i: int) -> None:
        t = self.tensors[i]
        if t.view:
            return
        if t.prealloc:  # P14
            self.place[i] = OUTSIDE
            return
        size = self.size(i)
        parent = self.parent_to_reuse(i, size)
        if parent is not None:
            self.take_over(i, parent, size)
        else:
            self.place[i] = Place(self.target[i], *self.memory[self.target[i]].place(size))
        self.held[i] = True

    def parent_to_reuse(self, i: int, size: int) -> int | None:
        """P8: the first parent whose memory this node may write over."""
        node = self.tensors[i]
        if not node.inplace:
            return None
        for p in node.src:
            parent = self.tensors[p]
            own = self.held[p] and not parent.view
            last = self.reads[p] == 1 and self.views[p] == 0
            alike = parent.layout == node.layout and self.target[p] == self.target[i]
            if own and last and alike and not self.pinned[p] and self.size(p) >= size:
                return p
        return None

    def take_over(self, i: int, parent: int, size: int) -> None:
        """The node moves into its parent's memory; what it does not need goes back (P2)."""
        place = self.place[parent]
        assert place is not None
        self.place[i], self.held[parent] = place, False
        extra = self.size(parent) - size
        if extra:
            self.memory[place.type].chunks[place.chunk].give(place.offset + size, extra)

    def after(self, i: int) -> None:
        """Frees what node i was the last to use."""
        for s in self.tensors[i].src:
            self.reads[s] -= 1
            if self.reads[s] == 0:
                self.done(s)
        if self.reads[i] == 0:
            self.done(i)

    def done(self, i: int) -> None:
        """No read of tensor i is left."""
        t = self.tensors[i]
        if t.view:
            if not t.output:
                self.views[t.view_src] -= 1
                if self.reads[t.view_src] == 0:
                    self.done(t.view_src)
        elif self.views[i] == 0 and self.held[i] and not self.pinned[i]:
            self.free(i)

    def free(self, i: int) -> None:
        place, size = self.place[i], self.size(i)
        assert place is not None
        self.held[i] = False
        if size:
            self.memory[place.type].chunks[place.chunk].give(place.offset, size)


@lru_cache(maxsize=4096)
def plan(types: tuple[BufferType, ...], slots: tuple[int, ...], graph: Graph) -> Plan | None:
    """The exact plan of `graph` for an allocator of `slots` over `types`; None where it cannot be
    planned (P13). The same graph gives the same plan (P9)."""
    try:
        return Planning(types, slots, graph).run()
    except TooLarge:
        return None
