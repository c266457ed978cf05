"""`gallocheck mutate` as a user runs it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from gallocheck.cli import main
from gallocheck.fuzz.mutants.display import line
from gallocheck.fuzz.mutants.run import State

from tests.cli.running import gallocheck


def test_the_list(tmp_path: Path) -> None:
    done = gallocheck("mutate", "--file", "buffer.cpp", "--list", at=tmp_path)
    assert done.returncode == 0 and not list(tmp_path.iterdir()), done
    entry = "  drop a reset\n  - b = {};\n  + ;\n"
    assert entry in done.stdout and "buffer.cpp:" in done.stdout
    few = gallocheck("mutate", "--file", "buffer.cpp", "--list", "--limit", 2, at=tmp_path)
    assert few.stdout.splitlines()[-1].startswith("2 of ")


BAD = (
    (("--file", "planer.cpp"), ("planer.cpp", "planner.cpp")),
    (("--file", "../driver/card.cpp"), ("../driver/card.cpp", "name one of")),
    (("--subject", "libx.so"), ("libx.so", "has no source")),
    (("--source", "/tmp"), ("--source /tmp", "--subject ggml")),
    (("--subject", "ggml", "--source", "/dev"), ("/dev", "no ggml tree")),
    (("--time", "soon"), ("'soon'",)),
    (("--out", "/dev/null/x"), ("/dev/null/x", "--out")),
)


@pytest.mark.parametrize(("args", "words"), BAD)
def test_bad_input_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    args: tuple[str, ...],
    words: tuple[str, ...],
) -> None:
    monkeypatch.setattr(sys, "argv", ["gallocheck", "mutate", *args])
    with pytest.raises(SystemExit) as ended:
        main.run()
    (text,) = capsys.readouterr().err.strip().splitlines()
    assert ended.value.code == 2 and text.startswith("gallocheck: "), text
    assert all(word in text for word in words), text


def test_a_line_of_progress() -> None:
    assert line(State(10)).endswith("time left not known yet")
    state = State(all=10, done=6, now=4, killed=3, survived=1, ran_s=60.0)
    assert line(state) == "6/10 mutants, 4.0 a minute, 3 killed, 1 survived, 1 min 0 s left"
