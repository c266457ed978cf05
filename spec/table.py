"""The proof's result as people read it."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from .prover import PROVED, REFUTED, UNKNOWN, Row

COLOUR = {PROVED: "green", REFUTED: "red", UNKNOWN: "yellow"}


def verdict(rows: list[Row]) -> str:
    """Of several rows the worst: refuted, then unknown, then proved."""
    found = {r.verdict for r in rows}
    return next(v for v in (REFUTED, UNKNOWN, PROVED) if v in found)


def print_table(rows: list[Row], console: Console | None = None) -> None:
    """One line a clause, over all configs; below, for each refutation, its counterexample in words."""
    console = console or Console()
    table = Table("clause", "title", "verdict", "seconds", "types x chunks")
    table.columns[3].justify = "right"
    by_clause: dict[str, list[Row]] = {}
    for row in rows:
        by_clause.setdefault(row.clause, []).append(row)
    for clause, mine in by_clause.items():
        worst = verdict(mine)
        shown = " ".join("x".join(map(str, r.config)) for r in mine if r.verdict == worst)
        seconds = f"{sum(r.seconds for r in mine):.2f}"
        table.add_row(clause, mine[0].title, f"[{COLOUR[worst]}]{worst}[/]", seconds, shown)
    console.print(table)
    for mine in by_clause.values():
        _explain(mine, console)


def _explain(rows: list[Row], console: Console) -> None:
    row = next((r for r in rows if r.verdict != PROVED), None)
    if row is None:
        return
    what = f"{row.clause} {row.title}: {row.verdict}" + (f" ({row.part})" if row.part else "")
    console.print(f"\n{what}", markup=False, highlight=False)
    for line in row.step:
        console.print(f"  {line}", markup=False, highlight=False)
    if row.reached:
        console.print(f"  {row.reached}", markup=False, highlight=False)
    for line in row.trace_lines:
        console.print(f"    {line}", markup=False, highlight=False)
