"""gallocheck report, replay --plot and replay --step as a user runs them."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fcntl import ioctl
from pathlib import Path
from xml.etree import ElementTree

import pytest
from gallocheck.cli.main import run
from gallocheck.report.record import write

from tests.cli.running import command, environment, gallocheck

from .samples import file_of, job_of, kept

R3 = ("--defect", 51)


def test_a_check_and_its_report(tmp_path: Path) -> None:
    """A red check leaves all that its page is made of."""
    done = gallocheck("check", "P11", "--defect", 25, "--traces", 12, "--seed", 3, at=tmp_path)
    assert done.returncode == 1 and "gallocheck report findings" in done.stdout
    record = json.loads((tmp_path / "findings" / "check.json").read_text())
    assert record["command"][:3] == ["gallocheck", "check", "P11"] and record["ended"] and record["seed"] == 3
    assert record["samples"] and record["canaries"] == 1
    assert record["findings"] and {f["clause"] for f in record["findings"]} == {"P11"}
    done = gallocheck("report", "findings", "-o", "page", at=tmp_path)
    assert done.returncode == 0 and done.stdout.startswith("page/report.html: "), done.stderr
    text = (tmp_path / "page" / "report.html").read_text()
    assert text.count('<details class="finding') == len(record["findings"])
    assert "<svg" in text and "The subject&#39;s memory" in text and "requirement is the highest end" in text
    assert "gallocheck replay findings/P11-3-1.json --defect 25" in text


Ran = tuple[int, str, str]  #: exit code, stdout, stderr


@pytest.fixture()
def here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ran]:
    """The command in this process, in the folder tmp_path."""
    monkeypatch.chdir(tmp_path)

    def ran(*args: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["gallocheck", *map(str, args)])
        with pytest.raises(SystemExit) as ended:
            run()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return ran


def test_the_report_of_one_failure(tmp_path: Path, here: Callable[..., Ran]) -> None:
    code, _, err = here("report", file_of(51), *R3, "-o", ".")
    page = tmp_path / f"{file_of(51).stem}.html"
    assert code == 0 and page.is_file(), err
    assert "R3 is broken at operation 5" in page.read_text()


def test_a_page_by_its_name(tmp_path: Path, here: Callable[..., Ran]) -> None:
    code, said, err = here("report", file_of(51), *R3, "-o", "new/x.html")
    assert code == 0 and said.startswith("new/x.html: ") and (tmp_path / "new" / "x.html").is_file(), err


def test_a_record_names_no_code_to_run(
    tmp_path: Path, here: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library or a tree is run where the command line names it, never because a file does."""

    def never(*_: object) -> None:
        raise AssertionError("it was about to be run")

    monkeypatch.setattr("gallocheck.cli.report.find", never)
    for named, source in (("./mine.so", ""), ("ggml", "tree")):
        job = job_of(tmp_path, (51,))
        job.record.subject.named, job.record.subject.source, job.record.subject.defect = named, source, 0
        write(job.record, tmp_path)
        (tmp_path / file_of(51).name).write_bytes(file_of(51).read_bytes())
        code, said, _ = here("report", ".")
        assert code == 0 and f"name it again with --subject {named}" in said


def test_a_subject_that_is_not_there(tmp_path: Path, here: Callable[..., Ran]) -> None:
    """The model's side is shown, and why; a subject that is named must be there."""
    job = job_of(tmp_path, (51,))
    job.record.subject.named, job.record.subject.defect = "gone.so", 0
    write(job.record, tmp_path)
    (tmp_path / file_of(51).name).write_bytes(file_of(51).read_bytes())
    code, said, _ = here("report", ".")
    assert code == 0 and "the model's side alone" in said and "gone.so" in said
    text = (tmp_path / "report.html").read_text()
    assert "It was not run again here: to run them on the subject, name it again" in text
    assert "The same by the model" in text and "The subject&#39;s memory" not in text
    code, _, err = here("report", ".", "--subject", "gone.so")
    assert code == 2 and "gone.so" in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("report", "nothing"), "nothing is not there"),
        (("report", "."), "holds no check"),
        (("report", "broken.json"), "is not JSON"),
        (("report", file_of(51), "-o", "broken.json"), "broken.json cannot hold a report"),
        (("replay", file_of(51), "--plot", "out.png"), "name one that ends in .svg"),
        (("replay", file_of(51), "--plot", "no/such/out.svg"), "name a file in a folder that is there"),
    ],
)
def test_bad_input_is_one_sentence(
    tmp_path: Path, here: Callable[..., Ran], args: tuple[object, ...], says: str
) -> None:
    (tmp_path / "broken.json").write_text("nothing of this kind")
    code, _, err = here(*args)
    assert code == 2 and says in err and err.count("\n") == 1, err
    assert [p.name for p in tmp_path.iterdir()] == ["broken.json"]


def test_a_plot(tmp_path: Path, here: Callable[..., Ran]) -> None:
    code, said, _ = here("replay", file_of(51), *R3, "--plot", "out.svg")
    assert code == 1 and "out.svg: R3 is broken at operation 5" in said
    root = ElementTree.fromstring((tmp_path / "out.svg").read_text())
    assert len([e for e in root if e.tag.endswith("svg")]) >= 2
    code, said, _ = here("replay", file_of(51), "--plot", "right.svg")
    assert code == 0 and "does not fail here any more" in said


