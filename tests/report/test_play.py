"""The model, stepped, printed and drawn in ten lines."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from gallocheck.fuzz.judge import Judge
from gallocheck.model.records import BufferType, Kind, Op, Tensor
from gallocheck.native.library import library_path
from gallocheck.report.play import Play

TEN_LINES = Path(__file__).resolve().parents[2] / "docs" / "ten_lines.py"


def shrunk() -> Play:
    play = Play(capacity=10_000, alignment=64)
    large, small = play.graph(4000, 2000), play.graph(400, 200)
    owner = play.owner()
    borrower = owner.borrower()
    owner.alloc(large)
    borrower.request_shrink()
    owner.reserve(small)
    borrower.reserve(small)
    return play


def test_the_ten_lines_run_as_they_stand(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, TEN_LINES], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    first, *rest = done.stdout.splitlines()
    assert first.endswith("in use 704; reported 704; asked [704]; generation 2, shrink generation 1")
    assert rest[0] == "type 0: alignment 64, device of 10000 bytes" and rest[-1] == first
    assert ElementTree.parse(tmp_path / "memory.svg").getroot().tag.endswith("svg")
    code = [line for line in TEN_LINES.read_text().splitlines() if line.strip()]
    assert len(code) <= 11  # the import beside ten


def test_a_notebook_shows_the_picture() -> None:
    page = shrunk()._repr_html_()
    assert page.count("<svg") == 1 and "allocator 1 becomes the borrower of 0" in page
    assert ElementTree.fromstring(shrunk().svg()).tag.endswith("svg")
    assert "<svg" not in Play()._repr_html_()  # nothing happened yet


def test_what_was_played_is_a_trace_that_a_subject_can_run() -> None:
    with Judge(str(library_path("bundled"))) as judge:
        report = judge.judge(shrunk().trace)
    assert report.failed is None and report.tally["R6"] and report.steps == 8


def test_answers_say_whether_it_was_done() -> None:
    play = Play(capacity=1000)
    large, small = play.graph(2000), play.graph(10)
    one = play.allocator()
    assert not one.reserve(large) and not one.reserve(small, fails=True) and one.reserve(small)
    assert not one.compute()  # nothing is bound
    assert one.measure(large).seen.measured[0] == 2000
    assert play.capacity(4000) and one.alloc(large) and one.compute() and one.look() and one.free()
    assert str(play.step(Op(Kind.LOOK))).endswith(": misuse; in use 0")


def test_several_types() -> None:
    play = Play(types=(BufferType(alignment=32), BufferType(alignment=8)))
    one = play.allocator()
    assert one.reserve(play.graph(Tensor(100), Tensor(20, (0,), slot=1))).seen.used == (128, 24)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: Play(alignment=3), "This cannot be played: .*alignment"),
        (lambda: Play().graph(-1), "This cannot be played: .*size"),
        (lambda: Play().allocator().reserve(Play().graph(1)), "make it with play.graph"),
        (lambda: [play.allocator() for play in [Play()] * 9], "This cannot be played: "),
    ],
    ids=["setup", "graph", "foreign graph", "too many"],
)
def test_nonsense_is_one_sentence(wrong: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        wrong()  # type: ignore[operator]
