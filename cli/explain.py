"""`gallocheck explain CLAUSE`."""

from __future__ import annotations

from rich.console import Console

from ..fuzz.catalogue import DEFECTS, SCHED_DEFECTS
from ..spec.clauses import clause


def run(console: Console, name: str) -> int:
    c = clause(name)
    console.print(f"[bold]{c.id} {c.title}[/bold] ({c.layer})\n")
    console.print(c.statement + "\n")
    console.print(f"checked in: {c.where or 'nowhere yet'}")
    planted = [d for d in (*DEFECTS, *SCHED_DEFECTS) if d.clause == c.id]
    for d in planted:
        console.print(f"planted defect {d.number}: {d.what}")
    return 0
