"""Replay files: round trips, and one sentence for each kind of bad input."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from gallocheck.fuzz.canary import FOLDER
from gallocheck.fuzz.draw import RandomDraw
from gallocheck.fuzz.generate import PROFILES, draw_trace
from gallocheck.fuzz.replay import VERSION, Replay, ReplayError, decode, encode, load, save
from gallocheck.fuzz.wire import (
    FlagName,
    KindName,
    MemoryName,
    OpFlagName,
    OptionName,
    PoolName,
    ScaleName,
    StatusName,
    StrategyName,
    TroubleName,
)
from gallocheck.model.records import (
    BufferType,
    Context,
    Flag,
    Graph,
    Kind,
    Memory,
    Observation,
    Op,
    OpFlag,
    Option,
    PoolKind,
    Scale,
    Setup,
    Status,
    Strategy,
    Tensor,
    Trace,
    Trouble,
)

TRACE = Trace(
    Setup((BufferType(32, 256, 64, 1000),), ((0, 0),)),
    (Graph((Tensor(64, (), Flag.LEAF | Flag.INPUT), Tensor(32, (0,), Flag.OUTPUT, 1, 0, 0, 32))),),
    (Op(Kind.NEW, flags=OpFlag.BY_SCHED), Op(Kind.RESERVE, fail_nth=2, fail_types=1), Op(Kind.COMPUTE)),
)
SEEN = Observation(
    Status.DONE, Trouble.BAD_SOURCE | Trouble.BAD_GUARD, 1, 0, 5, 2, 1, 2**64 - 1,
    (64,), (64, 0), (1, 2), ((64, 0, 3),), (64,), 3,
)  # fmt: skip
REPLAY = Replay(
    "P1", "broken", "two tensors share bytes", "bundled", TRACE, 2, "0.1.0", 17, SEEN, "died by SIGABRT"
)


def test_a_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "p1.json"
    save(REPLAY, path)
    assert load(path) == REPLAY
    assert os.listdir(tmp_path) == ["p1.json"]
    save(replace(REPLAY, seed=None, expected=None, seen=SEEN), path)
    assert load(path).seen == SEEN


def test_every_layer_makes_the_round_trip() -> None:
    template = Graph((Tensor(8, (), Flag.LEAF), Tensor(4, (0,), Flag.OUTPUT, scale=Scale.SCALE_ATTENTION)))
    context = Context(0, 0, Memory.HYBRID, Option.PHASE_AWARE | Option.LIVE_CONTEXT, 2, 64, 16, 3, 32, 7)
    types = (BufferType(), BufferType(16), BufferType(16, meta=0b11))
    setup = Setup(types, ((2,),), Strategy.COUNTED, PoolKind.VMM_POOL, 1 << 30, (context, Context()))
    ops = (
        Op(Kind.CTX_OPEN), Op(Kind.CTX_DECODE, other=9, flags=OpFlag.ASYNC, value=3),
        Op(Kind.POOL_ALLOC, other=1, value=500), Op(Kind.SLOT_ENTER, 3),
    )  # fmt: skip
    seen = replace(SEEN, pooled=(0, 4096, 0), tokens=(3, 0), cells=(8, 8), fewer=(0, 63), reason=5, busy=8)
    for side in (seen, replace(seen, pooled=(0, 0, 0), tokens=(0, 0))):
        replay = replace(REPLAY, trace=Trace(setup, (template,), ops), expected=side, seen=side)
        assert decode(encode(replay), "x") == replay


def test_a_file_of_version_1_is_still_read() -> None:
    old = json.loads(encode(REPLAY)) | {"version": 1}
    assert decode(json.dumps(old).encode(), "x") == REPLAY
    canary = json.loads((FOLDER / "001-P1.json").read_bytes())
    assert canary["version"] == 1 and decode(json.dumps(canary).encode(), "x").clause == "P1"


def test_generated_traces_make_the_round_trip() -> None:
    for profile in PROFILES:
        for seed in range(60):
            replay = replace(REPLAY, trace=draw_trace(RandomDraw(seed), profile), step=0)
            raw = encode(replay)
            assert decode(raw, "x") == replay and encode(decode(raw, "x")) == raw


def test_names_are_readable_and_numbers_are_ints() -> None:
    file = json.loads(encode(REPLAY))
    assert file["format"] == "gallocheck replay" and file["version"] == VERSION
    assert file["trace"]["ops"][1] == {"kind": "reserve", "fail_nth": 2, "fail_types": 1}
    assert file["trace"]["graphs"][0]["tensors"][0] == {"size": 64, "flags": ["leaf", "input"]}
    assert file["trace"]["setup"]["types"][0] == {
        "alignment": 32, "max_size": 256, "granularity": 64, "capacity": 1000,
    }  # fmt: skip
    assert file["expected"]["digest"] == 2**64 - 1 and file["seen"] == "died by SIGABRT"


@pytest.mark.parametrize(
    ("names", "enum"),
    [
        (KindName, Kind),
        (FlagName, Flag),
        (OpFlagName, OpFlag),
        (StatusName, Status),
        (TroubleName, Trouble),
        (StrategyName, Strategy),
        (PoolName, PoolKind),
        (MemoryName, Memory),
        (OptionName, Option),
        (ScaleName, Scale),
    ],
)
def test_every_name_has_its_value(names: Any, enum: Any) -> None:
    assert {name.upper() for name in names.__args__} == {one.name for one in enum}


def tensor(**values: int) -> bytes:
    return changed(lambda f: f["trace"]["graphs"][0]["tensors"][0].update(values))


def operation(**values: object) -> bytes:
    return changed(lambda f: f["trace"]["ops"][1].update(values))


def changed(change: Callable[[dict[str, Any]], Any]) -> bytes:
    file = json.loads(encode(REPLAY))
    change(file)
    return json.dumps(file).encode()


WHOLE = encode(REPLAY)
BAD: list[tuple[bytes, str]] = [
    (b"", "f.json is truncated: get the whole file again."),
    (WHOLE[: len(WHOLE) // 2], "f.json is truncated: get the whole file again."),
    (b"hello", "f.json is not JSON: get the whole file again."),
    (b"\xff\xfe\x00", "f.json is not JSON: get the whole file again."),
    (b"[" * 100_000, "f.json is"),
    (b"[1, 2]", "f.json is JSON, but no gallocheck replay file: name one that gallocheck saved."),
    (b'{"version": 1}', "f.json is JSON, but no gallocheck replay file"),
    (
        changed(lambda f: f.update(version=3, new=3)),
        "f.json is a replay file of version 3, this gallocheck reads up to 2: install a newer gallocheck.",
    ),
    (changed(lambda f: f.update(version="1")), "f.json is JSON, but no gallocheck replay file"),
    (changed(lambda f: f.update(surprise=1)), "another shape than a replay file of version 2 (object con"),
    (changed(lambda f: f.pop("clause")), "missing required field `clause`"),
    (changed(lambda f: f.update(verdict="bad")), "invalid enum value 'bad' - at `$.verdict`"),
    (operation(kind="format disk"), "`$.trace.ops[1].kind`"),
    (operation(graph="0"), "expected `int`, got `str`"),
    (operation(graph=1.5), "expected `int`, got `float`"),
    (operation(graph=-1), "expected `int` >= 0"),
    (tensor(size=10**30), "makes no sense: graph 0: tensor 0: size"),
    (tensor(size=1), "tensor 1: it views bytes 32 to 64 of 1"),
    (changed(lambda f: f["trace"]["setup"]["types"][0].update(alignment=3)), "buffer type 0: alignment 3"),
    (operation(graph=9), "operation 1: graph 9 is not there"),
    (changed(lambda f: f.update(step=4)), "it fails at step 4, but there are 3 operations"),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "words"), BAD)
def test_bad_input_is_one_sentence(raw: bytes, words: str) -> None:
    with pytest.raises(ReplayError) as caught:
        decode(raw, "f.json")
    text = str(caught.value)
    assert words in text and text.startswith("f.json ") and text.endswith(".") and "\n" not in text
    assert caught.value.exit_code == 2


def test_every_truncation_is_refused() -> None:
    for n in range(0, len(WHOLE) - 2, 7):
        with pytest.raises(ReplayError):
            decode(WHOLE[:n], "f.json")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match="is not there: name a replay file"):
        load(tmp_path / "nothing.json")
    with pytest.raises(ReplayError, match="cannot be read"):
        load(tmp_path)


def test_a_save_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match="cannot be written"):
        save(REPLAY, tmp_path / "no" / "such" / "folder.json")
    (tmp_path / "there").mkdir()
    with pytest.raises(ReplayError, match="cannot be written"):
        save(REPLAY, tmp_path / "there")
    assert os.listdir(tmp_path) == ["there"] and os.listdir(tmp_path / "there") == []
