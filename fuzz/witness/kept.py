"""Witnesses as data: a line of JSON for each, in a file for each search (scenes.py)."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from ...model.domain import Ints
from ...model.records import Trace
from ...model.terms import leaves, shaped
from ...spec import bounded
from ...spec.branches import Named, Way, find, named
from ...spec.machine import Machine
from ...spec.witness import Goal, Part
from ..kept import packed, unpacked

FOLDER = Path(__file__).parents[1] / "witnesses"
UNREACHED = "unreached"


class KeptError(ValueError):
    """The kept witnesses are not those of this model. One sentence."""


@dataclass(frozen=True)
class Witness:
    """`search`: the name of the search (scenes.py) that found it; `machine`: whose walk it is.

    `parts`: the parts of clauses that act; `ways`: the branches that are taken, at operation `step` of `trace`.
    `taken`: the reference stack takes these branches itself there; else only the machine does, and a layer of
    the stack answers the same before it asks the machine. `trace` is None where no operations of a subject
    bring the walk about. `walk`: the machine's operations in words; `numbers`: its config, then the leaves of its
    start state and of each operation (`as_walk` makes them a walk again). `counted`: the clauses that the judge says
    the trace exercises on the bundled subject, which is less than that a part of them acts.
    """

    search: str
    machine: str
    walk: tuple[str, ...]
    parts: tuple[Part, ...]
    ways: tuple[Way, ...]
    taken: bool
    trace: Trace | None
    step: int
    counted: tuple[str, ...]
    numbers: tuple[tuple[int, ...], ...]

    @property
    def clauses(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(part.clause for part in self.parts))


@dataclass(frozen=True)
class Unreached:
    """A branch that nothing takes, or a part of a clause that never acts. `proved`: from no state that has the
    machines' invariants any lawful operation does; else none does within `depth` operations from the start."""

    goal: Goal
    machines: tuple[str, ...]
    proved: bool
    depth: int


Text = tuple[str, str, int, int]  #: a branches.Named


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    machine: str
    walk: list[str]
    parts: list[tuple[str, str]]
    ways: list[Text]
    taken: bool
    step: int
    trace: str | None
    counted: list[str]
    numbers: list[list[int]]


class _Missing(msgspec.Struct, forbid_unknown_fields=True):
    way: Text | None
    part: tuple[str, str] | None
    machines: list[str]
    proved: bool
    depth: int


def numbers(walk: bounded.Trace) -> tuple[tuple[int, ...], ...]:
    return walk.config, *(tuple(leaves(tree)) for tree in (walk.start, *walk.ops))


def as_walk(m: Machine, witness: Witness) -> bounded.Trace:
    """The walk, to be stepped by the machine."""
    config, start, *ops = witness.numbers
    model = m.model(Ints, *config)
    shape = m.operation(model)
    made = tuple(shaped(shape, iter(op)) for op in ops)
    return bounded.Trace(config, shaped(m.init(model), iter(start)), made)


def line(witness: Witness) -> bytes:
    trace = b64encode(packed(witness.trace)).decode() if witness.trace else None
    ways: list[Text] = [(*named(way),) for way in sorted(witness.ways)]
    raw = _Line(witness.machine, list(witness.walk), [(p.clause, p.name) for p in sorted(witness.parts)], ways,
                witness.taken, witness.step, trace, list(witness.counted),
                [list(map(int, row)) for row in witness.numbers])  # fmt: skip
    return msgspec.json.encode(raw)


def save(name: str, found: Iterable[Witness]) -> None:
    """The file of one search."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.jsonl").write_bytes(b"".join(line(w) + b"\n" for w in found))


def save_unreached(found: Iterable[Unreached]) -> None:
    rows = []
    for u in found:
        way: Text | None = (*named(u.goal),) if isinstance(u.goal, Way) else None
        part = None if isinstance(u.goal, Way) else (u.goal.clause, u.goal.name)
        rows.append(_Missing(way, part, list(u.machines), u.proved, u.depth))
    text = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
    (FOLDER / f"{UNREACHED}.jsonl").write_bytes(text)


def _way(name: Text) -> Way:
    way = find(Named(*name))
    if way is None:
        raise KeptError(
            f"The model has no branch {name[1]!r} in {name[0]} any more: run python -m gallocheck.fuzz.witness."
        )
    return way


def read(name: str) -> list[Witness]:
    """The witnesses of one search. Raises KeptError."""
    found = []
    for text in (FOLDER / f"{name}.jsonl").read_bytes().splitlines():
        raw = msgspec.json.decode(text, type=_Line)
        trace = unpacked(b64decode(raw.trace)) if raw.trace else None
        if raw.trace and trace is None:
            raise KeptError(f"A witness of {name} is no legal trace: run python -m gallocheck.fuzz.witness.")
        parts, ways = tuple(Part(*p) for p in raw.parts), tuple(map(_way, raw.ways))
        found.append(
            Witness(
                name,
                raw.machine,
                tuple(raw.walk),
                parts,
                ways,
                raw.taken,
                trace,
                raw.step,
                tuple(raw.counted),
                tuple(map(tuple, raw.numbers)),
            )
        )
    return found


@cache
def witnesses() -> tuple[Witness, ...]:
    """All of them, by search, the shortest first. Raises KeptError."""
    names = sorted(path.stem for path in FOLDER.glob("*.jsonl") if path.stem != UNREACHED)
    return tuple(w for name in names for w in read(name))


@cache
def unreached() -> tuple[Unreached, ...]:
    """What nothing reaches. Raises KeptError."""
    found = []
    for text in (FOLDER / f"{UNREACHED}.jsonl").read_bytes().splitlines():
        raw = msgspec.json.decode(text, type=_Missing)
        goal: Goal = _way(raw.way) if raw.way else Part(*(raw.part or ("", "")))
        found.append(Unreached(goal, tuple(raw.machines), raw.proved, raw.depth))
    return tuple(found)


def for_clause(clause: str) -> list[Witness]:
    """Witnesses in which a part of the clause acts: those that the judge counts first, the shortest first."""
    found = [w for w in witnesses() if clause in w.clauses]
    return sorted(
        found, key=lambda w: (clause not in w.counted, len(w.trace.ops) if w.trace else len(w.walk))
    )


def for_part(clause: str, name: str) -> list[Witness]:
    """Witnesses in which that part of the clause acts, in the order of `for_clause`."""
    return [w for w in for_clause(clause) if Part(clause, name) in w.parts]
