"""Who is alive at a line of a dump, and what each allocator went through."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from . import lines
from .translate import Key


@dataclass(slots=True)
class Buffer:
    """`number`: the hook's. `made`, `freed`: line numbers; 0: not freed."""

    number: int
    type: int
    allocator: int
    asked: int
    size: int
    made: int
    freed: int = 0


@dataclass(slots=True)
class Allocator:
    """`moved`: buffers made in its calls, or freed of it, since its last line. `planned`: the graph of the plan in
    force, None where it is not known. `fitting`: graphs that its buffers of now were reserved for."""

    number: int
    types: tuple[int, ...]
    moved: list[int] = field(default_factory=list)
    planned: Key | None = None
    failed: bool = False
    fitting: set[Key] = field(default_factory=set)
    exact: Key | None = None  # all its buffers were made for this graph
    measured: tuple[Key, tuple[int, ...]] | None = None
    bound: tuple[Key, tuple[lines.Spot, ...]] | None = None  # the last graph, and where it was put
    places: dict[Key, tuple[lines.Spot, ...]] = field(
        default_factory=dict
    )  # by graph, of plans for this very graph


@dataclass(frozen=True, slots=True)
class Held:
    """Where a tensor was bound last: buffer, and the line that says so. `what` tells it from a later tensor at
    its address."""

    buffer: int
    line: int
    what: tuple[object, ...]


def what(t: lines.TensorLine) -> tuple[object, ...]:
    return t.name, t.op, t.bytes, t.layout


@dataclass(slots=True)
class Books:
    """One run of a program. Everything by the hook's numbers."""

    types: dict[int, lines.Type] = field(default_factory=dict)
    buffers: dict[int, Buffer] = field(default_factory=dict)
    allocators: dict[int, Allocator] = field(default_factory=dict)
    graphs: dict[int, lines.Graph] = field(default_factory=dict)
    held: dict[int, Held] = field(default_factory=dict)  # by the tensor's address

    def note(self, at: int, line: lines.Line) -> None:
        """Types, allocators, buffers and graphs that come and go."""
        match line:
            case lines.Type():
                self.types[line.type] = line
            case lines.Graph():
                self.graphs[line.graph] = line
            case lines.Allocator():
                self.allocators[line.allocator] = Allocator(line.allocator, tuple(line.types))
            case lines.Buffer():
                self.made(at, line)
            case lines.Free():
                buffer = self.buffers[line.buffer]
                buffer.freed = buffer.freed or at
                for a in self.allocators.values():
                    if a.number == buffer.allocator:
                        a.moved.append(line.buffer)
            case _:
                pass

    def made(self, at: int, line: lines.Buffer) -> None:
        freed = 0 if line.ok else at
        self.buffers[line.buffer] = Buffer(
            line.buffer, line.type, line.allocator, line.asked, line.size, at, freed
        )
        if line.allocator in self.allocators:
            self.allocators[line.allocator].moved.append(line.buffer)

    def alive(self, buffer: int) -> bool:
        return buffer in self.buffers and not self.buffers[buffer].freed

    def own(self, a: Allocator) -> list[Buffer]:
        """The living buffers that were made in its calls, in that order."""
        return [b for b in self.buffers.values() if b.allocator == a.number and not b.freed]

    def words(self, numbers: Sequence[int]) -> str:
        """Buffers, and when they came and went."""
        words = []
        for n in dict.fromkeys(numbers):
            b = self.buffers[n]
            how = f"freed at line {b.freed}" if b.freed else f"made at line {b.made}"
            words.append(f"buffer {n} ({b.size} bytes of {self.types[b.type].name!r}, {how})")
        return ", ".join(words)


def runs(dump: lines.Dump) -> Iterator[list[tuple[int, lines.Line]]]:
    """The file's runs of a program, each with numbers of its own."""
    run: list[tuple[int, lines.Line]] = []
    for at, line in dump.lines:
        if isinstance(line, lines.Start) and run:
            yield run
            run = []
        run.append((at, line))
    yield run


def sharing(run: Sequence[tuple[int, lines.Line]]) -> set[int]:
    """Allocators that share buffers (R), or are bound to others': what they have is not theirs alone."""
    made: dict[int, int] = {}
    out = {line.allocator for _, line in run if isinstance(line, lines.Share)}
    for _, line in run:
        if isinstance(line, lines.Buffer):
            made[line.buffer] = line.allocator
        elif isinstance(line, lines.Bind):
            given = {i for i, _, _ in line.before}
            owners = {made.get(spot[0], -1) for i, spot in enumerate(line.places) if i not in given}
            owners -= {-1, line.allocator}
            out |= owners | ({line.allocator} if owners else set())
    return out
