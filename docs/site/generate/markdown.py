"""Pieces of MyST pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def plain(text: str) -> str:
    """Text as it stands: signs that Markdown reads are escaped."""
    return re.sub(r"([\\`*_\[\]<>#|$~{}])", r"\\\1", text)


def prose(text: str) -> str:
    """As `plain`, but what stands between backticks is code."""
    return "`".join(part if n % 2 else plain(part) for n, part in enumerate(text.split("`")))


def fence(text: str, language: str = "text", *options: str) -> str:
    """A block of code. `options`: of the directive, as ':caption: x'."""
    ticks = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`+", text)), 3)
    head = f"{ticks}{{code-block}} {language}"
    return "\n".join([head, *options, *([""] if options else []), text.rstrip("\n"), ticks])


def raw(html: str) -> str:
    return f"````{{raw}} html\n{html}\n````"


def details(summary: str, *inside: str, opened: bool = False) -> str:
    """What can be folded; `summary` is plain text."""
    head = f"<details class='gc'{' open' if opened else ''}><summary>{html(summary)}</summary>"
    return "\n\n".join([raw(head), *inside, raw("</details>")])


def html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells are Markdown already."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def page(*parts: str) -> str:
    return "\n\n".join(parts) + "\n"


def plural(n: int, what: str) -> str:
    return f"{n} {what}" + ("" if n == 1 else "s")
