"""What the machines claim of one step, clause by clause and part by part: as terms, and where in spec/ it is written."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import z3
from gallocheck import spec
from gallocheck.model.domain import Tree
from gallocheck.model.pair import ROLES
from gallocheck.model.records import Kind, Status
from gallocheck.model.terms import Terms, fresh, leaves
from gallocheck.spec.machine import Config, Machine, Rules
from gallocheck.spec.machines import MACHINES
from gallocheck.spec.step import Rule

from .formulas import claim, meaning, used
from .terms import Reader

Place = tuple[CodeType, int]  #: a function, and a line in it
SPEC = Path(str(spec.__file__)).parent
_SPEC = f"{SPEC}/"
_NO_WORDS = {"kept", "kind", "same", "<lambda>", "<listcomp>", "<genexpr>", "<dictcomp>"}
_GIVEN = {"self", "p", "d"}  #: the step and the domain
AFTER = "\N{PRIME}"  #: marks what is after the step
_DIGITS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_ROLES = dict(zip(ROLES, ("owner", "borrower"), strict=True))


@dataclass(frozen=True)
class Part:
    """One part of a clause. `formula`: over the state before, the operation, the state after, what was seen."""

    name: str
    formula: str
    counts: bool
    place: Place


@dataclass(frozen=True)
class Claims:
    """What one machine claims, at one size."""

    machine: Machine
    config: Config
    parts: dict[str, tuple[Part, ...]]
    words: dict[str, tuple[str, ...]]  #: by clause: what the words in its formulas stand for, each as text


def machines_of(clause: str) -> tuple[Machine, ...]:
    """The machines that are proved to keep the clause."""
    return tuple(m for m in MACHINES if clause in m.clauses)


@cache
def claims(name: str) -> Claims:
    """Of the machine of that name, at its smallest size. All parts of all its clauses."""
    m = next(m for m in MACHINES if m.name == name)
    config = smallest(m)
    rules, making, step = read(m, config)
    reader = Reader(names(step), constant, making.words)
    found, words = {}, {}
    for clause in m.clauses:
        telling = {
            n: r for n, r in rules.get(clause, {}).items() if r.then is not True and r.when is not False
        }
        if not telling:
            raise ValueError(f"{m.name} claims nothing of {clause} at size {config}: its page would be empty")
        nodes = {n: (reader.node(r.when), reader.node(r.then)) for n, r in telling.items()}
        found[clause] = tuple(
            Part(n, claim(*nodes[n]), r.counts, making.places[id(r)]) for n, r in telling.items()
        )
        mine = used([x for pair in nodes.values() for x in pair], reader.meaning)
        words[clause] = tuple(meaning(word, reader.meaning[word]) for word in mine)
    return Claims(m, config, found, words)


def smallest(m: Machine) -> Config:
    """The smallest of its sizes at which every clause has a part."""
    for config in sorted(m.configs, key=lambda c: (len(c), c)):
        rules, _, _ = read(m, config)
        if all(any(r.when is not False for r in rules.get(c, {}).values()) for c in m.clauses):
            return config
    raise ValueError(f"{m.name} has no size at which all of {', '.join(m.clauses)} say something")


def read(m: Machine, config: Config) -> tuple[dict[str, Rules], Making, tuple[Tree, Any, Tree, Any]]:
    """The rules over variables alone, what was seen when they were made, and the variables."""
    model = m.model(Terms(), *config)
    s, op = fresh(m.init(model), "s"), fresh(m.operation(model), "op")
    _, out = model.step(s, op)
    t, out = fresh(m.init(model), "t"), renamed(out, "out")
    with Making() as making:
        rules = m.rules(model, s, op, t, out)
    return rules, making, (s, op, t, out)


def renamed(tree: Tree, name: str) -> Tree:
    """Variables of the tree's shape, whose leaves may be terms."""
    if isinstance(tree, tuple):
        fields = getattr(tree, "_fields", range(len(tree)))
        parts = [renamed(x, f"{name}.{f}") for f, x in zip(fields, tree, strict=True)]
        return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    return z3.Bool(name) if isinstance(tree, bool) or z3.is_bool(tree) else z3.Int(name)


