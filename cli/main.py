"""The `gallocheck` command line: arguments in, exit code out."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ..fuzz.duration import seconds
from .sentences import SENTENCES, unwritten

app = typer.Typer(
    help="Decides whether a graph allocator may be trusted with a GPU's memory.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
console = Console(highlight=False, soft_wrap=True)

SubjectName = Annotated[
    str, typer.Option("--subject", "-s", help="bundled, ggml, ggml-resizable, or a subject library's path.")
]
Source = Annotated[
    Path | None,
    typer.Option("--source", help="A ggml or llama.cpp checkout to build the ggml subject from."),
]
Defect = Annotated[
    int, typer.Option("--defect", help="Switch planted defect N on (see `gallocheck defects`).")
]


def tell_version(asked: bool) -> None:
    if asked:
        print(f"gallocheck {version('gallocheck')}")
        raise typer.Exit()


@app.callback()
def options(
    _: Annotated[
        bool, typer.Option("--version", callback=tell_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Decides whether a graph allocator may be trusted with a GPU's memory."""


@app.command()
def check(
    clauses: Annotated[list[str] | None, typer.Argument(help="Clause ids or letters; all if none.")] = None,
    subject: SubjectName = "bundled",
    source: Source = None,
    seed: Annotated[int | None, typer.Option(help="Repeat a check; printed by every check.")] = None,
    time: Annotated[str, typer.Option("--time", "-t", help="How long, as 30s, 5m or 1h.")] = "30s",
    traces: Annotated[int | None, typer.Option(help="Stop after this many traces.", min=1)] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where replay files of findings go.")] = Path(
        "findings"
    ),
    expected: Annotated[
        Path | None,
        typer.Option(help="A list of expected failures (default: the one for the pinned release)."),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(help="A tree from before your change, or 'pinned': what fails there too is not new."),
    ] = None,
    defect: Defect = 0,
) -> None:
    """Check a subject against the contract and print a table, one row a clause.

    Exit 0: all hold (or fail as expected); 1: a clause is broken; 2: bad input; 3: could not run.
    """
    from . import check as job

    raise typer.Exit(
        job.run(
            console,
            clauses or [],
            subject,
            source,
            seed,
            seconds(time),
            traces,
            out,
            expected,
            defect,
            baseline,
        )
    )


@app.command()
def fuzz(
    subject: SubjectName = "bundled",
    source: Source = None,
    time: Annotated[str, typer.Option("--time", "-t", help="How long in all, resumed runs together.")] = "8h",
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", help="Worker processes (default: one a core).", min=1)
    ] = None,
    corpus: Annotated[Path, typer.Option(help="The campaign's folder; the same one goes on.")] = Path(
        "corpus"
    ),
    out: Annotated[Path, typer.Option("--out", "-o", help="Where replay files of findings go.")] = Path(
        "findings"
    ),
    seed: Annotated[int | None, typer.Option(help="Repeat a campaign; printed by every campaign.")] = None,
    until_failure: Annotated[
        bool, typer.Option("--until-failure", help="Stop at the first finding.")
    ] = False,
    batches: Annotated[int | None, typer.Option(help="Stop after this many batches.", min=1)] = None,
    shrink_time: Annotated[str, typer.Option(help="How long to make one finding small.")] = "10s",
    batch_ops: Annotated[int | None, typer.Option(help="Operations in a batch.", min=1)] = None,
    cluster: Annotated[
        str | None,
        typer.Option(help="Do the batches on the Dask cluster whose scheduler is at this address."),
    ] = None,
    defect: Defect = 0,
) -> None:
    """Check a subject for hours on all cores; stopped or killed, the same command goes on.

    Exit 0: nothing found; 1: findings; 2: bad input; 3: could not run, or clauses were not exercised.
    """
    from . import fuzz as job

    raise typer.Exit(
        job.run(
            console,
            subject,
            source,
            defect,
            seed,
            seconds(time),
            jobs,
            corpus,
            out,
            until_failure,
            batches,
            seconds(shrink_time),
            batch_ops,
            cluster,
        )
    )


