"""The story of a failure: run again on the subject, beside the model; the page that tells it."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from gallocheck.cli.replay import side_by_side
from gallocheck.fuzz.expected import KNOWN
from gallocheck.fuzz.judge import Judge
from gallocheck.fuzz.replay import load
from gallocheck.model.records import Kind, Observation, Status
from gallocheck.native import trees
from gallocheck.native.trees import TreeError
from gallocheck.report.page import page
from gallocheck.report.plot import plot
from gallocheck.report.runs import Job
from gallocheck.report.story import Story, tell

from .samples import HOSTILE, SHOWN, kept

VOID = {"meta", "link", "input", "br"}


def of(stories: dict[int, Story], defect: int) -> Story:
    return stories[SHOWN.index(defect)]


def test_a_clause_is_broken_again(stories: dict[int, Story]) -> None:
    for n, defect in enumerate(SHOWN):
        story, saved = stories[n], kept(defect)
        assert story.verdict.clause == saved.clause and story.again == "" and not story.right
        assert story.headline.startswith(f"{saved.clause} is broken at operation {story.verdict.step}: ")
        assert [row.here for row in story.rows] == [*[False] * (len(story.rows) - 1), True]
        assert len(story.rows) == story.verdict.step + 1
        assert len(story.frames) <= len(story.rows) and len(story.model_frames) <= len(story.rows)
        assert any(m.sort == "broken" for m in story.frames[-1].marks)
        assert story.clause is not None and story.clause.id == saved.clause


def test_where_they_part(stories: dict[int, Story]) -> None:
    story = of(stories, 51)
    last = story.rows[-1]
    assert not any(row.differences for row in story.rows[:-1])
    named = {d.what: (d.model, d.subject) for d in last.differences}
    assert named["bytes in use"] == ("0, 4", "0, 2") and named["bytes asked for"] == (
        "[0] [2, 2]",
        "[0] [0, 2]",
    )
    assert story.parted.startswith(
        f"Up to operation {last.step - 1} both show the same. At operation {last.step} "
    )
    assert "bytes in use: 0, 4 by the model, 0, 2 by the subject" in story.parted


def test_a_death_is_told(stories: dict[int, Story]) -> None:
    story = of(stories, 74)
    assert "touched memory that is not mapped" in story.parted and "died" in [
        m.sort for m in story.frames[-1].marks
    ]
    assert story.frames[-1].wrong, "the bytes that it touched are marked"
    assert story.rows[-1].subject.startswith("the subject touched memory")


def test_bytes_that_conflict_are_in_the_map(stories: dict[int, Story]) -> None:
    story = of(stories, 1)
    assert story.frames[-1].wrong and not any(f.wrong for f in story.model_frames)


def test_a_plan_that_only_a_reserve_shows(judge: Judge) -> None:
    """Defect 19 shows at a reserve, where nothing is bound: the subject's own fresh plan is drawn."""
    judge.plant(19)
    story = tell(kept(19), judge)
    assert story.saved.trace.ops[story.verdict.step].kind == Kind.RESERVE
    assert story.frames[-1].wrong and story.plans[0].whose == "the subject's"
    (peak,) = story.plans[0].peaks
    assert peak.peak < peak.least == peak.best


def test_a_peak_beside_its_lower_bound(stories: dict[int, Story]) -> None:
    for story in stories.values():
        for plan in story.plans:
            for peak in plan.peaks:
                assert peak.best is None or peak.least <= peak.best


def test_a_subject_that_is_right(judge: Judge) -> None:
    judge.plant(0)
    story = tell(kept(51), judge)
    assert story.right and "does not fail here any more" in story.again
    assert not any(row.differences for row in story.rows) and story.frames


def test_the_models_side_alone() -> None:
    story = tell(kept(51), None, "the tree is not there.")
    assert story.again == "It was not run again here: the tree is not there." and not story.right
    assert story.frames == () and story.model_frames and story.plans[0].whose == "the model's"
    assert story.verdict.clause == "R3" and {row.subject for row in story.rows} == {""}
    assert story.parted == "Only the model's side is known here."


def test_a_saved_side_may_be_an_observation() -> None:
    saved = replace(kept(51), expected=Observation(Status.DONE, used=(4,)), seen="it died")
    story = tell(saved, None, "why")
    assert story.verdict.expected == "done; in use 4" and story.verdict.seen == "it died"


