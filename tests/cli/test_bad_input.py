"""Bad input: one sentence on stderr that names it, exit code 2 or 3, nothing half written, no traceback."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gallocheck.fuzz.canary import path_of
from gallocheck.fuzz.catalogue import DEFECTS, SCHED_DEFECTS

from tests.native import toys

from .running import gallocheck

GOOD = path_of(DEFECTS[0])
SCHEDULED = path_of(SCHED_DEFECTS[0])
RUN = ("--traces", 3, "--seed", 1)


def refused(at: Path, code: int, *args: object, words: tuple[str, ...], **env: str) -> None:
    """The command says one sentence with these words, and leaves the folder as it was."""
    before = {p: p.read_bytes() if p.is_file() else b"" for p in at.rglob("*")}
    done = gallocheck(*args, at=at, **env)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stdout + done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("gallocheck: "), done.stderr
    for word in words:
        assert word in lines[0], lines[0]
    assert {p: p.read_bytes() if p.is_file() else b"" for p in at.rglob("*")} == before


# -- arguments ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "args", "words"),
    [
        (2, ("check", "X9"), ("'X9'", "P G R S C M V Q W T")),
        (2, ("check", "R99"), ("'R99'", "R1 to R14")),
        (2, ("explain", "nothing"), ("'nothing'",)),
        (2, ("prove", "R0"), ("'R0'",)),
        (2, ("prove", "P1"), ("P1", "R1, R2", "running a subject")),
        (3, ("check", "S1", "--subject", toys.toy(), *RUN), ("S1", "does not apply", "toy")),
        (3, ("check", "P1", "M", "--subject", toys.toy(), *RUN), ("Clause M", "does not apply")),
        (2, ("check", "--subject", "cuda"), ("'cuda'", "bundled, ggml")),
        (2, ("check", "--subject", "ggml-nonsense"), ("'ggml-nonsense'",)),
        (2, ("compare", "pinned", "nope"), ("'nope'", "bundled, ggml")),
        (2, ("check", "--source", "."), ("--source .", "--subject ggml")),
        (2, ("replay", GOOD, "--source", "."), ("--source .", "--subject ggml")),
        (2, ("check", "--time", "soon"), ("'soon'", "30s")),
        (2, ("check", "--time", "0s"), ("'0s'",)),
        (2, ("check", "--time", "-5s"), ("'-5s'",)),
        (2, ("defects", "--time", "1d"), ("'1d'",)),
        (2, ("check", "P1", "--defect", 9999, *RUN), ("no planted defect 9999",)),
        (2, ("replay", GOOD, "--defect", 9999), ("no planted defect 9999",)),
        (3, ("replay", SCHEDULED, "--subject", toys.toy()),
         ("Operation 0", "needs a subject that declares sched", "toy")),
        (2, ("scenario", "nothing"), ("'nothing'", "peak, pressure")),
        (2, ("scenario", "peak", "--out", "/proc/no"), ("/proc/no", "--out")),
        (2, ("check", "--subject", "ggml", "--defect", 1), ("--defect 1", "bundled")),
        (2, ("replay", GOOD, "--subject", "ggml", "--defect", 1), ("--defect 1", "bundled")),
        (2, ("check", "P1", *RUN, "--expected", "gone.json"), ("gone.json", "cannot be read")),
        (2, ("replay", GOOD, "--emit", "rust"), ("rust", "cpp")),
        (2, ("replay", "gone.json"), ("gone.json", "is not there")),
        (2, ("replay", "."), (". cannot be read",)),
    ],
)  # fmt: skip
def test_arguments(tmp_path: Path, code: int, args: tuple[object, ...], words: tuple[str, ...]) -> None:
    refused(tmp_path, code, *args, words=words)


@pytest.mark.parametrize("args", [("check", "--traces", 0), ("check", "--seed", "x"), ("replay", GOOD, "--times", 0),
                                  ("replay",), ("nonsense",)])  # fmt: skip
def test_usage(tmp_path: Path, args: tuple[object, ...]) -> None:
    """What the command line itself refuses: its own short help, exit code 2."""
    done = gallocheck(*args, at=tmp_path)
    assert done.returncode == 2 and "Traceback" not in done.stderr and "Usage:" in done.stderr
    assert not done.stdout and list(tmp_path.iterdir()) == []


# -- places to write to ----------------------------------------------------------------------


@pytest.mark.parametrize("out", ["taken", "taken/deeper", "/proc/gallocheck-findings"])
def test_a_folder_that_cannot_be_written(tmp_path: Path, out: str) -> None:
    """It is said before anything runs, whoever we are."""
    (tmp_path / "taken").write_text("a file")
    refused(tmp_path, 2, "check", "P1", *RUN, "--out", out, words=(out, "cannot hold replay files", "--out"))


# -- trees -------------------------------------------------------------------------------


def test_a_source_that_is_no_tree(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    for source, words in [("gone", "not a directory"), ("src", "no ggml tree")]:
        for args in (("check",), ("replay", GOOD)):
            refused(tmp_path, 2, *args, "--subject", "ggml", "--source", source, words=(source, words))


@pytest.fixture
def broken_tree(tmp_path: Path) -> Path:
    for name in ("include/ggml-alloc.h", "src/ggml-alloc.c"):
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_text("this is no C at all;\n")
    return tmp_path / "tree"


def one_sentence(at: Path, code: int, *args: object, words: tuple[str, ...], **env: str) -> None:
    """As `refused`, but the cache may be filled and the progress is told on stdout."""
    done = gallocheck(*args, at=at, **env)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stdout + done.stderr and len(done.stderr.strip().splitlines()) == 1
    for word in words:
        assert word in done.stderr, done.stderr


def test_a_tree_that_does_not_compile(broken_tree: Path, tmp_path: Path) -> None:
    args = ("check", "--subject", "ggml", "--source", broken_tree)
    one_sentence(tmp_path, 2, *args, words=("error",), GALLOCHECK_CACHE=str(tmp_path / "cache"))


def test_no_compiler(broken_tree: Path, tmp_path: Path) -> None:
    args = ("check", "--subject", "ggml", "--source", broken_tree)
    env = {"PATH": str(tmp_path), "CC": "", "CXX": "", "GALLOCHECK_CACHE": str(tmp_path / "cache")}
    one_sentence(tmp_path, 3, *args, words=("compiler",), **env)


def test_no_network_for_the_pinned_tree(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    one_sentence(tmp_path, 3, "check", "--subject", "ggml", words=("could not be fetched", "--source DIR"),
                 GALLOCHECK_CACHE=str(cache), PIP_NO_INDEX="1")  # fmt: skip
    assert [p for p in cache.rglob("*") if p.is_file() and p.name != ".lock"] == []


# -- subject libraries -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("macros", "words"),
    [
        (("-DTOY_LACKS",), ("lacks the function gc_places", "gallocheck.h")),
        (("-DTOY_ABI=99",), ("version 99", "gc_abi")),
        (("-DTOY_DIES",), ("could not be loaded", "it died", "no device")),
    ],
)
def test_a_subject_library_of_another_interface(
    tmp_path: Path, macros: tuple[str, ...], words: tuple[str, ...]
) -> None:
    library = toys.toy(*macros)
    refused(tmp_path, 3, "check", "P1", *RUN, "--subject", library, words=(library, *words))
    refused(tmp_path, 3, "replay", GOOD, "--subject", library, words=(library, *words))


def test_a_subject_that_is_no_library(tmp_path: Path) -> None:
    (tmp_path / "notes.so").write_text("no library")
    refused(
        tmp_path, 2, "check", *RUN, "--subject", "./notes.so", words=("notes.so", "is no subject library")
    )
    refused(tmp_path, 2, "compare", "bundled", "./notes.so", words=("notes.so", "is no subject library"))
    refused(tmp_path, 2, "check", *RUN, "--subject", "gone.so", words=("gone.so", "no subject library"))
    refused(tmp_path, 2, "check", *RUN, "--subject", toys.SOURCE, words=("toy.c", "is no shared library"))


# -- replay files ----------------------------------------------------------------------------


def edited(change: Callable[[Any], None]) -> bytes:
    data = json.loads(GOOD.read_bytes())
    change(data)
    return json.dumps(data).encode()


def at(*path: str | int, value: object) -> bytes:
    """The good file with another value at a place."""

    def change(data: Any) -> None:
        for key in path[:-1]:
            data = data[key]
        data[path[-1]] = value

    return edited(change)


TYPE, TENSOR = ("trace", "setup", "types", 0), ("trace", "graphs", 0, "tensors", 0)
FILES: dict[str, tuple[bytes, tuple[str, ...]]] = {
    "empty": (b"", ("truncated",)),
    "half": (GOOD.read_bytes()[: len(GOOD.read_bytes()) // 2], ("truncated",)),
    "all but the end": (GOOD.read_bytes()[:-4], ("truncated",)),
    "no JSON": (b"GGUF\x00\x01\xff", ("is not JSON",)),
    "too deep": (b"[" * 100_000, ("bad.json",)),
    "a list": (b"[]", ("no gallocheck replay file",)),
    "another program's": (b'{"version": 1}', ("no gallocheck replay file",)),
    "newer": (at("version", value=3), ("version 3", "newer gallocheck")),
    "much newer": (at("version", value=10**30), ("bad.json",)),
    "a field too many": (at("colour", value="red"), ("another shape", "colour")),
    "a field too few": (edited(lambda d: d.pop("trace")), ("another shape", "trace")),
    "a number for a list": (at("trace", "ops", value=7), ("another shape",)),
    "an unknown operation": (at("trace", "ops", 0, "kind", value="explode"), ("another shape", "explode")),
    "an unknown flag": (at(*TENSOR, "flags", value=["shiny"]), ("another shape", "shiny")),
    "a negative size": (at(*TENSOR, "size", value=-1), ("another shape",)),
    "a size of no 64 bits": (at(*TENSOR, "size", value=2**64), ("bad.json",)),
    "a broken size": (at(*TENSOR, "size", value=1.5), ("another shape",)),
    "an alignment of 3": (at(*TYPE, "alignment", value=3), ("makes no sense", "alignment 3")),
    "no largest buffer": (at(*TYPE, "max_size", value=0), ("makes no sense", "largest buffer 0")),
    "no types": (at("trace", "setup", "types", value=[]), ("makes no sense", "0 buffer types")),
    "a source that is later": (at(*TENSOR, "src", value=[3]), ("makes no sense", "no earlier tensor")),
    "a view outside": (
        at("trace", "graphs", 0, "tensors", 1, value={"size": 99, "src": [0], "view_src": 0}),
        ("makes no sense", "views bytes 0 to 99")),
    "a graph that is not there": (at("trace", "ops", 1, "graph", value=9), ("makes no sense", "graph 9")),
    "a device that is not there": (
        at("trace", "ops", 1, "fail_types", value=64), ("makes no sense", "fail_types 64")),
    "a step behind the end": (at("step", value=99), ("makes no sense", "step 99")),
}  # fmt: skip


@pytest.mark.parametrize("what", FILES)
def test_replay_files(tmp_path: Path, what: str) -> None:
    raw, words = FILES[what]
    (tmp_path / "bad.json").write_bytes(raw)
    refused(tmp_path, 2, "replay", "bad.json", words=("bad.json", *words))


def test_texts_in_a_replay_file_are_only_text(tmp_path: Path) -> None:
    """Nothing in it is executed, formatted or taken for colours."""
    evil = "[/bold] [red]{0} %s \x1b[31m $(touch owned) [link=x]"
    (tmp_path / "evil.json").write_bytes(
        edited(lambda d: d.update(message=evil, subject=evil, clause="[/x]", gallocheck=evil))
    )
    done = gallocheck("replay", "evil.json", at=tmp_path)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    assert "[/bold] [red]{0} %s" in done.stdout
    assert os.listdir(tmp_path) == ["evil.json"]


@pytest.mark.parametrize(
    "raw", [b"", b"{}", b'{"subject": "bundled", "matches": [], "findings": [{"id": 1}]}']
)
def test_lists_of_expected_failures(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "mine.json").write_bytes(raw)
    refused(
        tmp_path,
        2,
        "check",
        "P1",
        *RUN,
        "--expected",
        "mine.json",
        words=("mine.json", "no list of expected"),
    )
