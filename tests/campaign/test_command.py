"""`gallocheck fuzz` as a user runs it: what it prints, how it ends, how it goes on."""

from __future__ import annotations

import io
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from gallocheck.fuzz.campaign.display import Display, line, span
from gallocheck.fuzz.campaign.state import State
from gallocheck.fuzz.campaign.store import NAME, Store

from tests.cli.running import command, environment, gallocheck
from tests.cli.test_stopping import gone, subjects
from tests.native import toys

from .processes import come

SMALL = ("--seed", 1, "--jobs", 2, "--batch-ops", 150, "--shrink-time", "0.2s")


@contextmanager
def fuzzing(at: Path, *args: object) -> Iterator[subprocess.Popen[str]]:
    """A campaign of an hour that has committed a batch."""
    process = subprocess.Popen(
        command("fuzz", "--time", "1h", *SMALL, *args),
        cwd=at, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        end = time.monotonic() + 60
        while not come(at) and time.monotonic() < end:
            time.sleep(0.05)
        yield process
    finally:
        process.kill()
        process.wait()


def without_canaries(at: Path) -> None:
    """They are found once a campaign; this one's are taken for found, which saves seconds."""
    with Store(at / "corpus") as store:
        store.note("canaries", 1)


def one_sentence(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 2 and "Traceback" not in done.stdout + done.stderr, done
    (text,) = done.stderr.strip().splitlines()
    assert text.startswith("gallocheck: ") and all(word in text for word in words), text


def test_ctrl_c_then_on_then_what_it_refuses(tmp_path: Path) -> None:
    """A campaign is stopped, goes on, and is no other campaign's."""
    without_canaries(tmp_path)
    with fuzzing(tmp_path, "--defect", 1, "--batches", 1000) as process:
        below = subjects(process.pid)
        one_sentence(gallocheck("fuzz", *SMALL, "--defect", 1, at=tmp_path), "corpus", "in use")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode in (0, 1) and "Traceback" not in err, err
    assert "stopped by Ctrl-C: the same command goes on" in out and gone(below)
    assert "0 batches, corpus 0" in err, "one plain line at once, as it is no terminal"
    before = come(tmp_path)
    done = gallocheck("fuzz", *SMALL, "--defect", 1, "--batches", before + 3, at=tmp_path)
    assert done.returncode == 1 and "goes on after" in done.stdout and "canaries" not in done.stdout, done
    assert come(tmp_path) >= before + 3
    replays = [x.split() for x in done.stdout.splitlines() if x.startswith("  gallocheck replay ")]
    assert replays and sorted(Path(r[2]).name for r in replays) == sorted(
        p.name for p in (tmp_path / "findings").iterdir()
    )
    assert gallocheck(*replays[0][1:], at=tmp_path).returncode == 1, "the command shows it again"
    for args, words in (
        ((), ("another subject", "planted", "bundled")),
        (("--defect", 1, "--seed", 2), ("another seed (1, now 2)",)),
    ):
        one_sentence(gallocheck("fuzz", *SMALL, *args, at=tmp_path), "corpus", *words)
    (tmp_path / "corpus" / NAME).write_text("a diary" * 999)
    one_sentence(gallocheck("fuzz", *SMALL, "--defect", 1, at=tmp_path), NAME, "move it away")


def test_until_failure_and_the_time_of_all_runs(tmp_path: Path) -> None:
    done = gallocheck("fuzz", *SMALL, "--defect", 1, "--time", "90s", "--until-failure", at=tmp_path)
    assert done.returncode == 1 and "findings" in done.stdout and "canaries" in done.stdout, done
    with Store(tmp_path / "corpus") as store:
        spent = store.counts["spent_ms"]
        assert spent < 80_000 and store.waiting() >= 0 and store.findings()
        store.spend(90.0)
    done = gallocheck("fuzz", *SMALL, "--defect", 1, "--time", "90s", at=tmp_path)
    assert done.returncode == 1 and "has had its time" in done.stdout, done


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--corpus", "taken"), ("taken cannot hold a campaign", "--corpus")),
        (("--out", "taken"), ("taken cannot hold replay files", "--out")),
        (("--time", "soon"), ("'soon'", "30s")),
        (("--shrink-time", "0s"), ("'0s'",)),
        (("--subject", "cuda"), ("'cuda'",)),
        (("--source", "."), ("--source .",)),
        (("--defect", 9999), ("9999",)),
    ],
)
def test_bad_input(tmp_path: Path, args: tuple[object, ...], words: tuple[str, ...]) -> None:
    (tmp_path / "taken").write_text("a file")
    one_sentence(gallocheck("fuzz", *args, at=tmp_path), *words)
    assert [p.name for p in tmp_path.iterdir()] == ["taken"]


def test_a_subject_that_cannot_be_used(tmp_path: Path) -> None:
    done = gallocheck("fuzz", "--subject", toys.toy("-DTOY_ABI=99"), at=tmp_path)
    assert done.returncode == 3 and "version 99" in done.stderr and len(done.stderr.splitlines()) == 1


# -- the display ---------------------------------------------------------------------------


def state(ran_s: float, **more: object) -> State:
    usual: dict = {
        "spent_s": 100 + ran_s, "ran_s": ran_s, "left_s": 28_800 - ran_s, "operations": 5000, "done_now": int(100 * ran_s),
        "batches": 7, "left_batches": None, "corpus": 3, "coverage": {"behaviours": 9, "edges": 4},
        "findings": {"R6": 2, "": 1}, "waiting": 1, "skipped": 0, "busy": 2,
    }  # fmt: skip
    return State(**{**usual, **more})


def test_a_plain_line_a_minute() -> None:
    out = io.StringIO()
    with Display(out) as display:
        for tenth in range(1, 1300):
            display.show(state(tenth / 10))
    lines = out.getvalue().splitlines()
    assert [x.split(":")[0] for x in lines] == ["1 min 40 s", "2 min 40 s", "3 min 40 s"]
    assert lines[1] == line(state(60.1)) == (
        "2 min 40 s: 5000 operations, 100/s, 7 batches, corpus 3, coverage 9 behaviours, 4 edges,"
        " failures R6 2, undecided 1, 7 h 58 min left"
    )  # fmt: skip


def test_a_live_table_on_a_terminal() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    out = Terminal()
    with Display(out) as display:
        for second in range(1, 40):
            display.show(state(second, done_now=100 * second if second < 20 else 1900 + 300 * (second - 19)))
        assert len(display.past) < 20, "bounded, however long it runs"
        assert display.rate(state(40, done_now=1900 + 300 * 21)) == pytest.approx(300)
    text = out.getvalue()
    for word in (
        "operations",
        "corpus",
        "9 behaviours, 4 edges",
        "R6 2",
        "1 to be made small",
        "left",
        "2 jobs",
    ):
        assert word in text


def test_durations() -> None:
    assert [span(s) for s in (0.4, 59.9, 61, 3599, 28_799)] == [
        "0 s", "59 s", "1 min 1 s", "59 min 59 s", "7 h 59 min",
    ]  # fmt: skip
