"""The mutants of a subject's sources, and those that are known to make no difference."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from .errors import MutantsError
from .lex import line_of
from .operators import Mutation
from .sources import Source
from .statements import mutations

LISTED = Path(__file__).with_name("equivalent.json")
BEYOND = Path(__file__).with_name("beyond.json")
ABOVE = 6


@dataclass(frozen=True, slots=True)
class Mutant:
    """A slip in a file. `line`: its number; `was` and `becomes`: that line, without blanks at its ends;
    `before`: the ABOVE lines above it."""

    key: str
    source: Source
    mutation: Mutation
    line: int
    was: str
    becomes: str
    before: str = ""

    @property
    def where(self) -> str:
        return f"{self.source.name}:{self.line}"


class Listed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mutant that no check can tell from the original. `line` and `becomes` as in Mutant, blanks counted
    as one; `after`: the end of the lines above, where others are alike. `why`: it is equivalent, or cannot be reached, or
    is nobody's to say; one sentence."""

    file: str
    line: str
    becomes: str
    why: str
    after: str = ""


class Beyond(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Functions of a file that are not changed, and why: the contract says nothing of what they do."""

    file: str
    functions: list[str]
    why: str


def of_source(source: Source, beyond: Path = BEYOND) -> list[Mutant]:
    """Every mutant of a file, in its order, but for functions that are beyond the contract."""
    entries = msgspec.json.decode(beyond.read_bytes(), type=list[Beyond])
    left = [n for e in entries if e.file == source.name for n in e.functions]
    spans = [span for name in left for span in _bodies(source.text, name)]
    every = mutations(source.text, source.cpp)
    return [_mutant(source, m) for m in every if not any(a <= m.begin < b for a, b in spans)]


def _bodies(text: str, function: str) -> list[tuple[int, int]]:
    """Where the function is: from the line that names it to the one that closes it, or that line alone."""
    head = (
        rf"^([ \t]*)(?!(?:if|for|while|return|else)\b)[A-Za-z][^;={{}}]*\b{re.escape(function)}\([^;{{}}]*\{{"
    )
    pattern = rf"{head}(?:[^\n]*\}}$|.*?^\1\}}$)"
    return [m.span() for m in re.finditer(pattern, text, re.M | re.S)]


def _mutant(source: Source, mutation: Mutation) -> Mutant:
    text, changed = source.text, mutation.of(source.text)
    number = line_of(text, mutation.begin)
    was, becomes = (t.splitlines()[number - 1].strip() for t in (text, changed))
    name = f"{source.name}\0{mutation.begin}\0{mutation.end}\0{mutation.new}"
    before = "\n".join(text.splitlines()[max(0, number - 1 - ABOVE) : number - 1])
    return Mutant(
        hashlib.sha256(name.encode()).hexdigest()[:16], source, mutation, number, was, becomes, before
    )


def chosen(mutants: Iterable[Mutant], seed: int, most: int | None) -> list[Mutant]:
    """All of them, or a random sample, in random order; a larger sample contains the smaller one."""
    order = sorted(mutants, key=lambda m: hashlib.sha256(f"{seed}/{m.key}".encode()).digest())
    return order[:most]


def plain(text: str) -> str:
    """With single blanks."""
    return re.sub(r"\s+", " ", text).strip()


class Known:
    """The list of mutants that make no difference. Raises MutantsError where it cannot be read."""

    def __init__(self, path: Path = LISTED) -> None:
        try:
            entries = msgspec.json.decode(path.read_bytes(), type=list[Listed])
        except (OSError, msgspec.MsgspecError) as error:
            raise MutantsError(f"{path} is no list of mutants that make no difference: {error}.") from None
        self.by_change: dict[tuple[str, str, str], list[Listed]] = {}
        for e in entries:
            self.by_change.setdefault((e.file, plain(e.line), plain(e.becomes)), []).append(e)

    def why(self, mutant: Mutant) -> str:
        """The reason for which it makes no difference; '' where none is listed."""
        change = (mutant.source.name, plain(mutant.was), plain(mutant.becomes))
        above = plain(mutant.before)
        fits = (e for e in self.by_change.get(change, ()) if above.endswith(plain(e.after)))
        return next((e.why for e in fits), "")
