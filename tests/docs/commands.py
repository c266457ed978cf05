"""The commands in the docs: every line of a block of code that starts gallocheck, make, pytest or pip."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs/site/pages").rglob("*.md")),
]
_FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
_COMMAND = re.compile(
    r"^(?:\$ )?(?:[A-Z_]+=\S+ )*(?:\S*/)?(?:gallocheck|make|pytest|pip|python -m (?:gallocheck|pytest)\S*)(?: .*)?$"
)


@dataclass(frozen=True)
class Command:
    """A command as it is written, without what is said of it beside."""

    text: str
    page: str
    line: int


def blocks(text: str) -> Iterator[tuple[int, str]]:
    """(line, text) of every line in a block of code: fenced, or indented by four spaces outside lists."""
    fence, before, in_list = "", "", False
    for number, line in enumerate(text.splitlines(), 1):
        if match := _FENCE.match(line):
            fence = match[1] if not fence else "" if match[1] == fence else fence
        elif fence or (line.startswith("    ") and not in_list):
            yield number, line.strip()
        elif line.strip():
            in_list = bool(re.match(r"\s*([-*]|\d+\.) ", line)) or (in_list and line.startswith(" "))
        before = line
    assert not fence, f"a block is not closed: {before}"


def collected() -> list[Command]:
    """Every command of the docs. A backslash at the end joins lines."""
    found = []
    for page in PAGES:
        for number, line in blocks(page.read_text()):
            if _COMMAND.match(line):
                text = re.split(r"\s{2,}|\s#", line.removeprefix("$ "))[0].strip()
                found.append(Command(text, page.relative_to(ROOT).as_posix(), number))
    return found


def inline() -> list[Command]:
    """Commands that are named in running text: `gallocheck check R6`."""
    found = []
    for page in PAGES:
        for number, line in enumerate(page.read_text().splitlines(), 1):
            for words in re.findall(r"`(gallocheck [a-z][^`]*)`", line):
                found.append(Command(words, page.relative_to(ROOT).as_posix(), number))
    return found
