"""`gallocheck plan`: exit codes, the table, JSON, the picture, and files that are none."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from gallocheck.cli.main import app
from gallocheck.fuzz.dump.lines import DumpError, read
from typer.testing import CliRunner

from tests.plan.dumps import Maker, good
from tests.plan.test_judge import BROKEN


def test_a_good_dump(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["plan", str(good().write(tmp_path / "d"))])
    assert done.exit_code == 0, done.output
    assert "2 binds of 1 plans, 2 computations" in done.output
    assert "broken" not in done.output and "not exercised" in done.output


def test_json_and_picture_of_a_broken_one(tmp_path: Path) -> None:
    dump = BROKEN["c lies on b, which its view still shows"][1].write(tmp_path / "d")
    done = CliRunner().invoke(app, ["plan", str(dump), "--json", "--plot", str(tmp_path / "p.svg")])
    assert done.exit_code == 1
    said = json.loads(done.stdout)
    assert [c["clause"] for c in said["clauses"] if c["broken"]] == ["P7"]
    assert said["findings"][0]["line"] == 8
    (plan,) = said["plans"]
    assert plan["peak"] == [64] and plan["bound"] == plan["minimum"] == [96]
    drawn = ElementTree.fromstring((tmp_path / "p.svg").read_text())
    assert drawn.tag.endswith("svg") and "share bytes" in (tmp_path / "p.svg").read_text()


def test_nothing_to_judge(tmp_path: Path) -> None:
    assert CliRunner().invoke(app, ["plan", str(Maker().write(tmp_path / "d"))]).exit_code == 3


def test_a_line_that_is_cut_off_is_left_out(tmp_path: Path) -> None:
    whole = good().write(tmp_path / "d").read_bytes()
    (tmp_path / "d").write_bytes(whole[:-7])
    done = CliRunner().invoke(app, ["plan", str(tmp_path / "d")])
    assert done.exit_code == 0 and "the last line is not whole" in done.output


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda rows: rows[:0], "does not start with its first line"),
        (lambda rows: [{**rows[0], "version": 2}, *rows[1:]], "of version 2; this gallocheck reads"),
        (lambda rows: [*rows, {"line": "free", "buffer": 77}], "buffer 77 was not told of before"),
        (lambda rows: [*rows, {"line": "compute", "compute": 3, "by": "sched", "graph": 0, "places": []}],
         "there are 0 places for 7 tensors"),
        (lambda rows: [*rows, {"line": "free", "buffer": -1}], "Expected `int` >= 0"),
        (lambda rows: [*rows, {"line": "free"}], "missing required field `buffer`"),
        (lambda rows: [*rows, {"line": "dance"}], "Invalid value 'dance'"),
        (lambda rows: [{**r, "leafs": [99]} if r["line"] == "graph" else r for r in rows], "a leaf is no tensor"),
    ],
)  # fmt: skip
def test_bad_files_are_one_sentence(tmp_path: Path, change: object, says: str) -> None:
    maker = good()
    maker.rows = change(maker.rows)  # type: ignore[operator]
    done = CliRunner().invoke(app, ["plan", str(maker.write(tmp_path / "d"))])
    assert done.exit_code != 0 and done.exception is not None
    assert says in str(done.exception) and "\n" not in str(done.exception)
    assert getattr(done.exception, "exit_code", 0) == 2


def test_where_the_hook_is() -> None:
    done = CliRunner().invoke(app, ["plan", "--hook"])
    assert done.exit_code == 0 and (Path(done.stdout.strip()) / "gallocheck_hook.c").is_file()
    assert "or --hook" in str(CliRunner().invoke(app, ["plan"]).exception)


def test_no_file_and_no_text(tmp_path: Path) -> None:
    (tmp_path / "d").write_bytes(b"\xff\xfe\n")
    for path in (tmp_path / "none", tmp_path / "d"):
        done = CliRunner().invoke(app, ["plan", str(path)])
        assert getattr(done.exception, "exit_code", 0) == 2


@pytest.mark.parametrize(
    ("format_", "says"), [("replay", "`gallocheck replay "), ("check", "`gallocheck report ")]
)
def test_another_file_of_gallochecks(tmp_path: Path, format_: str, says: str) -> None:
    """A replay file or a check's record is told from a dump, with the command that reads it."""
    (tmp_path / "d").write_text(json.dumps({"format": f"gallocheck {format_}"}, indent=1) + "\n")
    with pytest.raises(DumpError, match=f"is a {format_} file, no dump of gallocheck's hook: {says}"):
        read(tmp_path / "d")


def test_where_no_picture_can_be(tmp_path: Path) -> None:
    """Refused before anything is judged, and by the option that plan has."""
    dump = str(good().write(tmp_path / "d"))
    for plot in ("/dev/full", str(tmp_path), str(tmp_path / "none" / "p.svg"), str(tmp_path / "p.png")):
        done = CliRunner().invoke(app, ["plan", dump, "--plot", plot])
        assert getattr(done.exception, "exit_code", 0) == 2 and not done.output
        assert str(done.exception).startswith(f"--plot {plot}") and "--out" not in str(done.exception)
