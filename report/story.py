"""The story of one failure, as data: what was asked, what the contract says, where model and subject part.

    story = tell(load(file), judge)            run again on the subject
    story = tell(load(file), None, "why not")  the model's side alone

The page, the terminal and whoever else tells a failure draw on it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..fuzz.applies import declared, lacking
from ..fuzz.deaths import describe
from ..fuzz.exact import offsets, shown
from ..fuzz.judge import Judge
from ..fuzz.ledger import Ledger
from ..fuzz.replay import Replay
from ..fuzz.verdict import Verdict
from ..fuzz.words import describe_graph, describe_observation, describe_op, describe_place, describe_setup
from ..fuzz.words_seen import row as listed
from ..model.records import MAX_CHUNKS, Cap, Kind, Observation, Op, Status, Trace
from ..model.session import Session
from ..model.stack import Stack
from ..native.worker import Run, StepSeen
from ..spec.clauses import Clause, clause
from .memory import Frame, frames, modelled
from .quality import PlanOf, plans_of

#: what is compared of a subject that the model does not predict exactly
COMMON = ("used", "asked", "reported")
NAMES = {
    "used": "bytes in use", "asked": "bytes asked for", "reported": "bytes reported", "owned": "bytes owned",
    "pooled": "bytes of pools", "sched_generation": "the scheduler's generation",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that the two sides show otherwise."""

    what: str
    model: str
    subject: str


@dataclass(frozen=True, slots=True)
class Row:
    """One operation, both sides in words. `subject` is '' where it was not run. `here`: it fails here."""

    step: int
    words: str
    model: str
    subject: str
    differences: tuple[Difference, ...] = ()
    here: bool = False


@dataclass(frozen=True, slots=True)
class Story:
    """One failure. `again`: '' where it showed again on the subject, else a sentence that says what is shown
    instead. `frames` and `model_frames`: the memory map of both, up to the operation that fails."""

    saved: Replay
    verdict: Verdict
    again: str
    rows: tuple[Row, ...]
    parted: str
    frames: tuple[Frame, ...]
    model_frames: tuple[Frame, ...]
    plans: tuple[PlanOf, ...] = ()
    right: bool = False  # the subject was run, and does not fail
    planner: bool = False  # the model's side has the reference planner, where the subject has its own

    @property
    def clause(self) -> Clause | None:
        return clause(self.verdict.clause) if self.verdict.clause else None

    @property
    def model_title(self) -> str:
        """What the model's memory is called."""
        if self.planner:
            return "The same by the reference planner (another right plan may need other bytes)"
        return "The same by the model"

    @property
    def headline(self) -> str:
        """'R3 is broken at operation 5: type 0: at least the maximum'."""
        v = self.verdict
        what = f"{v.clause} is broken" if v.clause else "model and subject differ, and no clause decides,"
        return f"{what} at operation {v.step}: {v.message}"

    @property
    def setup(self) -> list[str]:
        return describe_setup(self.saved.trace.setup).splitlines()

    @property
    def graphs(self) -> list[list[str]]:
        """The lines of each graph."""
        return [describe_graph(graph).splitlines() for graph in self.saved.trace.graphs]

    @property
    def asked(self) -> list[str]:
        """Every operation in words."""
        return [describe_op(op, self.saved.trace) for op in self.saved.trace.ops]


def tell(saved: Replay, judge: Judge | None, why: str = "") -> Story:
    """Runs the failure again on the judge's subject, in a new process, and beside it the model.

    `why`: where there is no judge, why not; then the model's side is told alone. May raise SubjectError.
    """
    if judge is not None and (missing := lacking(saved.trace, judge.caps)) is not None:
        what, needs = missing
        judge, why = None, f"the subject does not declare {declared(needs)}, which {what} needs"
    model = modelled(saved.trace, reference(saved.trace, judge, saved.clause))
    verdict = as_saved(saved)
    if judge is None:
        return written(saved, verdict, f"It was not run again here: {why.rstrip('.')}.", None, model, None)
    failed = judge.judge(saved.trace, anew=True).failed
    run = judge.run(saved.trace, anew=True)
    again = "" if failed is not None else "It does not fail here any more; what is shown is how it runs now."
    if failed is not None and failed.clause != saved.clause:
        again = f"It was saved as {saved.clause or saved.verdict}; here it is {failed.clause or failed.sort}."
    return written(saved, failed or verdict, again, run, model, judge, failed is None)


