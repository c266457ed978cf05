"""Which branches of the model are taken: every `ite`, `choose` and `switch` of its rules, arm by arm.

    with Covered() as branches:
        ...                 # the model runs over Ints
        branches.take()     # what was taken since the last call

The rules are written over a domain, so a branch is a call of the domain's. `total` counts the arms in the
model's source; the layers around the rules (sessions, the planner), which branch as Python does, have none.
"""

from __future__ import annotations

import ast
import sys
import zlib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

from ..model import domain
from ..model.domain import Arm, Ints, Tree, Value

FOLDER = Path(domain.__file__).resolve().parent
#: not rules: the domains themselves
_NOT_RULES = {"domain.py", "lanes.py", "terms.py"}
_NAMES = {"ite", "choose", "switch"}
_POSITIONS = hasattr(CodeType, "co_positions")  # Python 3.10 knows lines alone: branches of a line are one


class Site(NamedTuple):
    """A call of the domain's, by file below model/, line and column (-1: not known)."""

    file: str
    line: int
    column: int


class Way(NamedTuple):
    """One way through a branch. `arm`: 1 where the condition holds, else 0; of a switch its key, -1: the other."""

    site: Site
    arm: int


class Named(NamedTuple):
    """A way that is found again when lines move: by the text of its line, and which of the calls on such lines."""

    file: str
    text: str
    nth: int
    arm: int


class Covered:
    """While it is open, the domain Ints notes which arms are taken. One at a time."""

    def __init__(self) -> None:
        self.taken: set[tuple[int, int, int]] = set()  # (id of the code, instruction, arm)
        self.codes: dict[int, CodeType] = {}
        self.known: dict[tuple[int, int, int], int | None] = {}

    def __enter__(self) -> Covered:
        self.before = {name: Ints.__dict__[name] for name in _NAMES}
        for name, noting in self.noting().items():
            setattr(Ints, name, staticmethod(noting))
        return self

    def __exit__(self, *_: object) -> None:
        for name, plain in self.before.items():
            setattr(Ints, name, plain)

    def noting(self) -> dict[str, Any]:
        """The three functions; each notes who called it."""
        taken, codes, frame = self.taken, self.codes, sys._getframe

        def ite(c: Value, a: Tree, b: Tree) -> Tree:
            caller = frame(1)
            code = caller.f_code
            taken.add((id(code), caller.f_lasti, 1 if c else 0))
            codes[id(code)] = code
            return a if c else b

        def choose(c: Value, a: Arm, b: Arm) -> Tree:
            caller = frame(1)
            code = caller.f_code
            taken.add((id(code), caller.f_lasti, 1 if c else 0))
            codes[id(code)] = code
            return a() if c else b()

        def switch(code: Value, arms: Mapping[int, Arm], other: Arm) -> Tree:
            caller = frame(1)
            here = caller.f_code
            taken.add((id(here), caller.f_lasti, int(code) if code in arms else -1))
            codes[id(here)] = here
            return arms.get(code, other)()

        return {"ite": ite, "choose": choose, "switch": switch}

    def take(self) -> set[int]:
        """The arms of the model's rules taken since this was last called, as numbers of 32 bits: the same in
        every process and on every machine, as long as the model's source is the same."""
        found = {self.number(key) for key in self.taken}
        self.taken.clear()
        return {n for n in found if n is not None}

    def ways(self) -> set[Way]:
        """As `take`, by place."""
        found = [(_place(self.codes[code], instruction), arm) for code, instruction, arm in self.taken]
        self.taken.clear()
        return {Way(at, arm) for at, arm in found if at is not None}

    def number(self, key: tuple[int, int, int]) -> int | None:
        """None: of no rule of the model's."""
        if key not in self.known:
            code, instruction, arm = key
            at = site(self.codes[code], instruction)
            self.known[key] = None if at is None else zlib.crc32(f"{at} {arm}".encode())
        return self.known[key]


