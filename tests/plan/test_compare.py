"""Two trees over the same graphs: the pinned one, and copies of it that were made worse."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from gallocheck.cli.main import app
from gallocheck.fuzz.compare import Case, Comparison, Need, Pair, compare, drawn, of_file
from gallocheck.fuzz.dump.asked import subject_graph
from gallocheck.fuzz.dump.judge import judge
from gallocheck.fuzz.dump.lines import read
from gallocheck.fuzz.legal import graph_legal
from gallocheck.fuzz.replay import Replay, save
from gallocheck.model.records import BufferType, Flag, Graph, Kind, Op, Setup, Tensor, Trace
from gallocheck.native import trees
from gallocheck.native.library import library_path
from gallocheck.native.trees import TreeError
from typer.testing import CliRunner

from tests.plan.dumps import good

BUNDLED = str(library_path("bundled"))
#: what makes a tree worse: the best block is no longer looked for; nothing is done in place
FIRST_FIT = (
    "block->size >= size && block->size <= best_fit_size",
    "best_fit_block == -1 && block->size >= size",
)
FREED_TOO_SOON = (
    "p_hn->n_children == 0 && p_hn->n_views == 0",
    "p_hn->n_children <= 1 && p_hn->n_views == 0",
)
NOT_IN_PLACE = ("if (ggml_op_can_inplace(node->op)) {", "if (false) {")


@pytest.fixture(scope="session")
def pinned() -> trees.Tree:
    try:
        return trees.pinned()
    except TreeError as e:
        pytest.skip(str(e))


def worse(tree: trees.Tree, home: Path, change: tuple[str, str]) -> str:
    """The tree's library with its planner changed."""
    text = (tree.root / "src" / "ggml-alloc.c").read_text()
    assert text.count(change[0]) == 1
    (home / "ggml-alloc.c").write_text(text.replace(*change))
    return str(trees.build(tree, instead={"ggml-alloc.c": home / "ggml-alloc.c"}))


@pytest.mark.parametrize("change", [FIRST_FIT, NOT_IN_PLACE])
def test_a_tree_that_was_made_worse(pinned: trees.Tree, tmp_path: Path, change: tuple[str, str]) -> None:
    mine = str(trees.build(pinned))
    theirs = worse(pinned, tmp_path, change)
    found = compare(mine, theirs, drawn(1, 30))
    assert "peak" in found.worse(0) and found.regressions()
    assert found.b["peak"] > found.a["peak"] > found.bound > 0
    assert not found.only_a and not found.only_b
    done = CliRunner().invoke(app, ["compare", mine, theirs, "--number", "30", "--json"])
    said = json.loads(done.stdout)
    assert done.exit_code == 1 and "peak" in said["worse"]
    assert said["measures"]["peak"] == {"a": found.a["peak"], "b": found.b["peak"]}  # by seed
    assert CliRunner().invoke(app, ["compare", mine, theirs, "-n", "30", "--tolerance", "400"]).exit_code == 0


def test_a_subject_beside_itself() -> None:
    done = CliRunner().invoke(app, ["compare", "bundled", BUNDLED, "-n", "10"])
    assert done.exit_code == 0, done.output
    assert "worse" in done.output and "needs most more" not in done.output


def test_a_tree_that_plans_wrongly(pinned: trees.Tree, tmp_path: Path) -> None:
    """Every tensor is freed as soon as one reads it: less memory, and wrong."""
    mine, theirs = str(trees.build(pinned)), worse(pinned, tmp_path, FREED_TOO_SOON)
    done = CliRunner().invoke(app, ["compare", mine, theirs, "-n", "10"])
    assert done.exit_code == 1 and "B is wrong" in done.output, done.output
    assert "B is impossible" in done.output and "A is" not in done.output
    said = json.loads(CliRunner().invoke(app, ["compare", mine, theirs, "-n", "10", "--json"]).stdout)
    assert {"P1"} <= {x["clause"] for x in said["broken"]} and said["below the bound"]
    assert {x["side"] for x in said["below the bound"]} == {"b"} and not said["worse"]


