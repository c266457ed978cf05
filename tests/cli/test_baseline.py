"""--baseline: of what a tree breaks, only what the tree before the change gets past is new."""

from __future__ import annotations

from pathlib import Path

import pytest
from gallocheck.native import trees

from ..broken_tree import outputs_are_freed
from .running import gallocheck


@pytest.fixture(scope="module")
def broken() -> Path:
    """The pinned tree with one fault: outputs are freed like other tensors."""
    return outputs_are_freed()


def check(source: Path, at: Path) -> tuple[int, str]:
    done = gallocheck("check", "P", "--subject", "ggml", "--source", source, "--baseline", "pinned",
                      "--seed", 3, "--traces", 150, "--out", "found", at=at)  # fmt: skip
    return done.returncode, done.stdout


def test_the_fault_of_a_change_is_told_from_those_before_it(broken: Path, tmp_path: Path) -> None:
    code, text = check(broken, tmp_path)
    assert code == 1 and "P5 is broken" in text and "the baseline does not fail here" in text
    assert list((tmp_path / "found").glob("P5-*.json"))


def test_an_unchanged_tree_has_nothing_new(tmp_path: Path) -> None:
    code, text = check(Path(str(trees.pinned())), tmp_path)
    assert code == 0 and "fails as expected (baseline)" in text, text
    assert [path.name for path in (tmp_path / "found").iterdir()] == ["check.json"]  # the record alone


def test_a_baseline_is_for_trees(tmp_path: Path) -> None:
    done = gallocheck("check", "--baseline", "pinned", "--traces", 1, at=tmp_path)
    assert done.returncode in (2, 3) and "--baseline goes with --subject ggml" in done.stderr