_places: dict[tuple[int, int], tuple[CodeType, Site | None]] = {}  # the code is kept, and so its id


def _place(code: CodeType, instruction: int) -> Site | None:
    """As `site`, worked out once."""
    key = id(code), instruction
    if key not in _places:
        _places[key] = code, site(code, instruction)
    return _places[key][1]


def site(code: CodeType, instruction: int) -> Site | None:
    """Where in the model the call is that the instruction (an offset in bytes) makes; None: elsewhere."""
    path = Path(code.co_filename).resolve()
    if path.name in _NOT_RULES or FOLDER not in path.parents:
        return None
    name = path.relative_to(FOLDER).as_posix()
    if not _POSITIONS:
        line = max((b[2] for b in code.co_lines() if b[0] <= instruction and b[2]), default=0)
        return Site(name, line or 0, -1)
    positions: list[tuple] = list(getattr(code, "co_positions")())  # noqa: B009 (3.11)
    line, _, column, _ = positions[instruction // 2]
    return Site(name, line or 0, -1 if column is None else column)


@cache
def sites() -> dict[Site, int]:
    """Every call of the domain's in the model's rules, and how many arms it has."""
    found: dict[Site, int] = {}
    for path in sorted(FOLDER.rglob("*.py")):
        if path.name not in _NOT_RULES:
            for at, arms in _calls(path):
                found[at] = max(found.get(at, 0), arms)
    return found


@cache
def _by_text() -> dict[tuple[str, str], list[Site]]:
    """The sites on lines of one text, in order."""
    lines = {name: (FOLDER / name).read_text().splitlines() for name in {at.file for at in sites()}}
    found: dict[tuple[str, str], list[Site]] = {}
    for at in sorted(sites()):
        found.setdefault((at.file, lines[at.file][at.line - 1].strip()), []).append(at)
    return found


@cache
def _texts() -> dict[Site, tuple[str, str, int]]:
    return {at: (*key, n) for key, places in _by_text().items() for n, at in enumerate(places)}


def named(way: Way) -> Named:
    """The way's name. KeyError where there is no such branch."""
    return Named(*_texts()[way.site], way.arm)


def find(name: Named) -> Way | None:
    """The way of that name; None where the model has no such line any more."""
    places = _by_text().get((name.file, name.text), [])
    if not _POSITIONS and places:  # calls on a line are one
        return Way(places[min(name.nth, len(places) - 1)], name.arm)
    return Way(places[name.nth], name.arm) if name.nth < len(places) else None


def total() -> int:
    """How many arms the model's rules have in all."""
    return sum(sites().values())


def _calls(path: Path) -> Iterator[tuple[Site, int]]:
    name = path.relative_to(FOLDER).as_posix()
    tree = ast.parse(path.read_text())
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr in _NAMES:
            arms = 2
            if node.func.attr == "switch":
                around = [f for f in functions if f.lineno <= node.lineno <= (f.end_lineno or 0)]
                arms = 1 + _keys(node.args[1], around)
            yield Site(name, node.lineno, node.col_offset if _POSITIONS else -1), arms


def _keys(arms: ast.expr, around: list[ast.FunctionDef]) -> int:
    """How many keys the mapping `arms` has: written there, or made by the functions around the call."""
    if isinstance(arms, ast.Dict):
        return len(arms.keys)
    for function in reversed(around):
        keys = 0
        for node in ast.walk(function):
            if isinstance(node, (ast.Assign, ast.AugAssign)) and _named(node, "arms"):
                keys += _written(node.value)
        if keys:
            return keys
    return 0


def _named(node: ast.Assign | ast.AugAssign, name: str) -> bool:
    target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
    return isinstance(target, ast.Name) and target.id == name


def _written(value: ast.expr) -> int:
    if isinstance(value, ast.Dict):
        return len(value.keys)
    if isinstance(value, ast.DictComp) and isinstance(value.generators[0].iter, ast.Tuple):
        return len(value.generators[0].iter.elts)
    return 0