@app.command()
def mutate(
    subject: SubjectName = "bundled",
    source: Source = None,
    file: Annotated[
        list[str] | None, typer.Option("--file", "-f", help="A source of the subject; all of them if none.")
    ] = None,
    time: Annotated[str, typer.Option("--time", "-t", help="How long to check each mutant.")] = "30s",
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", help="Mutants that are checked side by side.", min=1)
    ] = 1,
    seed: Annotated[int | None, typer.Option(help="Repeat a run; printed by every run.")] = None,
    limit: Annotated[int | None, typer.Option(help="A random sample of so many mutants.", min=1)] = None,
    only_list: Annotated[bool, typer.Option("--list", help="Print the mutants and build none.")] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Check survivors once more, from the start.")
    ] = False,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Where outcomes are kept; the same goes on.")
    ] = Path("mutants"),
) -> None:
    """Make mutants of the subject's source and say which of them the check kills.

    Stopped or killed, the same command goes on; with more --time, survivors are checked on.
    Exit 0: all are killed or listed with a reason; 1: some survive; 2: bad input; 3: could not run.
    """
    from . import mutate as job

    raise typer.Exit(
        job.run(console, subject, source, file or [], seconds(time), jobs, seed, limit, only_list, again, out)
    )


@app.command()
def prove(
    clauses: Annotated[
        list[str] | None, typer.Argument(help="Clause ids or letters; all that can be proved if none.")
    ] = None,
) -> None:
    """Prove clauses by induction, with no bound on sizes. Exit 1: one is refuted or unknown."""
    from . import prove as job

    raise typer.Exit(job.run(console, clauses or []))


@app.command()
def replay(
    file: Annotated[Path, typer.Argument(help="A replay file.")],
    subject: SubjectName = "bundled",
    source: Source = None,
    emit: Annotated[str | None, typer.Option(help="cpp: write a self-contained C++ program.")] = None,
    times: Annotated[int, typer.Option(help="Run it this often and compare the verdicts.", min=1)] = 1,
    defect: Defect = 0,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the memory map of both sides into this SVG file.")
    ] = None,
    step: Annotated[
        bool, typer.Option("--step", help="Walk through it, forward and back, with the memory map.")
    ] = False,
) -> None:
    """Run a saved failure again and show model and subject side by side up to where they part.

    Exit 0: the subject is right; 1: it fails.
    """
    from . import replay as job

    raise typer.Exit(job.run(console, file, subject, source, emit, times, defect, plot, step))


@app.command()
def plan(
    file: Annotated[
        Path | None, typer.Argument(help="What native/hook/gallocheck_hook.c wrote (docs/plan.md).")
    ] = None,
    hook: Annotated[
        bool, typer.Option("--hook", help="Print the folder that has the hook, to compile it.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the plan that matters most into this SVG file.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON in place of tables.")] = False,
) -> None:
    """Judge the plans and binds that somebody's real program made, by P, G and R12, without the program.

    Exit 0: all hold; 1: a clause is broken; 2: bad input; 3: nothing could be judged.
    """
    from . import plan as job

    raise typer.Exit(job.run(console, file, hook, plot, as_json))


@app.command()
def report(
    run: Annotated[
        Path,
        typer.Argument(help="The folder of a check (its --out) or campaign (--corpus), or a replay file."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="The folder, or the .html file, that the page goes to (default: beside RUN)."
        ),
    ] = None,
    subject: SubjectName = "bundled",
    source: Source = None,
    defect: Defect = 0,
    draw: Annotated[
        bool, typer.Option(help="Run the findings again for their pictures; else the model's side alone.")
    ] = True,
) -> None:
    """Write one HTML page about a check, a campaign or a failure: clauses, findings, pictures, how to repeat it.

    The subject is the one that was checked, unless it is named. Exit 0: written; 2: bad input.
    """
    from . import report as job

    raise typer.Exit(job.run(console, run, out, subject, source, defect, draw))


