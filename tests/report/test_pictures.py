"""The SVGs: what a frame has is drawn, in proportion, with hover texts, and is well-formed whatever a subject says."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from gallocheck.model.records import BufferType, Flag, Graph, Kind, Op, Setup, Tensor, Trace, Trouble
from gallocheck.report.charts import chart, curves, rates, seconds, short
from gallocheck.report.drawing import STYLE, Picture, clean
from gallocheck.report.memory import Mark, frames, modelled
from gallocheck.report.placed import Bound
from gallocheck.report.plans import plan_picture
from gallocheck.report.record import Sample
from gallocheck.report.svg import LEAST, over_time, tops

from tests.shorthand import given, graph, node, out, plain, view

from .samples import kept

CHAIN = graph(given(64), node(64, 0), out(64, 1), node(32, 2), view(16, 2, 8))
OPS = (
    Op(Kind.NEW),
    Op(Kind.RESERVE),
    Op(Kind.ALLOC),
    Op(Kind.COMPUTE),
    Op(Kind.CAPACITY, other=0, value=256),
)
TRACE = plain(*OPS, graphs=(CHAIN,), types=(BufferType(capacity=160),))


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(re.sub(r' xmlns="[^"]*"', "", svg, count=1))


def rects(root: ElementTree.Element, kind: str) -> list[ElementTree.Element]:
    """Those of a kind that mean something: the legend's have no hover text."""
    all_ = [r for r in root.iter("rect") if kind in (r.get("class") or "").split()]
    return [r for r in all_ if r.find("title") is not None]


def height(rect: ElementTree.Element) -> float:
    return float(rect.get("height") or 0)


def titles(root: ElementTree.Element) -> list[str]:
    return [t.text or "" for t in root.iter("title")]


def test_every_operation_has_its_column() -> None:
    root = parsed(over_time(frames(TRACE, modelled(TRACE))))
    assert [g.get("data-step") for g in root.iter("g") if g.get("class") == "operation"] == list("01234")
    words = " ".join("".join(t.itertext()) for t in root.iter("text"))
    for name in ("type 0", "new 0", "reserve g0 0", "alloc g0 0", "compute 0", "capacity 256 B", "gen 1"):
        assert name in words


def test_sizes_are_in_proportion() -> None:
    root = parsed(over_time(frames(TRACE, modelled(TRACE))))
    buffers = rects(root, "buffer")
    used = modelled(TRACE).steps[1].obs.used[0]
    drawn = {height(r) for r in buffers if "gone" not in (r.get("class") or "")}
    assert len(drawn) == 1
    per_byte = drawn.pop() / used
    assert {round(height(r) / per_byte) for r in rects(root, "planned")} == {32, 64}
    assert {round(height(r) / per_byte) for r in rects(root, "output")} == {64}
    (low, high) = sorted({float(x.get("y1") or 0) for x in root.iter("line") if x.get("class") == "capacity"})
    assert round((high - low) / per_byte) == 256 - 160, "the device's size changed by so much"


def test_hover_texts_say_it_all() -> None:
    text = "\n".join(titles(parsed(over_time(frames(TRACE, modelled(TRACE))))))
    for words in ("chunk 0: ", "allocator 0", "allocator 0: generation 0 to 1", "device 0 has 160 B",
                  "t2 of graph 0 (allocator 0)", "output", "3. compute by allocator 0"):  # fmt: skip
        assert words in text


def test_what_conflicts_is_crossed_and_framed() -> None:
    run = modelled(TRACE)
    assert not rects(parsed(over_time(frames(TRACE, run))), "wrong")
    bad = {"trouble": Trouble.BAD_SOURCE, "bad_node": 2, "bad_src": 0, "bad_offset": 3}
    run.steps[3].obs = replace(run.steps[3].obs, **bad)
    root = parsed(over_time(frames(TRACE, run), "x"))
    wrong = rects(root, "wrong")
    assert wrong and all(r.get("fill") == "url(#x-wrong)" for r in wrong)
    assert any("from byte 3 on" in t for t in titles(root)) and rects(root, "bad")
    assert {p.get("id") for p in root.iter("pattern")} == {"x-dead", "x-other", "x-pool", "x-wrong"}


def test_the_smallest_chunk_is_seen() -> None:
    ops = (Op(Kind.NEW), Op(Kind.NEW, 1), Op(Kind.RESERVE), Op(Kind.RESERVE, 1, graph=1))
    trace = plain(*ops, graphs=(graph(given(1)), graph(given(1 << 30))))
    assert min(height(r) for r in rects(parsed(over_time(frames(trace, modelled(trace)))), "buffer")) == LEAST


def test_two_pictures_in_one_scale() -> None:
    big = plain(*OPS[:2], graphs=(graph(given(640)),))
    small, large = frames(TRACE, modelled(TRACE)), frames(big, modelled(big))
    scale = {0: max(tops(small)[0], tops(large)[0])}
    tall = max(height(r) for r in rects(parsed(over_time(small, scale=scale)), "buffer"))
    assert tall < max(height(r) for r in rects(parsed(over_time(small)), "buffer"))


def test_a_subjects_words_cannot_break_the_picture() -> None:
    seen = frames(TRACE, modelled(TRACE))
    evil = replace(seen[3], marks=(Mark("broken", "<script>alert(1)</script> & \x00\x1b[31m \ud800 \ufffe"),))
    svg = over_time([*seen[:3], evil])
    assert "<script>" not in svg and "\x00" not in svg and "\x1b" not in svg
    assert "<script>alert(1)</script> &" in "".join(titles(parsed(svg)))
    assert clean("a\tb\nc\x07") == "a\tb\nc"


