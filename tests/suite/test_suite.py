"""gallocheck.suite as others run it: pytest on a subject, one test an invariant."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from gallocheck.report.runs import load
from gallocheck.spec.clauses import CLAUSES

from ..cli.running import gallocheck
from ..native import toys
from .running import Ran, own_tests, suite

V2 = "test_clause[V2-mapped at the end]"
V1 = "test_clause[V1-address range reserved once]"
SILENT = "test_every_difference_is_decided_by_a_clause"
#: finds planted defect 512, of V2, which nearly every trace of pools shows
DEFECT = ("--gallocheck-defect", 512, "--gallocheck-seed", 1, "--gallocheck-traces", 49)


@pytest.fixture(scope="module")
def red(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ran, Path]:
    """A run that finds a planted defect, as it would be in GitHub's CI."""
    at = tmp_path_factory.mktemp("red")
    return suite(*DEFECT, "-k", "V1 or V2", at=at, GITHUB_ACTIONS="true"), at


def test_every_clause_is_a_test(tmp_path: Path) -> None:
    """Named by id and title; to list them needs no subject."""
    text = suite("--collect-only", "-q", "--gallocheck-source", "nowhere", at=tmp_path).text
    for c in CLAUSES:
        assert f"test_clause[{c.id}-{c.title}]" in text
    assert SILENT in text


def test_a_broken_clause_is_red_and_says_how(red: tuple[Ran, Path]) -> None:
    ran, _ = red
    assert ran.code == 1
    assert [ran.outcome(n) for n in (V2, V1)] == ["failure", "passed"], ran.text
    assert "V2 is broken at operation" in ran.text and " from the pool of device " in ran.text
    assert "freeing goes in reverse order of allocation" in ran.text  # the statement
    assert (
        "seed: 1" in ran.text
        and "Traceback" not in ran.text
        and "suite/" not in ran.text.split("FAILURES")[1]
    )


def test_its_replay_command_replays_it(red: tuple[Ran, Path]) -> None:
    ran, at = red
    command = re.search(r"replay: gallocheck (replay .*)", ran.text)
    assert command
    done = gallocheck(*shlex.split(command[1]), at=at)
    assert done.returncode == 1 and "V2 at operation" in done.stdout, done.stderr


def test_junit_has_what_is_needed_to_repeat_it(red: tuple[Ran, Path]) -> None:
    ran, at = red
    of = ran.properties(V2)
    assert of["clause"] == "V2" and of["seed"] == "1" and int(of["exercised"]) > 0
    assert (at / of["replay"]).is_file()
    assert "replay" not in ran.properties(V1)


def test_github_shows_it_beside_the_change(red: tuple[Ran, Path]) -> None:
    ran, _ = red
    lines = [line for line in ran.text.splitlines() if line.startswith("::error")]
    assert len(lines) == 1
    assert lines[0].startswith("::error title=V2 mapped at the end::V2 is broken at operation ")
    assert "%0A" in lines[0] and "replay: gallocheck replay findings/V2-1-1.json --defect 512" in lines[0]


def test_the_run_can_be_read_as_a_page(red: tuple[Ran, Path]) -> None:
    """`gallocheck report findings` has all that it needs."""
    ran, at = red
    job = load(at / "findings")
    assert [(f.row.clause, f.saved is not None) for f in job.new] == [("V2", True)]
    assert {(c.id, c.verdict) for c in job.record.clauses} == {("V1", "holds"), ("V2", "broken")}
    assert job.options == " --defect 512" and job.record.traces == 49
    assert "as a page: gallocheck report findings" in ran.text


def test_a_project_lists_what_it_expects(tmp_path: Path) -> None:
    """An expected failure is no failure; a clause that holds must leave the list, unless it says `sometimes`."""
    (tmp_path / "known.txt").write_text(
        "# of our fork\n\nV2 # issue 12\nV1# holds by now\nV3 sometimes # rare\n"
    )
    ran = suite(*DEFECT, "-k", "V1 or V2 or V3", "--gallocheck-expected", "known.txt", "-rxX", at=tmp_path)
    assert ran.code == 1
    assert ran.outcome(V2) == "skipped" and "issue 12 (known.txt:3)" in ran.text
    assert ran.outcome(V1) == "failure"
    assert (
        "V1 (address range reserved once) holds, but known.txt:4 expects it to fail (holds by now)"
        in ran.text
    )
    assert "XPASS" in ran.text and "rare (known.txt:5)" in ran.text
    ahead = re.search(
        r"gallocheck: seed 1: first the canaries .* one hunt of 60 s, at most \d+ traces.*", ran.text
    )
    assert ahead and ahead.end() < ran.text.index("test_clauses.py")


def test_a_list_for_more_than_the_subject_does(tmp_path: Path) -> None:
    (tmp_path / "known.txt").write_text("T1 # not there\n")
    of = ("--gallocheck-subject", toys.toy(), "--gallocheck-expected", "known.txt", "--gallocheck-traces", 1)
    ran = suite("-k", "P1-", *of, at=tmp_path)
    assert re.search(r"known.txt:1 names T1, which libtoy\S* is not held to: take the line out", ran.text), (
        ran.text
    )


