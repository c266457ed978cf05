"""Imports run one way, by relative path: BELOW says what a room may import; the model needs little."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from gallocheck.fuzz import canary

ROOT = Path(canary.__file__).resolve().parent.parent  #: of the rooms: the checkout, or the installed package
BELOW = {
    "model": set(),
    "spec": {"model"},
    "native": {"model"},
    "fuzz": {"model", "spec", "native"},
    "scenario": {"model", "native"},
    "report": {"model", "spec", "native", "fuzz"},
    "cli": {"model", "spec", "native", "fuzz", "scenario", "report"},
    "suite": {"model", "spec", "native", "fuzz", "report"},
}
#: what each room may use beside the standard library
OUTSIDE = {
    "model": {"numpy", "z3"},
    "spec": {"numpy", "z3", "rich"},
    "native": {"numpy", "cffi"},
    "fuzz": {"msgspec", "hypothesis", "numpy", "rich", "distributed"},
    "scenario": {"matplotlib"},
    "report": {"msgspec", "jinja2", "markupsafe", "rich"},
    "cli": {"typer", "rich"},
    "suite": {"msgspec", "pytest"},
}
FILES = sorted(p for room in BELOW for p in (ROOT / room).rglob("*.py"))


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """(dots, module) of every import in a file, those inside functions too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.module:
                yield node.level, node.module
            else:
                yield from ((node.level, alias.name) for alias in node.names)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_file_imports_only_from_below(path: Path) -> None:
    room = path.relative_to(ROOT).parts[0]
    depth = len(path.relative_to(ROOT).parts) - 1
    for dots, module in imports(path):
        first = module.split(".")[0]
        if dots == 0:
            assert first != "gallocheck", f"{module}: by relative path"
            assert first in sys.stdlib_module_names or first in OUTSIDE[room], module
        elif dots > depth:
            assert dots == depth + 1 and first in BELOW[room] | {room}, f"{room} imports {module}"


def test_only_two_files_of_the_model_need_more_than_the_standard_library() -> None:
    heavy = {
        name_of(path)
        for path in FILES
        if path.is_relative_to(ROOT / "model")
        for dots, module in imports(path)
        if dots == 0 and module.split(".")[0] not in sys.stdlib_module_names
    }
    assert heavy <= {"model/lanes.py", "model/terms.py"}


def test_every_room_is_there() -> None:
    assert {name_of(p).split("/")[0] for p in FILES} == set(BELOW)
