"""`gallocheck explain CLAUSE`: what it says, why, what is proved, and the shortest traces that are about it."""

from __future__ import annotations

from textwrap import fill, indent

from rich.console import Console

from ..fuzz.canary import path_of
from ..fuzz.catalogue import DEFECTS, SCHED_DEFECTS
from ..fuzz.shortest import shortest_break, shortest_exercise
from ..fuzz.words import describe_op, describe_trace
from ..model.records import Trace
from ..native.trees import cache_dir
from ..spec.clauses import Clause, clause
from ..spec.machine import Machine
from ..spec.machines import MACHINES
from ..spec.proved import last
from ..spec.why import why
from .prove import FILE

WIDTH = 110


def run(console: Console, name: str) -> int:
    c = clause(name)
    console.print(f"[bold]{c.id} {c.title}[/bold] ({c.layer})\n")
    paragraph(console, c.statement)
    heading(console, "Why")
    paragraph(console, why(c.id))
    heading(console, "Proof")
    for line in proof(c):
        paragraph(console, line)
    heading(console, "The shortest that exercises it")
    trace(console, shortest_exercise(c.id))
    broken(console, c)
    heading(console, "Checked in")
    console.print(f"  {c.where}", markup=False)
    heading(console, "Planted defects")
    for d in (*DEFECTS, *SCHED_DEFECTS):
        if d.clause == c.id:
            console.print(f"  {d.number:3} {d.what}", markup=False)
    return 0


def heading(console: Console, text: str) -> None:
    console.print(f"\n[bold]{text}[/bold]")


def paragraph(console: Console, text: str) -> None:
    """Folded, set in by two."""
    width = min(console.width, WIDTH)
    console.print(
        fill(text, width, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False), markup=False
    )


def trace(console: Console, what: Trace) -> None:
    console.print(indent(describe_trace(what), "  "), markup=False)


def proof(c: Clause) -> list[str]:
    """Which machines are proved to keep it, for which sizes, and what the proof assumes."""
    machines = [m for m in MACHINES if c.id in m.clauses]
    if not machines:
        return [
            "Checked, not proved: it is no claim about one step of a state machine, but about plans, contents"
            " or whole runs. Every run of a subject is judged by it."
        ]
    lines = [f"By induction, for {sizes(m)}." for m in machines]
    before = last(c.id, cache_dir() / FILE)
    if before:
        lines.append(f"Last here: {before.verdict} in {before.seconds:.1f} s on {before.day}, of this code.")
    return [
        *lines,
        "Assumed: any state that has the machine's invariants (proved with it), any lawful operation; sizes and counters"
        " are integers without bound, and rounding up is any function that makes no size smaller.",
        f"Run it: gallocheck prove {c.id}",
    ]


def sizes(m: Machine) -> str:
    """'the machine resizable, of types x chunks: 1 x 1, 1 x 2'."""
    if not m.sizes:
        return f"the machine {m.name}, of any size"
    configs = ", ".join(" x ".join(map(str, config)) for config in m.configs)
    return f"the machine {m.name}, of {m.sizes}: {configs}"


def broken(console: Console, c: Clause) -> None:
    """The shortest sequence that shows a planted defect of the clause."""
    defect, replay = shortest_break(c.id)
    heading(console, f"The shortest that breaks it, with planted defect {defect.number}")
    trace(console, replay.trace)
    if replay.step < len(replay.trace.ops):
        console.print(f"  <- here: {describe_op(replay.trace.ops[replay.step], replay.trace)}", markup=False)
    console.print(f"  {replay.message}", markup=False)
    if replay.expected or replay.seen:
        console.print(f"  expected {replay.expected}\n  seen     {replay.seen}", markup=False)
    if defect in DEFECTS:
        console.print(f"  replay: gallocheck replay {path_of(defect)} --defect {defect.number}", markup=False)
