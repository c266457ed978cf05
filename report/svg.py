"""The memory map over time as one SVG: x is operations, y bytes, a lane a type.

    over_time(frames(trace, run, verdict), "subject")

In each column lie the buffers as they are after the operation, one on the other, with the tensors of the bound
graphs in them; pools on top. Where two allocators have tensors in the same buffers, each has its own half.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..model.records import UNLIMITED
from .drawing import Element, Picture, Sign, legend, titled
from .memory import Buffers, Chunk, Frame, Lane, Mark
from .placed import Block, State
from .units import amount, exact

LEFT, RIGHT, HEAD = 104, 14, 46  #: pixels around the lanes
LANE, EMPTY, GAP, ROW = 150, 40, 22, 16
LEAST, TENSOR = 3.0, 2.0  #: pixels that the smallest chunk has, and the smallest tensor
LEGEND: dict[str, str] = {
    "live": "live tensor", "output": "output", "planned": "still to come", "dead": "not needed any more",
    "view": "view", "stale": "of an older generation", "pool": "pools", "other": "other bytes in use",
    "wrong": "bytes that conflict", "shared": "buffers of owner and borrower",
}  # fmt: skip
ORDER: tuple[State, ...] = ("stale", "dead", "planned", "live", "output", "view")


def stack(lane: Lane) -> int:
    """Bytes that are drawn of a lane."""
    return sum(b.size for b in lane.buffers) + lane.other + lane.pooled


def tops(frames: Sequence[Frame]) -> dict[int, int]:
    """By type: the most bytes that a lane must have room for; its capacity, where that is not far above."""
    out: dict[int, int] = {}
    for frame in frames:
        for lane in frame.lanes:
            need = max([stack(lane), *(w.end for b in lane.buffers for c in b.chunks for w in c.wrong)])
            out[lane.type] = max(out.get(lane.type, 1), need)
    for frame in frames:
        for lane in frame.lanes:
            if lane.capacity != UNLIMITED and lane.capacity <= 2 * out[lane.type]:
                out[lane.type] = max(out[lane.type], lane.capacity)
    return out


def over_time(
    frames: Sequence[Frame], name: str = "map", scale: Mapping[int, int] | None = None, style: bool = True
) -> str:
    """One SVG text of all frames. `name`: told apart from other pictures of the same page. `scale`: bytes at the
    top of each type's lane (`tops`), so that two pictures can be compared. `style`: False in a page that has
    drawing.STYLE."""
    return Drawing(frames, name, {**tops(frames), **(scale or {})}, style).all()


class Drawing:
    """The picture under way."""

    def __init__(self, frames: Sequence[Frame], name: str, scale: dict[int, int], style: bool) -> None:
        self.frames, self.scale = frames, scale
        self.column = max(30.0, min(92.0, 1000 / max(1, len(frames))))
        self.types = [lane.type for lane in frames[-1].lanes] if frames else []
        self.rows = list(dict.fromkeys(name for frame in frames for name, _ in frame.facts))
        words = f"memory of {len(self.types)} types over {len(frames)} operations"
        self.pic = Picture(name, words, style)
        self.used: set[str] = set()
        self.names: list[Element] = []
        tall = {x.type: True for f in frames for x in f.lanes if stack(x) or any(b.chunks for b in x.buffers)}
        self.lanes = [LANE if tall.get(kind) else EMPTY for kind in self.types]  # pixels
        self.bottom = HEAD + sum(self.lanes) + GAP * len(self.lanes)
        self.width = LEFT + len(frames) * self.column + RIGHT

    def all(self, keyed: bool = True) -> str:
        """`keyed`: with the legend."""
        self.grounds()
        for n, frame in enumerate(self.frames):
            self.pic.group("operation", step=frame.step)
            self.header(n, frame)
            for place, lane in enumerate(frame.lanes):
                self.lane(n, place, lane)
        self.pic.group("over")
        for n, frame in enumerate(self.frames):
            self.generations(n, frame)
        self.capacities()
        end = self.facts()
        end = self.footer(end)
        width = max(self.width, 340.0)
        return self.pic.done(width, (legend(self.pic, self.signs(), end, width) if keyed else end - 12) + 8)

    def x(self, n: int) -> float:
        return LEFT + n * self.column

    def floor(self, place: int) -> float:
        """Where byte 0 of a lane is."""
        return HEAD + sum(self.lanes[: place + 1]) + GAP * place

    def height(self, kind: int, size: int) -> float:
        return size * (LANE - 6) / self.scale[kind]

    # -- around the lanes ------------------------------------------------------------

    def grounds(self) -> None:
        self.pic.group("ground")
        end = self.x(len(self.frames))
        for n, frame in enumerate(self.frames):
            if any(m.sort not in ("generation", "failed", "stale") for m in frame.marks):
                box = (self.x(n), HEAD - 30.0, self.column, self.bottom - HEAD + 30.0 - GAP + 4)
                self.pic.rect(box, "bad", "\n".join(m.words for m in frame.marks))
        for place, kind in enumerate(self.types):
            floor = self.floor(place)
            self.pic.text((4, floor - self.lanes[place] + 22), f"type {kind}", "head")
            lane = self.frames[0].lanes[place]
            meta = f"on {', '.join(map(str, lane.kind.devices(kind)))}" if lane.kind.meta else ""
            meta = meta or ("no limit" if lane.capacity == UNLIMITED else f"of {amount(lane.capacity)}")
            self.pic.text((4, floor - self.lanes[place] + 36), meta, "soft small")
            for part in (0, 1, 2) if self.lanes[place] == LANE else (0,):
                y = floor - self.height(kind, self.scale[kind]) * part / 2
                self.pic.line((LEFT, y), (end, y), "axis" if not part else "rule")
                size = self.scale[kind] * part // 2
                if part != 1 or self.scale[kind] > 1:
                    self.pic.text((LEFT - 6, y + 3), amount(size), "soft small", "end")

    def header(self, n: int, frame: Frame) -> None:
        """What failed, above the column."""
        marks = [m for m in frame.marks if m.sort != "generation"]
        if not marks:
            return
        telling = min(marks, key=lambda m: _SIGNS[m.sort][0])
        drawn = self.pic.text(
            (self.x(n) + self.column / 2, HEAD - 20), sign(telling, self.column), "bad-words small", "middle"
        )
        titled(drawn, "\n".join(m.words for m in marks))

    def generations(self, n: int, frame: Frame) -> None:
        moved = [m for m in frame.marks if m.sort == "generation"]
        if not moved:
            return
        x, words = self.x(n) + 1, "\n".join(m.words for m in moved)
        self.pic.line((x, HEAD - 8), (x, self.bottom - GAP), "gen", words)
        last = moved[0].words.rsplit(" ", 1)[-1]
        text = f"gen {last}" if self.column >= 40 else last
        titled(self.pic.text((x + 3, HEAD - 2), text, "gen-words small"), words)

    def capacities(self) -> None:
        """The device's size, where it lies in the picture."""
        for place, kind in enumerate(self.types):
            for n, frame in enumerate(self.frames):
                capacity = frame.lanes[place].capacity
                if capacity > self.scale[kind] or frame.lanes[place].kind.meta:
                    continue
                y = self.floor(place) - self.height(kind, capacity)
                words = f"device {kind} has {exact(capacity)}"
                self.pic.line((self.x(n), y), (self.x(n + 1), y), "capacity", words)
                if not n or self.frames[n - 1].lanes[place].capacity != capacity:
                    self.pic.text(
                        (self.x(n) + 5, y + 11), f"device: {amount(capacity)}", "bad-words halo small"
                    )

    def facts(self) -> float:
        """Pools, captured graphs, contexts and slots: a row each, written where it changes. Where the rows end."""
        y = float(self.bottom)
        for name in self.rows:
            self.pic.line((4, y + 4), (self.x(len(self.frames)), y + 4), "rule")
            self.pic.text((4, y), name, "small soft")
            y += ROW - 2
            values = [dict(frame.facts).get(name, "none") for frame in self.frames]
            changed = [n for n, value in enumerate(values) if value != (values[n - 1] if n else "none")]
            room = float("inf")
            for n in reversed(changed):  # the last is what matters most
                long = 5.4 * len(values[n]) + 6
                if self.x(n) + long <= room:
                    self.pic.text((self.x(n) + 2, y), values[n], "small")
                    self.width = max(self.width, self.x(n) + long)
                    room = self.x(n)
            for n, frame in enumerate(self.frames):
                box = (self.x(n), y - 9, self.column, 12.0)
                self.pic.rect(box, "bare", f"{frame.step}. {name}: {values[n]}")
            y += ROW
        return y

    def footer(self, top: float) -> float:
        """Under each column: its number and what was asked. Where the words end."""
        for n, frame in enumerate(self.frames):
            self.pic.group("asked", step=frame.step)
            middle = self.x(n) + self.column / 2
            self.pic.text((middle, top), str(frame.step), "head", "middle")
            name = short(frame)
            drawn = self.pic.text((middle - 6, top + 14), name, "small soft", turn=35)
            titled(drawn, "\n".join([f"{frame.step}. {frame.words}", *(f"{a}: {b}" for a, b in frame.facts)]))
            self.width = max(self.width, middle + 5.2 * len(name))
        longest = max((len(short(frame)) for frame in self.frames), default=0)
        return top + 14 + 3.2 * longest + 24

    def signs(self) -> list[Sign]:
        """What the signs mean, those alone that are there."""
        hatches = {"dead": "dead", "stale": "dead", "pool": "pool", "other": "other", "wrong": "wrong"}
        return [
            Sign("buffer shared" if kind == "shared" else kind, words, hatches.get(kind, ""))
            for kind, words in LEGEND.items()
            if kind in self.used
        ]

    # -- in a lane ---------------------------------------------------------------------

    def lane(self, n: int, place: int, lane: Lane) -> None:
        y = self.floor(place)
        for buffers in lane.buffers:
            for chunk in buffers.chunks:
                y = self.chunk(n, y, lane.type, buffers, chunk)
        for kind, size, words in (
            ("other", lane.other, "other bytes in use"),
            ("pool", lane.pooled, "held by pools"),
        ):
            if size:
                self.used.add(kind)
                high = max(LEAST, self.height(lane.type, size))
                y -= high
                self.pic.rect(
                    (self.x(n) + 2, y, self.column - 4, high), kind, f"{exact(size)}: {words}", kind
                )

    def chunk(self, n: int, y: float, kind: int, buffers: Buffers, chunk: Chunk) -> float:
        """Draws one chunk from `y` upwards; where it ends."""
        ends = [b.end for b in chunk.blocks]
        gone = not chunk.size and bool(ends)
        if not chunk.size and not gone:
            return y
        high = max(LEAST, self.height(kind, chunk.size or max(ends)))
        if gone:
            high = min(high, LANE / 3)
        x, wide = self.x(n) + 2, self.column - 4
        words = f"type {kind}, chunk {chunk.number}: {exact(chunk.size)}; {buffers.words}"
        style = "buffer shared" if buffers.shared else "buffer"
        self.used |= {"shared"} if buffers.shared else set()
        self.pic.rect(
            (x, y - high, wide, high), "buffer gone" if gone else style, words + " (no memory)" * gone
        )
        size = chunk.size or max(ends)
        users = [u for u in buffers.users if any(b.allocator == u for b in chunk.blocks)]
        for column, user in enumerate(users):
            part = (wide - 6) / len(users)
            room = part - (2 if len(users) > 1 else 0)
            mine = sorted(
                (b for b in chunk.blocks if b.allocator == user), key=lambda b: ORDER.index(b.state)
            )
            for block, (track, tracks) in tracked(mine):
                left = x + 3 + column * part + track * room / tracks
                self.block(block, (left, y, room / tracks), high / size)
        for wrong in chunk.wrong:
            self.used.add("wrong")
            low, up = y - wrong.begin * high / size, y - wrong.end * high / size
            self.pic.rect((x + 1, up, wide - 2, max(2.0, low - up)), "wrong", wrong.words, "wrong")
        for text in self.names:
            self.pic.into.append(text)
        self.names.clear()
        return y - high

    def block(self, block: Block, at: tuple[float, float, float], step: float) -> None:
        """`at`: x, y of the chunk's floor, width; `step`: pixels a byte."""
        x, y, wide = at
        self.used.add(block.state)
        high = max(TENSOR, (block.end - block.begin) * step)
        top = y - max(high, block.end * step)
        if block.state == "view":
            self.pic.rect(
                (x + wide * 0.7, top + 1, wide * 0.3 - 1, max(TENSOR, high - 2)), "view", block.words
            )
            return
        hatch = "dead" if block.state in ("dead", "stale") else ""
        self.pic.rect((x, top, wide, high), block.state, block.words, hatch)
        if high >= 10 and wide >= 17 and block.state in ("live", "output", "planned"):
            kind = f"small name on-{block.state}"
            text = titled(self.pic.text((x + 3, top + 9.5), f"t{block.tensor}", kind), block.words)
            self.pic.into.remove(text)
            self.names.append(text)  # over what is wrong


