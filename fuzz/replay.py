"""Replay files: a failure as data. JSON of a fixed shape and version; read by schema, never executed."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from ..model.records import Observation, Trace
from . import wire
from .legal import why_illegal
from .printable import printable
from .whole_file import write_whole

VERSION = 2
MOST_BYTES = 64 << 20  #: of a file; larger ones are refused
Verdict = Literal["broken", "misuse", "silent"]


class ReplayError(Exception):
    """A replay file cannot be used. The text is one sentence for people; exit code 2."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Replay:
    """One failure: what was run, on what, and what was wrong.

    `clause`: id of the contract's clause, '' where none decides. `step`: index of the
    operation at which it failed (the number of operations: at close). `expected` and
    `seen`: of that step, an observation or a text (a death, a rule about a plan).
    """

    clause: str
    verdict: Verdict
    message: str
    subject: str
    trace: Trace
    step: int
    gallocheck: str
    seed: int | None = None
    expected: Observation | str | None = None
    seen: Observation | str | None = None


class _File(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    format: Literal["gallocheck replay"]
    version: Annotated[int, msgspec.Meta(ge=1)]
    gallocheck: str
    clause: str
    verdict: Verdict
    message: str
    subject: str
    seed: int | None
    step: Annotated[int, msgspec.Meta(ge=0)]
    trace: wire.TraceFile
    expected: wire.ObservationFile | str | None
    seen: wire.ObservationFile | str | None


class _Peek(msgspec.Struct):
    """Only what says whether the rest can be read."""

    format: str = ""
    version: int = 0


_decoder, _peek = msgspec.json.Decoder(_File, strict=True), msgspec.json.Decoder(_Peek, strict=True)


def encode(replay: Replay) -> bytes:
    """The file's bytes: indented JSON, always the same for the same replay."""
    raw = _File(
        format="gallocheck replay",
        version=VERSION,
        gallocheck=replay.gallocheck,
        clause=replay.clause,
        verdict=replay.verdict,
        message=replay.message,
        subject=replay.subject,
        seed=replay.seed,
        step=replay.step,
        trace=wire.trace_out(replay.trace),
        expected=_side_out(replay.expected),
        seen=_side_out(replay.seen),
    )
    return msgspec.json.format(msgspec.json.encode(raw), indent=1) + b"\n"


def save(replay: Replay, path: str | os.PathLike[str]) -> None:
    """Writes the file whole or not at all. Raises ReplayError where it cannot be written."""
    target = Path(path)
    try:
        write_whole(target, encode(replay))
    except OSError as error:
        raise ReplayError(f"{target} cannot be written ({error.strerror}): name another place.") from None


def check_writable(folder: Path, what: str = "replay files", option: str = "--out") -> None:
    """What is found must have a place before anything runs. Raises ReplayError."""
    there = next((p for p in (folder, *folder.absolute().parents) if p.exists()), Path("/"))
    try:
        with tempfile.TemporaryDirectory(prefix=".gallocheck-", dir=there):
            pass
    except OSError:
        raise ReplayError(
            f"{folder} cannot hold {what} ({there} is no folder to write to); name another with {option}."
        ) from None


def load(path: str | os.PathLike[str]) -> Replay:
    """Reads a replay file. Raises ReplayError, one sentence, where it cannot be used."""
    return decode(_read(Path(path)), os.fspath(path))


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise ReplayError(f"{path} is not there: name a replay file.") from None
    except ValueError:  # a NUL in its name
        raise ReplayError(f"{str(path)!r} is no name of a file: name a replay file.") from None
    except OSError as error:
        raise ReplayError(f"{path} cannot be read ({error.strerror}): name a replay file.") from None
    if len(raw) > MOST_BYTES:
        raise ReplayError(f"{path} is larger than {MOST_BYTES >> 20} MiB: that is no replay file.")
    return raw


def decode(raw: bytes, name: str) -> Replay:
    """A replay from a file's bytes; `name` is what messages call it."""
    _check_version(raw, name)
    try:
        file = _decoder.decode(raw)
    except msgspec.ValidationError as error:
        what = printable(str(error)[0].lower() + str(error)[1:])
        raise ReplayError(
            f"{name} has another shape than a replay file of version {VERSION} ({what}): "
            "save it again with this gallocheck."
        ) from None
    trace = wire.trace_in(file.trace)
    if fault := why_illegal(trace):
        raise ReplayError(f"{name} makes no sense: {fault}; correct it, or save it again.")
    if file.step > len(trace.ops):
        raise ReplayError(
            f"{name} makes no sense: it fails at step {file.step}, but there are {len(trace.ops)} "
            "operations; correct it, or save it again."
        )
    return Replay(
        printable(file.clause),
        file.verdict,
        printable(file.message),
        printable(file.subject),
        trace,
        file.step,
        printable(file.gallocheck),
        file.seed,
        _side_in(file.expected),
        _side_in(file.seen),
    )


def _check_version(raw: bytes, name: str) -> None:
    try:
        head = _peek.decode(raw)
    except msgspec.ValidationError:
        head = _Peek()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        how = "is truncated" if not raw.strip() or "truncated" in str(error) else "is not JSON"
        raise ReplayError(f"{name} {how}: get the whole file again.") from None
    if head.format != "gallocheck replay" or head.version < 1:
        raise ReplayError(f"{name} is JSON, but no gallocheck replay file: name one that gallocheck saved.")
    if head.version > VERSION:
        raise ReplayError(
            f"{name} is a replay file of version {head.version}, this gallocheck reads up to {VERSION}: "
            "install a newer gallocheck."
        )


def _side_out(side: Observation | str | None) -> wire.ObservationFile | str | None:
    return wire.observation_out(side) if isinstance(side, Observation) else side


def _side_in(side: wire.ObservationFile | str | None) -> Observation | str | None:
    if isinstance(side, str):
        return printable(side)
    return wire.observation_in(side) if side is not None else None
