"""`gallocheck explain CLAUSE`."""

from __future__ import annotations

from rich.console import Console

from ..fuzz.catalogue import DEFECTS, SCHED_DEFECTS
from ..spec.clauses import clause
from ..spec.machines import MACHINES


def run(console: Console, name: str) -> int:
    c = clause(name)
    console.print(f"[bold]{c.id} {c.title}[/bold] ({c.layer})\n")
    console.print(c.statement + "\n")
    proved = [f"{m.name} ({m.sizes})" if m.sizes else m.name for m in MACHINES if c.id in m.clauses]
    console.print(
        f"proved of: {'; '.join(proved) or 'nothing, it is no claim about one step of a state machine'}"
    )
    console.print(f"checked in: {c.where or 'nowhere yet'}")
    planted = [d for d in (*DEFECTS, *SCHED_DEFECTS) if d.clause == c.id]
    for d in planted:
        console.print(f"planted defect {d.number}: {d.what}")
    return 0