def tracked(blocks: list[Block]) -> Iterator[tuple[Block, tuple[int, int]]]:
    """Each block with its track and how many there are: live ones that share bytes lie side by side."""
    solid = [b for b in blocks if b.state in ("live", "output")]
    track: dict[int, int] = {}
    for block in sorted(solid, key=lambda b: (b.begin, b.end)):
        taken = {
            track[o.tensor]
            for o in solid
            if o.tensor in track and o.begin < block.end and block.begin < o.end
        }
        track[block.tensor] = next(n for n in range(len(solid)) if n not in taken)
    for block in blocks:
        near = [o for o in solid if o.begin < block.end and block.begin < o.end]
        tracks = max((track[o.tensor] for o in near), default=0) + 1
        yield block, (track[block.tensor], tracks) if block in solid else (0, 1)


#: how telling a mark is, and what it says above its column
_SIGNS: dict[str, tuple[int, str]] = {
    "broken": (0, "broken"), "died": (1, "died"), "wrong": (2, "conflict"), "leaked": (3, "leaked"),
    "stale": (4, "stale"), "failed": (5, ""), "generation": (6, ""),
}  # fmt: skip


def sign(mark: Mark, column: float) -> str:
    """'✕ refused', '✕ R3'; the cross alone where there is no room."""
    words = _SIGNS[mark.sort][1] or mark.words
    if mark.sort == "broken":
        words = mark.words.split(" ", 1)[0] if " is broken" in mark.words else "differs"
    return f"✕ {words}" if column >= 20 + 6 * len(words) else "✕"


def short(frame: Frame) -> str:
    """'reserve g1 by 0': what was asked, as short as can be."""
    op = frame.op
    if op is None:
        return "free all"
    name = op.kind.name.lower().replace("_", " ")
    graph = f" g{op.graph}" if name in ("reserve", "measure", "alloc") else ""
    if name == "capacity":
        return f"{name} {amount(op.value)}"
    return f"{name}{graph} {op.alloc}"
