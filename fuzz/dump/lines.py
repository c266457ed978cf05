"""The lines of a dump, by schema: bytes from a stranger's program, read and never executed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from ..printable import printable

VERSION = 1
MOST_LINE = 256 << 20  #: bytes of a line; a longer one is no dump
FORMAT = "gallocheck plan"
OTHERS = {
    "gallocheck replay": "gallocheck replay",
    "gallocheck check": "gallocheck report",
}  #: what reads them
NONE, GONE = -1, -2  #: in place of a buffer's number

Count = Annotated[int, Meta(ge=0)]
Number = Annotated[int, Meta(ge=-2)]
Spot = tuple[Number, Count, Count]  #: buffer, offset (an address where there is no buffer), bytes


class _Line(Struct, tag_field="line", tag=str.lower, forbid_unknown_fields=True):
    pass


class Start(_Line):
    format: str
    version: int
    process: int = 0


class Type(_Line):
    type: Count
    name: str
    alignment: Annotated[int, Meta(ge=1)]
    max_size: Count


class Allocator(_Line):
    """A new allocator: the type of each slot; none where it was made before the hook looked."""

    allocator: Count
    types: list[Count]


class Freed(_Line):
    allocator: Count


class Share(_Line):
    """It has an owner, a borrower or a group from now on (R)."""

    allocator: Count


class Buffer(_Line):
    """`allocator`: in whose call it was made, -1: in none's. `asked`, `size`: bytes."""

    buffer: Count
    type: Count
    allocator: Annotated[int, Meta(ge=-1)]
    asked: Count
    size: Count
    ok: bool


class Free(_Line):
    buffer: Count


class TensorLine(Struct, forbid_unknown_fields=True):
    """`at`: its address, which tells it from others. `inplace`: None where the tree does not say."""

    at: Count
    name: str
    op: str
    leaf: bool
    bytes: Count
    layout: str
    src: list[Count]
    input: bool = False
    output: bool = False
    inplace: bool | None = None
    view: Count | None = None
    offset: Count = 0


class Graph(_Line):
    """`leafs`: those of the graph's own list, in its order."""

    graph: Count
    nodes: Count
    tensors: list[TensorLine]
    leafs: list[Count]


class Call(_Line):
    """Before a measure, reserve or bind, so that one that never comes back is seen."""

    call: str
    allocator: Count
    graph: Count


class Measure(_Line):
    allocator: Count
    graph: Count
    sizes: list[Count]
    slots: list[int]


class Reserve(_Line):
    allocator: Count
    graph: Count
    ok: bool
    sizes: list[Count]
    slots: list[int]


class Bind(_Line):
    """`places`: a spot a tensor, none where it failed. `before`: [tensor, buffer, offset] of those that had one.
    `during`: the scheduler's computation that it is a part of, 0: none."""

    allocator: Count
    graph: Count
    ok: bool
    during: Count
    sizes: list[Count]
    places: list[Spot]
    before: list[tuple[Count, Number, Count]]


class Compute(_Line):
    compute: Count
    by: str
    graph: Count
    places: list[Spot]


Line = (
    Start
    | Type
    | Allocator
    | Freed
    | Share
    | Buffer
    | Free
    | Graph
    | Call
    | Measure
    | Reserve
    | Bind
    | Compute
)


class DumpError(Exception):
    """A dump cannot be used. The text is one sentence for people; exit code 2."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Dump:
    """`lines`: (line number in the file, line). `cut`: the last line is not whole, for the program was stopped."""

    path: str
    lines: tuple[tuple[int, Line], ...]
    cut: bool


_decoder = msgspec.json.Decoder(Line, strict=True)


def read(path: Path) -> Dump:
    """Reads a dump. Raises DumpError where it cannot be read, or is none. A last line that is cut off is left out."""
    lines: list[tuple[int, Line]] = []
    try:
        with open(path, "rb") as file:
            for number, raw in enumerate(_raw(file, path), 1):
                if not raw.endswith(b"\n"):
                    return _checked(path, lines, True)
                lines.append((number, _decoded(path, number, raw)))
    except OSError as e:
        raise DumpError(f"{path} cannot be read: {e.strerror}.") from None
    return _checked(path, lines, False)


def _raw(file: object, path: Path) -> Iterator[bytes]:
    while raw := file.readline(MOST_LINE + 1):  # type: ignore[attr-defined]
        if len(raw) > MOST_LINE:
            raise DumpError(
                f"{path} is no dump of gallocheck's hook: it has a line of more than {MOST_LINE} bytes."
            )
        yield raw


def _decoded(path: Path, number: int, raw: bytes) -> Line:
    try:
        line: Line = _decoder.decode(raw)
    except msgspec.DecodeError as e:  # ValidationError is one
        _other(path, number)
        what = "is no dump of gallocheck's hook" if number == 1 else "is damaged"
        raise DumpError(f"{path} {what}: line {number}: {printable(str(e))}.") from None
    except (UnicodeDecodeError, RecursionError):
        raise DumpError(f"{path} is damaged: line {number} is no text.") from None
    if isinstance(line, Start) and (line.format != FORMAT or line.version != VERSION):
        raise DumpError(
            f"{path} has format {line.format!r} of version {line.version}; this gallocheck reads {FORMAT!r} of"
            f" version {VERSION}: take the hook that came with it."
        )
    _shown(line)
    return line


def _other(path: Path, number: int) -> None:
    """Another file of gallocheck's has its format at its head: the command that reads it is named."""
    if number > 1:
        return
    with open(path, "rb") as file:
        head = file.read(1024)
    for what, command in OTHERS.items():
        if f'"{what}"'.encode() in head:
            raise DumpError(
                f"{path} is a {what.split()[1]} file, no dump of gallocheck's hook: `{command} {path}` reads it."
            )


def _checked(path: Path, lines: list[tuple[int, Line]], cut: bool) -> Dump:
    """What refers to something must find it; else a later step would trip over it."""
    if not lines or not isinstance(lines[0][1], Start):
        raise DumpError(f"{path} is no dump of gallocheck's hook: it does not start with its first line.")
    from .faults import Told  # only here: it speaks of the lines above

    told = Told()
    for number, line in lines:
        if isinstance(line, Start):
            told = Told()
            continue
        fault = next(told.faults(number, line), None)
        if fault:
            raise DumpError(f"{path} is damaged: line {number}: {fault}.")
        told.note_freed(number, line)
    return Dump(str(path), tuple(lines), cut)


def _shown(line: Line) -> None:
    """What the program named is to be printed: nothing in it moves a cursor or begins a line."""
    match line:
        case Type():
            line.name = printable(line.name)
        case Compute():
            line.by = printable(line.by)
        case Graph():
            for t in line.tensors:
                t.name, t.op, t.layout = printable(t.name), printable(t.op), printable(t.layout)
        case _:
            pass
