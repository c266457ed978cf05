"""Where a clause is checked: modules, capabilities, tests; read from the code."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from gallocheck.fuzz.applies import applies, declared
from gallocheck.model.records import Cap
from gallocheck.spec.clauses import Clause

from .code import PACKAGE, source

ROOT = Path(__file__).parents[3]  #: of the working tree


def files(c: Clause) -> list[str]:
    """The files of the modules that the contract names for it."""
    return [module.strip().replace(".", "/") + ".py" for module in c.where.split(",")]


@cache
def judging() -> tuple[str, ...]:
    """The files that may judge a run."""
    return tuple(
        f"{room}/{p.name}" for room in ("spec", "fuzz") for p in sorted((PACKAGE / room).glob("*.py"))
    )


def modules(c: Clause) -> list[tuple[str, str]]:
    """Each file with the first sentence of what it says of itself."""
    found = []
    for file in files(c):
        words = ast.get_docstring(ast.parse(source(file))) or ""
        found.append((file, words.split("\n\n")[0].replace("\n", " ")))
    return found


def capabilities(c: Clause) -> str:
    """The fewest capabilities that make a clause apply, alternatives joined by 'or'."""
    alone = [cap for cap in Cap if applies(c.id, cap)]
    if alone:
        lacks = "" if applies(c.id, alone[0] | Cap.NO_MEASURE) else f", and not `{declared(Cap.NO_MEASURE)}`"
        return " or ".join(f"`{declared(cap)}`" for cap in alone) + lacks
    pairs = [a | b for a in Cap for b in Cap if a < b and applies(c.id, a | b)]
    if not pairs:
        raise ValueError(f"no two capabilities make {c.id} apply")
    return " or ".join(f"`{declared(pair)}`" for pair in pairs)


@cache
def _tests() -> dict[str, str]:
    return {
        p.relative_to(ROOT).as_posix(): p.read_text() for p in sorted((ROOT / "tests").rglob("test_*.py"))
    }


def tests(c: Clause) -> list[str]:
    """The test files that speak of the clause; tests/defects hunts for the defects of all."""
    mine = [name for name, text in _tests().items() if re.search(rf"\b{c.id}\b", text)]
    return sorted({*mine, "tests/defects/test_found.py"})
