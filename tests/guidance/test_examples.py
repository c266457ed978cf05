"""What was kept or found is replayed first: by the stateful tests, and by Hypothesis from its database."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from gallocheck.fuzz import examples, kept, replay, target
from gallocheck.fuzz.examples import ExampleError, remember, whole_check, with_kept
from gallocheck.fuzz.kept import KeptError, packed, unpacked
from gallocheck.fuzz.replay import Replay
from gallocheck.model.records import BufferType, Flag, Graph, Kind, Op, OpFlag, Setup, Tensor, Trace
from hypothesis import settings
from hypothesis.database import DirectoryBasedExampleDatabase, ExampleDatabase

from tests.machines import AllocatorMachine, fits, replaying

GRAPH = Graph((Tensor(64, flags=Flag.LEAF | Flag.INPUT), Tensor(64, (0,), flags=Flag.OUTPUT)))
TRACE = Trace(
    Setup((BufferType(),), ((0,),)), (GRAPH,), tuple(map(Op, (Kind.NEW, Kind.RESERVE, Kind.ALLOC, Kind.FREE)))
)


def saved(folder: Path, trace: Trace, name: str = "P1-1-1.json") -> Path:
    folder.mkdir(exist_ok=True)
    replay.save(Replay("P1", "broken", "it is broken", "bundled", trace, 0, "0"), folder / name)
    return folder


def seen_by(test: object, monkeypatch: pytest.MonkeyPatch, failing: Trace | None = None) -> list[Trace]:
    """The traces that a run of the Hypothesis test checks, in order; `failing` fails."""
    seen: list[Trace] = []

    def check(trace: Trace) -> None:
        seen.append(trace)
        assert trace != failing, "as planted"

    monkeypatch.setattr(target, "check", check)
    if failing is None:
        test()  # type: ignore[operator]
    else:
        with pytest.raises(AssertionError, match="as planted"):
            test()  # type: ignore[operator]
    return seen


def using(database: ExampleDatabase) -> object:
    """The whole check with that database, under the same name in it."""
    test = whole_check
    before = test._hypothesis_internal_use_settings  # type: ignore[attr-defined]

    def run() -> None:
        test._hypothesis_internal_use_settings = settings(before, database=database, max_examples=20)  # type: ignore[attr-defined]
        try:
            test()  # type: ignore[call-arg]
        finally:
            test._hypothesis_internal_use_settings = before  # type: ignore[attr-defined]

    return run


def test_packed_traces_come_back() -> None:
    assert unpacked(packed(TRACE)) == TRACE and len(packed(TRACE)) < 400
    assert unpacked(b"") is None and unpacked(b"nonsense") is None and unpacked(packed(TRACE)[:40]) is None
    illegal = Trace(TRACE.setup, TRACE.graphs, (Op(Kind.NEW, other=3),))
    assert unpacked(packed(illegal)) is None


def test_hypothesis_replays_what_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """First of all; and goes on to keep it while it fails. What does not fail any more is forgotten."""
    database = DirectoryBasedExampleDatabase(str(tmp_path / "examples"))
    assert seen_by(using(database), monkeypatch)[0] != TRACE
    remember(TRACE, database)
    assert seen_by(using(database), monkeypatch, failing=TRACE)[0] == TRACE
    assert seen_by(using(database), monkeypatch, failing=TRACE)[0] == TRACE
    assert seen_by(using(database), monkeypatch)[0] == TRACE
    assert TRACE not in seen_by(using(database), monkeypatch)


def test_a_trace_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examples, "packed", lambda trace: bytes(9000))
    with pytest.raises(ExampleError, match="9000 bytes is too long"):
        remember(TRACE)
    assert examples.remember_all([TRACE]) == 0


def test_kept_traces_are_explicit_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order that they are read in, before anything is drawn."""
    other = Trace(TRACE.setup, TRACE.graphs, TRACE.ops[:2])
    saved(tmp_path, TRACE, "a.json")
    saved(tmp_path, other, "b.json")
    monkeypatch.setenv(kept.VARIABLE, str(tmp_path))
    assert kept.kept() == [TRACE, other] and kept.kept(most=1) == [TRACE]
    try:
        assert seen_by(with_kept(whole_check), monkeypatch)[:2] == [TRACE, other]
    finally:
        del whole_check.hypothesis_explicit_examples  # type: ignore[attr-defined]


def test_where_kept_traces_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where `gallocheck fuzz` puts them, unless folders are named."""
    monkeypatch.delenv(kept.VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    assert kept.kept() == []
    saved(tmp_path / "findings", TRACE)
    assert kept.kept() == [TRACE]
    monkeypatch.setenv(kept.VARIABLE, str(tmp_path / "gone"))
    with pytest.raises(KeptError, match=r"GALLOCHECK_CORPUS names .*gone, which is no folder"):
        kept.kept()
    (tmp_path / "campaign.sqlite").write_bytes(b"no database" * 100)
    monkeypatch.setenv(kept.VARIABLE, str(tmp_path))
    with pytest.raises(KeptError, match=r"campaign\.sqlite cannot be read"):
        kept.kept()


class Machine(AllocatorMachine):
    """Notes what it does."""

    done: list[Op] = []  # noqa: RUF012

    def do(self, op: Op) -> None:
        super().do(op)

    def replay(self, trace: Trace) -> None:
        Machine.done += trace.ops
        super().replay(trace)


def test_stateful_tests_replay_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What they can: of allocators, and nothing that may end this process."""
    unchecked = Trace(TRACE.setup, TRACE.graphs, (*TRACE.ops[:3], Op(Kind.COMPUTE, flags=OpFlag.UNCHECKED)))
    assert fits(TRACE) and not fits(unchecked)
    saved(tmp_path, TRACE, "a.json")
    saved(tmp_path, unchecked, "b.json")
    monkeypatch.setenv(kept.VARIABLE, str(tmp_path))
    case = replaying(Machine)
    case.settings = settings(max_examples=1, stateful_step_count=2, database=None, deadline=None)
    Machine.done.clear()
    case().runTest()
    assert tuple(Machine.done) == TRACE.ops


#: without Hypothesis's shrinking, which may take five minutes of what a campaign has shrunk before
CASE = """
from gallocheck.fuzz.examples import whole_check
from hypothesis import Phase, settings

test_it = whole_check
attribute = "_hypothesis_internal_use_settings"
phases = [Phase.explicit, Phase.reuse, Phase.generate]
setattr(test_it, attribute, settings(getattr(test_it, attribute), phases=phases))
"""


def test_a_campaign_fills_the_database(tmp_path: Path) -> None:
    """A finding of `gallocheck fuzz` is the first example of the next run of the whole check, and fails it."""
    done = run(tmp_path, "fuzz", "--defect", "1", "--seed", "5", "--until-failure", "--jobs", "1", "--time", "60s",
               "--shrink-time", "3s")  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert "in .hypothesis" in done.stdout
    found = [json.loads(p.read_text())["clause"] for p in (tmp_path / "findings").glob("*.json")]
    case = tmp_path / "test_it.py"
    case.write_text(CASE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(case)]
    again = subprocess.run(
        command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=100
    )
    failed = re.search(r"CheckFailed: (\w+): ", again.stdout)
    assert again.returncode == 1 and failed, again.stdout[-3000:]
    assert {"silent": ""}.get(failed[1], failed[1]) in found


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from gallocheck.cli.main import run; run()", *arguments]
    return subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=100)


def environment() -> dict[str, str]:
    from tests.guidance.test_target import environment

    env = environment(Path("."))
    del env["GALLOCHECK_CORPUS"]
    return env
