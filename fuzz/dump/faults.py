"""What the lines of a dump say of each other: every number was told of before, and what is counted fits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from . import lines

MOST = 2**64 - 1  #: of bytes, offsets and addresses
SLOTS = 64  #: of an allocator, that the hook writes


@dataclass(slots=True)
class Told:
    """What a run has told of so far, by kind and the hook's numbers. `freed`: allocators, and the line."""

    type: set[int] = field(default_factory=set)
    buffer: set[int] = field(default_factory=set)
    slots: dict[int, int] = field(default_factory=dict)  # of allocators
    tensors: dict[int, int] = field(default_factory=dict)  # of graphs
    nodes: dict[int, int] = field(default_factory=dict)
    freed: dict[int, int] = field(default_factory=dict)
    sizes: bool | None = None  # whether the tree says how large buffers are, by slot

    def faults(self, at: int, line: lines.Line) -> Iterator[str]:
        """What is wrong with the line, as the end of a sentence; then it is told of."""
        yield from _too_large(line)
        self._note(at, line)
        yield from self._unknown(line)
        match line:
            case lines.Allocator() if not set(line.types) <= self.type:
                yield "a type was not told of before"
            case lines.Graph():
                yield from _of_graph(line)
            case lines.Reserve() | lines.Measure():
                yield from self._of_slots(line)
                yield from self._of_sizes(line)
            case lines.Bind():
                yield from self._of_places(line, line.ok)
                yield from self._of_sizes(line)
                for i, b, _ in line.before:
                    if i >= self.tensors.get(line.graph, 0) or (b >= 0 and b not in self.buffer):
                        yield f"what is said of tensor {i} before it was bound makes no sense"
            case lines.Compute():
                yield from self._of_places(line, True)
            case _:
                pass

    def _note(self, at: int, line: lines.Line) -> None:
        match line:
            case lines.Type():
                self.type.add(line.type)
            case lines.Buffer():
                self.buffer.add(line.buffer)
            case lines.Allocator():
                self.slots[line.allocator] = len(line.types)
                self.freed.pop(line.allocator, None)
            case lines.Graph():
                self.tensors[line.graph], self.nodes[line.graph] = len(line.tensors), line.nodes
            case _:
                pass

    def _unknown(self, line: lines.Line) -> Iterator[str]:
        """Numbers of what is not there. The hook gives a program's freed allocator a new number."""
        for kind, known in (("type", self.type), ("buffer", self.buffer), ("graph", self.tensors)):
            number = getattr(line, kind, None)
            if number is not None and number not in known:
                yield f"{kind} {number} was not told of before"
        number = getattr(line, "allocator", -1)
        if number in self.freed:
            yield f"allocator {number} was freed at line {self.freed[number]}"
        elif number != -1 and number not in self.slots:
            yield f"allocator {number} was not told of before"

    def note_freed(self, at: int, line: lines.Line) -> None:
        """After a line without faults."""
        if isinstance(line, lines.Freed):
            self.freed[line.allocator] = at

    def _of_slots(self, line: lines.Reserve | lines.Measure) -> Iterator[str]:
        nodes, slots = self.nodes.get(line.graph, 0), self.slots.get(line.allocator, 0)
        if line.slots and len(line.slots) != nodes:
            yield f"there are {len(line.slots)} slots for {nodes} nodes"
        if 0 < slots < SLOTS and any(
            not -1 <= s < slots for s in line.slots
        ):  # none known: made before the hook
            yield f"a node is to go to a slot that allocator {line.allocator} with {slots} does not have"

    def _of_sizes(self, line: lines.Reserve | lines.Measure | lines.Bind) -> Iterator[str]:
        """One a slot; of reservations and binds none, where the tree cannot say how large its buffers are."""
        slots, told = self.slots.get(line.allocator, 0), bool(line.sizes)
        if not slots and not told:
            return
        if (isinstance(line, lines.Measure) or told or self.sizes) and len(line.sizes) != slots:
            yield f"there are {len(line.sizes)} sizes for {slots} slots"
        if not isinstance(line, lines.Measure):
            if self.sizes is False and told:
                yield "it has sizes, and lines before it have none"
            self.sizes = told

    def _of_places(self, line: lines.Bind | lines.Compute, whole: bool) -> Iterator[str]:
        want = self.tensors.get(line.graph, 0) if whole else 0
        if len(line.places) != want:
            yield f"there are {len(line.places)} places for {want} tensors"
        if any(b >= 0 and b not in self.buffer for b, _, _ in line.places):
            yield "a buffer was not told of before"


def _of_graph(line: lines.Graph) -> Iterator[str]:
    n = len(line.tensors)
    if line.nodes > n:
        yield f"{line.nodes} nodes of {n} tensors"
    if any(i >= n for i in line.leafs):
        yield "a leaf is no tensor of the graph"
    for i, t in enumerate(line.tensors):
        if any(s >= n for s in t.src) or (t.view is not None and (t.view >= n or t.view == i)):
            yield f"tensor {i} names one that is not there"


def _too_large(line: lines.Line) -> Iterator[str]:
    most = max(_bytes(line), default=0)
    if most > MOST:
        yield f"{most if most < 10**30 else 'a number of more than 30 digits'} is more than 64 bits hold"


def _bytes(line: lines.Line) -> Iterable[int]:
    """Every number of bytes, offset and address of a line."""
    match line:
        case lines.Type():
            yield from (line.alignment, line.max_size)
        case lines.Buffer():
            yield from (line.asked, line.size)
        case lines.Graph():
            for t in line.tensors:
                yield from (t.at, t.bytes, t.offset)
        case lines.Reserve() | lines.Measure():
            yield from line.sizes
        case lines.Bind() | lines.Compute():
            for _, offset, size in line.places:
                yield from (offset, size)
            if isinstance(line, lines.Bind):
                yield from line.sizes
                yield from (offset for _, _, offset in line.before)
        case _:
            pass
