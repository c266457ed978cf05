"""`gallocheck report RUN`: one page of a check, a campaign or a failure."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn

from ..fuzz.judge import Judge
from ..fuzz.replay import check_writable
from ..fuzz.subjects import UnknownSubject, own
from ..native.trees import TreeError
from ..native.worker import SubjectError
from ..report.files import write
from ..report.page import page
from ..report.record import SubjectIs
from ..report.runs import Job, load
from ..report.story import Story, tell
from .target import find


def run(
    console: Console,
    path: Path,
    out: Path | None,
    subject: str,
    source: Path | None,
    defect: int,
    drawn: bool,
) -> int:
    """Writes the page and prints where it is. `drawn`: False: nothing is run again."""
    named = subject != "bundled" or source is not None or defect != 0
    given = SubjectIs(subject, str(source or ""), defect, subject, "", []) if named else None
    job = load(path, given)
    name = "report.html" if job.kind != "replay" else f"{path.stem}.html"
    folder = out or job.folder
    if out is not None and out.suffix == ".html" and not out.is_dir():
        folder, name = out.parent, out.name
    check_writable(folder, "a report", "-o")
    with ExitStack() as opened:
        judge, why = subject_of(console, job, given, opened) if drawn else (None, "it was not asked for")
        stories = told(job, judge, why)
        text = page(job, stories, judge.describe if judge is not None else "")
    target = write(text, folder, name)
    new = len(job.new)
    console.print(
        f"{target}: {new} {'finding' if new == 1 else 'findings'}, {len(text) // 1024} KiB", markup=False
    )
    if judge is None and drawn and job.findings:
        console.print(f"The pictures show the model's side alone: {why}.", markup=False)
    return 0


def subject_of(
    console: Console, job: Job, given: SubjectIs | None, opened: ExitStack
) -> tuple[Judge | None, str]:
    """The subject to run failures again on; else None and why there is none. One that was named must be there.

    What a record names is run only where it comes with gallocheck or is a pinned release: a record is data,
    and may be somebody else's. A library or a tree is run where the command line names it.
    """
    who = given or job.record.subject
    if not any(f.saved for f in job.findings):
        return None, "there is nothing to run"
    if given is None and own(who.named, Path(who.source) if who.source else None):
        return None, f"to run them on the subject, name it again with{job.options}"
    try:
        target = find(console, who.named, Path(who.source) if who.source else None, who.defect)
        return opened.enter_context(Judge(target.library, who.defect, timeout=2.0)), ""
    except (TreeError, SubjectError, UnknownSubject) as error:
        if given is not None:
            raise
        return None, f"the subject cannot be run here ({error})"


def told(job: Job, judge: Judge | None, why: str) -> dict[int, Story]:
    """The stories, by the findings' index; each in a subject that runs, even where one before killed it."""
    stories = {}
    columns = (SpinnerColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("telling findings", total=len(job.findings))
        for n, finding in enumerate(job.findings):
            progress.update(task, description=f"telling finding {n + 1} of {len(job.findings)}", advance=1)
            if finding.saved is None:
                continue
            try:
                stories[n] = tell(finding.saved, judge, why)
            except SubjectError as error:
                stories[n] = tell(finding.saved, None, f"the subject cannot be run ({error})")
    return stories