def test_workers_divide_the_hunt_and_share_what_they_find(tmp_path: Path) -> None:
    """Each has a seed of its own; the clause is red on whichever worker its test runs."""
    ran = suite(*DEFECT, "-k", "V1 or V2", "-n", 2, at=tmp_path)
    assert ran.code == 1 and [ran.outcome(n) for n in (V2, V1)] == ["failure", "passed"], ran.text
    traces = re.search(r"operations in (\d+) traces, seed 1", ran.text)
    assert traces and int(traces[1]) == 50  # 49 in two equal shares


def test_one_worker_with_a_test_hunts_for_all(tmp_path: Path) -> None:
    ran = suite("-k", "decided", "--gallocheck-traces", 4, "--gallocheck-seed", 1, "-n", 2, at=tmp_path)
    assert "in 4 traces" in ran.text and "2/2 workers" in ran.text
    assert ran.code == 0 and ran.outcome(SILENT) == "passed"


def test_what_was_not_exercised_is_not_green(tmp_path: Path) -> None:
    """One trace is never about every layer."""
    ran = suite("-m", "Q or T", "--gallocheck-traces", 1, "--gallocheck-seed", 1, at=tmp_path)
    assert ran.code == 1
    assert re.search(
        r"\w+ \(.*\) was not exercised in \d+ operations \(seed 1\): give it more time", ran.text
    )


def test_what_is_expected_to_fail_must_be_looked_at(tmp_path: Path) -> None:
    """Not exercised is no failure that was expected, unless the line says sometimes."""
    (tmp_path / "known.txt").write_text("S4 # never\nT1 sometimes # rare\n")
    ran = suite("-k", "S4 or T1", "--gallocheck-traces", 1, "--gallocheck-seed", 1, "--gallocheck-expected", "known.txt",
                at=tmp_path)  # fmt: skip
    assert ran.code == 1 and re.search(r"1 failed, .*1 xfailed", ran.text), ran.text
    assert re.search(r"^S4 \(.*\) was not exercised", ran.text, re.M)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--gallocheck-source", "nowhere"), "nowhere is not a directory; name a checkout of ggml"),
        (("--gallocheck-subject", "mine"), "There is no subject 'mine'"),
        (("--gallocheck-expected", "none.txt"), "none.txt cannot be read"),
        (("--gallocheck-expected", "bad.txt"), "bad.txt:1 is no expected failure ('R6 - R7')"),
        (("--gallocheck-expected", "unknown.txt"), "unknown.txt:1 names QQ7, which is no clause"),
        (("--gallocheck-time", "soon"), "The time 'soon' makes no sense"),
        (("--gallocheck-traces", "0"), "--gallocheck-traces 0 is no number of traces"),
        (
            ("--gallocheck-baseline", "pinned"),
            "--gallocheck-baseline goes with the subjects ggml, ggml-res",
        ),
    ],
    ids=lambda x: x[0] if isinstance(x, tuple) else "",
)
def test_bad_input_is_one_sentence(tmp_path: Path, options: tuple[str, ...], says: str) -> None:
    (tmp_path / "bad.txt").write_text("R6 - R7\n")
    (tmp_path / "unknown.txt").write_text("QQ7 # a slip\n")
    is_one_sentence(suite(*options, at=tmp_path), says)


def test_a_selection_of_nothing_that_can_be_checked_is_not_green(tmp_path: Path) -> None:
    ran = suite("-m", "V or Q", "--gallocheck-subject", toys.toy(), at=tmp_path)
    assert ran.code == 4 and "offers nothing that V1, V2" in ran.text and "Traceback" not in ran.text, (
        ran.text
    )


def test_with_workers_too(tmp_path: Path) -> None:
    is_one_sentence(
        suite("--gallocheck-source", "nowhere", "-n", 2, at=tmp_path), "nowhere is not a directory"
    )


def is_one_sentence(ran: Ran, says: str) -> None:
    assert ran.code == 4
    told = [line for line in ran.text.splitlines() if "gallocheck: " in line]
    assert len(told) == 1 and says in told[0], ran.text
    assert "Traceback" not in ran.text and not ran.cases


def test_a_run_of_other_tests_is_left_alone(tmp_path: Path) -> None:
    """The plugin is there wherever gallocheck is installed: it imports nothing heavy and says nothing."""
    (tmp_path / "test_mine.py").write_text(
        "import sys\ndef test_light():\n"
        "    ours = {m for m in sys.modules if m.startswith('gallocheck.')}\n"
        "    assert ours <= {'gallocheck.suite', 'gallocheck.suite.plugin'}\n"
        "    assert 'msgspec' not in sys.modules and 'numpy' not in sys.modules\n"
    )
    ran = own_tests("--strict-markers", at=tmp_path)
    assert ran.code == 0 and ran.outcome("test_light") == "passed", ran.text
    assert "gallocheck:" not in ran.text
