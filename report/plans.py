"""One plan as a picture: x is the graph's tensors in execution order, y offsets, a rectangle a tensor's life.

plan_picture(bound, setup, asked)
"""

from __future__ import annotations

from collections.abc import Sequence

from ..model.records import Setup
from ..spec.lifetimes import FOREVER, Life, lives
from .drawing import Picture, Sign, legend
from .placed import Bound, State, Wrong, conflicting, described, overlaps
from .units import amount, exact

LEFT, RIGHT, HEAD, FOOT, ROOM, GAP = 104, 14, 24, 44, 170, 26  #: pixels
LEGEND = {"live": "needed", "output": "output, kept", "view": "view", "wrong": "bytes that conflict",
          "peak": "peak", "least": "lower bound: the largest live set"}  # fmt: skip


def plan_picture(
    bound: Bound,
    setup: Setup,
    asked: Sequence[Sequence[int]],
    name: str = "plan",
    least: Sequence[int] | None = None,
    style: bool = True,
    names: Sequence[str] = (),
) -> str:
    """One SVG text. `asked`: bytes of each chunk, by type (() where nothing is reserved). `least`: by type, a
    lower bound of its bytes, drawn where the type has one chunk. `names`: of the tensors, where they are known."""
    return PlanDrawing(bound, setup, asked, name, least, style, names).all()


