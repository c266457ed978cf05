"""Every clause of the contract as an object, by id and by letter."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

from .contract import ROWS

LAYERS = {
    "P": "planner",
    "G": "graph allocator",
    "R": "owner and borrower",
    "S": "sharing by reference count",
    "C": "scheduler",
    "M": "meta buffers",
    "V": "pool on virtual memory",
    "Q": "captured graphs",
    "W": "workspace policy",
    "T": "server",
}


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause. `where` names the modules that check it, "" where none does yet."""

    id: str
    title: str
    statement: str
    layer: str
    where: str

    @property
    def letter(self) -> str:
        return self.id[0]

    @property
    def number(self) -> int:
        return int(self.id[1:])


class NotProved(ValueError):
    """A clause that the prover does not know; the text is one sentence for the user."""


class UnknownClause(ValueError):
    """An id that no clause has; the text is one sentence for the user."""


CLAUSES: tuple[Clause, ...] = tuple(
    Clause(id_, title, statement, LAYERS[id_[0]], where) for id_, title, statement, where in ROWS
)
_BY_ID = {c.id: c for c in CLAUSES}


def clause(id_: str) -> Clause:
    """The clause of an id, in either case. Raises UnknownClause, which names the nearest ids."""
    found = _BY_ID.get(id_.strip().upper())
    if found is None:
        raise UnknownClause(f"There is no clause {id_!r}; {_nearest(id_.strip().upper())}.")
    return found


def by_letter(letter: str) -> tuple[Clause, ...]:
    """All clauses of a layer, in order. Raises UnknownClause."""
    if letter.strip().upper() not in LAYERS:
        raise UnknownClause(f"There is no layer {letter!r}; the letters are {' '.join(LAYERS)}.")
    return tuple(c for c in CLAUSES if c.letter == letter.strip().upper())


def select(names: list[str] | tuple[str, ...]) -> tuple[Clause, ...]:
    """Clauses of ids and letters, each once, in the contract's order. Raises UnknownClause."""
    wanted: set[str] = set()
    for name in names:
        letter = name.strip().upper() in LAYERS
        wanted |= {c.id for c in by_letter(name)} if letter else {clause(name).id}
    return tuple(c for c in CLAUSES if c.id in wanted)


def _nearest(name: str) -> str:
    same = [c.id for c in CLAUSES if name[:1] == c.letter]
    if same:
        near = get_close_matches(name, same, n=3, cutoff=0.5)
        return f"{name[0]} has {same[0]} to {same[-1]}" + (
            f" (did you mean {' or '.join(near)}?)" if near else ""
        )
    return f"the letters are {' '.join(LAYERS)}, as in R5"
