"""docs/workflow.yml is a workflow, and its commands do what docs/ci.md says, on a tree with a fault put into it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from gallocheck.native import trees

from ..broken_tree import outputs_are_freed
from ..cli.running import gallocheck
from .running import own_tests

DOCS = Path(__file__).resolve().parents[2] / "docs"
P5 = "test_clause[P5-outputs are kept]"
#: so that it takes seconds
SHORT = ("-k", "P5 or P7 or R6", "--gallocheck-traces", 40, "--gallocheck-seed", 3)


def workflow() -> Any:
    return yaml.safe_load((DOCS / "workflow.yml").read_text())


def commands() -> list[str]:
    """The workflow's shell commands, in order."""
    (job,) = workflow()["jobs"].values()
    return [step["run"].strip() for step in job["steps"] if "run" in step]


@pytest.fixture(scope="module")
def checkouts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as the workflow has it: `before`, the pinned tree, and `tree`, in which outputs are freed."""
    at = tmp_path_factory.mktemp("workflow")
    (at / "before").symlink_to(str(trees.pinned()))
    (at / "tree").symlink_to(outputs_are_freed())
    return at


def test_it_is_a_workflow() -> None:
    found = workflow()
    (job,) = found["jobs"].values()
    assert found["name"] == "gallocheck" and set(found[True]) == {
        "pull_request",
        "push",
    }  # YAML reads `on` as true
    assert all(set(step) <= {"name", "if", "uses", "with", "run"} for step in job["steps"])
    assert all("uses" in step or "run" in step for step in job["steps"])


def test_a_change_with_a_fault_is_red(checkouts: Path) -> None:
    """The pull request's command, cut short: the fault is new, and the page can be made."""
    install, change, as_it_is, page = commands()
    assert install == 'python -m pip install "$GALLOCHECK" pytest-xdist'
    assert workflow()["env"]["GALLOCHECK"].startswith("git+https://")
    assert as_it_is == change.replace("before", "pinned")
    command = shlex.split(change)
    assert command[:3] == ["pytest", "--pyargs", "gallocheck.suite"]
    ran = own_tests(*command[1:], *SHORT, at=checkouts, report="gallocheck.xml", GITHUB_ACTIONS="true")
    assert ran.code == 1 and ran.outcome(P5) == "failure", ran.text
    assert "P5 is broken at operation" in ran.text and "the baseline does not fail here" in ran.text
    assert "::error title=P5 outputs are kept::" in ran.text
    assert ran.outcome("test_clause[R6-shrink after both reserve]") == "skipped"
    replay = re.search(r"replay: gallocheck (replay findings/P5\S+ --subject ggml --source tree)", ran.text)
    assert replay
    done = gallocheck(*shlex.split(replay[1]), at=checkouts)
    assert done.returncode == 1 and "P5 at operation" in done.stdout
    assert gallocheck(*shlex.split(page)[1:], at=checkouts).returncode == 0
    assert (checkouts / "findings" / "report.html").is_file()


def test_the_page_names_the_options_that_there_are(tmp_path: Path) -> None:
    text = (DOCS / "ci.md").read_text()
    named = set(re.findall(r"--gallocheck-[a-z]+", text))
    ran = own_tests("--help", at=tmp_path)
    assert named and named == set(re.findall(r"--gallocheck-[a-z]+", ran.text))
