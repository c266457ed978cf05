"""The report: one HTML page that needs nothing else, of a check, a campaign or one failure.

    page(job, stories)

It is read without a network and without JavaScript; page.js adds keys and a filter.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ..fuzz.verdict import Verdict
from ..fuzz.words import count
from ..spec.clauses import CLAUSES, LAYERS, clause
from . import charts
from .drawing import STYLE, clean, key
from .plans import PlanDrawing
from .quality import PlanOf
from .runs import Finding, Job
from .story import Row, Story
from .svg import Drawing, tops
from .units import exact

HERE = Path(__file__).parent
MOST_COLUMNS = 60  #: operations that a picture shows: the last ones
MOST_ROWS = 14  #: operations of a story that are open at once: the last ones
NAMES = {"check": "Check", "campaign": "Campaign", "replay": "Failure"}


@dataclass(frozen=True, slots=True)
class Picture:
    """An SVG with what it shows. `key`: its legend, which stays where the picture scrolls."""

    title: str
    svg: Markup
    words: str = ""
    key: Markup = Markup("")


@dataclass(frozen=True, slots=True)
class Entry:
    """One finding as the page shows it. `story`: None where it has none; `lacks` says why."""

    id: str
    finding: Finding
    verdict: Verdict
    title: str
    statement: str
    story: Story | None
    lacks: str
    pictures: tuple[Picture, ...]
    early: tuple[Row, ...]
    late: tuple[Row, ...]
    commands: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        return self.verdict.clause or "undecided"


def page(job: Job, stories: Mapping[int, Story], ran_on: str = "") -> str:
    """The page's text. `stories`: by index in job.findings. `ran_on`: how the subject that failures were run
    again on describes itself, '' where it could not be run."""
    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"exact": exact, "span": charts.seconds, "thousands": lambda n: f"{n:,}"}
    entries = [entry(n, f, job, stories.get(n)) for n, f in enumerate(job.findings)]
    curves = [charts.chart(c, f"chart{n}") for n, c in enumerate(charts.curves(job.record.samples))]
    titles = [c.title for c in charts.curves(job.record.samples)]
    layers = [
        (letter, name, [r for r in job.record.clauses if r.id[0] == letter])
        for letter, name in LAYERS.items()
    ]
    text = environment.get_template("page.html.j2").render(
        job=job,
        record=job.record,
        kind=NAMES[job.kind],
        subject=subject_words(job),
        count=count,
        entries=entries,
        untold=untold(entries),
        charts=[Picture(title, Markup(svg)) for title, svg in zip(titles, curves, strict=True)],
        layers=[x for x in layers if x[2]],
        clause=clause,
        letters=[letter for letter, _, rows in layers if rows],
        ran_on=ran_on,
        repeat=repeat(job),
        total=len(CLAUSES),
        css=Markup(STYLE + (HERE / "page.css").read_text()),
        js=Markup((HERE / "page.js").read_text()),
    )
    return clean(text)


def untold(entries: list[Entry]) -> list[tuple[str, list[Entry]]]:
    """Known failures without a story, by why they have none: that is said once of all."""
    out: dict[str, list[Entry]] = {}
    for e in entries:
        if e.finding.row.known and e.story is None:
            out.setdefault(e.lacks or "it was not run again", []).append(e)
    return list(out.items())


def subject_words(job: Job) -> str:
    """'bundled', 'bundled with planted defect 51', 'ggml from /home/me/ggml'."""
    s = job.record.subject
    name = Path(s.named).name if s.named.endswith((".so", ".dylib")) else s.named
    name += f" with planted defect {s.defect}" if s.defect else ""
    return name + (f" from {s.source}" if s.source else "")


def entry(n: int, finding: Finding, job: Job, story: Story | None) -> Entry:
    row = finding.row
    verdict = (
        story.verdict
        if story
        else Verdict(row.sort, row.clause, row.message, row.step, row.op, row.expected, row.seen)
    )
    of = clause(verdict.clause) if verdict.clause else None
    title = of.title if of else "model and subject differ, and no clause decides"
    rows = story.rows if story else ()
    return Entry(
        f"finding-{n + 1}", finding, verdict, title, of.statement if of else "", story, finding.lacks,
        tuple(pictures(n, story)) if story else (), rows[:-MOST_ROWS], rows[-MOST_ROWS:], tuple(commands(finding, job)),
    )  # fmt: skip


def pictures(n: int, story: Story) -> list[Picture]:
    """The memory map of both sides, in one scale, then the plans."""
    out = []
    mine, theirs = story.frames[-MOST_COLUMNS:], story.model_frames[-MOST_COLUMNS:]
    scale = {kind: max(top, tops(theirs).get(kind, 1)) for kind, top in tops(mine or theirs).items()}
    part = f"The last {MOST_COLUMNS} operations. " if len(story.model_frames) > MOST_COLUMNS else ""
    if mine:
        words = part + "\n".join(m.words for m in mine[-1].marks)
        title = "The subject's memory, operation by operation"
        out.append(picture(title, Drawing(mine, f"s{n}", scale, False), words))
    out.append(picture(story.model_title, Drawing(theirs, f"m{n}", scale, False), part))
    for k, plan in enumerate(story.plans):
        out.append(plan_of(f"p{n}-{k}", plan, story))
    return out


def picture(title: str, drawing: Drawing | PlanDrawing, words: str = "") -> Picture:
    """The drawing, and its legend beside it."""
    svg = drawing.all(keyed=False)
    return Picture(title, Markup(svg), words, Markup(key(f"{drawing.pic.name}-key", drawing.signs())))


def plan_of(name: str, plan: PlanOf, story: Story) -> Picture:
    drawing, title, words = plan_drawing(name, plan, story)
    return picture(title, drawing, words)


def plan_drawing(name: str, plan: PlanOf, story: Story) -> tuple[PlanDrawing, str, str]:
    """The drawing, its title, and how good the plan is."""
    setup = story.saved.trace.setup
    slots = setup.configs[plan.config]
    least = [next((p.least for p in plan.peaks if p.type == t), 0) for t in range(len(setup.types))]
    drawing = PlanDrawing(plan.bound(slots), setup, plan.need, name, least, False)
    quality = [
        f"type {p.type}: peak {exact(p.peak)}, lower bound {exact(p.least)}"
        + (f", true minimum {exact(p.best)} (Z3)" if p.best is not None else "")
        + (": less than any right plan needs" if p.peak < p.least else "")
        for p in plan.peaks
    ]
    title = f"{plan.whose.capitalize()} plan of graph {plan.graph}, as operation {plan.step} asks for it"
    return drawing, title, "\n".join(quality)


def commands(finding: Finding, job: Job) -> list[tuple[str, str]]:
    """(what it does, the command) for one finding."""
    if finding.path is None:
        return []
    file, options = finding.path, job.options
    out = [
        ("run it again, both sides side by side", f"gallocheck replay {file}{options}"),
        ("walk through it in the terminal", f"gallocheck replay {file}{options} --step"),
        ("draw it", f"gallocheck replay {file}{options} --plot failure.svg"),
    ]
    by_tree = job.record.subject.named.startswith("ggml")
    emit = options if by_tree else " --subject ggml-resizable --source TREE"
    only = "" if by_tree else " (of a failure that a ggml tree shows too)"
    return [
        *out,
        (f"write it as one C++ program{only}", f"gallocheck replay {file}{emit} --emit cpp > failure.cpp"),
    ]


def repeat(job: Job) -> list[tuple[str, str]]:
    """How to run all of it again."""
    record = job.record
    if job.kind == "replay":
        return []
    seed = f" --seed {record.seed}"
    if job.kind == "check":
        with_ = "".join(f" {shlex.quote(x)}" for x in record.beside)
        ids = " ".join(row.id for row in record.clauses) if len(record.clauses) < 8 else ""
        again = (
            f"gallocheck check {ids}".rstrip()
            + f"{job.options}{with_}{seed} --traces {max(1, record.traces)}"
        )
        return [*as_given(record.command), ("the same traces again", again)]
    return [
        *as_given(record.command),
        ("the same campaign from the beginning", f"gallocheck fuzz{job.options}{seed} --corpus NEW-FOLDER"),
        ("go on with this one", f"gallocheck fuzz{job.options} --corpus {job.folder} --time 8h"),
    ]


def as_given(command: list[str]) -> list[tuple[str, str]]:
    return [("as it was asked for", " ".join(command))] if command else []
