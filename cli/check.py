"""`gallocheck check`: hunt, then one row a clause."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ..fuzz import canary
from ..fuzz.applies import NotApplicable, applies, declared
from ..fuzz.baseline import base_of
from ..fuzz.batch.engine import IN_LOCKSTEP, Lanes
from ..fuzz.expected import AS_BASELINE, KNOWN, ExpectedList, for_subject
from ..fuzz.hunt import Finding, Hunt, Result
from ..fuzz.judge import Judge
from ..fuzz.replay import check_writable, load
from ..fuzz.subjects import how_to_name, how_to_report
from ..fuzz.telling import headline, story
from ..fuzz.words import count
from ..report.course import Course, beside, subject_is
from ..spec.clauses import CLAUSES, Clause, select
from .target import find, saying


def run(
    console: Console,
    clauses: list[str],
    subject: str,
    source: Path | None,
    seed: int | None,
    seconds: float,
    traces: int | None,
    out: Path,
    expected: Path | None,
    defect: int,
    baseline: Path | None = None,
) -> int:
    """Runs the check and prints everything; the exit code."""
    wanted = select(clauses) if clauses else CLAUSES
    target = find(console, subject, source, defect)
    seed = random.SystemRandom().randrange(2**32) if seed is None else seed
    check_writable(out)
    with (
        Judge(target.library, defect) as judge,
        base_of(target, source, expected, baseline, saying(console)) as base,
    ):
        if baseline is not None:
            known = ExpectedList([], KNOWN, AS_BASELINE)
        else:
            known = for_subject(target.name, judge.describe, expected, source is not None)
        rows = [c for c in wanted if applies(c.id, judge.caps)]
        check_applies(clauses, rows, target.name)
        console.print(f"subject   {target.name}: {judge.describe}", markup=False)
        console.print(f"declares  {declared(judge.caps)}")
        console.print(f"seed      {seed}")
        if not canaries(console, rows):
            return 3
        gone = stale_entries(known, judge) if not clauses else []
        only = frozenset(c.id for c in rows) if clauses else None
        many = any(c.letter in IN_LOCKSTEP for c in rows)
        with Lanes(target.library, defect) if many else nullcontext() as lanes:
            hunt = Hunt(
                judge, seed, known=known, folder=out, only=only, version=version("gallocheck"), base=base,
                lanes=lanes,
            )  # fmt: skip
            what = subject_is(subject, source, defect, target.name, judge.describe, judge.caps)
            course = Course(
                out, rows, what, seed, version("gallocheck"), command(), beside(expected, baseline)
            )
            course.record.canaries = len({c.id for c in rows})
            result = watch(hunt, seconds, traces, course.note)
    print_findings(console, result, how_to_name(subject, source, defect))
    print_table(console, rows, result)
    code = conclude(console, rows, result, gone)
    course.end(result, gone)
    console.print(f"[dim]the report as a page: {escape(how_to_report(out, subject, source))}[/dim]")
    return code


def command() -> list[str]:
    """The command line as it was given."""
    return ["gallocheck", *sys.argv[1:]]


def check_applies(named: list[str], rows: list[Clause], subject: str) -> None:
    """Every name on the command line must select something that is checked. Raises NotApplicable."""
    for name in named:
        if not set(select([name])) & set(rows):
            raise NotApplicable(
                f"Clause {name.strip().upper()} does not apply to what the subject {subject} declares;"
                " name another clause or subject."
            )


def canaries(console: Console, rows: list[Clause]) -> bool:
    """A planted defect for each clause must be found now, or a green table would mean nothing."""
    begin = time.monotonic()
    silent, done = canary.run([c.id for c in rows])
    if silent:
        console.print(
            f"the canary of {', '.join(silent)} was not found: the check itself is broken, its result would mean nothing"
        )
        return False
    console.print(
        f"canaries  {done} planted defects found and blamed on their clause in {time.monotonic() - begin:.1f} s"
    )
    return True


def watch(hunt: Hunt, seconds: float, traces: int | None, note: Callable[[Result], None]) -> Result:
    """The hunt with a live line; on no terminal, a plain line every 10 seconds. `note` is told how it stands."""
    if sys.stderr.isatty():
        with Live(
            Text("starting"), console=Console(stderr=True), refresh_per_second=4, transient=True
        ) as live:
            return hunt.run(
                seconds, traces, progress=both(note, lambda r: live.update(Text(status(r, seconds, traces))))
            )
    say = every(10, lambda r: print(status(r, seconds, traces), file=sys.stderr))
    return hunt.run(seconds, traces, progress=both(note, say))


def both(first: Callable[[Result], None], second: Callable[[Result], None]) -> Callable[[Result], None]:
    def progress(result: Result) -> None:
        first(result)
        second(result)

    return progress


def every(period: float, say: Callable[[Result], None]) -> Callable[[Result], None]:
    last = 0.0

    def progress(result: Result) -> None:
        nonlocal last
        if result.seconds - last >= period:
            last = result.seconds
            say(result)

    return progress


def status(result: Result, seconds: float, traces: int | None) -> str:
    rate = result.operations / max(result.seconds, 1e-9)
    left = (
        f"{max(0, seconds - result.seconds):.0f} s left"
        if traces is None
        else f"{result.traces}/{traces} traces"
    )
    found = count(len(result.findings), "finding")
    lockstep = f"and {result.lockstep:,} in lockstep, " if result.lockstep else ""
    return f"{result.operations} operations checked, {rate:.0f}/s, {lockstep}{found}, {left}"


def stale_entries(known: ExpectedList, judge: Judge) -> list[str]:
    """Expected failures that no longer show: the list must follow the subject."""
    gone = []
    for entry in known.findings:
        verdict = judge.judge(load(known.replay_path(entry)).trace, anew=True).failed
        if verdict is None or verdict.clause != entry.clause:
            gone.append(f"{entry.id} ({entry.clause}: {entry.title})")
    return gone


def print_findings(console: Console, result: Result, options: str) -> None:
    for finding in result.findings:
        if finding.known:
            continue
        print_finding(console, finding, options)


def print_finding(console: Console, finding: Finding, options: str) -> None:
    """The story of one failure: clause, what happened, the shrunk sequence, how to replay it."""
    head, how = headline(finding)
    console.print(f"\n[bold red]{head}[/bold red] {escape(how)}")
    for part in story(finding, options):
        console.print(part, markup=False)


def print_table(console: Console, rows: list[Clause], result: Result) -> None:
    table = Table("clause", "title", "exercised", "verdict", box=None, pad_edge=False)
    table.columns[1].no_wrap = True
    table.columns[2].justify = "right"
    found = result.by_clause()
    for row in rows:
        times = result.tally[row.id]
        table.add_row(row.id, row.title, str(times), verdict(found.get(row.id, []), times))
    console.print()
    console.print(table)


def verdict(findings: list[Finding], times: int) -> str:
    new = [f for f in findings if not f.known]
    known = sorted({f.known.id for f in findings if f.known})
    if new:
        return f"[red]BROKEN[/red] ({len(new)} findings)" if len(new) > 1 else "[red]BROKEN[/red]"
    if known:
        return f"[yellow]fails as expected[/yellow] ({', '.join(known)})"
    return "[green]holds[/green]" if times else "[yellow]not exercised[/yellow]"


def conclude(console: Console, rows: list[Clause], result: Result, gone: list[str]) -> int:
    """The closing lines and the exit code."""
    rate = result.operations / max(result.seconds, 1e-9)
    console.print(
        f"\n{result.operations} operations in {result.traces} traces, {result.seconds:.1f} s, {rate:.0f}/s;"
        f" {result.misuse} misuses by the caller answered as such"
    )
    if result.lockstep:
        console.print(f"{result.lockstep:,} more operations in traces that ran in lockstep beside the model")
    if result.stopped:
        console.print("stopped by Ctrl-C: the table shows what was checked until then")
    for entry in gone:
        console.print(f"[red]expected failure gone:[/red] {escape(entry)}; take it off the list")
    new = [f for f in result.findings if not f.known]
    silent = [f for f in new if f.verdict.sort == "silent"]
    if silent:
        console.print(
            f"{len(silent)} differences that no clause decides; the contract must say which side is right"
        )
    idle = [c.id for c in rows if not result.tally[c.id] and c.id not in result.by_clause()]
    if idle:
        console.print(f"not exercised: {', '.join(idle)}; give it more time")
    if new or gone:
        return 1
    return 3 if idle and not result.stopped else 0