def test_all_pictures_in_one_file(stories: dict[int, Story]) -> None:
    from xml.etree import ElementTree

    root = ElementTree.fromstring(plot(of(stories, 51)))
    inner = [e for e in root if e.tag.endswith("svg")]
    assert len(inner) == 2 + len(of(stories, 51).plans)
    tops = [float(e.get("y") or 0) for e in inner]
    ends = [y + float(e.get("height") or 0) for y, e in zip(tops, inner, strict=True)]
    assert all(end <= top for end, top in zip(ends, tops[1:], strict=False)), "none covers another"
    room = float(root.get("width") or 0)
    titles = [
        e.text or "" for e in root.find("g") or root if e.tag.endswith("text") and e.get("class") == "head"
    ]
    assert len(titles) > len(inner) and all(12 + 7.2 * len(t) <= room for t in titles), (
        "long ones are wrapped"
    )
    ids = [e.get("id") for e in root.iter() if e.get("id")]
    assert len(ids) == len(set(ids))


# -- the page as text --------------------------------------------------------------------


class Nesting(HTMLParser):
    """Every element that opens closes, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"{tag} closes what is not open"


def test_the_page_is_whole_and_needs_nothing_else(page_file: Path) -> None:
    text = page_file.read_text()
    parser = Nesting()
    parser.feed(text)
    assert parser.open == []
    assert all(link.startswith("#") or link == "data:," for link in parser.links)
    assert "url(http" not in text and "@import" not in text
    assert len(text) < 2_000_000


def test_a_subjects_words_are_no_markup(page_file: Path, job: Job) -> None:
    text = page_file.read_text()
    assert "<script>alert" not in text and "&lt;script&gt;alert" in text and "\x1b" not in text
    assert any(f.row.message == HOSTILE for f in job.findings)


def test_what_the_page_says(page_file: Path, job: Job, stories: dict[int, Story]) -> None:
    text = page_file.read_text()
    for story in stories.values():
        assert story.clause is not None and story.clause.title in text
    for words in ("gallocheck replay", "--defect 51", "--seed 7", "40,000", "its replay file is gone", "F01: it is known",
                  "met 12 times", "not seen again in a new process", job.record.machine.system, "lower bound"):  # fmt: skip
        assert words in text, words


def test_a_page_without_findings(tmp_path: Path, job: Job) -> None:
    record = replace_findings(job)
    text = page(record, {})
    assert "No findings." in text and "There are none." in text


def replace_findings(job: Job) -> Job:
    return Job("check", job.record, (), job.folder)


@pytest.mark.parametrize("kind", ["campaign", "replay"])
def test_pages_of_other_kinds(job: Job, kind: str) -> None:
    text = page(replace(job, kind=kind), {})  # type: ignore[arg-type]
    assert ("gallocheck fuzz" in text) is (kind == "campaign")


def test_a_planner_of_its_own_that_is_wrong(job: Job) -> None:
    """ggml 0.15.3 lets an output be written over (F07, P5): the model does not take that plan over."""
    try:
        library = str(trees.build(trees.pinned()))
    except TreeError as error:
        pytest.skip(str(error))
    saved = load(KNOWN / "ggml-0.15.3" / "F07.json")
    with Judge(library) as judge:
        story = tell(saved, judge)
        shown = side_by_side(saved.trace, judge.run(saved.trace), judge, saved.step, story.verdict)
    assert story.verdict.clause == "P5" and story.planner and story.frames[-1].wrong
    assert not any(f.wrong for f in story.model_frames), "the model's side is right"
    assert [p.whose for p in story.plans[:2]] == ["the subject's", "the reference planner's"]
    assert story.plans[0].peaks[0].peak < story.plans[1].peaks[0].peak
    assert "by the reference planner, " in story.parted and not story.parted.startswith(
        "Model and subject show"
    )
    assert "The same by the reference planner" in page(replace(job, findings=job.findings[:1]), {0: story})
    assert shown.columns[2].header == "model, by the reference planner"


def test_a_page_of_nothing(job: Job) -> None:
    """A record in which no clause was exercised does not read as a good one."""
    record = msgspec.structs.replace(job.record, clauses=[])
    text = page(Job("check", record, (), job.folder), {})
    assert "No findings." not in text and "Nothing was checked" in text
