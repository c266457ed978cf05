"""The project's own source: a function by where it is, as its text, with its file and lines."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gallocheck import model

from .markdown import fence

PACKAGE = Path(str(model.__file__)).parents[1]  #: its folders are the rooms: model, spec, fuzz, ...


@dataclass(frozen=True)
class Function:
    """A function or class; `first` and `last` are lines of `file` (below the project's root)."""

    file: str
    name: str
    first: int
    last: int

    @property
    def where(self) -> str:
        return f"{self.file}, lines {self.first} to {self.last}"

    def text(self) -> str:
        lines = source(self.file).splitlines()[self.first - 1 : self.last]
        indent = min(len(x) - len(x.lstrip()) for x in lines if x.strip())
        return "\n".join(x[indent:] for x in lines)


def name_of(path: str | Path) -> str:
    """A source file's name below the project's root. Raises ValueError for a file of others."""
    return Path(path).relative_to(PACKAGE).as_posix()


@cache
def source(file: str) -> str:
    return (PACKAGE / file).read_text()


@cache
def walked(file: str) -> tuple[ast.AST, ...]:
    """Every node of a file."""
    return tuple(ast.walk(ast.parse(source(file))))


@cache
def nodes(file: str) -> tuple[ast.FunctionDef | ast.ClassDef, ...]:
    """Every function and class of a file."""
    return tuple(n for n in walked(file) if isinstance(n, (ast.FunctionDef, ast.ClassDef)))


def first_line(node: ast.FunctionDef | ast.ClassDef) -> int:
    return min([node.lineno, *(d.lineno for d in node.decorator_list)])


def qualified(node: ast.FunctionDef | ast.ClassDef, file: str) -> str:
    """`Step.want`: with the class around it."""
    around = [
        n.name
        for n in nodes(file)
        if isinstance(n, ast.ClassDef)
        and n.lineno < node.lineno
        and (n.end_lineno or 0) >= (node.end_lineno or 0)
    ]
    return ".".join([*around, node.name])


def function_at(file: str, line: int) -> Function | None:
    """The method or function of the module around a line (not one inside another)."""
    found = [
        n
        for n in nodes(file)
        if isinstance(n, ast.FunctionDef) and first_line(n) <= line <= (n.end_lineno or 0)
    ]
    if not found:
        return None
    outer = max(found, key=lambda n: (n.end_lineno or 0) - n.lineno)
    return Function(file, qualified(outer, file), first_line(outer), outer.end_lineno or 0)


def class_named(file: str, name: str) -> Function:
    node = next(n for n in nodes(file) if n.name == name)
    return Function(file, name, first_line(node), node.end_lineno or 0)


def functions_saying(file: str, word: str) -> list[Function]:
    """The functions of a file that have the word as a text of their own: those that blame a clause."""
    found = {}
    for node in walked(file):
        if isinstance(node, ast.Constant) and node.value == word and (f := function_at(file, node.lineno)):
            found[f.first] = f
    return [found[k] for k in sorted(found)]


def shown(function: Function, lines: Iterable[int] = ()) -> str:
    """The function as a block, some of its lines (of the file) marked."""
    marked = sorted({n - function.first + 1 for n in lines if function.first <= n <= function.last})
    options = [":lineno-start: " + str(function.first)]
    if marked:
        options.append(":emphasize-lines: " + ",".join(map(str, marked)))
    return fence(function.text(), "python", *options)


def statement(file: str, line: int) -> Sequence[int]:
    """All lines of the innermost entry (of a mapping, or a statement) that the line is in."""
    best: tuple[int, int] = (line, line)
    size = 10**9
    for node in walked(file):
        spans = []
        if isinstance(node, ast.Dict):
            spans = [(k.lineno, v.end_lineno or 0) for k, v in zip(node.keys, node.values, strict=True) if k]
        elif isinstance(node, ast.stmt) and not isinstance(
            node, (ast.FunctionDef, ast.ClassDef, ast.For, ast.If)
        ):
            spans = [(node.lineno, node.end_lineno or 0)]
        for a, b in spans:
            if a <= line <= b and b - a < size:
                best, size = (a, b), b - a
    return range(best[0], best[1] + 1)
