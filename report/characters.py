"""One frame of the memory map in characters, for a terminal.

    for line in drawn(frame, width): console.print(line)

A row of a chunk is its bytes from the left; each allocator that has tensors in it has rows of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from ..model.records import UNLIMITED
from .memory import Buffers, Chunk, Frame, Lane
from .placed import Block, State
from .svg import tracked
from .units import amount

MARGIN = 20  #: characters before a bar
#: by state: the sign that fills it, the same in ASCII, its style; where a terminal has no colours the signs say it
SIGNS: dict[State, tuple[str, str, str]] = {
    "live": ("█", "#", "blue"),
    "output": ("▓", "O", "yellow"),
    "planned": ("░", "-", "cyan"),
    "dead": ("·", ".", "dim"),
    "stale": ("▞", "x", "dim"),
    "view": ("═", "=", "cyan"),
}
WORDS: dict[State, str] = {
    "live": "live", "output": "output", "planned": "still to come", "dead": "not needed any more",
    "stale": "of an older generation", "view": "view",
}  # fmt: skip
ORDER: tuple[State, ...] = ("stale", "dead", "planned", "live", "output", "view")


def drawn(frame: Frame, width: int = 80, ascii_only: bool = False) -> list[Text]:
    """The lines of a frame, at most `width` characters each."""
    return list(_Drawing(max(24, width - MARGIN - 2), ascii_only).frame(frame))


class _Drawing:
    """`bar`: characters between the ends of a row."""

    def __init__(self, bar: int, ascii_only: bool) -> None:
        self.bar, self.plain = bar, ascii_only
        self.used: set[State] = set()

    def frame(self, frame: Frame) -> Iterator[Text]:
        for lane in frame.lanes:
            yield from self.lane(lane)
        for name, value in frame.facts:
            yield Text(f"{name}: {value}", "dim")
        if self.used:
            yield self.legend()

    def lane(self, lane: Lane) -> Iterator[Text]:
        if not (lane.buffers or lane.used or lane.pooled):
            return
        of = "" if lane.capacity == UNLIMITED else f" of {amount(lane.capacity)}"
        meta = f"over devices {', '.join(map(str, lane.kind.devices(lane.type)))}"
        words = meta if lane.kind.meta else f"{amount(lane.used)}{of} in use"
        words += f", pools hold {amount(lane.pooled)}" if lane.pooled else ""
        words += f", other {amount(lane.other)}" if lane.other else ""
        yield Text.assemble((f"type {lane.type}", "bold"), f"  {words}")
        for buffers in lane.buffers:
            yield from self.buffers(buffers)

    def buffers(self, buffers: Buffers) -> Iterator[Text]:
        if not any(c.size or c.blocks for c in buffers.chunks):
            return
        yield Text(f"  {buffers.words}", "magenta" if buffers.shared else "")
        for chunk in buffers.chunks:
            if chunk.size or chunk.blocks:
                yield from self.chunk(chunk, buffers)

    def chunk(self, chunk: Chunk, buffers: Buffers) -> Iterator[Text]:
        """Its rows: of each allocator the tensors, live ones that share bytes each in a row of its own."""
        size = max([chunk.size, 1, *(b.end for b in chunk.blocks), *(w.end for w in chunk.wrong)])
        name = f"    chunk {chunk.number} {amount(chunk.size)}"
        rows = list(self.rows(chunk, buffers)) or [[]]
        for n, blocks in enumerate(rows):
            left = name if not n else ""
            yield Text.assemble((f"{left:<{MARGIN}}"[:MARGIN], "dim"), self.row(blocks, size, chunk.size))
        for wrong in chunk.wrong:
            begin, end = self.span(wrong.begin, wrong.end, size)
            sign = "^" if self.plain else "▲"
            yield Text.assemble(" " * (MARGIN + 1 + begin), (sign * (end - begin), "bold red"))
            yield Text(f"{' ' * 4}{'x' if self.plain else '✕'} {wrong.words}", "bold red")

    def rows(self, chunk: Chunk, buffers: Buffers) -> Iterator[list[Block]]:
        for user in buffers.users:
            mine = sorted(
                (b for b in chunk.blocks if b.allocator == user), key=lambda b: ORDER.index(b.state)
            )
            placed = list(tracked(mine))
            for track in range(max((t[1] for _, t in placed), default=0)):
                yield [block for block, t in placed if t[0] == track or t[1] == 1]

    def span(self, begin: int, end: int, size: int) -> tuple[int, int]:
        """Characters [from, to) of bytes [begin, end); at least one."""
        first = min(self.bar - 1, begin * self.bar // size)
        return first, max(first + 1, min(self.bar, -(-end * self.bar // size)))

    def row(self, blocks: list[Block], size: int, have: int) -> Text:
        cells: list[tuple[str, str]] = [(" ", "")] * self.bar
        beyond = self.span(0, have, size)[1] if have else 0
        for n in range(beyond, self.bar):
            cells[n] = ("~" if self.plain else "╌", "red")  # no memory of the chunk
        for block in blocks:
            self.used.add(block.state)
            sign, plain, style = SIGNS[block.state]
            begin, end = self.span(block.begin, block.end, size)
            name = f"t{block.tensor}"
            for n in range(begin, end):
                cells[n] = (plain if self.plain else sign, style)
            if len(name) <= end - begin:
                where = begin + (end - begin - len(name)) // 2
                cells[where : where + len(name)] = [
                    (c, "bold" if block.state != "dead" else "dim") for c in name
                ]
        edge = "|" if self.plain else "│"
        return Text.assemble(edge, *cells, edge)

    def legend(self) -> Text:
        text = Text("  ")
        for state in ORDER[::-1]:
            if state in self.used:
                sign, plain, style = SIGNS[state]
                text.append(plain if self.plain else sign, style)
                text.append(f" {WORDS[state]}  ", "dim")
        return text
