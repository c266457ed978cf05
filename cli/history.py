"""`gallocheck history`: would this check have caught the faults that public releases had?"""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..fuzz.history.catalogue import Catalogue, Fault, catalogue
from ..fuzz.history.releases import judges
from ..fuzz.history.results import Results
from ..fuzz.history.seek import Outcome, seek
from ..fuzz.replay import check_writable, save

SHRINK_S = 10.0


def run(
    console: Console, names: list[str], seconds: float, seed: int, folder: Path, fresh: bool, listing: bool
) -> int:
    """Checks the faults of these names (all if none), each blind for so long; the exit code."""
    known = catalogue()
    faults = known.select(names)
    if listing:
        print_catalogue(console, faults)
        return 0
    check_writable(folder)
    results = Results(folder, seed, version("gallocheck"), fresh)
    console.print(
        f"seed      {seed}; {seconds:g} s for each of {len(faults)} faults; results in {results.path}"
    )
    for number, fault in enumerate(faults, 1):
        if results.known(fault.id, seconds) is None:
            head = f"[{number}/{len(faults)}] {fault.id}"
            results.add(fault.id, check_one(console, known, fault, head, seed, seconds, folder))
        print_outcome(console, fault, results.outcomes[fault.id])
    print_table(console, faults, results)
    return 0 if all(results.outcomes[f.id].caught for f in faults) else 1


def check_one(
    console: Console, known: Catalogue, fault: Fault, head: str, seed: int, seconds: float, folder: Path
) -> Outcome:
    """Fetches, builds, hunts. Raises TreeError where a release cannot be had."""
    with judges(known, fault, lambda text: console.print(f"[dim]{escape(text)}[/dim]")) as blame:
        outcome, replay = seek(blame, seed, seconds, SHRINK_S, version("gallocheck"), Progress(head).show)
    if replay is not None:
        folder.mkdir(parents=True, exist_ok=True)
        save(replay, folder / f"{fault.id}.json")
    return outcome


class Progress:
    """A line of stderr that is written over; a plain one every 10 seconds where that is no terminal."""

    def __init__(self, head: str) -> None:
        self.head, self.next = head, 0.0 if sys.stderr.isatty() else 10.0
        self.live = sys.stderr.isatty()

    def show(self, seconds: float, traces: int) -> None:
        if seconds < self.next:
            return
        self.next = seconds + (0.5 if self.live else 10.0)
        line = f"{self.head}: {seconds:.0f} s, {traces} traces"
        print(
            f"\r{line}  " if self.live else line, end="" if self.live else "\n", file=sys.stderr, flush=True
        )


def print_outcome(console: Console, fault: Fault, outcome: Outcome) -> None:
    how = (
        f"caught after {outcome.seconds:.1f} s ({outcome.clause})" if outcome.caught else "[red]missed[/red]"
    )
    console.print(f"{fault.id}: {how}")


def print_catalogue(console: Console, faults: list[Fault]) -> None:
    for fault in faults:
        console.print(f"[bold]{fault.id}[/bold]  {', '.join(fault.clauses)}")
        console.print(f"  {escape(fault.sentence)}")
        console.print(f"  bad {fault.since} to {fault.bad}, good {fault.good}", markup=False)
        console.print(f"  {fault.reference}", markup=False)


def print_table(console: Console, faults: list[Fault], results: Results) -> None:
    """One row a fault, and the share that was caught."""
    table = Table(box=None)
    for name in ("fault", "", "found in", "traces", "operations", "clause", "seen as"):
        table.add_column(name, no_wrap=True)
    for fault in faults:
        o = results.outcomes[fault.id]
        table.add_row(
            fault.id,
            "caught" if o.caught else "[red]missed[/red]",
            f"{o.seconds:.1f} s" if o.caught else f"> {o.given:.0f} s",
            str(o.traces),
            str(o.length) if o.caught else "",
            fault.clauses[0],
            o.clause,
        )
    console.print(table)
    caught = sum(results.outcomes[f.id].caught for f in faults)
    console.print(f"{caught} of {len(faults)} caught")
