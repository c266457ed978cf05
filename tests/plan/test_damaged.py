"""Dumps that make no sense are one sentence, and what is named in one cannot act on a terminal."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from gallocheck.cli.main import app
from gallocheck.fuzz.dump.judge import judge
from gallocheck.fuzz.dump.lines import DumpError, read
from gallocheck.fuzz.printable import printable
from typer.testing import CliRunner

from tests.plan.dumps import GRAPH, Maker, changed, good, leaf, tensor


@pytest.mark.parametrize(
    ("maker", "says"),
    [
        (good().bind(), "line 15: allocator 0 was freed at line 14"),
        (good().reserve(), "allocator 0 was freed"),
        (good().measure(), "allocator 0 was freed"),
        (good().call("bind"), "allocator 0 was freed"),
        (good().freed(), "allocator 0 was freed"),
        (Maker().graph(GRAPH).buffer().bind(sizes=(1, 2, 3, 4, 5)), "there are 5 sizes for 1 slots"),
        (Maker().graph(GRAPH).buffer().reserve().bind(sizes=()), "there are 0 sizes for 1 slots"),
        (Maker().graph(GRAPH).measure(sizes=()), "there are 0 sizes for 1 slots"),
        (Maker().graph(GRAPH).buffer().add("reserve", allocator=0, graph=0, ok=True, sizes=[96], slots=[-7, 99]),
         "there are 2 slots for 5 nodes"),
        (Maker().graph(GRAPH).buffer().add("reserve", allocator=0, graph=0, ok=True, sizes=[96], slots=[0, 0, 0, 0, 99]),
         "a slot that allocator 0 with 1 does not have"),
        (Maker().graph(changed("a", bytes=2**100)), "is more than 64 bits hold"),
        (Maker().buffer(size=2**64), "line 5: 18446744073709551616 is more than 64 bits hold"),
    ],
)  # fmt: skip
def test_nonsense(maker: Maker, says: str, tmp_path: Path) -> None:
    with pytest.raises(DumpError, match=says):
        read(maker.write(tmp_path / "d"))


def test_a_tree_that_says_no_sizes(tmp_path: Path) -> None:
    maker = Maker().graph(GRAPH).buffer().reserve(sizes=()).bind(sizes=())
    assert not judge(read(maker.write(tmp_path / "d"))).findings


def test_names_cannot_act(tmp_path: Path) -> None:
    maker = good()
    maker.rows[1]["name"] = "\x1b[31m\n::error::x"
    done = CliRunner().invoke(app, ["plan", str(maker.write(tmp_path / "d"))])
    assert done.exit_code == 0 and "\x1b" not in done.output and "\\x1b[31m\\n::" in done.output
    assert printable("a b\t\u202e\u00e9") == "a b\\t\\u202e\u00e9"


def test_a_bind_that_cannot_be_judged_is_told(tmp_path: Path) -> None:
    maker = Maker().graph(changed("a", src=[5, 0])).buffer().reserve().bind()
    done = CliRunner().invoke(app, ["plan", str(maker.write(tmp_path / "d"))])
    assert done.exit_code == 3 and "bound no graph" not in done.output
    assert "of 1 binds none could be judged" in done.output


def test_a_large_graph_is_read_and_judged_quickly(tmp_path: Path) -> None:
    n = 6000
    graph = [leaf("x"), *(tensor(f"t{i}", src=(i,), inplace=True) for i in range(n))]
    maker = Maker().graph(graph).buffer(size=32).reserve(sizes=(32,))
    maker.bind([[0, 0, 32]] * (n + 1), sizes=(32,), before=[])
    began = time.monotonic()
    found = judge(read(maker.write(tmp_path / "d")))
    assert not found.findings and found.exercised["P8"] == n
    assert time.monotonic() - began < 10
