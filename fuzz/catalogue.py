"""The planted defects of the bundled allocator, read from native/bundled/defects.def."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).parent.parent / "native" / "bundled" / "defects.def"
LINE = re.compile(r'^GC_DEFECT\(\s*(\d+)\s*,\s*"(\w+)"\s*,\s*(\w+)\s*,\s*"((?:[^"\\]|\\.)*)"\s*\)', re.M)


@dataclass(frozen=True, slots=True)
class Defect:
    """Planted defect `number` breaks `clause`; `what` is one plain sentence."""

    number: int
    clause: str
    name: str
    what: str


DEFECTS: tuple[Defect, ...] = tuple(
    Defect(int(n), clause, name, what) for n, clause, name, what in LINE.findall(FILE.read_text())
)
