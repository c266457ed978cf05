"""The proof's result as people read it."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .machine import INVARIANT
from .machines import MACHINES
from .prover import PROVED, REFUTED, UNKNOWN, Row

COLOUR = {PROVED: "green", REFUTED: "red", UNKNOWN: "yellow"}


def verdict(rows: list[Row]) -> str:
    """Of several rows the worst: refuted, then unknown, then proved."""
    found = {r.verdict for r in rows}
    return next(v for v in (REFUTED, UNKNOWN, PROVED) if v in found)


def print_table(rows: list[Row], console: Console | None = None) -> None:
    """One line a clause of a machine, over all configs; below, for each refutation, its counterexample in words."""
    console = console or Console()
    table = Table("machine", "clause", "title", "verdict", "seconds", "sizes")
    table.columns[4].justify = "right"
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.machine, row.clause), []).append(row)
    for (machine, name), mine in groups.items():
        if name == INVARIANT and table.row_count:
            table.add_section()
        worst = verdict(mine)
        seconds = f"{sum(r.seconds for r in mine):.2f}"
        table.add_row(
            machine if name == INVARIANT else "",
            name,
            escape(mine[0].title),
            f"[{COLOUR[worst]}]{worst}[/]",
            seconds,
            _sizes(machine, [r for r in mine if r.verdict == worst])
            if name == INVARIANT or worst != PROVED
            else "",
        )
    console.print(table)
    for mine in groups.values():
        _explain(mine, console)


def _sizes(machine: str, rows: list[Row]) -> str:
    """`types x chunks: 1x1 1x2`."""
    what = next((m.sizes for m in MACHINES if m.name == machine), "")
    shown = " ".join("x".join(map(str, r.config)) for r in rows if r.config)
    return f"{what}: {shown}" if what and shown else shown


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