def test_style_comes_with_the_picture_or_with_the_page() -> None:
    assert parsed(over_time(frames(TRACE, modelled(TRACE)))).findtext("style") == STYLE
    assert parsed(over_time(frames(TRACE, modelled(TRACE)), style=False)).find("style") is None
    assert "prefers-color-scheme: dark" in STYLE and Picture("a", "b").done(1, 1).startswith("<svg")


def test_no_operation_at_all() -> None:
    assert parsed(over_time([])).tag == "svg"


@pytest.mark.parametrize("defect", [1, 7, 37, 74, 203, 301, 402, 513, 601, 704, 801])
def test_every_kind_of_trace_can_be_drawn(defect: int) -> None:
    trace = kept(defect).trace
    root = parsed(over_time(frames(trace, modelled(trace))))
    assert len([g for g in root.iter("g") if g.get("class") == "operation"]) == len(trace.ops)
    assert not rects(root, "wrong"), "the model is right"


# -- plans -----------------------------------------------------------------------------


def test_a_plan_as_lives() -> None:
    run = modelled(TRACE)
    places, asked = run.steps[2].places, run.steps[2].obs.asked
    assert places is not None
    bound = Bound(0, CHAIN, 0, places, (0,), 1)
    root = parsed(plan_picture(bound, TRACE.setup, asked, least=(160,)))
    live, kept_ = rects(root, "live"), rects(root, "output")
    widths = {(r.findtext("title") or "")[:2]: float(r.get("width") or 0) for r in [*live, *kept_]}
    assert set(widths) == {"t0", "t1", "t2", "t3"}
    assert widths["t2"] > widths["t1"] > widths["t3"], "t2 stays, t1 until it is read, t3 for its own step"
    classes = {x.get("class") for x in root.iter("line")}
    assert {"peak", "least"} <= classes and not rects(root, "wrong")
    assert rects(root, "view")


def test_a_plan_with_names() -> None:
    """A name stands where there is room for it, and in every hover text."""
    run = modelled(TRACE)
    places, asked = run.steps[2].places, run.steps[2].obs.asked
    assert places is not None
    bound, names = Bound(0, CHAIN, 0, places, (0,), 1), ("inp", "x" * 90, *(f"n{i}" for i in range(9)))
    root = parsed(plan_picture(bound, TRACE.setup, asked, names=names[: len(CHAIN.tensors)]))
    written = [x.text for x in root.iter("text")]
    assert "inp" in written and "t1" in written and "t0" not in written and "x" * 90 not in written
    assert any(t.startswith(f"{'x' * 90}: t1 of graph 0") for t in titles(root))


def test_small_tensors_are_seen() -> None:
    """One byte beside a million: two pixels, above the floor."""
    graph = Graph((Tensor(1, (), Flag.LEAF | Flag.INPUT), Tensor(1_000_000, (0,), Flag.OUTPUT)))
    trace = Trace(
        Setup((BufferType(16),), ((0,),)), (graph,), (Op(Kind.NEW), Op(Kind.RESERVE), Op(Kind.ALLOC))
    )
    run = modelled(trace)
    places = run.steps[2].places
    assert places is not None
    drawn = plan_picture(Bound(0, graph, 0, places, (0,), 1), trace.setup, run.steps[2].obs.asked)
    for root, kinds in (
        (parsed(drawn), ("live",)),
        (parsed(over_time(frames(trace, run))), ("live", "planned")),
    ):
        small = [
            r for kind in kinds for r in rects(root, kind) if (r.findtext("title") or "").startswith("t0 ")
        ]
        assert small and min(map(height, small)) == 2


def test_a_plan_that_conflicts() -> None:
    run = modelled(TRACE)
    places = run.steps[2].places
    assert places is not None
    bad = Bound(0, CHAIN, 0, (places[0], places[0], *places[2:]), (0,), 1)
    root = parsed(plan_picture(bad, TRACE.setup, run.steps[2].obs.asked))
    assert any("t0 and t1 share bytes" in t for t in titles(root))


# -- charts ----------------------------------------------------------------------------


def course(n: int) -> list[Sample]:
    return [Sample(0.5 * i, 100 * i, i // 20, clauses=min(i, 9), lockstep=0) for i in range(n)]


def test_the_course_of_a_check() -> None:
    found = curves(course(100))
    assert [c.title for c in found] == [
        "Operations checked a second",
        "Operations checked",
        "Clauses exercised",
        "Findings",
    ]
    assert all(abs(rate - 200) < 1e-6 for _, rate in rates(course(100)))
    for curve in found:
        root = parsed(chart(curve, "c"))
        assert len((root.find("polyline").get("points") or "").split()) == len(curve.points)  # type: ignore[union-attr]


@pytest.mark.parametrize("n", [0, 1, 2])
def test_a_course_that_is_hardly_one(n: int) -> None:
    assert all(parsed(chart(c, "c")).tag == "svg" for c in curves(course(n)))


def test_figures_for_people() -> None:
    assert [short(x) for x in (0, 0.5, 950, 12_500, 3.1e6, 2e9)] == ["0", "0.5", "950", "12.5k", "3.1M", "2G"]
    assert [seconds(x) for x in (7, 210, 28_800)] == ["7 s", "3.5 min", "8 h"]