class PlanDrawing:
    """The picture under way: a room for each chunk that has tensors."""

    def __init__(
        self,
        bound: Bound,
        setup: Setup,
        asked: Sequence[Sequence[int]],
        name: str,
        least: Sequence[int] | None,
        style: bool,
        names: Sequence[str] = (),
    ) -> None:
        self.names = names
        self.bound, self.least, self.asked = bound, least, asked
        self.tensors = bound.graph.tensors
        self.alive = lives(bound.graph)
        self.pairs = overlaps(setup, bound.graph, bound.places, bound.slots)
        self.wrong = [w for w, _ in conflicting(bound, setup, asked)]
        placed = [
            (p, t) for p, t in zip(bound.places, self.tensors, strict=True) if p.type >= 0 and t.alloc_size
        ]
        self.rooms = sorted({(p.type, p.chunk) for p, _ in placed})
        self.tops = {
            room: max(
                [self.have(room), *(p.offset + t.alloc_size for p, t in placed if (p.type, p.chunk) == room)]
            )
            for room in self.rooms
        }
        n = len(self.tensors) + 1
        self.column = max(16.0, min(64.0, 900 / n))
        self.width = LEFT + n * self.column + RIGHT
        label = f"plan of graph {bound.number}: {len(placed)} tensors in {len(self.rooms)} chunks"
        self.pic = Picture(name, label, style)
        self.used: list[str] = []

    def have(self, room: tuple[int, int]) -> int:
        """Bytes of the chunk."""
        kind, chunk = room
        chunks = self.asked[kind] if kind < len(self.asked) else ()
        return chunks[chunk] if 0 <= chunk < len(chunks) else 0

    def x(self, step: int) -> float:
        """Where tensor `step` begins; -1: before them all."""
        return LEFT + (step + 1) * self.column

    def all(self, keyed: bool = True) -> str:
        """`keyed`: with the legend."""
        y = float(HEAD)
        for room in self.rooms:
            self.room(room, y + ROOM)
            y += ROOM + GAP
        y += 2
        self.pic.group("asked")
        self.pic.text((self.x(-1) + self.column / 2, y), "start", "small soft", "middle")
        for i, t in enumerate(self.tensors):
            if self.column >= 22 or i % 2 == 0:
                self.pic.text(
                    (self.x(i) + self.column / 2, y),
                    self.called(i, self.column),
                    "small" if not t.leaf else "small soft",
                    "middle",
                )
        width = max(self.width, 340.0)
        return self.pic.done(width, (legend(self.pic, self.signs(), y + 24, width) if keyed else y) + 10)

    def room(self, room: tuple[int, int], floor: float) -> None:
        """One chunk: its tensors between its floor and its end."""
        kind, chunk = room
        self.pic.group("chunk", type=kind, chunk=chunk)
        step = (ROOM - 8) / max(1, self.tops[room])
        end = self.x(len(self.tensors))
        self.pic.text((4, floor - ROOM + 18), f"type {kind}", "head")
        self.pic.text((4, floor - ROOM + 32), f"chunk {chunk}", "soft small")
        self.pic.line((LEFT, floor), (end, floor), "axis")
        self.pic.text((LEFT - 6, floor + 3), "0 B", "soft small", "end")
        order = sorted(self.alive, key=lambda i: self.alive[i].end == FOREVER)
        for i in order:
            place = self.bound.places[i]
            if (place.type, place.chunk) == room and self.tensors[i].alloc_size:
                self.tensor(i, self.alive[i], floor, step)
        for i, t in enumerate(self.tensors):
            place = self.bound.places[i]
            if t.view and (place.type, place.chunk) == room and t.size:
                self.note("view")
                box = (
                    self.x(i) + 3,
                    floor - (place.offset + t.size) * step,
                    self.column - 6,
                    max(2.0, t.size * step),
                )
                self.pic.rect(box, "view", self.hover(i, "view", None))
        for wrong in self.wrong:
            if (wrong.type, wrong.chunk) == room:
                self.conflict(wrong, floor, step)
        have = self.have(room)
        if have:
            self.note("peak")
            self.pic.line(
                (LEFT, floor - have * step),
                (end, floor - have * step),
                "peak",
                f"the chunk has {exact(have)}",
            )
            self.pic.text((LEFT - 6, floor - have * step + 3), amount(have), "small", "end")
        if self.least is not None and sum(r[0] == kind for r in self.rooms) == 1 and self.least[kind]:
            self.note("least")
            y = floor - self.least[kind] * step
            self.pic.line((LEFT, y), (end, y), "least", f"no plan needs less than {exact(self.least[kind])}")

    def tensor(self, i: int, life: Life, floor: float, step: float) -> None:
        t, place = self.tensors[i], self.bound.places[i]
        kind: State = "output" if life.end == FOREVER else "live"
        self.note(kind)
        last = len(self.tensors) - 1 if life.end == FOREVER else life.end
        left, right = self.x(life.start), self.x(last + 1)
        high = max(2.0, t.alloc_size * step)
        top = floor - max(high, (place.offset + t.alloc_size) * step)
        self.pic.rect((left + 1, top, right - left - 2, high), kind, self.hover(i, kind, life))
        if high >= 10:
            words = self.called(i, right - left - 6)
            self.pic.text((left + 4, top + 10), words, f"small name on-{kind}")

    def called(self, i: int, room: float) -> str:
        """A tensor's name where there is room for it, else its number."""
        name = self.names[i] if i < len(self.names) else ""
        return name if name and 6.2 * len(name) <= room else f"t{i}"

    def hover(self, i: int, kind: State, life: Life | None) -> str:
        name = self.names[i] if i < len(self.names) else ""
        return (f"{name}: " if name else "") + described(self.bound, i, kind, life)

    def conflict(self, wrong: Wrong, floor: float, step: float) -> None:
        """Where two lives meet on the same bytes; the whole row where it is not two lives."""
        self.note("wrong")
        both = [
            self.alive[i]
            for i in self.alive
            if self.bound.places[i].type == wrong.type and self.bound.places[i].chunk == wrong.chunk
            and self.bound.places[i].offset < wrong.end
            and wrong.begin < self.bound.places[i].offset + self.tensors[i].alloc_size
        ]  # fmt: skip
        spans = self.meetings(wrong) or [(life.start, life.end) for life in both]
        for start, stop in spans:
            left, right = self.x(start), self.x(min(stop, len(self.tensors) - 1) + 1)
            high = max(2.0, (wrong.end - wrong.begin) * step)
            self.pic.rect((left, floor - wrong.end * step, right - left, high), "wrong", wrong.words, "wrong")

    def meetings(self, wrong: Wrong) -> list[tuple[int, int]]:
        """When the two lives that share these bytes meet; a life that is taken over in place is none of them."""
        out = []
        for a, b, _ in self.pairs:
            p, q = self.bound.places[a], self.bound.places[b]
            ends = (p.offset + self.tensors[a].alloc_size, q.offset + self.tensors[b].alloc_size)
            if (p.type, p.chunk, max(p.offset, q.offset), min(ends)) == (
                wrong.type, wrong.chunk, wrong.begin, wrong.end
            ):  # fmt: skip
                x, y = self.alive[a], self.alive[b]
                out.append((max(x.start, y.start), min(x.end, y.end)))
        return out

    def note(self, kind: str) -> None:
        if kind not in self.used:
            self.used.append(kind)

    def signs(self) -> list[Sign]:
        """What the signs mean, those alone that are there."""
        return [
            Sign(kind, words, "wrong" if kind == "wrong" else "", kind in ("peak", "least"))
            for kind, words in LEGEND.items()
            if kind in self.used
        ]
