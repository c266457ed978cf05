"""The whole check as a fuzz target: by hand, by Hypothesis, and by the peers that are installed."""

from __future__ import annotations

import importlib.util
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import gallocheck
import pytest
from gallocheck.fuzz import target
from gallocheck.fuzz.generate import legal
from gallocheck.fuzz.target import BytesDraw, CheckFailed, fuzz_one_input, trace_of
from gallocheck.model.records import Cap

HERE = Path(__file__).parent
ALL = Cap(32635)


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The target's subject has planted defect 1 (P1: live tensors overlap)."""
    monkeypatch.setenv("GALLOCHECK_DEFECT", "1")
    target.subject.cache_clear()
    yield
    target.subject().close()
    target.subject.cache_clear()


def test_bytes_are_choices() -> None:
    draw = BytesDraw(bytes([7, 255, 1, 2, 0, 255]))
    assert draw.integer(0, 9) == 7 and draw.integer(3, 3) == 3 and draw.integer(10, 20) == 10 + 255 % 11
    assert draw.integer(0, 1000) == (1 + 2 * 256) % 1001
    assert not draw.boolean(0.5) and draw.boolean(0.01) and not draw.boolean(0)


def test_short_inputs_are_whole_traces() -> None:
    """What comes after the bytes follows from them, and is not always the same choice: that would never end."""
    draws = [BytesDraw(data) for data in (b"", b"", b"a", b"a")]
    choices = [[d.integer(0, 1 << 40), d.choice(range(99)), d.boolean(0.5)] for d in draws]
    assert choices[0] == choices[1] != choices[2] == choices[3]
    assert len({BytesDraw(bytes([n])).integer(0, 999) for n in range(50)}) > 40


def test_any_bytes_are_a_trace_and_the_same_each_time() -> None:
    rng = random.Random(1)
    inputs = [rng.randbytes(n % 300) for n in range(200)]
    traces = [trace_of(data, ALL) for data in inputs]
    assert traces == [trace_of(data, ALL) for data in inputs]
    assert sum(map(legal, traces)) >= 195 and len(set(traces)) > 150 and len(trace_of(b"", ALL).ops) >= 3
    assert len({op.kind for t in traces for op in t.ops}) > 20


def test_the_bundled_allocator_passes() -> None:
    rng = random.Random(2)
    for _ in range(25):
        fuzz_one_input(rng.randbytes(400))


def test_a_failure_says_what_and_where(planted: None) -> None:
    rng = random.Random(3)
    with pytest.raises(CheckFailed) as failed:
        for _ in range(300):
            fuzz_one_input(rng.randbytes(400))
    text = str(failed.value)
    assert re.match("P1: |P8: ", text) and "overlaps" in text and "graph 0:" in text and "  0. " in text


def test_hypothesis_own_protocol(planted: None) -> None:
    """Hypothesis hands bytes to its tests, too; a failing input is kept in its database."""
    from gallocheck.fuzz.examples import whole
    from hypothesis import given, settings
    from hypothesis.database import InMemoryExampleDatabase

    database = InMemoryExampleDatabase()
    check = settings(database=database, deadline=None)(
        given(trace=whole())(lambda trace: target.check(trace))
    )
    rng = random.Random(4)
    one_input = check.hypothesis.fuzz_one_input  # type: ignore[attr-defined]
    with pytest.raises(CheckFailed):
        for _ in range(1000):
            one_input(rng.randbytes(2000))
    assert database.data


def environment(folder: Path) -> dict[str, str]:
    path = os.pathsep.join([str(Path(next(iter(gallocheck.__path__))).parent), *filter(None, sys.path)])
    return {**os.environ, "PYTHONPATH": path, "GALLOCHECK_DEFECT": "1", "GALLOCHECK_CORPUS": str(folder)}


def missing(*modules: str) -> str:
    """Which of them are not installed, for the reason of a skip."""
    gone = [m for m in modules if importlib.util.find_spec(m) is None]
    return f"{', '.join(gone)} not installed: pip install it to try this peer" if gone else ""


@pytest.mark.skipif(bool(missing("atheris")), reason=missing("atheris"))
def test_atheris(tmp_path: Path) -> None:
    """The command of docs/campaigns.md; it finds the planted defect."""
    command = [
        sys.executable,
        "-m",
        "gallocheck.fuzz.target",
        "-seed=1",
        "-len_control=0",
        "-runs=500",
        str(tmp_path),
    ]
    done = subprocess.run(
        command, env=environment(tmp_path), cwd=tmp_path, capture_output=True, text=True, timeout=100
    )
    assert done.returncode and re.search("P1: |P8: ", done.stdout + done.stderr), done.stderr[-2000:]
    assert list(tmp_path.glob("crash-*"))


@pytest.mark.skipif(bool(missing("hypofuzz")), reason=missing("hypofuzz"))
def test_hypofuzz(tmp_path: Path) -> None:
    """The command of docs/campaigns.md; the planted defect lies in the example database soon."""
    shutil.copy(HERE / "test_whole_check.py", tmp_path)
    command = ["hypothesis", "fuzz", "--no-dashboard", "-n", "1", "--", "test_whole_check.py"]
    fuzzer = subprocess.Popen(command, env=environment(tmp_path), cwd=tmp_path, start_new_session=True)
    try:
        end = time.monotonic() + 60
        while time.monotonic() < end and not list(tmp_path.glob(".hypothesis/examples/*/*")):
            assert fuzzer.poll() is None, "it ended by itself"
            time.sleep(0.5)
    finally:
        os.killpg(fuzzer.pid, signal.SIGKILL)
        fuzzer.wait()
    assert list(tmp_path.glob(".hypothesis/examples/*/*"))
