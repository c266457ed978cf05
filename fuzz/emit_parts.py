"""The helpers of an emitted program: of fuzz/program/*.cpp, only what the program needs.

A part is between `//[ conditions` and `//]`, each on a line of its own; parts may be nested.
`//[ a|b`: kept where flag a or b is set. `//[ @f`: kept where other kept code names f.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "program"


@dataclass(frozen=True)
class Part:
    """Lines and parts within parts. `conditions`: () where it is always kept."""

    conditions: tuple[str, ...] = ()
    content: list[str | Part] = field(default_factory=list)


@cache
def part(name: str) -> Part:
    """A file of fuzz/program, read."""
    top = Part()
    stack = [top]
    for line in (FOLDER / f"{name}.cpp").read_text().splitlines():
        mark = line.strip()
        if mark.startswith("//["):
            inner = Part(tuple(mark[3:].strip().split("|")))
            stack[-1].content.append(inner)
            stack.append(inner)
        elif mark == "//]":
            stack.pop()
        else:
            stack[-1].content.append(line)
    assert len(stack) == 1, f"{name}.cpp: a part is not closed"
    return top


def render(pieces: list[str | Part], flags: Collection[str]) -> str:
    """The program's text: strings as they are, of the parts what is needed, in order."""
    named: frozenset[str] = frozenset()
    while True:
        lines = [line for piece in pieces for line in chosen(piece, flags, named)]
        words = frozenset(re.findall(r"\w+", "\n".join(line.split("//")[0] for line in lines)))
        if words <= named:
            text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines))
            return re.sub(r"\n\n( *\})", r"\n\1", text)
        named |= words


def chosen(piece: str | Part, flags: Collection[str], named: Collection[str]) -> list[str]:
    """The lines of a piece that are kept, `named` being the words of the code so far."""
    if isinstance(piece, str):
        return piece.split("\n")
    met = (c[1:] in named if c.startswith("@") else c in flags for c in piece.conditions)
    if piece.conditions and not any(met):
        return []
    return [
        line
        for inner in piece.content
        for line in (chosen(inner, flags, named) if isinstance(inner, Part) else [inner])
    ]
