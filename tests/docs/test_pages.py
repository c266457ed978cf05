"""Generated pages are whole, and what cannot be told is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from gallocheck.fuzz.shortest import shortest_exercise
from gallocheck.model.records import Kind, Op, Setup, Trace
from generate import cli, code, interface, links, markdown, pictures, prose, ran, replay_format

from .commands import ROOT


def test_the_command_line_is_all_there() -> None:
    text = cli.cli_page()
    for name, command in cli.commands().items():
        assert f"## gallocheck {name}\n" in text
        assert all(
            f"`{option}`" in text for p in command.params for option in p.opts if option.startswith("-")
        )


def test_the_interface_is_all_there() -> None:
    """Every name that the header gives is on the page."""
    text, header = interface.interface_page(), (ROOT / interface.HEADER).read_text()
    body = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    names = {n for n in re.findall(r"\b(?:GC|gc)_\w+", body) if n != "GC_ABI"}
    assert {n for n in names if n not in text.replace("\\", "")} == set()
    assert interface.comments("gc_op")["fail_nth"].startswith("the n-th allocation of this operation fails")
    assert interface.comments("") == {}


def test_the_replay_format_is_all_there() -> None:
    text = replay_format.replay_page()
    for definition in replay_format.schema()["$defs"].values():
        assert all(f"| `{name}` |" in text for name in definition["properties"])


def test_code_by_place() -> None:
    f = code.function_at(
        "spec/step.py", code.source("spec/step.py").splitlines().index("    def refused(self) -> Value:") + 2
    )
    assert f is not None and f.name == "Step.refused" and f.text().startswith("def refused(self)")
    assert code.function_at("spec/step.py", 1) is None
    assert [f.name for f in code.functions_saying("fuzz/wrong_bytes.py", "P1")]
    assert code.functions_saying("fuzz/wrong_bytes.py", "no such word") == []


def test_what_runs_of_the_model() -> None:
    trace = Trace(Setup((), ()), (), (Op(Kind.LOOK),))
    assert all(f.file.startswith("model/") for f in ran.whole(trace))
    names = {f.name for f in ran.last_step(shortest_exercise("V3"))}
    assert names and all(f.file == "model/pool.py" for f in ran.last_step(shortest_exercise("V3")))


def test_text_is_escaped() -> None:
    assert markdown.plain("a_b *c* [d] <e> |") == r"a\_b \*c\* \[d\] \<e\> \|"
    assert markdown.prose("say `a_b` of a_b") == r"say `a_b` of a\_b"
    assert markdown.fence("x ``` y").startswith("````{code-block}")
    assert "&lt;b&gt;" in markdown.details("<b>")


def test_broken_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<a href="b.html#here">x</a><a href="c.html">x</a><a href="https://x.y/">x</a>'
    )
    (tmp_path / "b.html").write_text('<p id="there">x</p><a href="#there">x</a><img src="no.png">')
    assert [line.split(":")[0] for line in links.broken(tmp_path)] == [
        "a.html links to b.html#here", "a.html links to c.html", "b.html links to no.png",
    ]  # fmt: skip


def test_a_page_that_links_nowhere_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prose, "DOCS", tmp_path)
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    page = tmp_path / "x.md"
    page.write_text("[a](gone.md)")
    with pytest.raises(prose.BadLink, match=r"x\.md links to gone\.md"):
        prose.linked(page, tmp_path / "out")
    (tmp_path / "gone.md").write_text("now there")
    assert prose.linked(page, tmp_path / "out") == "[a](gone.md)"


def test_pictures_follow_the_switch_of_the_page() -> None:
    style = pictures.style()
    assert (
        'body[data-theme="dark"] .gcpic {--paper: #0d1117' in style
        and 'body[data-theme="light"] .gcpic {' in style
    )


@pytest.mark.parametrize("name", ["report", "clause"])
def test_the_pictures_of_the_readme(name: str) -> None:
    """Made by `make screenshots`; small enough for a page that many load."""
    file = ROOT / "docs" / "pictures" / f"{name}.png"
    assert file.read_bytes().startswith(b"\x89PNG") and file.stat().st_size < 150_000
    assert f"docs/pictures/{name}.png" in (ROOT / "README.md").read_text()
