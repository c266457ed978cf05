"""The planted defects: of the bundled allocator and, for what only a tree with a scheduler has, of the ggml adapter."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

NATIVE = Path(__file__).parent.parent / "native"
LINE = re.compile(r'^GC_DEFECT\(\s*(\d+)\s*,\s*"(\w+)"\s*,\s*(\w+)\s*,\s*"((?:[^"\\]|\\.)*)"\s*\)', re.M)


@dataclass(frozen=True, slots=True)
class Defect:
    """Planted defect `number` breaks `clause`; `what` is one plain sentence."""

    number: int
    clause: str
    name: str
    what: str


def read(file: Path) -> tuple[Defect, ...]:
    """The defects of one defects.def, in its order."""
    return tuple(
        Defect(int(n), clause, name, what) for n, clause, name, what in LINE.findall(file.read_text())
    )


FILES = [NATIVE / "bundled" / "defects" / f"{letters}.def" for letters in ("pgr", *"csmvqwt")]
DEFECTS = tuple(defect for file in FILES for defect in read(file))
SCHED_DEFECTS = read(NATIVE / "ggml" / "defects.def")  #: need a tree to be built: C1, C2, C5
