"""`gallocheck mutate`: mutants of the allocator under test, and which of them the check notices."""

from __future__ import annotations

import random
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..fuzz.campaign.display import span
from ..fuzz.mutants import sources
from ..fuzz.mutants.catalogue import Known, Mutant, chosen, of_source
from ..fuzz.mutants.display import Display
from ..fuzz.mutants.hands import Hands
from ..fuzz.mutants.report import Report, Tally, percentile, report
from ..fuzz.mutants.run import Work, clean
from ..fuzz.mutants.store import Store
from ..fuzz.mutants.trial import SURVIVED
from .fuzz import Interrupts


def run(
    console: Console,
    subject: str,
    source: Path | None,
    files: list[str],
    seconds: float,
    jobs: int,
    seed: int | None,
    limit: int | None,
    only_list: bool,
    again: bool,
    out: Path,
) -> int:
    """Makes and checks the mutants, or lists them; the exit code."""

    told: set[str] = set()

    def say(text: str) -> None:
        if text not in told:  # each file has the others built, which are there then
            console.print(f"[dim]{escape(text)}[/dim]")
        told.add(text)

    tree = sources.tree_of(subject, source, say)
    wanted = list(dict.fromkeys(files)) or list(sources.names(subject))
    for name in wanted:
        sources.path_of(subject, tree, name)
    known = Known()
    if only_list:
        every = [m for name in wanted for m in of_source(sources.unbuilt(subject, tree, name))]
        return show_list(console, every, limit, seed or 0)
    with Store(out) as store, Interrupts() as interrupts:
        clean(out)
        seed = seed_of(store, seed)
        read = [sources.read(subject, tree, name, say) for name in wanted]
        begin(store, subject, read, seed)
        every = [m for s in read for m in of_source(s)]
        sample = chosen(every, seed, limit)
        if again:
            rows = store.rows()
            store.forget(m.key for m in sample if m.key in rows and rows[m.key].state == SURVIVED)
        console.print(f"subject   {subject}: {tree.name if tree else 'gallocheck itself'}", markup=False)
        console.print(f"mutants   {len(sample)} of {len(every)} in {len(wanted)} files, {span(seconds)} each")
        console.print(f"seed      {seed}")
        work = Work(store, sample, seed, seconds, frozenset(m.key for m in sample if known.why(m)))
        with Hands(jobs) as hands, Display() as display:
            state = work.run(hands, display.show, lambda: interrupts.count > 0)
        chosen_keys = {m.key for m in sample}
        found = report([m for m in every if m.key in chosen_keys], store.rows(), known)
    print_report(console, found)
    for key, why in work.troubles.items():
        console.print(f"mutant {key} could not be checked: {escape(why)}; the same command tries again")
    if state.done < state.all:
        console.print("stopped by Ctrl-C: the same command goes on")
        return 130
    return 1 if found.survivors or found.stale else 3 if work.troubles else 0


def seed_of(store: Store, seed: int | None) -> int:
    if seed is not None:
        return seed
    there = store.facts.get("seed")
    return there if isinstance(there, int) else random.SystemRandom().randrange(2**32)


def begin(store: Store, subject: str, read: list[sources.Source], seed: int) -> None:
    """Makes sure that the folder's mutants are of these sources. Raises MutantsError."""
    texts = {f"text of {s.name}": sources.digest(s.text) for s in read}
    store.begin({"subject": subject, "seed": seed, **texts})


def show_list(console: Console, every: list[Mutant], limit: int | None, seed: int) -> int:
    keys = {m.key for m in chosen(every, seed, limit)}
    for m in every:
        if m.key in keys:
            print_mutant(console, m)
    console.print(f"{len(keys)} of {len(every)} mutants")
    return 0


def print_mutant(console: Console, m: Mutant, why: str = "") -> None:
    """Where it is, what kind of slip, and the line before and after."""
    console.print(f"{m.where}  {m.mutation.operator}" + (f": {why}" if why else ""), markup=False)
    console.print(f"  - {m.was}\n  + {m.becomes}", markup=False)


def print_report(console: Console, found: Report) -> None:
    for title, tallies in (("file", found.files), ("slip", found.operators)):
        print_tallies(console, title, {**tallies, "all": found.whole})
    print_clauses(console, found)
    section(console, "listed as making no difference", found.listed)
    section(
        console,
        "listed as making no difference, but killed: take them off the list",
        [(m, "") for m in found.stale],
    )
    section(console, "survivors", [(m, "") for m in found.survivors])
    w = found.whole
    score = "no score" if w.score is None else f"score {100 * w.score:.1f}%"
    console.print(
        f"\nnone at all: {w.uncompiled} do not compile, {w.same} compile to the code of the original or of another"
    )
    console.print(
        f"{w.killed} killed, {w.survived} survived, {score}; {w.listed} more survivors are listed with the reason;"
        f" time to kill: median {percentile(w.times, 0.5):.2f} s, 95th percentile {percentile(w.times, 0.95):.2f} s"
    )


def print_tallies(console: Console, title: str, tallies: dict[str, Tally]) -> None:
    heads = ("made", "none", "killed", "lived", "listed", "score", "median", "95%")
    table = Table(title, *heads, box=None, pad_edge=False, padding=(0, 1))
    table.columns[0].no_wrap = True
    for column in table.columns[1:]:
        column.justify, column.no_wrap = "right", True
    for name, t in tallies.items():
        numbers = map(str, (t.made, t.uncompiled + t.same, t.killed, t.survived, t.listed))
        score = "-" if t.score is None else f"{100 * t.score:.1f}%"
        table.add_row(name, *numbers, score, *seconds_of(t.times))
    console.print()
    console.print(table)


def print_clauses(console: Console, found: Report) -> None:
    table = Table("clause", "killed", "median", "95%", box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for clause, times in sorted(found.clauses.items()):
        table.add_row(clause or "none", str(len(times)), *seconds_of(times))
    console.print()
    console.print(table)


def seconds_of(times: list[float]) -> tuple[str, str]:
    if not times:
        return "-", "-"
    return f"{percentile(times, 0.5):.2f} s", f"{percentile(times, 0.95):.2f} s"


def section(console: Console, title: str, mutants: list[tuple[Mutant, str]]) -> None:
    if mutants:
        console.print(f"\n{title}:", markup=False)
    for m, why in mutants:
        print_mutant(console, m, why)