def written(
    saved: Replay,
    verdict: Verdict,
    again: str,
    run: Run | None,
    model: Run,
    judge: Judge | None,
    right: bool = False,
) -> Story:
    trace, exact = saved.trace, judge is None or bool(judge.caps & Cap.EXACT)
    planner = not exact and own_plans(saved.clause)
    plans = plans_of(trace, verdict.step, judge)
    known = {verdict.step: plans[0].places} if plans and plans[0].step == verdict.step else {}
    if planner:
        others = (
            replace(p, whose="the reference planner's") for p in plans_of(trace, verdict.step, None)[:1]
        )
        plans = (*plans[:1], *others, *plans[1:])
    rows = tuple(rows_of(trace, run, model, verdict, exact))
    if planner:  # before the failure both may be right, and need other bytes
        rows = tuple(row if row.here else replace(row, differences=()) for row in rows)
    mine = frames(trace, run, verdict, known)[: verdict.step + 1] if run is not None else []
    theirs = frames(trace, model)[: verdict.step + 1]
    parted = parting_plans(rows) if planner and not right else parting(rows, mine)
    return Story(saved, verdict, again, rows, parted, tuple(mine), tuple(theirs), plans, right, planner)


def as_saved(saved: Replay) -> Verdict:
    """The verdict that a replay file holds."""
    op = saved.trace.ops[saved.step].kind.name if saved.step < len(saved.trace.ops) else "close"
    want, have = (words(side) for side in (saved.expected, saved.seen))
    return Verdict(saved.verdict, saved.clause, saved.message, saved.step, op, want, have)


def words(side: Observation | str | None) -> str:
    return describe_observation(side) if isinstance(side, Observation) else side or ""


def own_plans(clause: str) -> bool:
    """Whether a failure is about plans: then the model must not take over the subject's, which are wrong."""
    return clause.startswith("P")


def reference(trace: Trace, judge: Judge | None, clause: str = "") -> Stack | Session:
    """The model; for a subject with a planner of its own, a session over that subject's fresh plans, but where the
    clause that is broken is about plans."""
    if judge is None or judge.caps & Cap.EXACT or own_plans(clause):
        return Stack(trace.setup, list(trace.graphs))
    return Ledger(trace.setup, trace.graphs, judge.caps, judge.fresh, MAX_CHUNKS).session


# -- both sides, step by step ---------------------------------------------------------------


def rows_of(trace: Trace, run: Run | None, model: Run, verdict: Verdict, exact: bool) -> list[Row]:
    """The operations up to the one that fails."""
    rows, none = [], tuple[Difference, ...]()
    for i, op in enumerate(trace.ops[: verdict.step + 1]):
        want = model.steps[i]
        if run is None:
            have, apart = "", none
        elif i < len(run.steps):
            have, apart = side(op, run.steps[i]), tuple(compared(op, want, run.steps[i], exact))
        else:
            have, apart = died(run, i), none
        rows.append(Row(i, describe_op(op, trace), side(op, want), have, apart, i == verdict.step))
    if verdict.step == len(trace.ops):
        left = (
            "" if run is None else died(run, len(trace.ops)) if run.death else f"{run.leaked or 0} bytes stay"
        )
        rows.append(Row(verdict.step, "everything is freed", "0 bytes stay in use", left, (), True))
    return rows


