"""Traces that somebody kept, for whoever replays them first: a campaign's findings and corpus, replay files.

They are read from the folders that GALLOCHECK_CORPUS names (as PATH does), else from where `gallocheck fuzz`
puts them: corpus/ and findings/ in the working directory.
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec

from ..model.records import Trace
from . import replay, wire
from .legal import why_illegal

VARIABLE = "GALLOCHECK_CORPUS"
DEFAULT = ("corpus", "findings")
MOST = 60  #: of each folder: these are run each time
DATABASE = "campaign.sqlite"
RECORD = "check.json"  #: what a check leaves beside its replay files (report/record.py)


class KeptError(ValueError):
    """What was named holds no traces. One sentence."""


def folders() -> list[Path]:
    """Where kept traces lie. Raises KeptError where GALLOCHECK_CORPUS names what is no folder."""
    named = os.environ.get(VARIABLE)
    if not named:
        return [folder for folder in map(Path, DEFAULT) if folder.is_dir()]
    found = [Path(name) for name in named.split(os.pathsep) if name]
    for folder in found:
        if not folder.is_dir():
            raise KeptError(f"{VARIABLE} names {folder}, which is no folder: name folders of kept traces.")
    return found


def kept(most: int = MOST) -> list[Trace]:
    """Findings and replay files first, then the corpus, those that showed most first; `most` of each folder.

    Raises KeptError as `folders` does; ReplayError where a replay file cannot be read.
    """
    found = [trace for folder in folders() for trace in islice(of_folder(folder), most)]
    return list(dict.fromkeys(found))


def of_folder(folder: Path) -> Iterator[Trace]:
    """The traces of one folder."""
    for path in sorted(folder.glob("*.json")):
        if path.name != RECORD:
            yield replay.load(path).trace
    if (folder / DATABASE).is_file():
        yield from _of_campaign(folder / DATABASE)


def _of_campaign(path: Path) -> Iterator[Trace]:
    """Of a campaign's database, which is only read. Raises KeptError."""
    findings = "select trace from samples where same_as is null order by id"
    corpus = "select c.trace from corpus c join features f on f.trace = c.id group by c.id order by count(*) desc, c.id"
    try:
        db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
        try:
            for query in (findings, corpus):
                for (raw,) in db.execute(query):
                    yield wire.trace_in(msgspec.json.decode(raw, type=wire.TraceFile))
        finally:
            db.close()
    except (sqlite3.DatabaseError, msgspec.MsgspecError) as error:
        raise KeptError(
            f"{path} cannot be read ({error}): name another folder with {VARIABLE}, or none."
        ) from None


def packed(trace: Trace) -> bytes:
    """A trace in a few hundred bytes, for unpacked."""
    return zlib.compress(msgspec.json.encode(wire.trace_out(trace)), 9)


def unpacked(raw: bytes) -> Trace | None:
    """The trace; None where the bytes are no legal one."""
    try:
        text = zlib.decompressobj().decompress(raw, 1 << 22)
        trace = wire.trace_in(msgspec.json.decode(text, type=wire.TraceFile))
    except (zlib.error, msgspec.MsgspecError, ValueError):
        return None
    return trace if why_illegal(trace) is None else None