# -- step by step ------------------------------------------------------------------------


def test_without_a_terminal_all_steps_are_printed(tmp_path: Path) -> None:
    done = gallocheck("replay", file_of(51), *R3, "--step", at=tmp_path, PYTHONIOENCODING="utf-8")
    assert done.returncode == 1
    steps = re.findall(r"^step (\d+) of 5 ", done.stdout, re.M)
    assert steps == list("012345")
    assert "<- it fails here" in done.stdout and "R3 is broken: type 1: at least the maximum" in done.stdout
    assert "differs: bytes in use: 0, 4 by the model, 0, 2 by the subject" in done.stdout
    last = done.stdout[done.stdout.rindex("step 5") :]
    assert (
        "memory of the subject" in last and "memory of the model" in last and "owner 0 and borrower 1" in last
    )
    assert "memory of model and subject" in done.stdout, "where they are the same they are shown once"
    assert max(map(len, done.stdout.splitlines())) <= 250


def test_characters_of_a_plain_terminal(tmp_path: Path) -> None:
    done = gallocheck("replay", file_of(1), "--defect", 1, "--step", at=tmp_path, PYTHONIOENCODING="ascii")
    assert done.returncode == 1 and done.stdout.isascii()
    assert re.search(r"\|#+t0#+\|", done.stdout) and re.search(r"\^{10,}", done.stdout)
    assert re.search(r"x t0 and t2 share bytes 0 to 1", done.stdout)


class Terminal:
    """A command on a terminal of 100 columns."""

    def __init__(self, *args: object, at: Path, rows: int = 30) -> None:
        self.ours, theirs = pty.openpty()
        ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 100, 0, 0))
        before = termios.tcgetattr(theirs)
        env = {
            **environment(TERM="xterm-256color"),
            "LINES": str(rows),
            "COLUMNS": "100",
            "PYTHONIOENCODING": "utf-8",
        }
        self.process = subprocess.Popen(
            command(*args),
            cwd=at,
            env=env,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        self.theirs, self.before = theirs, before
        self.text = ""

    def until(self, pattern: str, seconds: float = 60) -> str:
        """Waits until what was shown since the last call has it, and returns that."""
        end = time.monotonic() + seconds
        while not re.search(pattern, plain(self.text)):
            left = end - time.monotonic()
            assert left > 0, f"{pattern!r} is not shown, but: {plain(self.text)[-2000:]}"
            if select.select([self.ours], [], [], min(left, 0.2))[0]:
                self.text += os.read(self.ours, 1 << 16).decode(errors="replace")
        shown, self.text = plain(self.text), ""
        return shown

    def press(self, keys: bytes) -> None:
        os.write(self.ours, keys)


def plain(text: str) -> str:
    """Without what moves the cursor and colours."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


@contextmanager
def terminal(*args: object, at: Path, rows: int = 30) -> Iterator[Terminal]:
    opened = Terminal(*args, at=at, rows=rows)
    try:
        yield opened
    finally:
        opened.process.kill()
        opened.process.wait()
        os.close(opened.ours)
        os.close(opened.theirs)


def test_walking_on_a_terminal(tmp_path: Path) -> None:
    """It begins at the failure; every key goes where it says; q gives the terminal back as it was."""
    with terminal("replay", file_of(51), *R3, "--step", at=tmp_path) as t:
        shown = t.until(r"step 5 of 5 [\s\S]*quit")
        assert "R3 is broken" in shown and "it fails here" in shown and "right n next" in shown
        for keys, step in (
            (b"\x1b[D", 4), (b"p", 3), (b"\x1b[H", 0), (b"p", 0), (b"\x1b[C", 1), (b"n", 2), (b"\x1b[F", 5),
            (b"n", 5), (b"3", 3), (b"\x1bOH", 0), (b"\x1b[4~", 5), (b"x", 5),
        ):  # fmt: skip
            t.press(keys)
            shown = t.until(rf"step {step} of 5 [\s\S]*quit")
        t.press(b"q")
        assert t.process.wait(timeout=20) == 1
        assert termios.tcgetattr(t.theirs)[3] == t.before[3], "keys are echoed again"


def test_a_number_of_two_digits_and_scrolling(tmp_path: Path) -> None:
    """A number goes to that step; what is higher than the terminal scrolls."""
    steps = len(kept(704).trace.ops)
    with terminal("replay", file_of(704), "--defect", 704, "--step", at=tmp_path, rows=8) as t:
        last = int(re.search(r"step (\d+) of", t.until(r"step \d+ of \d+ [\s\S]*quit"))[1])  # type: ignore[index]
        assert last < steps
        t.press(b"12")
        t.until(r"step 12 of [\s\S]*quit")
        t.press(b"\x1b[B")
        assert "step 12 of" not in t.until(r"q quit"), "the first line has scrolled away"
        t.press(b"\x1b[A")
        t.until(r"step 12 of [\s\S]*quit")
        t.press(b"q")
        assert t.process.wait(timeout=20) == 1
