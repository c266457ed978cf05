"""`gallocheck defects`: the planted defects by clause, and how long each takes to find."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from ..fuzz.canary import hunt_for
from ..fuzz.catalogue import DEFECTS, SCHED_DEFECTS
from ..spec.clauses import CLAUSES

EVERY = (*DEFECTS, *SCHED_DEFECTS)


def run(console: Console, find: bool, seconds: float) -> int:
    """Prints the catalogue; with `find`, 1 where one is missed or blamed on another clause alone."""
    table = Table("number", "clause", "what is wrong", *(("found", "operations") if find else ()), box=None)
    missed = 0
    for d in EVERY:
        row = [str(d.number), d.clause, d.what]
        if find:
            _, result = hunt_for(d, 1, seconds)
            ok = any(f.verdict.clause == d.clause for f in result.findings)
            missed += not ok
            row += [f"{result.seconds:.1f} s" if ok else "[red]missed[/red]", str(result.operations)]
        table.add_row(*row)
    console.print(table)
    counts = {c.id: sum(d.clause == c.id for d in EVERY) for c in CLAUSES}
    console.print(f"{len(EVERY)} defects; a clause: " + ", ".join(f"{c} {n}" for c, n in counts.items()))
    few = [c for c, n in counts.items() if n < 2]
    if few:
        console.print(f"[yellow]fewer than two:[/yellow] {', '.join(few)}")
    return 1 if missed else 0
