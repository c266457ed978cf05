"""`gallocheck replay FILE`: a saved failure again, model and subject side by side."""

from __future__ import annotations

import os
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ..fuzz.applies import NotApplicable, lacking
from ..fuzz.judge import Judge
from ..fuzz.replay import Replay, load
from ..fuzz.subjects import Subject
from ..fuzz.verdict import Verdict
from ..fuzz.words import describe_graph, describe_observation, describe_op, describe_place, describe_setup
from ..model.records import Cap, Kind, Trace
from ..model.stack import Stack
from ..native.worker import Run
from ..report.files import write
from ..report.record import RecordError
from ..report.story import own_plans, reference, tell
from .target import find


def run(
    console: Console,
    file: Path,
    subject: str,
    source: Path | None,
    emit: str | None,
    times: int,
    defect: int,
    plot: Path | None = None,
    step: bool = False,
) -> int:
    """Replays and prints, draws (`plot`: an SVG file) or walks (`step`); 0 where the subject is right, 1 where it fails."""
    saved = load(file)
    if plot is not None:
        check_picture(plot)
    target = find(console, subject, source, defect)
    if emit is not None:
        return emit_program(saved, target, emit)
    with Judge(target.library, defect) as judge:
        check_able(saved.trace, target.name, judge.caps)
        if plot is not None or step:
            return pictured(console, judge, saved, plot, step)
        verdicts = [judge.judge(saved.trace, anew=True).failed for _ in range(times)]
        console.print(f"subject  {target.name}: {judge.describe}", markup=False)
        console.print(
            f"saved    {saved.clause or saved.verdict}: {saved.message} (on {saved.subject})\n", markup=False
        )
        show(console, judge, saved, verdicts[-1])
    return conclude(console, saved, verdicts, judge.describe)


def check_picture(file: Path) -> None:
    """A picture must have a place, and be of the one kind that there is. Raises RecordError."""
    if file.suffix.lower() != ".svg":
        raise RecordError(f"--plot {file} is no SVG file: name one that ends in .svg.")
    folder = file.absolute().parent
    if file.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise RecordError(
            f"--plot {file} cannot be written there: name a file in a folder that is there and can be written to."
        )


def pictured(console: Console, judge: Judge, saved: Replay, plot: Path | None, step: bool) -> int:
    """Tells the failure with pictures: into a file, or step by step."""
    from ..report.plot import plot as svg_of  # only here: it takes time to load
    from .step import walk

    story = tell(saved, judge)
    if plot is not None:
        write(svg_of(story), plot.parent, plot.name)
        console.print(f"{plot}: {story.headline}", markup=False)
    if step:
        walk(console, story)
    if story.again:
        console.print(story.again, markup=False)
    return 0 if story.right else 1


def check_able(trace: Trace, name: str, caps: Cap) -> None:
    """A subject is judged only on what it declares that it can do. Raises NotApplicable."""
    missing = lacking(trace, caps)
    if missing is not None:
        what, needs = missing
        raise NotApplicable(
            f"{what} needs a subject that declares"
            f" {' or '.join(words(needs))}; {name} declares {', '.join(words(caps))}. Name another with --subject."
        )


def words(caps: Cap) -> list[str]:
    return [c.name.lower().replace("_", "-") for c in Cap if caps & c and c.name]


def show(console: Console, judge: Judge, saved: Replay, verdict: Verdict | None) -> None:
    """The setup, the graphs, and a row a step until model and subject part."""
    trace = saved.trace
    console.print(describe_setup(trace.setup), markup=False)
    for g, graph in enumerate(trace.graphs):
        console.print(f"graph {g}:\n{indent(describe_graph(graph))}", markup=False)
    run = judge.run(trace, anew=True)
    last = verdict.step if verdict else len(trace.ops)
    console.print()
    console.print(side_by_side(trace, run, judge, last, verdict))


def side_by_side(trace: Trace, run: Run, judge: Judge, last: int, verdict: Verdict | None) -> Table:
    clause = verdict.clause if verdict else ""
    model = reference(trace, judge, clause)
    planner = own_plans(clause) and not judge.caps & Cap.EXACT
    name = "model, by the reference planner" if planner else "model"
    table = Table("step", "operation", name, "subject", show_lines=True)
    for i, op in enumerate(trace.ops[: last + 1]):
        want = describe_observation(model.step(op))
        mark = "[bold red]" if verdict and i == verdict.step else ""
        if i < len(run.steps):
            seen = run.steps[i]
            have = describe_observation(seen.obs)
            if op.kind == Kind.ALLOC and seen.places:
                have += "\n" + "\n".join(f"t{k}: {describe_place(p)}" for k, p in enumerate(seen.places))
                session = model.session if isinstance(model, Stack) else model
                bound = session.allocs[op.alloc].places if op.alloc in session.allocs else ()
                want += "\n" + "\n".join(f"t{k}: {describe_place(p)}" for k, p in enumerate(bound))
        else:
            have = f"died: {run.death.kind}" if run.death else "did not get here"
        if verdict and i == verdict.step:
            have += f"\n{verdict}"
        table.add_row(f"{mark}{i}", describe_op(op, trace), escape(want), mark + escape(have))
    return table


def escape(text: str) -> str:
    return text.replace("[", "\\[")


def indent(text: str) -> str:
    return "\n".join("  " + line for line in text.splitlines())


def conclude(console: Console, saved: Replay, verdicts: list[Verdict | None], describe: str) -> int:
    """One line on what was seen, and whether it was the same every time."""
    first = verdicts[0]
    same = len({v.signature if v else "" for v in verdicts}) == 1
    if len(verdicts) > 1:
        console.print(
            f"\n{len(verdicts)} runs: {'the same verdict every time' if same else 'verdicts differ'}"
        )
    if not same:
        for v in verdicts:
            console.print(f"  {v or 'holds'}", markup=False)
        return 1
    if first is None:
        console.print("\n[green]holds[/green]: this subject does not show the fault")
        if saved.subject != describe:
            console.print(
                f"it was found on {saved.subject}: name that with --subject and --source", markup=False
            )
        return 0
    console.print(
        f"\n[bold red]{first.clause or first.sort}[/bold red] at operation {first.step}: {escape(first.message)}"
    )
    if first.clause != saved.clause:
        console.print(f"(saved as {saved.clause or saved.verdict})", markup=False)
    return 1


def emit_program(saved: Replay, target: Subject, language: str) -> int:
    """Prints the program that was checked to show the fault."""
    if language != "cpp":
        raise_unknown(language)
    from ..fuzz.emit import emit_cpp  # only here: it needs what the ggml subject needs

    print(emit_cpp(saved, target))
    return 0


def raise_unknown(language: str) -> None:
    from ..fuzz.subjects import UnknownSubject

    raise UnknownSubject(f"--emit {language} is not known; gallocheck emits cpp.")
