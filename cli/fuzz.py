"""`gallocheck fuzz`: a campaign, and what it has found."""

from __future__ import annotations

import hashlib
import random
import signal
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from types import FrameType

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ..fuzz.applies import applies, declared
from ..fuzz.campaign.cluster import Cluster
from ..fuzz.campaign.display import Display, coverage, span
from ..fuzz.campaign.local import Local
from ..fuzz.campaign.run import Campaign, Plan
from ..fuzz.campaign.store import Store
from ..fuzz.campaign.work import BATCH_OPS
from ..fuzz.examples import remember_all
from ..fuzz.expected import ExpectedList, for_subject
from ..fuzz.hands import TRIES
from ..fuzz.judge import Judge
from ..fuzz.replay import check_writable
from ..fuzz.subjects import Subject, how_to_name, how_to_report
from ..model.records import Cap
from ..report.campaign import latest
from ..report.course import subject_is
from ..report.machine import cores
from ..spec.clauses import CLAUSES, Clause
from .check import canaries, command
from .target import find


def run(
    console: Console,
    subject: str,
    source: Path | None,
    defect: int,
    seed: int | None,
    seconds: float,
    jobs: int | None,
    folder: Path,
    out: Path,
    until_failure: bool = False,
    batches: int | None = None,
    shrink_s: float = 10.0,
    ops: int | None = None,
    cluster: str | None = None,
) -> int:
    """Begins or resumes the campaign in `folder`; the exit code."""
    target = find(console, subject, source, defect, covered=True)
    check_writable(folder, "a campaign", "--corpus")
    check_writable(out)
    with Store(folder) as store, Interrupts() as interrupts:
        with Judge(target.library, defect) as judge:
            describe, caps = judge.describe, judge.caps
        seed = begin(store, target, describe, defect, seed, ops or BATCH_OPS)
        known = for_subject(target.name, describe, None, source is not None)
        rows = [c for c in CLAUSES if applies(c.id, caps)]
        store.remember(
            latest(command(), subject_is(subject, source, defect, target.name, describe, caps), out)
        )
        greet(console, target, describe, caps, seed, store)
        if not store.counts.get("canaries"):
            if not canaries(console, rows):
                return 3
            store.note("canaries", 1)  # once a campaign: it goes on with the same gallocheck
        plan = Plan(
            target.library, defect, describe, version("gallocheck"), seed, out, seconds, batches, until_failure,
            shrink_s, ops or BATCH_OPS, namer(known),
        )  # fmt: skip
        with pool(jobs, cluster, target.library) as workers, Display() as display:
            campaign = Campaign(store, workers, plan)
            whole = campaign.run(display.show, lambda: interrupts.count > 0)
        print_findings(console, campaign, how_to_name(subject, source, defect))
        code = conclude(console, campaign, rows, whole)
        console.print(f"[dim]the report as a page: {escape(how_to_report(folder, subject, source))}[/dim]")
        return code


def begin(store: Store, target: Subject, describe: str, defect: int, seed: int | None, ops: int) -> int:
    """Makes sure that the folder's campaign is of this subject; the seed. Raises CampaignError."""
    if seed is None:
        there = store.facts.get("seed")
        seed = there if isinstance(there, int) else random.SystemRandom().randrange(2**32)
    store.begin(
        {
            "subject": target.name,
            "version of the subject": describe,
            "planted defect": defect,
            "build of the subject": hashlib.sha256(Path(target.library).read_bytes()).hexdigest()[:16],
            "version of gallocheck": version("gallocheck"),
            "seed": seed,
            "number of operations a batch": ops,
        }
    )
    return seed


def greet(console: Console, target: Subject, describe: str, caps: Cap, seed: int, store: Store) -> None:
    console.print(f"subject   {target.name}: {describe}", markup=False)
    console.print(f"declares  {declared(caps)}")
    console.print(f"seed      {seed}")
    spent = store.counts.get("spent_ms", 0) / 1000
    how = f"goes on after {span(spent)}, {store.counts.get('batches', 0)} batches" if spent else "new"
    console.print(f"campaign  {store.path}: {how}", markup=False)


def namer(known: ExpectedList) -> Callable[[str], str]:
    """The name of the expected failure that a signature is of, '' where it is new."""

    def name(signature: str) -> str:
        entry = known.find(signature)
        return entry.id if entry else ""

    return name


def pool(jobs: int | None, cluster: str | None, library: str) -> Local | Cluster:
    """Who does the jobs. Raises CampaignError."""
    return Cluster(cluster, library) if cluster else Local(jobs or cores())


class Interrupts:
    """Counts Ctrl-C and SIGTERM, so that the first ends the campaign cleanly; a second one ends it at once."""

    SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.count = 0

    def note(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        if self.count > 1:
            raise KeyboardInterrupt

    def __enter__(self) -> Interrupts:
        self.before = {number: signal.signal(number, self.note) for number in self.SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)


def print_findings(console: Console, campaign: Campaign, options: str) -> None:
    """A row a finding, and the command that shows it again."""
    findings = campaign.store.findings()
    if not findings:
        return
    table = Table("clause", "met", "length", "what", box=None, pad_edge=False)
    for column in (1, 2):
        table.columns[column].justify = "right"
    for f in findings:
        notes = [] if f.shape is not None else ["not made small yet"]
        notes += ["not seen again in a new process"] if f.shape is not None and not f.confirmed else []
        what = f"{f.verdict.op.lower()}: {f.verdict.message}" + (f" ({', '.join(notes)})" if notes else "")
        table.add_row(f.verdict.clause or "none", str(f.met), str(len(f.trace.ops)), Text(what))
    console.print()
    console.print(table)
    console.print()
    for f in findings:
        console.print(f"  gallocheck replay {campaign.path(f)}{options}", markup=False)
    if remember_all([f.trace for f in findings]):
        console.print(
            "\nthe Hypothesis test of gallocheck.fuzz.examples replays them first: they are in .hypothesis"
        )


def conclude(console: Console, campaign: Campaign, rows: list[Clause], whole: bool) -> int:
    """The closing lines and the exit code."""
    state, tally = campaign.state(), campaign.store.tally
    found = sum(state.findings.values())
    console.print(
        f"\n{state.operations} operations in {state.batches} batches, {span(state.spent_s)};"
        f" {state.rate:.0f}/s in this run; corpus {state.corpus} traces; coverage {coverage(state)}"
    )
    for name, n in campaign.store.expected().items():
        console.print(f"fails as expected: {name}, {n} traces", markup=False)
    if state.skipped:
        console.print(f"{state.skipped} batches were left out: each killed its worker {TRIES} times")
    if state.waiting:
        console.print(f"{state.waiting} failing traces wait to be made small; the same command goes on")
    if whole and campaign.before >= campaign.plan.seconds:
        console.print("the campaign has had its time; give it more with --time")
    idle = [c.id for c in rows if not tally.get(c.id)]
    console.print(f"{len(rows) - len(idle)} of {len(rows)} clauses exercised" + (
        f"; not {', '.join(idle)}: give it more time" if idle else ""))  # fmt: skip
    if not whole:
        console.print("stopped by Ctrl-C: the same command goes on")
    console.print(f"[bold red]{found} findings[/bold red]" if found else "no findings")
    if found:
        return 1
    return 3 if idle and whole else 0
