"""`gallocheck prove`: the clauses of R, for every size, by induction."""

from __future__ import annotations

import time

from rich.console import Console

from ..spec.prover import PROVED, prove
from ..spec.table import print_table


def run(console: Console, clauses: list[str]) -> int:
    """Proves and prints; 1 where one is refuted or unknown."""
    begin = time.monotonic()
    rows = prove(clauses or None)
    print_table(rows, console)
    names = {r.clause for r in rows}
    bad = {r.clause for r in rows if r.verdict != PROVED}
    console.print(
        f"{len(names) - len(bad)} of {len(names)} clauses proved for unbounded sizes"
        f" in {time.monotonic() - begin:.1f} s"
    )
    return 1 if bad else 0
