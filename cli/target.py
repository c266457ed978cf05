"""The subject that a command line names: a subject by name, or the bundled one with a planted defect."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from ..fuzz import subjects


def saying(console: Console) -> Callable[[str], None]:
    """Says what takes time."""
    return lambda text: console.print(f"[dim]{escape(text)}[/dim]")


def find(
    console: Console, subject: str, source: Path | None, defect: int, covered: bool = False
) -> subjects.Subject:
    """Finds or builds it, and says what takes time; `covered`: the build that counts edges.
    Raises UnknownSubject, TreeError."""
    return subjects.find(subject, source, defect, saying(console), covered)
