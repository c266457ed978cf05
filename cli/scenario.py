"""`gallocheck scenario`: the seeds' figures, measured beside stated."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..scenario.catalogue import SCENARIOS, UnknownScenario, run_one
from ..scenario.report import Figure, Report


def run(console: Console, names: list[str], out: Path, as_json: bool) -> int:
    """Runs the scenarios, prints them, and writes a picture of each into `out`. Exit code 0."""
    check_names(names)
    check_folder(out)
    shown: list[dict[str, Any]] = []
    said: set[str] = set()
    for name in dict.fromkeys(names or SCENARIOS):
        report = run_one(name)
        picture = draw(report, out)
        if as_json:
            shown.append(plain(report, picture))
        else:
            show(console, report, picture, said)
    if as_json:
        print(json.dumps(shown, indent=1))
    return 0


def check_names(names: list[str]) -> None:
    """Before anything runs. Raises UnknownScenario."""
    for name in names:
        if name not in SCENARIOS:
            raise UnknownScenario(f"There is no scenario {name!r}; there are {', '.join(SCENARIOS)}.")


def check_folder(out: Path) -> None:
    """Pictures must have a place before anything runs. Raises UnknownScenario."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / ".gallocheck"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise UnknownScenario(
            f"{out} cannot hold pictures ({error.strerror}); name another folder with --out."
        ) from None


def draw(report: Report, out: Path) -> Path:
    from ..scenario.picture import draw  # only here: Matplotlib takes its time to load

    path = out / f"{report.name}.png"
    draw(report, path)
    return path


def plain(report: Report, picture: Path) -> dict[str, Any]:
    """For --json: everything but the curves, which the picture shows."""
    data = asdict(report)
    del data["curves"]
    for figure, row in zip(report.figures, data["figures"], strict=True):
        row["difference"] = figure.difference
    return {**data, "picture": str(picture)}


def show(console: Console, report: Report, picture: Path, said: set[str]) -> None:
    """One scenario; what was `said` of an earlier one is not said again."""
    console.print(f"[bold]{report.name}[/bold]  {escape(report.title)}  ({report.seconds:.1f} s)")
    table = Table("", "stated", "measured", "difference", "why", box=None, pad_edge=False)
    for column in table.columns[1:4]:
        column.justify = "right"
    before = ""
    for f in report.figures:
        why = escape(f.why) if f.why != before else ""
        table.add_row(f.what, number(f.stated, f.unit), number(f.measured, f.unit), difference(f), why)
        before = f.why
    console.print(table)
    for word, lines in (("derived", report.derived), ("assumed", report.assumed)):
        for line in lines:
            if line not in said:
                console.print(f"  {word}: {line}", markup=False)
                said.add(line)
    console.print(f"  picture: {picture}\n", markup=False)


def number(value: float | str | None, unit: str) -> str:
    """'21,681 MiB', 'starts', '-' where nothing is stated."""
    if value is None or isinstance(value, str):
        return value or "-"
    return f"{round(value, 1):,g} {unit}" if value < 1000 else f"{value:,.0f} {unit}"


def difference(f: Figure) -> str:
    """'0', '-24'; of words whether they agree; '' where nothing is stated."""
    if f.stated is None:
        return ""
    if f.difference is None:
        return "same" if f.stated == f.measured else "[red]differs[/red]"
    return f"{round(f.difference, 1):+g}" if round(f.difference, 1) else "0"
