"""The subject that a command line names: a subject by name, or the bundled one with a planted defect."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.markup import escape

from ..fuzz.catalogue import DEFECTS
from ..fuzz.subjects import Subject, UnknownSubject, bundled, resolve


def find(console: Console, subject: str, source: Path | None, defect: int, covered: bool = False) -> Subject:
    """Finds or builds it, and says what takes time; `covered`: the build that counts edges.
    Raises UnknownSubject, TreeError."""
    if defect and (subject != "bundled" or source):
        raise UnknownSubject(
            f"--defect {defect} is planted in the bundled allocator alone; leave --subject and --source out."
        )
    if defect:
        if defect not in {d.number for d in DEFECTS}:
            raise UnknownSubject(f"There is no planted defect {defect}; `gallocheck defects` lists them.")
        return Subject("planted", bundled("planted", covered))
    return resolve(
        subject,
        str(source) if source else None,
        lambda text: console.print(f"[dim]{escape(text)}[/dim]"),
        covered,
    )
