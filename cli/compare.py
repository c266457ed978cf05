"""`gallocheck compare A B`: two allocators over the same graphs; B must not be worse."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..fuzz.compare import MEASURES, Case, Comparison, Pair, compare, drawn, of_file
from ..fuzz.subjects import Subject, check_name, find
from ..fuzz.words import count, describe_graph
from ..native.trees import locate
from ..report.units import amount
from ..spec.clauses import clause
from .target import saying

PINNED = "pinned"  #: the release that gallocheck fetches
SHOWN = 5  #: regressions, and wrong plans, that are told


def run(
    console: Console,
    a: str,
    b: str,
    files: list[Path],
    number: int,
    seed: int,
    tolerance: float,
    as_json: bool,
) -> int:
    """Compares and prints; 0 where B is not worse, 1 where it is or has a wrong plan where A has none, 3 where
    the two have nothing in common."""
    quiet = Console(stderr=True, highlight=False) if as_json else console
    for name in (a, b):
        check(name)
    first, second = subject(quiet, a), subject(quiet, b)
    cases: list[Case] = list(chain.from_iterable(of_file(file) for file in files))
    found = compare(first.library, second.library, cases or drawn(seed, number))
    if as_json:
        print(json.dumps(document(a, b, found, tolerance, None if cases else seed), indent=1))
    else:
        show(console, a, b, found, tolerance, None if cases else seed)
    if not found.both:
        return 3
    return 1 if found.worse(tolerance) or found.only_a or found.wrong() else 0


def check(name: str) -> None:
    """Bad names are told before anything is built. Raises UnknownSubject, TreeError."""
    if Path(name).is_dir():
        locate(name)
    elif name != PINNED:
        check_name(name)


def subject(console: Console, name: str) -> Subject:
    """'pinned', a directory with a ggml tree, or a subject as --subject names it. Raises UnknownSubject, TreeError."""
    if name == PINNED:
        return find("ggml", None, 0, saying(console))
    if Path(name).is_dir():
        return find("ggml", Path(name), 0, saying(console))
    return find(name, None, 0, saying(console))


def document(a: str, b: str, found: Comparison, tolerance: float, seed: int | None) -> dict[str, object]:
    return {
        "a": a,
        "b": b,
        "seed": seed,
        "tolerance": tolerance,
        "graphs": len(found.both),
        "sequences": found.sequences,
        "lower bound": found.bound,
        "measures": {m: {"a": found.a[m], "b": found.b[m]} for m in MEASURES},
        "worse": found.worse(tolerance),
        "broken": [
            {"graph": p.origin, "clause": x.clause, "message": x.message}
            for p in found.pairs
            for x in p.newly_broken
        ],
        "below the bound": [
            {"side": name, "graph": p.origin, "peak": side.peak, "lower bound": p.bound}
            for p in found.pairs
            for name, side in (("a", p.a), ("b", p.b))
            if side and p.impossible(side)
        ],
        "only a": found.only_a,
        "only b": found.only_b,
        "regressions": [
            {"graph": p.origin, "a": p.a.peak, "b": p.b.peak, "lower bound": p.bound}
            for p in found.regressions(SHOWN)
            if p.a and p.b
        ],
    }


def show(console: Console, a: str, b: str, found: Comparison, tolerance: float, seed: int | None) -> None:
    console.print(f"A  {a}\nB  {b}", markup=False)
    told = f", seed {seed}" if seed is not None else ""
    console.print(
        f"{count(len(found.both), 'graph')}, {count(found.sequences, 'sequence')} of them in turn{told}"
    )
    worse = found.worse(tolerance)
    table = Table("", "A", "B", "B to A", "lower bound", "verdict")
    for column in table.columns[1:5]:
        column.justify = "right"
    for m in MEASURES:
        verdict = "[bold red]worse[/]" if m in worse else "[green]not worse[/]"
        bound = amount(found.bound) if m == "peak" else ""
        shown = [amount(x) if m == "peak" else f"{x:,}" for x in (found.a[m], found.b[m])]
        table.add_row(m, *shown, change(found.a[m], found.b[m]), bound, verdict)
    most = [max((n.peak for n in side if n), default=0) for side in sides(found)]
    table.add_row("largest peak", *(amount(x) for x in most), change(*most), "", "")
    console.print(table)
    for name, only in (("A", found.only_a), ("B", found.only_b)):
        if only:
            console.print(f"only {name} could reserve and bind {len(only)}: {escape(', '.join(only[:3]))}")
    wrong(console, found)
    regressions(console, found)


def wrong(console: Console, found: Comparison) -> None:
    """Plans that no right allocator makes: less memory by them is no gain."""
    broken = [
        f"[bold red]B is wrong[/]: {escape(p.origin)}: its plan breaks {x.clause} ({escape(clause(x.clause).title)}),"
        f" A's does not: {escape(x.message)}"
        for p in found.pairs
        for x in p.newly_broken
    ]
    impossible = [
        f"[bold red]{name} is impossible[/]: {escape(p.origin)}: its peak of {amount(side.peak)} is below"
        f" {amount(p.bound)}, which no right plan can do without"
        for p in found.pairs
        for name, side in (("B", p.b), ("A", p.a))
        if side and p.impossible(side)
    ]
    for lines in (broken, impossible):
        for line in lines[:SHOWN]:
            console.print(line)
        if len(lines) > SHOWN:
            console.print(f"and {len(lines) - SHOWN} more like that (--json has all)")


def sides(found: Comparison) -> tuple[list, list]:
    return [p.a for p in found.both], [p.b for p in found.both]


def change(a: int, b: int) -> str:
    """'+3.1 %'."""
    return "" if a == b else f"{100 * (b - a) / a:+.1f} %" if a else "+"


def regressions(console: Console, found: Comparison) -> None:
    """The graphs that B needs most more for than A, the worst one in full."""
    worst: list[Pair] = found.regressions(SHOWN)
    if not worst:
        return
    console.print("\nwhere B needs most more than A")
    for p in worst:
        if p.a and p.b:
            console.print(
                f"  {p.origin}: {amount(p.a.peak)}, then {amount(p.b.peak)}"
                f" (no plan needs less than {amount(p.bound)})",
                markup=False,
            )
    console.print(f"\n{worst[0].origin}:", markup=False)
    console.print(
        "\n".join("  " + line for line in describe_graph(worst[0].graph).splitlines()), markup=False
    )
