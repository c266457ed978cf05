"""Mutants of a few lines of the toy subject (tests/native/toy.c), in a process that can be killed."""

from __future__ import annotations

import sys
from pathlib import Path

from gallocheck.fuzz.mutants.catalogue import Mutant, of_source
from gallocheck.fuzz.mutants.hands import Hands
from gallocheck.fuzz.mutants.run import State, Work
from gallocheck.fuzz.mutants.sources import Source
from gallocheck.fuzz.mutants.store import Store
from gallocheck.native.header import HEADER
from gallocheck.native.tree_build import Parts

TOY = Path(__file__).parents[1] / "native" / "toy.c"
FACTS: dict[str, object] = {"subject": "toy"}


def source() -> Source:
    compiles = ("cc", "-std=gnu11", "-fPIC", f"-I{HEADER.parent}")
    return Source(TOY.name, TOY, TOY.read_text(), Parts(TOY, compiles, (), ("cc", "-shared"), ()), ("plan",))


def mutants(first: str, last: str) -> list[Mutant]:
    """Those from the line that begins with `first` to the next that begins with `last`."""
    lines = [line.strip() for line in TOY.read_text().splitlines()]
    begin = next(i for i, line in enumerate(lines) if line.startswith(first))
    end = next(i for i, line in enumerate(lines) if i > begin and line.startswith(last))
    found = [m for m in of_source(source()) if begin < m.line <= end + 1]
    return [m for m in found if "memset" not in m.was]


def work(folder: Path, seconds: float = 0.5) -> tuple[State, dict[str, str]]:
    """Checks those of the toy that opens; how far it came, and by mutant what came of it."""
    with Store(folder) as store, Hands(1) as hands:
        store.begin(FACTS)
        state = Work(store, mutants("gc_session * gc_open", "return s;"), 1, seconds).run(
            hands, lambda _: None
        )
        return state, {key: row.state for key, row in store.rows().items()}


if __name__ == "__main__":
    work(Path(sys.argv[1]))
