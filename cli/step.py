"""`gallocheck replay FILE --step`: walks a failure forward and back, both sides and the memory map."""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.control import Control
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from ..report.characters import drawn
from ..report.memory import Frame
from ..report.story import Story

#: what a terminal sends for each key
KEYS = {
    b"\x1b[C": "next", b"\x1bOC": "next", b"n": "next", b" ": "next", b"l": "next",
    b"\x1b[D": "back", b"\x1bOD": "back", b"p": "back", b"h": "back", b"\x7f": "back",
    b"\x1b[H": "first", b"\x1bOH": "first", b"\x1b[1~": "first", b"g": "first",
    b"\x1b[F": "last", b"\x1bOF": "last", b"\x1b[4~": "last", b"G": "last",
    b"\x1b[A": "up", b"\x1bOA": "up", b"k": "up", b"\x1b[B": "down", b"\x1bOB": "down", b"j": "down",
    b"q": "quit", b"Q": "quit", b"\x1b": "quit", b"\x04": "quit", b"": "quit",
}  # fmt: skip
NUMBER_S = 1.5  #: a digit that comes later begins another number
HELP = "right n next  left p back  Home End  0-9 step  up down scroll  q quit"


def walk(console: Console, story: Story) -> None:
    """Shows the steps: on a terminal one at a time, by keys; else all of them, one after the other."""
    if not (sys.stdin.isatty() and console.is_terminal):
        for n in range(len(story.rows)):
            console.print(step(story, n, console))
        return
    with raw(sys.stdin.fileno()), console.screen(hide_cursor=True):
        Walk(console, story).run()


class Walk:
    """Where the walk is. It begins where the failure is."""

    def __init__(self, console: Console, story: Story) -> None:
        self.console, self.story = console, story
        self.at, self.down = len(story.rows) - 1, 0
        self.typed, self.since = "", 0.0  # digits so far; from when on a key is waited for

    def run(self) -> None:
        while True:
            self.show()
            self.since = time.monotonic()
            key = read_key(sys.stdin.fileno())
            action = KEYS.get(key)
            if action == "quit":
                return
            if key.isdigit():
                self.digit(key.decode())
                continue
            self.typed = ""
            if action is not None:
                self.go(action)

    def go(self, action: str) -> None:
        last = len(self.story.rows) - 1
        if action in ("up", "down"):
            self.down = max(0, self.down + (1 if action == "down" else -1))
            return
        self.down = 0
        self.at = {"next": min(last, self.at + 1), "back": max(0, self.at - 1), "first": 0, "last": last}[
            action
        ]

    def digit(self, digit: str) -> None:
        """A number goes to its step, digit by digit; one too large begins anew."""
        at_once = time.monotonic() - self.since < NUMBER_S
        self.typed = self.typed + digit if at_once else digit
        if int(self.typed) >= len(self.story.rows):
            self.typed = digit
        if int(self.typed) < len(self.story.rows):
            self.at, self.down = int(self.typed), 0

    def show(self) -> None:
        """As much of the step as there is room for, and the keys."""
        size = self.console.size
        options = self.console.options.update(width=size.width, height=None)
        lines = self.console.render_lines(step(self.story, self.at, self.console), options, pad=True)
        room = max(1, size.height - 1)
        self.down = min(self.down, max(0, len(lines) - room))
        shown = lines[self.down : self.down + room]
        more = len(lines) - self.down - len(shown)
        foot = f"+{more} below  " if more > 0 else ""
        keys = Text((foot + HELP)[: size.width - 1], "reverse")
        blank = [[Segment(" " * size.width)]] * (room - len(shown))
        body = [segment for line in [*shown, *blank] for segment in [*line, Segment.line()]]
        self.console.control(Control.home())
        self.console.print(Segments(body), end="", soft_wrap=False)
        self.console.print(keys, end="", soft_wrap=True)


def step(story: Story, n: int, console: Console) -> RenderableType:
    """One step: what was asked, both sides, where they differ, the memory map."""
    row, last = story.rows[n], len(story.rows) - 1
    parts: list[RenderableType] = [
        Text.assemble(
            (f"step {row.step} of {last}  ", "bold"),
            row.words,
            ("  <- it fails here" if row.here else "", "bold red"),
        )
    ]
    frame = story.frames[n] if n < len(story.frames) else None
    theirs = story.model_frames[n] if n < len(story.model_frames) else None
    shown = frame or theirs
    for mark in shown.marks if shown is not None else ():
        parts.append(Text(f"  {mark.words}", "green" if mark.sort == "generation" else "bold red"))
    sides = Table("model", "subject", box=None, pad_edge=False, expand=True, padding=(0, 2, 0, 0))
    sides.add_row(Text(row.model), Text(row.subject or "not run here"))
    parts.append(sides)
    for d in row.differences:
        parts.append(Text(f"  differs: {d.what}: {d.model} by the model, {d.subject} by the subject", "red"))
    parts.append(Text())
    parts += maps(frame, theirs, console)
    return Group(*parts)


def maps(mine: Frame | None, theirs: Frame | None, console: Console) -> Iterator[RenderableType]:
    """The memory of the subject, and the model's where that is another."""
    plain = not console.encoding.lower().startswith("utf")
    sides = [
        (name, drawn(frame, console.width, plain))
        for name, frame in (("the subject", mine), ("the model", theirs))
        if frame
    ]
    if len(sides) == 2 and [t.plain for t in sides[0][1]] == [t.plain for t in sides[1][1]]:
        sides = [("model and subject", sides[0][1])]
    for name, lines in sides:
        yield Text(f"memory of {name}", "bold underline")
        yield from lines or [Text("  nothing", "dim")]
        yield Text()


def read_key(descriptor: int) -> bytes:
    """The next key: one byte, or the whole sequence of an arrow."""
    key = os.read(descriptor, 1)
    while key[:1] == b"\x1b" and key not in KEYS.keys() - {b"\x1b"} and len(key) < 8:
        if not select.select([descriptor], [], [], 0.05)[0]:
            break
        key += os.read(descriptor, 1)
    return key


@contextmanager
def raw(descriptor: int) -> Iterator[None]:
    """Keys come at once, and are not echoed."""
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
