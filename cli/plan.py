"""`gallocheck plan FILE`: a dump of native/hook/gallocheck_hook.c, judged and drawn."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..fuzz.dump.figures import Figure, figures
from ..fuzz.dump.found import Plan, Verdicts
from ..fuzz.dump.judge import CLAUSES, judge
from ..fuzz.dump.lines import Dump, DumpError, read
from ..model.records import Setup
from ..native.tree_build import HERE
from ..report.files import write
from ..report.placed import Bound
from ..report.plans import plan_picture
from ..report.units import amount
from ..spec.clauses import clause
from ..spec.optimum import lower_bound
from .replay import check_picture

SHOWN = 20  #: findings, and plans, that are printed


def run(console: Console, file: Path | None, hook: bool, plot: Path | None, as_json: bool) -> int:
    """Judges and prints; 0 where all holds, 1 where a clause is broken, 3 where nothing could be judged."""
    if hook:
        print(HERE / "hook")
        return 0
    if file is None:
        raise DumpError("Name the file that the hook wrote, or --hook for the folder that has the hook.")
    if plot is not None:
        check_picture(plot)
    dump = read(file)
    verdicts = judge(dump)
    rows = figures(verdicts)
    if as_json:
        print(json.dumps(document(dump, verdicts, rows), indent=1))
    else:
        show(console, dump, verdicts, rows)
    if plot is not None:
        draw(console, verdicts, plot, as_json)
    if verdicts.findings:
        return 1
    return 0 if sum(verdicts.exercised.values()) else 3


def document(dump: Dump, verdicts: Verdicts, rows: list[Figure]) -> dict[str, object]:
    broken = {f.clause for f in verdicts.findings}
    return {
        "file": dump.path,
        "cut": dump.cut,
        "binds": verdicts.binds,
        "computations": verdicts.computes,
        "clauses": [
            {
                "clause": c,
                "title": clause(c).title,
                "exercised": verdicts.exercised[c],
                "broken": c in broken,
            }
            for c in CLAUSES
        ],
        "findings": [
            {"clause": f.clause, "message": f.message, "line": f.line, "graph": f.graph, "count": f.count}
            for f in verdicts.findings
        ],
        "plans": [asdict(row) for row in rows],
        "not judged": verdicts.unclear,
    }


# -- the table ---------------------------------------------------------------------------------


def show(console: Console, dump: Dump, verdicts: Verdicts, rows: list[Figure]) -> None:
    console.print(f"file      {dump.path}", markup=False)
    console.print(f"seen      {verdicts.binds} binds of {len(rows)} plans, {verdicts.computes} computations")
    if dump.cut:
        console.print("          the last line is not whole: the program was stopped while it was written")
    broken = {f.clause for f in verdicts.findings}
    table = Table("clause", "title", "exercised", "verdict")
    table.columns[2].justify = "right"
    for c in CLAUSES:
        n = verdicts.exercised[c]
        word = "[bold red]broken[/]" if c in broken else "[green]holds[/]" if n else "[dim]not exercised[/]"
        table.add_row(c, escape(clause(c).title), str(n), word)
    console.print(table)
    sizes(console, rows)
    for f in verdicts.findings[:SHOWN]:
        console.print(f"\n[bold red]{f.clause}[/] {escape(clause(f.clause).title)}")
        again = f", and {f.count - 1} times more" if f.count > 1 else ""
        console.print(f"  line {f.line}{again}: {f.message}", markup=False)
    if len(verdicts.findings) > SHOWN:
        console.print(f"\nand {len(verdicts.findings) - SHOWN} findings more (--json has all)")
    for text in verdicts.unclear[:SHOWN]:
        console.print(f"not judged: {text}", markup=False)
    if not sum(verdicts.exercised.values()):
        why = "the program bound no graph while the hook looked"
        if verdicts.binds:
            why = f"of {verdicts.binds} binds none could be judged"
        console.print(f"nothing could be judged: {why}")


def sizes(console: Console, rows: list[Figure]) -> None:
    """What the largest plans need, beside what none can do without."""
    table = Table("graph", "tensors", "memory", "chunks", "peak", "lower bound", "true minimum")
    lines = [(row.peak[k], k, row) for row in rows for k in range(len(row.types))]
    for peak, k, row in sorted(lines, key=lambda x: -x[0])[:SHOWN]:
        table.add_row(
            str(row.graph), str(row.tensors), escape(row.types[k]), str(row.chunks[k]),
            low(peak, row.bound[k]), amount(row.bound[k]), amount(row.minimum[k]) if row.minimum else "",
        )  # fmt: skip
    if lines:
        console.print(table)


def low(peak: int, bound: int) -> str:
    """A peak; one that no right plan can have is marked."""
    return f"[bold red]{amount(peak)}, impossible[/]" if peak < bound else amount(peak)


# -- the picture -------------------------------------------------------------------------------


def draw(console: Console, verdicts: Verdicts, path: Path, quiet: bool) -> None:
    """The plan of the first finding that has one, else the plan that needs most."""
    chosen = choose(verdicts)
    if chosen is None:
        if not quiet:
            console.print(f"{path} is not drawn: there is no plan to draw", markup=False)
        return
    view = chosen.view
    setup = Setup(tuple(view.types), (tuple(view.slots),))
    bound = Bound(chosen.allocator, view.graph, chosen.number, tuple(view.places), tuple(view.slots), 0)
    least = lower_bound(view.types, view.slots, view.graph)
    write(plan_picture(bound, setup, view.real, least=least, names=chosen.names), path.parent, path.name)
    if not quiet:
        console.print(
            f"picture   {path}: graph {chosen.number} as it was bound at line {chosen.line}", markup=False
        )


def choose(verdicts: Verdicts) -> Plan | None:
    for f in verdicts.findings:
        for plan in verdicts.plans:
            if plan.number == f.graph and (plan.line == f.line or f.clause[0] != "P"):
                return plan
    return max(verdicts.plans, key=lambda p: sum(p.peak), default=None)