def died(run: Run, step: int) -> str:
    if run.death is None:
        return "it did not get here"
    return f"the subject {describe(run.death)}" if step == len(run.steps) else "it was dead by then"


def side(op: Op, seen: StepSeen) -> str:
    """What one side showed, with the places of a graph that it has just bound."""
    text = describe_observation(seen.obs)
    if op.kind == Kind.ALLOC and seen.places:
        text += "\n" + "\n".join(f"t{k}: {describe_place(p)}" for k, p in enumerate(seen.places))
    return text


def compared(op: Op, want: StepSeen, have: StepSeen, exact: bool) -> list[Difference]:
    """What the two show otherwise, of the operation's own allocator and of all others."""
    a, b = offsets(want.obs), offsets(have.obs)
    if a.status != b.status:
        return [Difference("status", a.status.name.lower(), b.status.name.lower())]
    if a.status == Status.MISUSE:
        return []
    names = ("used",) if op.kind in (Kind.FREE, Kind.CAPACITY) else shown(op.kind) if exact else COMMON
    out = fields("", a, b, names)
    if b.trouble:
        out.append(Difference("memory", "every byte as written", describe_observation(b).split("; ")[1]))
    for number, look in have.looks.items():
        if number in want.looks:
            out += fields(
                f"allocator {number}'s ",
                want.looks[number],
                look,
                ("generation", "asked") if exact else COMMON,
            )
    if op.kind == Kind.ALLOC and want.places and have.places:
        pairs = enumerate(zip(want.places, have.places, strict=False))
        out += [
            Difference(f"place of t{k}", describe_place(p), describe_place(q))
            for k, (p, q) in pairs
            if p != q and exact and max(p.type, q.type) >= 0
        ]
    return out


def fields(whose: str, want: Observation, have: Observation, names: tuple[str, ...]) -> list[Difference]:
    out = []
    for name in names:
        a, b = getattr(want, name), getattr(have, name)
        if a != b and not (name == "digest" and not a):
            out.append(Difference(whose + NAMES.get(name, name.replace("_", " ")), value(a), value(b)))
    return out


def value(x: object) -> str:
    """A field in words: '4096', '[64, 32] [16]'."""
    if not isinstance(x, tuple):
        return str(x)
    if any(isinstance(y, tuple) for y in x):
        return " ".join(f"[{listed(y)}]" for y in x)
    return listed(x)


def parting_plans(rows: tuple[Row, ...]) -> str:
    """The same of two planners, which may both be right and differ."""
    last = rows[-1]
    side = "The model's side has the reference planner, for the subject's own plan is what is wrong."
    if last.subject.startswith("the subject "):
        return f"{side} At operation {last.step} ({last.words}) {last.subject}."
    if not last.differences:
        return f"{side} At operation {last.step} both planners need the same bytes: it is the places that are wrong."
    what = "; ".join(
        f"{d.what}: {d.model} by the reference planner, {d.subject} by the subject"
        for d in last.differences[:3]
    )
    return f"{side} At operation {last.step} ({last.words}): {what}."


def parting(rows: tuple[Row, ...], mine: list[Frame]) -> str:
    """One sentence: where the two sides part."""
    if not mine:
        return "Only the model's side is known here."
    first = next((row for row in rows if row.differences), None)
    last = rows[-1]
    dead = next((row for row in rows if row.subject.startswith("the subject ")), None)
    if first is None and dead is not None:
        return f"Both show the same until operation {dead.step} ({dead.words}); there {dead.subject}."
    if first is None:
        return (
            f"Model and subject show the same figures at every operation. What is wrong at operation {last.step} is"
            " no figure: the clause itself, judged on what the subject shows, does not hold."
        )
    before = f"Up to operation {first.step - 1} both show the same. " if first.step else ""
    what = "; ".join(
        f"{d.what}: {d.model} by the model, {d.subject} by the subject" for d in first.differences[:3]
    )
    return f"{before}At operation {first.step} ({first.words}) they part: {what}."