def test_figures_by_hand() -> None:
    """Two nodes of 64 bytes that both live: 128 bytes in one chunk; twice as large, and the buffer is made anew."""
    small = Graph((Tensor(64, (), Flag.LEAF | Flag.INPUT), Tensor(64, (0,), Flag.OUTPUT)))
    large = Graph(tuple(replace(t, size=128) for t in small.tensors))
    setup = Setup((BufferType(16),), ((0,),))
    found = compare(BUNDLED, BUNDLED, [Case(setup, (small, large, small), "by hand")])
    assert [p.a for p in found.pairs] == [Need(128, 1), Need(256, 1)]
    assert found.a == {"peak": 384, "chunks": 2, "reallocations": 1} and found.bound == 384


def test_the_bound_holds_for_trees_that_go_in_place_to_another_type(pinned: trees.Tree) -> None:
    graph = Graph((Tensor(64, (), Flag.LEAF | Flag.INPUT), Tensor(64, (0,), Flag.INPLACE | Flag.OUTPUT, 1)))
    setup = Setup((BufferType(16), BufferType(16)), ((0, 1),))
    found = compare(BUNDLED, str(trees.build(pinned)), [Case(setup, (graph,), "by hand")])
    assert (found.a["peak"], found.b["peak"], found.bound) == (128, 64, 64)


def test_no_plan_is_below_the_bound(pinned: trees.Tree) -> None:
    found = compare(BUNDLED, str(trees.build(pinned)), drawn(2, 40))
    assert all(p.a and p.b and p.bound <= min(p.a.peak, p.b.peak) for p in found.both)


def test_what_only_one_can_do_is_told() -> None:
    pair = Pair("x", Graph(()), Need(1, 1), None, 0)
    found = Comparison(pairs=[pair], only_a=["x"])
    assert not found.both and not found.worse(0)


def test_graphs_of_a_replay_file(tmp_path: Path) -> None:
    graph = Graph((Tensor(64, (), Flag.LEAF), Tensor(64, (0,))))
    trace = Trace(Setup((BufferType(16, 512, 64, 4096),), ((0,),)), (graph,), (Op(Kind.NEW),))
    save(Replay("P1", "broken", "", "x", trace, 0, "0"), tmp_path / "r.json")
    (case,) = of_file(tmp_path / "r.json")
    assert case.graphs == (graph,) and case.setup.types == (BufferType(16, 512),)
    assert (
        CliRunner().invoke(app, ["compare", "bundled", "bundled", "-g", str(tmp_path / "r.json")]).exit_code
        == 0
    )


def test_graphs_of_a_dump(tmp_path: Path) -> None:
    (case,) = of_file(good().write(tmp_path / "dump"))
    (graph,) = case.graphs
    assert graph_legal(graph) and [t.size for t in graph.tensors] == [32, 1, 32, 32, 16, 32, 32]
    found = compare(BUNDLED, BUNDLED, [case])
    assert [p.a for p in found.pairs] == [Need(96, 1)]


def test_real_graphs_fit_the_interface(tmp_path: Path) -> None:
    """More sources than a subject takes are read right behind; large sizes are divided."""
    (plan,) = judge(read(good().write(tmp_path / "dump"))).plans
    last = plan.view.graph.tensors[-1]
    many = replace(last, src=(0, 1, 2, 3, 4, 5), size=1 << 30)
    made = subject_graph(Graph((*plan.view.graph.tensors[:-1], many)))
    assert made is not None and graph_legal(made)
    assert len(made.tensors[6].src) == 4 and made.tensors[7].src == (4, 5)
    assert sum(t.size for t in made.tensors) <= 1 << 28


@pytest.mark.parametrize("names", [("bundled", "nothing"), ("nowhere/", "bundled")])
def test_bad_names(names: tuple[str, str]) -> None:
    done = CliRunner().invoke(app, ["compare", *names])
    assert done.exit_code != 0 and "There is no subject" in str(done.exception)


def test_a_file_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("hello")
    done = CliRunner().invoke(app, ["compare", "bundled", "bundled", "-g", str(tmp_path / "f")])
    assert getattr(done.exception, "exit_code", 0) == 2