class Making:
    """While it is open: where every Rule is made, by its id, and the names of terms in spec's own words: a term that
    a function gives is called as the function with its numbers, one that an object keeps as its attribute."""

    def __init__(self) -> None:
        self.places: dict[int, Place] = {}
        self.words: dict[int, tuple[Any, str]] = {}
        self.kept: list[Any] = []
        self.taken: dict[str, int] = {}
        self.code = Rule.__new__.__code__  # type: ignore[attr-defined]

    def __enter__(self) -> Making:
        self.before = sys.getprofile()
        sys.setprofile(self._see)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(self.before)

    def _see(self, frame: FrameType, event: str, arg: Any) -> None:
        if event != "return":
            return
        code = frame.f_code
        if code is self.code and frame.f_back is not None:
            self.kept.append(arg)  # so that its id stays its own
            self.places[id(arg)] = (frame.f_back.f_code, frame.f_back.f_lineno)
        elif code.co_filename.startswith(_SPEC):
            if code.co_name == "__init__":
                for name, value in vars(frame.f_locals["self"]).items():
                    self.call(value, name)
            elif code.co_name not in _NO_WORDS and (word := called(frame)):
                self.call(arg, word)

    def call(self, value: Any, word: str) -> None:
        """The first name of a term is kept; a name that two terms would have is none."""
        if not z3.is_expr(value) or z3.is_const(value) or value.get_id() in self.words:
            return
        if self.taken.setdefault(word, value.get_id()) == value.get_id():
            self.words[value.get_id()] = (value, word)
        else:
            self.words.pop(self.taken[word], None)


def called(frame: FrameType) -> str:
    """`had_room(0)`: the function with its numbers; '' where it is given more than the step and numbers."""
    code, given = frame.f_code, frame.f_locals
    values = [given[n] for n in code.co_varnames[: code.co_argcount] if n not in _GIVEN]
    if code.co_flags & inspect.CO_VARARGS:
        values += given[code.co_varnames[code.co_argcount + code.co_kwonlyargcount]]
    if not all(isinstance(v, int) for v in values):
        return ""
    words = ", ".join(v.name if isinstance(v, IntEnum) else str(v) for v in values)
    return code.co_name.strip("_") + (f"({words})" if words else "")


def names(step: tuple[Tree, Any, Tree, Any]) -> Any:
    """A function from the name of a variable to what people read: `asked₀₁` before, with AFTER after, `op.need₀₀`.

    Of a state's fields the last words are taken that tell it from all others.
    """
    s = [str(x) for x in leaves(step[0]) if z3.is_expr(x)]
    short: dict[str, str] = {}
    stems = {_stem(n): None for n in s}
    for stem in stems:
        words = stem.split(".")[1:]
        ends = ([*words[-k:]] for k in range(1, len(words) + 1))
        unique = (e for e in ends if sum(o.split(".")[1:][-len(e) :] == e for o in stems) == 1)
        short[stem[2:]] = ".".join(next(unique, words))

    def name(variable: str) -> str:
        where, _, rest = variable.partition(".")
        stem, indices = _stem(rest), _indices(rest)
        if where in ("s", "t"):
            return short[stem] + (AFTER if where == "t" else "") + indices
        return f"{where}.{stem}{indices}" if rest else variable

    return name


def _stem(path: str) -> str:
    return ".".join(w for w in path.split(".") if not w.isdigit())


def _indices(path: str) -> str:
    return "₋".join(w.translate(_DIGITS) for w in path.split(".") if w.isdigit()).replace("₋", ",")


def constant(variable: str, number: int) -> str:
    """What a number is called that a field is compared with."""
    field = variable.rsplit(".", 1)[-1]
    if field == "kind" and number in list(Kind):
        return Kind(number).name
    if field == "status" and number in list(Status):
        return Status(number).name
    return _ROLES.get(number, "") if field == "role" else ""


def all_parts(clause: str) -> Iterator[tuple[Claims, tuple[Part, ...]]]:
    """Of each machine that is proved to keep the clause."""
    for m in machines_of(clause):
        found = claims(m.name)
        yield found, found.parts[clause]