@app.command()
def compare(
    a: Annotated[str, typer.Argument(help="'pinned', a directory with a ggml tree, or a subject.")],
    b: Annotated[str, typer.Argument(help="What must not be worse: named as A.")],
    graphs: Annotated[
        list[Path] | None,
        typer.Option("--graphs", "-g", help="Graphs of a replay file or a dump, in place of drawn ones."),
    ] = None,
    number: Annotated[
        int, typer.Option("--number", "-n", help="Cases to draw, each a few graphs.", min=1)
    ] = 200,
    seed: Annotated[int, typer.Option(help="Of the cases that are drawn.", min=0)] = 1,
    tolerance: Annotated[float, typer.Option(help="Percent that B may be above A.", min=0)] = 0.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON in place of tables.")] = False,
) -> None:
    """Compare two allocators over the same graphs: bytes, chunks and reallocations.

    Exit 0: B is not worse than A; 1: it is; 2: bad input; 3: could not run.
    """
    from . import compare as job

    raise typer.Exit(job.run(console, a, b, graphs or [], number, seed, tolerance, as_json))


@app.command()
def explain(clause: Annotated[str, typer.Argument(help="A clause id, such as R6.")]) -> None:
    """Print a clause: its statement, why it exists, what is proved, and the shortest traces that are about it."""
    from . import explain as job

    raise typer.Exit(job.run(console, clause))


@app.command()
def defects(
    find: Annotated[bool, typer.Option("--find", help="Hunt for each and time how long it takes.")] = False,
    time: Annotated[str, typer.Option("--time", "-t", help="How long to hunt for each.")] = "60s",
) -> None:
    """List the planted defects by clause; with --find, find each of them."""
    from . import defects as job

    raise typer.Exit(job.run(console, find, seconds(time)))


@app.command()
def scenario(
    names: Annotated[list[str] | None, typer.Argument(help="Scenarios; all if none.")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the pictures go.")] = Path("scenarios"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON in place of tables.")] = False,
) -> None:
    """Meet the figures of the two documents on simulated devices: measured beside stated, and pictures."""
    from . import scenario as job

    raise typer.Exit(job.run(console, names or [], out, as_json))


@app.command()
def history(
    names: Annotated[list[str] | None, typer.Argument(help="Faults by name; all if none.")] = None,
    time: Annotated[str, typer.Option("--time", "-t", help="How long to hunt for each.")] = "30s",
    seed: Annotated[int, typer.Option(help="Of the hunts.")] = 1,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where results and replay files go.")] = Path(
        "history"
    ),
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget earlier results.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="Print the catalogue and do nothing.")] = False,
) -> None:
    """Would this check have caught it? Fetches public releases and hunts for the faults that they had.

    Exit 0: all caught; 1: one is missed; 2: bad input; 3: could not run. An interrupted run goes on.
    """
    from . import history as job

    raise typer.Exit(job.run(console, names or [], seconds(time), seed, out, fresh, listing))


@app.command()
def doctor() -> None:
    """Say what this machine has, and what each missing thing costs."""
    from .doctor import print_doctor

    print_doctor(console)


def run() -> None:
    """Entry point: bad input is one sentence and an exit code, never a traceback."""
    try:
        try:
            app(standalone_mode=True)
        finally:
            sys.stdout.flush()
    except SENTENCES as error:
        print(f"gallocheck: {error}", file=sys.stderr)
        sys.exit(getattr(error, "exit_code", getattr(error, "code", 2)))
    except KeyboardInterrupt:
        print("gallocheck: stopped", file=sys.stderr)
        sys.exit(130)
    except OSError as error:
        sys.exit(unwritten(error))
